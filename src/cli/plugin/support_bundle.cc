#include "cli/plugin/support_bundle.h"

#include <fcntl.h>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/clock.h"
#include "app/signals.h"
#include "base/json_field.h"
#include "base/json_read.h"
#include "base/rfc3339.h"
#include "base/version.h"
#include "cli/plugin/bundle.h"
#include "cli/plugin/status_reader.h"
#include "domain/contract/names.h"
#include "domain/contract/state_names.h"
#include "k8s-client/protocol/object_path.h"
#include "k8s-client/protocol/watch_requests.h"

namespace dhc::cli {

namespace {
using OrderedJson = nlohmann::ordered_json;

constexpr int kLogLines = 5000;
constexpr std::size_t kLogBytes = std::size_t{4} << 20;
constexpr std::string_view kSelector = "labelSelector=app.kubernetes.io%2Fname%3Ddevice-health-controller";

class Collector {
 public:
  Collector(const k8s::Client& client, const std::string& ns, std::stop_token stop)
      : client_(client), ns_(ns), stop_(std::move(stop)), in_ns_("/namespaces/" + k8s::percent_encode(ns)) {}

  [[nodiscard]] std::vector<BundleFile> collect() {
    add("program.txt", fmt::format("{}\n", version()));
    read("server-version.json", "/version");
    read("status.json", "/api/v1" + in_ns_ + "/configmaps/" + std::string(kStatusName));
    read("state.json", "/api/v1" + in_ns_ + "/configmaps/" + std::string(kIncidentsName));
    read("configuration.json", "/api/v1" + in_ns_ + "/configmaps/device-health-controller");
    read("lease.json", "/apis/coordination.k8s.io/v1" + in_ns_ + "/leases/" + std::string(kLeaseName));
    read("deployments.json", "/apis/apps/v1" + in_ns_ + "/deployments?" + std::string(kSelector));
    read("events.json", "/api/v1" + in_ns_ + "/events");
    read_rules();
    read_nodes();
    for (const auto& pod : read_pods()) read_log(pod);
    add("tables.txt", tables());
    add("not-read.txt", problems_.empty() ? "everything was read\n" : problems_);
    return std::move(files_);
  }

  /// What was not read, a line each.
  [[nodiscard]] const std::string& problems() const { return problems_; }
  /// Whether the server has given anything.
  [[nodiscard]] bool has_read() const { return has_read_; }

 private:
  void add(std::string name, std::string text) { files_.push_back({.name = std::move(name), .text = std::move(text)}); }

  [[nodiscard]] std::optional<std::string> get(const std::string& name, const std::string& path) {
    const auto answer = client_.call(k8s::read_request(path), stop_);
    has_read_ = has_read_ || answer.has_value();
    if (answer) return answer->body;
    problems_ += fmt::format("{}: {}\n", name, answer.error().message);
    return std::nullopt;
  }

  static std::string indented(const OrderedJson& json) {
    return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
  }

  std::optional<OrderedJson> read_json(const std::string& name, const std::string& path) {
    const auto body = get(name, path);
    if (!body) return std::nullopt;
    auto json = dhc::read_json<OrderedJson>(*body);
    if (json.is_object()) return json;
    problems_ += name + ": the answer is no JSON object\n";
    return std::nullopt;
  }

  void read(const std::string& name, const std::string& path) {
    if (const auto json = read_json(name, path)) add(name, indented(redacted(*json)));
  }

  void read_rules() {
    for (std::size_t version = 0; version < k8s::version_count(k8s::Kind::DeviceTaintRule); ++version) {
      const auto api = std::string(k8s::api_version_of(k8s::Kind::DeviceTaintRule, version));
      const auto answer = client_.call(k8s::read_request("/apis/" + api + "/devicetaintrules"), stop_);
      if (!answer && answer.error().kind == ErrorKind::NotFound) continue;
      if (!answer) problems_ += fmt::format("devicetaintrules.json: {}\n", answer.error().message);
      if (answer) add("devicetaintrules.json", indented(redacted(dhc::read_json<OrderedJson>(answer->body))));
      return;
    }
    problems_ += "devicetaintrules.json: the API server serves none\n";
  }

