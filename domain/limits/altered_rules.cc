#include "domain/limits/altered_rules.h"

#include <utility>

#include "domain/cluster/world.h"

namespace dhc {

void AlteredRules::note_altered(const std::string& name, AlteredRule rule, std::string why, const Now& now) {
  rule.at = now.mono;
  rules_.insert_or_assign(name, std::move(rule));
  again_at_ = now.mono + kPause;
  why_ = std::move(why);
}

bool AlteredRules::note_kept() {
  why_.clear();
  return std::exchange(again_at_, std::nullopt).has_value();
}

bool AlteredRules::note_failed(const Now& now) {
  if (!again_at_) return false;
  again_at_ = now.mono + kRetry;
  return true;
}

void AlteredRules::note_sent(const Now& now) {
  if (again_at_) again_at_ = now.mono + kPause;
}

void AlteredRules::forget(const World& world, const Now& now) {
  std::erase_if(rules_, [&](const auto& entry) {
    const auto* standing = world.inventory().rule_named(entry.first);
    const bool stands = standing != nullptr && standing->meta.uid == entry.second.uid;
    // The watch may show it later than its answer came.
    return !stands && now.mono - entry.second.at >= kPause;
  });
}

const AlteredRule* AlteredRules::find(const std::string& name, const std::string& uid) const {
  const auto found = rules_.find(name);
  return found == rules_.end() || found->second.uid != uid ? nullptr : &found->second;
}

}  // namespace dhc
