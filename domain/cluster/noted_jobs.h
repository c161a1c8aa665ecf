#pragma once
#include <cstddef>
#include <map>
#include <vector>

#include "base/shared_text.h"
#include "base/text_set.h"

namespace dhc {

/// The Jobs that carry annotations of ours. Who may edit Jobs can write these himself, on as many as he likes: what is
/// said of losses is bounded, and shared between namespaces.
class NotedJobs {
 public:
  /// What the Job carries now; neither forgets it.
  void note(const SharedText& ns, const SharedText& uid, bool has_credits, bool has_losses);
  void drop(const SharedText& ns, const SharedText& uid) { note(ns, uid, false, false); }

  /// UIDs of those with credits, sorted.
  [[nodiscard]] const TextSet& with_credits() const { return with_credits_; }
  [[nodiscard]] std::size_t losses() const { return losses_; }
  /// UIDs of at most so many with losses: of each namespace in turn one, so that none takes the others' room.
  [[nodiscard]] std::vector<SharedText> with_losses(std::size_t most) const;

 private:
  TextSet with_credits_;
  std::map<SharedText, TextSet, std::less<>> with_losses_;  // by namespace
  std::size_t losses_ = 0;
};

}  // namespace dhc
