#pragma once
#include <cstdint>

#include "base/now.h"

namespace dhc {

/// Whether what our rule looks like may be the doing of our own write: then it is nobody's word. Of this process alone.
class RuleDoubt {
 public:
  /// We have written on the rule, and have no answer yet.
  void note_sent() { why_ = Why::Unanswered; }
  /// It stands as it was sent, or was surely not written.
  void clear() { why_ = Why::None; }
  /// The server has stored it otherwise than we sent it.
  void note_altered() { why_ = Why::Altered; }
  /// The answer is lost: until then it may yet be stored, and in whatever form.
  void note_lost(MonoTime until) {
    why_ = Why::Lost;
    until_ = until;
  }

  /// Asked when the rule is seen changed. A change that is first seen after the lost write's time is somebody's word.
  [[nodiscard]] bool explains_change(MonoTime now) {
    if (why_ == Why::Lost) why_ = now < until_ ? Why::Altered : Why::None;
    return why_ != Why::None;
  }

 private:
  enum class Why : std::uint8_t { None, Unanswered, Altered, Lost };

  Why why_ = Why::None;
  MonoTime until_;  ///< Only while Lost.
};

}  // namespace dhc
