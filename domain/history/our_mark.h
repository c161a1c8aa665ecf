#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace dhc {

/// What stands in the cluster of one thing that we made there for a device: its DeviceTaintRule, or our taint on its
/// node.
enum class MarkPhase : std::uint8_t {
  None,     ///< Nothing of ours is known to stand.
  Stands,   ///< It has been seen. If it goes away, an operator has removed it.
  Leaving,  ///< We mean to remove it: if it goes away, that is our own doing. Written down before it is asked for.
  Asked,    ///< The request to remove it may be under way. A process after us finds it Leaving.
};
inline constexpr std::array<MarkPhase, 4> kMarkPhases = {MarkPhase::None, MarkPhase::Stands, MarkPhase::Leaving,
                                                         MarkPhase::Asked};

/// What happens to it.
enum class MarkEvent : std::uint8_t {
  Seen,     ///< The World shows it.
  Gone,     ///< The World shows it no more.
  Lost,     ///< Likewise, but nobody has said anything by that: its node is gone, the kind is not served.
  Meant,    ///< It is to be removed: the incident is over, or no policy asks for it any more.
  Kept,     ///< It is to stay after all: another incident begins, or the policy asks for it again.
  Sent,     ///< The removal has been handed out.
  Refused,  ///< The removal was refused for sure, or never sent.
};
inline constexpr std::array<MarkEvent, 7> kMarkEvents = {MarkEvent::Seen,   MarkEvent::Gone, MarkEvent::Lost,
                                                         MarkEvent::Meant,  MarkEvent::Kept, MarkEvent::Sent,
                                                         MarkEvent::Refused};

struct MarkStep {
  MarkPhase to;
  bool by_operator = false;  ///< An operator has removed it.
  friend bool operator==(const MarkStep&, const MarkStep&) = default;
};

/// Every phase, every event.
[[nodiscard]] MarkStep step_of(MarkPhase phase, MarkEvent event);

[[nodiscard]] std::string_view to_string(MarkPhase phase);
[[nodiscard]] std::string_view to_string(MarkEvent event);

/// The phase, and of which object it is.
class OurMark {
 public:
  OurMark() = default;
  /// As it is remembered.
  OurMark(MarkPhase phase, std::string uid)
      : phase_(phase), uid_(phase == MarkPhase::None ? std::string() : std::move(uid)) {}

  [[nodiscard]] MarkPhase phase() const { return phase_; }
  /// Of the rule, or of the tainted node; empty: none stands, or it is not known.
  [[nodiscard]] const std::string& uid() const { return uid_; }
  [[nodiscard]] bool stands() const { return phase_ != MarkPhase::None; }
  [[nodiscard]] bool is_leaving() const { return phase_ == MarkPhase::Leaving || phase_ == MarkPhase::Asked; }

  void see(std::string uid);
  /// True if an operator has removed it.
  bool take(MarkEvent event);

  /// Whether the same would be written down.
  [[nodiscard]] bool reads_as(const OurMark& other) const {
    return uid_ == other.uid_ && stands() == other.stands() && is_leaving() == other.is_leaving();
  }

 private:
  MarkPhase phase_ = MarkPhase::None;
  std::string uid_;
};

}  // namespace dhc
