#pragma once
#include <map>
#include <string>
#include <string_view>

#include "base/shared_text.h"
#include "base/text_set.h"

namespace dhc {

/// Which dead Jobs have been made again, by identity: as long as the dead one or its replacement is there. Who may edit
/// Jobs can write the replacement's label himself, again and again: nothing of that stays.
class Recreations {
 public:
  /// The Job is made from this dead one; empty: from none.
  void note(const SharedText& job, const std::string& dead);
  /// The Job is gone, as a replacement and as a dead one.
  void drop(const SharedText& job, const std::string& identity);
  /// The replacement is gone, and the dead one stays: it is not made a second time.
  void keep(const std::string& dead) { kept_.insert(dead); }
  void forget_all();

  [[nodiscard]] bool contains(std::string_view dead) const { return kept_.contains(dead) || living_.contains(dead); }
  /// What the Job is made from; empty: nothing.
  [[nodiscard]] std::string dead_of(const SharedText& job) const;

 private:
  std::map<SharedText, std::string, std::less<>> dead_of_;  // by the replacement's UID
  std::map<std::string, TextSet, std::less<>> living_;      // replacements, by the dead one's identity
  TextSet kept_;                                            // identities of dead ones whose replacements are gone
};

}  // namespace dhc
