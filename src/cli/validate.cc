#include "cli/validate.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/config.h"
#include "app/config_duration.h"
#include "k8s-client/auth/file.h"

namespace dhc::cli {

namespace {
// The parser itself takes less; this bounds what is held of a device or a pipe without end.
constexpr std::size_t kMostBytes = std::size_t{16} << 20;

Result<std::string> read_standard_input() {
  std::string text;
  std::array<char, 64UL * 1024> piece{};
  while (text.size() <= kMostBytes) {
    const auto got = ::read(STDIN_FILENO, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(ErrorKind::Invalid, fmt::format("standard input: {}", std::strerror(errno)));
    if (got == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  return fail(ErrorKind::Invalid, "standard input: larger than 16 MiB");
}

std::string summary_of(const DevicePolicy& policy) {
  const auto evicts = policy.evict ? fmt::format("evicts after another {}", format_duration(policy.evict->after))
                                   : std::string("evicts nothing");
  return fmt::format("policy {}: priority {}, mode {}, after {}, {}\n", policy.name, policy.priority,
                     to_string(policy.mode), format_duration(policy.after), evicts);
}

std::string summary_of(const Config& config) {
  std::string text;
  for (const auto& policy : config.policies) text += summary_of(policy);
  const auto& limits = config.limits;
  text += fmt::format(
      "limits{}: {}{} evictions a minute, {} in flight, {} a node, {} an owner; brake above {} % and {} "
      "devices within {}\n",
      config.limits_given ? "" : " (defaults)", limits.paused ? "PAUSED, " : "", limits.evictions_per_minute,
      limits.max_in_flight, limits.per_node, limits.per_owner, limits.brake_percent, limits.brake_at_least,
      format_duration(limits.brake_within));
  return text + "valid\n";
}
}  // namespace

Printed validate(const ValidateOptions& options) {
  std::vector<ConfigFile> files;
  for (const auto& name : options.files) {
    auto text = name == "-" ? read_standard_input() : k8s::read_file(name, kMostBytes);
    if (!text) return {.code = 1, .out = {}, .err = fmt::format("error: {}\n", text.error().message)};
    files.push_back({.name = name == "-" ? "<stdin>" : name, .text = std::move(*text)});
  }
  const auto config = parse_config(files);
  if (config) return {.code = 0, .out = summary_of(*config), .err = {}};
  Printed printed{.code = 1, .out = {}, .err = {}};
  for (const auto& mistake : config.error()) {
    printed.out +=
        fmt::format("{}:{}:{}: {}; {}\n", mistake.file, mistake.line, mistake.column, mistake.message, mistake.remedy);
  }
  printed.err = fmt::format("{} {}\n", config.error().size(), config.error().size() == 1 ? "mistake" : "mistakes");
  return printed;
}

}  // namespace dhc::cli
