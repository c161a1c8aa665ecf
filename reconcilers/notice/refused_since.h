#pragma once
#include <map>
#include <string>
#include <vector>

#include "domain/contract/verdict.h"

namespace dhc::notice {

/// Since when an annotation of a node or of the configuration has been refused: nothing in the object says it, so it is
/// the time of the plan that refused it first. Without it each plan would say another time, and write it down. One for
/// each term.
class RefusedSince {
 public:
  /// Gives those that were said before their first time, and forgets those that are said no more.
  void keep(std::vector<Verdict>& verdicts);

 private:
  std::map<std::string, WallTime> since_;
};

}  // namespace dhc::notice
