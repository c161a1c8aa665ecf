#include "cli/policy_test.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "app/policy_desk.h"
#include "cli/config_files.h"
#include "domain/policy/config_duration.h"
#include "domain/policy/config_text.h"
#include "k8s-client/auth/file.h"

namespace dhc::cli {

namespace {

constexpr std::size_t kMostBytesOfCases = std::size_t{1} << 20;

/// In text and in attributes; what XML cannot hold becomes a question mark.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t' ? '?' : c;
    }
  }
  return out;
}

/// A file that a test names, relative to the test's own.
std::string beside(const std::string& file, const std::string& name) {
  if (name.starts_with('/')) return name;
  const auto slash = file.rfind('/');
  return slash == std::string::npos ? name : file.substr(0, slash + 1) + name;
}

/// The configuration of a case; what is wrong with it, in lines.
std::expected<Policy, std::vector<std::string>> policy_of_case(const PolicyCase& one) {
  const auto failed_at = [&](TextPlace place, const Error& error) {
    return std::unexpected(std::vector{fmt::format("{}:{}:{}: {}", one.file, place.line, place.column, error.message)});
  };
  std::vector<std::string> names;
  for (const auto& name : one.policies) names.push_back(beside(one.file, name));
  auto config = read_config_files(names);
  for (std::size_t i = 0; !config && i < names.size(); ++i) {
    if (const auto alone = read_config_files({names[i]}); !alone)
      return failed_at(one.policy_places.at(i), alone.error());
  }
  if (!config) return failed_at(one.place, config.error());
  if (!*config) {
    std::vector<std::string> lines;
    for (const auto& mistake : config->error()) lines.push_back(format_mistake(mistake));
    return std::unexpected(std::move(lines));
  }
  auto policy = policy_of(*std::move(config));
  if (!policy) return failed_at(one.place, policy.error());
  return *std::move(policy);
}

Status write_file(const std::string& name, const std::string& text) {
  std::FILE* file = std::fopen(name.c_str(), "wb");
  bool is_good = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr) is_good = std::fclose(file) == 0 && is_good;
  if (!is_good) return fail(ErrorKind::Invalid, fmt::format("{}: {}", name, std::strerror(errno)));
  return {};
}

}  // namespace

std::string junit_of(const std::vector<TestedCase>& cases) {
  const auto is_failed = [](const TestedCase& one) { return !one.result.failures.empty(); };
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"device-health-controller test\" "
      "tests=\"{}\" failures=\"{}\">\n",
      cases.size(), std::ranges::count_if(cases, is_failed));
  for (auto first = cases.begin(); first != cases.end();) {
    const auto end = std::find_if(first, cases.end(), [&](const TestedCase& one) { return one.file != first->file; });
    text += fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\">\n", escaped(first->file), end - first,
                        std::count_if(first, end, is_failed));
    for (; first != end; ++first) {
      text += fmt::format("    <testcase name=\"{}\" classname=\"{}\"", escaped(first->name), escaped(first->file));
      if (!is_failed(*first)) {
        text += "/>\n";
        continue;
      }
      std::string lines;
      for (const auto& failure : first->result.failures) lines += failure + "\n";
      text += fmt::format(">\n      <failure message=\"{}\">{}</failure>\n    </testcase>\n",
                          escaped(first->result.failures.front()), escaped(lines));
    }
    text += "  </testsuite>\n";
  }
  return text + "</testsuites>\n";
}

Printed test_policies(const TestOptions& options) {
  Printed printed;
  std::vector<TestedCase> tested;
  for (const auto& name : options.files) {
    const auto text = k8s::read_file(name, kMostBytesOfCases);
    if (!text) return failure(text.error().message);
    const auto cases = parse_cases({.name = name, .text = *text});
    if (!cases) {
      TestedCase broken{.file = name, .name = "(the file)", .result = {}};
      for (const auto& mistake : cases.error()) broken.result.failures.push_back(format_mistake(mistake));
      tested.push_back(std::move(broken));
      continue;
    }
    for (const auto& one : *cases) {
      TestedCase done{.file = name, .name = one.name, .result = {}};
      auto policy = policy_of_case(one);
      if (policy) {
        done.result = play_case(one, *std::move(policy));
      } else {
        done.result.failures = std::move(policy.error());
      }
      tested.push_back(std::move(done));
    }
  }
  std::size_t failed = 0;
  for (const auto& one : tested) {
    const bool is_good = one.result.failures.empty();
    failed += is_good ? 0 : 1;
    printed.out += is_good ? fmt::format("ok    {} {} ({})\n", one.file, one.name, format_duration(one.result.played))
                           : fmt::format("FAIL  {} {}\n", one.file, one.name);
    for (const auto& failure : one.result.failures) printed.out += "      " + failure + "\n";
  }
  printed.out += fmt::format("{} of {} passed\n", tested.size() - failed, tested.size());
  printed.code = failed == 0 ? 0 : 1;
  if (options.junit.empty()) return printed;
  if (const auto written = write_file(options.junit, junit_of(tested)); !written) {
    printed.err = fmt::format("error: {}\n", written.error().message);
    printed.code = 1;
  }
  return printed;
}

}  // namespace dhc::cli