  void read_nodes() {
    if (const auto json = read_json("nodes.json", "/api/v1/nodes")) add("nodes.json", indented(node_summary(*json)));
  }

  std::vector<std::string> read_pods() {
    std::vector<std::string> names;
    const auto json = read_json("pods.json", "/api/v1" + in_ns_ + "/pods?" + std::string(kSelector));
    if (!json) return names;
    add("pods.json", indented(redacted(*json)));
    for (const auto& pod : json_list(*json, {"items"})) names.push_back(json_string(pod, {"metadata", "name"}));
    return names;
  }

  void read_log(const std::string& pod) {
    if (!k8s::is_path_segment(pod)) return;
    const auto path = fmt::format("/api/v1{}/pods/{}/log?tailLines={}&limitBytes={}", in_ns_, k8s::percent_encode(pod),
                                  kLogLines, kLogBytes);
    if (auto text = get("log of " + pod, path)) add(fmt::format("log-{}.txt", pod.substr(0, 80)), *std::move(text));
  }

  [[nodiscard]] std::string tables() {
    const auto sight = read_status(client_, ns_, stop_);
    if (!sight) return sight.error().message + "\n";
    std::string text;
    for (const auto& note : notes_of(*sight)) text += note + "\n";
    for (const auto& lines :
         {devices_lines(*sight, {}, true), incidents_lines(*sight, {}, true), lemons_lines(*sight, true)})
      text += "\n" + table_of(lines);
    return text;
  }

  const k8s::Client& client_;
  const std::string ns_;
  const std::stop_token stop_;
  const std::string in_ns_;
  std::vector<BundleFile> files_;
  std::string problems_;
  bool has_read_ = false;
};

/// For the caller alone, and never over a file that is there.
Status write_new(const std::string& file, const std::string& bytes) {
  const int out = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (out < 0) return fail(ErrorKind::Invalid, fmt::format("{} cannot be made; is it there already?", file));
  std::size_t written = 0;
  while (written < bytes.size()) {
    const auto count = ::write(out, bytes.data() + written, bytes.size() - written);
    if (count <= 0) break;
    written += static_cast<std::size_t>(count);
  }
  const bool is_closed = ::close(out) == 0;
  if (written == bytes.size() && is_closed) return {};
  return fail(ErrorKind::Invalid, fmt::format("{} could not be written in full", file));
}

std::string stamp(WallTime now) {
  auto text = format_rfc3339(now);
  std::erase_if(text, [](char c) { return c == ':' || c == '-'; });
  return text;
}
}  // namespace

Printed support_bundle(const BundleOptions& options) {
  const Signals signals;
  const auto token = signals.token();
  const auto connection = connect_to(options.cluster);
  if (!connection) return failure("no access to a cluster: " + connection.error().message);
  if (!k8s::is_path_segment(options.cluster.controller_ns))
    return failure("--controller-namespace does not fit in a path");
  const auto now = wall_now();
  const auto name = "device-health-" + stamp(now);
  Collector collector(*connection->client, options.cluster.controller_ns, token);
  const auto files = collector.collect();
  if (token.stop_requested()) return failure("stopped");
  const auto file = options.file.empty() ? name + ".tar" : options.file;
  if (const auto written = write_new(file, tar_of(name, files, now)); !written) return failure(written.error().message);
  std::string list;
  for (const auto& one : files) list += fmt::format("  {} ({} bytes)\n", one.name, one.text.size());
  // Whoever may read a part sends that part.
  return {.code = collector.has_read() ? 0 : 1,
          .out = fmt::format("{}: {} files\n{}Values of environment variables and annotations of others are left out. "
                             "It names nodes, pods and namespaces: read it before you send it.\n",
                             file, files.size(), list),
          .err = collector.problems().empty() ? std::string() : "not read:\n" + collector.problems()};
}

}  // namespace dhc::cli
