#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/moment.h"
#include "domain/cluster/resolution.h"

namespace dhc {

/// A DRA driver, or a device plugin by its resource.
struct Speaker {
  DeviceKey::Source source = DeviceKey::Source::Dra;
  SharedText scope;  ///< As in DeviceKey.
  friend auto operator<=>(const Speaker&, const Speaker&) = default;
};

/// What one running pod lets be heard of one reporter.
struct Heard {
  Speaker who;
  std::int64_t held = 0;      ///< Its devices on the pod.
  std::int64_t reported = 0;  ///< Of them, those of which the kubelet says anything, Unknown included.
  bool has_spoken = false;    ///< By a report other than Unknown.
};

/// By reporter, each once. Where the kubelet says nothing, a plugin's devices are known by the pod's requests alone,
/// and count as one.
[[nodiscard]] SlimVector<Heard> heard_of(const k8s::Pod& pod, std::span<const HeldDevice> held_devices);

/// What running pods of one node let be heard of one reporter now.
struct NodeSight {
  std::int64_t held = 0;      ///< Its devices on them, counted once for each pod.
  std::int64_t reported = 0;  ///< Of them, those of which the kubelet says anything, Unknown included.
  Moment since;               ///< Since when some have been held without a break.
};

/// What has been heard of one reporter since this process began.
struct SpeakerSight {
  std::int64_t held = 0;                  ///< Its devices on running pods, counted once for each pod.
  std::int64_t reported = 0;              ///< Of them, those of which the kubelet says anything, Unknown included.
  Moment since;                           ///< Since when some have been held without a break.
  bool has_spoken = false;                ///< By a report other than Unknown, or a claim's condition that is more than
                                          ///< that the device was made ready.
  std::map<SharedText, NodeSight> nodes;  ///< Those with pods that hold some.
  std::set<SharedText> unheard;           ///< Of them, those whose kubelets say nothing of any.
};

/// Who has ever said anything about a device's health. A device plugin that is registered always does, by the kubelet;
/// a DRA driver only if it has a health stream, and its node the feature gate.
class Speakers {
 public:
  void add(const SharedText& node, std::span<const Heard> heard, const Now& now);
  void remove(const SharedText& node, std::span<const Heard> heard);
  /// A driver's conditions on a claim's devices.
  void note(const k8s::ResourceClaim& claim);
  /// How often somebody has spoken for the first time.
  [[nodiscard]] std::size_t first_words() const { return first_words_; }

  [[nodiscard]] const std::map<Speaker, SpeakerSight>& all() const { return all_; }

 private:
  void note_word(SpeakerSight& sight);

  std::map<Speaker, SpeakerSight> all_;
  std::size_t first_words_ = 0;
};

/// How long devices must have been held before silence is no longer that of a driver or kubelet that has just started.
inline constexpr Millis kSpeakerGrace = std::chrono::minutes(10);

}  // namespace dhc
