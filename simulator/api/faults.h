#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/api/answer.h"

namespace dhc::sim {

/// One fault, by script: which requests it hits, how often, what it does to them.
struct Fault {
  std::optional<k8s::Method> method = {};  ///< Any, if not set.
  std::string path_contains = {};          ///< A part of the target; empty: any.
  bool watches = true;                     ///< False: watches are spared.
  int count = 1;                           ///< How many requests it hits; negative: all.

  std::optional<unsigned> status = {};  ///< Answered with this and `body` instead of being handled.
  std::string body = {};                ///< Empty: a Status of that code.
  std::vector<k8s::Header> headers = {};
  bool handled_first = false;  ///< The request takes effect before `status` is answered, as when a proxy times out.
  Millis delay{0};
  std::optional<std::size_t> cut_after = {};  ///< The connection breaks after this many bytes of the body.
  bool duplicate = false;                     ///< Watch events come twice.
  bool reorder = false;                       ///< Watch events of one delivery come in reverse order.
};

/// The faults still to come, in the order they were added; each request meets the first that fits.
class FaultScript {
 public:
  void add(Fault fault) { faults_.push_back(std::move(fault)); }
  void clear() { faults_.clear(); }

  /// The fault that hits this request, used up by one.
  [[nodiscard]] std::optional<Fault> take(const k8s::Request& request);

 private:
  std::vector<Fault> faults_;
};

/// The answer that a fault with a status gives.
[[nodiscard]] Answer faulty_answer(const Fault& fault);

/// What a fault does to an answer that was made all the same.
void spoil(const Fault& fault, Answer& answer);

}  // namespace dhc::sim
