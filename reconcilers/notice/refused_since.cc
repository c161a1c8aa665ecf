#include "reconcilers/notice/refused_since.h"

#include <utility>

#include <fmt/format.h>

namespace dhc::notice {

void RefusedSince::keep(std::vector<Verdict>& verdicts) {
  std::map<std::string, WallTime> kept;
  for (auto& verdict : verdicts) {
    if (verdict.reason != Reason::AnnotationRefused || verdict.subject.kind == "Pod") continue;
    // The message has the words that are refused: others are refused anew.
    auto key = fmt::format("{}|{}|{}|{}|{}", verdict.subject.kind, verdict.subject.name, verdict.subject.uid,
                           verdict.device, verdict.message);
    if (const auto before = since_.find(key); before != since_.end()) verdict.since = before->second;
    kept.emplace(std::move(key), verdict.since);
  }
  since_ = std::move(kept);
}

}  // namespace dhc::notice
