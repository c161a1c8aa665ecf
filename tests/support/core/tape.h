#pragma once
#include <memory>
#include <string>

#include "app/controller.h"
#include "app/record/recorder.h"

namespace dhc::test {

/// Records a controller from its first message, and at the end gives the recording to another one, which must decide
/// the same at every moment: the test fails where it does not. A recording that grows beyond `kLongest`, or that has
/// answers to actions of somebody else or bytes that are no text, is not compared; where the environment has
/// DHC_FEW_PLANS, only each eighth is, and of random schedules, which are much alike,
/// each fourth. Recordings that tell of an eviction or of a
/// credit are left in the folder that DHC_RECORDINGS names, for `tests/model/conform`.
class Tape {
 public:
  static constexpr std::size_t kLongest = std::size_t{48} << 20U;

  /// It has heard nothing yet.
  explicit Tape(Controller& controller);
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// A whole file; empty: too long, or not to be compared.
  [[nodiscard]] std::string text() const;

 private:
  struct Reel {
    std::string text;
    bool is_good = true;
  };
  std::shared_ptr<Reel> reel_;
};

}  // namespace dhc::test
