#include "domain/incidents/ailing_state.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include <nlohmann/json.hpp>

#include "base/json_put.h"
#include "base/json_read.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "base/rfc3339.h"
#include "domain/incidents/state_reader.h"

namespace dhc {

namespace {
using Json = nlohmann::ordered_json;

/// As long as a text of the state is read back.
constexpr std::size_t kLongestSaid = 300;
/// Of one pod.
constexpr std::size_t kMostDevices = 16;

Json ailing_json(const AilingPod& pod) {
  Json json = {{"namespace", pod.ns}, {"uid", pod.uid}, {"job", pod.job_uid}, {"seen", format_rfc3339(pod.seen)}};
  put(json, "ended", pod.ended);
  Json devices = Json::array();
  for (const auto& device : pod.devices) {
    if (devices.size() == kMostDevices) break;
    Json one = {{"source", to_string(device.key.source)},
                {"scope", device.key.scope},
                {"place", device.key.place},
                {"device", device.key.device}};
    put(one, "tainted", device.source == SignalSource::Taint);
    put(one, "word", device.word);
    put(one, "said", printable_cut(device.said, kLongestSaid));
    devices.push_back(std::move(one));
  }
  json["devices"] = std::move(devices);
  return json;
}

AilingPod::Device read_ailing_device(StateReader& reader) {
  AilingPod::Device device;
  device.key = read_key(reader);
  if (!device.key.is_device()) reader.bad();
  bool is_tainted = false;
  reader.flag("tainted", is_tainted);
  if (is_tainted) device.source = SignalSource::Taint;
  reader.text("word", device.word);
  reader.text("said", device.said);
  return device;
}

std::optional<AilingPod> read_ailing(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  StateReader reader(json);
  AilingPod pod;
  reader.name("namespace", pod.ns);
  reader.name("uid", pod.uid);
  reader.name("job", pod.job_uid);
  reader.time("seen", pod.seen);
  reader.flag("ended", pod.ended);
  reader.entries("devices", pod.devices, read_ailing_device);
  const bool is_whole = !pod.ns.empty() && !pod.uid.empty() && !pod.job_uid.empty() && !pod.devices.empty();
  return reader.good() && is_whole ? std::optional(std::move(pod)) : std::nullopt;
}

}  // namespace

std::string ailing_state_text(const std::vector<AilingPod>& pods, std::size_t limit) {
  std::vector<const AilingPod*> newest_first;
  for (const auto& pod : pods) newest_first.push_back(&pod);
  std::ranges::sort(newest_first, [](const AilingPod* a, const AilingPod* b) {
    return std::tie(b->seen, a->uid) < std::tie(a->seen, b->uid);
  });
  std::string text;
  for (const auto* pod : newest_first) {
    const auto piece = json_text(ailing_json(*pod));
    if (text.size() + piece.size() + 2 > limit) break;
    text += (text.empty() ? '[' : ',') + piece;
  }
  return text.empty() ? text : text + ']';
}

std::vector<AilingPod> parse_ailing_state(std::string_view text) {
  std::vector<AilingPod> pods;
  const Json json = read_json<Json>(text);
  if (!json.is_array()) return pods;
  for (const auto& item : json) {
    if (auto pod = read_ailing(item)) pods.push_back(*std::move(pod));
  }
  return pods;
}

}  // namespace dhc
