#include "domain/findings/suspects.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "base/rfc3339.h"
#include "domain/contract/ground_names.h"
#include "domain/findings/ground_cases.h"

namespace dhc {

namespace {

constexpr std::size_t kMostNamed = 5;

auto order_of(const DeviceOnset& onset) { return std::tie(onset.at, onset.card); }

/// What breaks on one node may have one cause.
std::string_view unit_of(const DeviceOnset& onset) {
  return onset.node.empty() ? onset.card.place.view() : std::string_view(onset.node);
}

/// That a device was excused once is remembered, whoever is acquitted.
bool is_of_no_use(const DeviceOnset& onset) {
  return onset.workloads.empty() && onset.images.empty() && onset.grounds.empty() && !onset.excused;
}

/// It says nothing against them any more; whether it did. What somebody vouches for, or has paid for, is no node's or
/// release's fault either: without him in view it would look as if many broke there.
bool clear(DeviceOnset& onset, const std::string& who) {
  if (onset.workloads.erase(who) + onset.images.erase(who) == 0) return onset.grounds.erase(who) > 0;
  onset.grounds.clear();
  return true;
}

bool have_nobody_in_common(const DeviceOnset& a, const DeviceOnset& b, Accused accused) {
  return std::ranges::none_of(a.*accused, [&](const auto& entry) { return (b.*accused).contains(entry.first); });
}

/// What is known of a card that broke, once or again.
struct BrokenCard {
  const DeviceOnset* first;
  const DeviceOnset* last;
  bool is_guilty = false;  // it broke under different workloads, or images: it is itself the cause
};
using BrokenCards = std::unordered_map<DeviceKey, BrokenCard, DeviceKeyHash>;

BrokenCards broken_cards(const std::vector<DeviceOnset>& onsets, Accused accused) {
  BrokenCards cards;
  cards.reserve(onsets.size());
  for (const auto& onset : onsets) {
    if ((onset.*accused).empty()) continue;
    const auto [found, is_new] = cards.try_emplace(onset.card, BrokenCard{.first = &onset, .last = &onset});
    if (is_new) continue;
    auto& card = found->second;
    card.is_guilty = card.is_guilty || have_nobody_in_common(*card.last, onset, accused);
    card.last = &onset;
  }
  return cards;
}

/// One device that broke, whoever held it, and whether it was the first on its node.
struct BrokenDevice {
  const DeviceOnset* onset;
  bool is_first;
};

std::vector<BrokenDevice> broken_devices(const std::vector<DeviceOnset>& onsets, const std::string& scope,
                                         Accused accused) {
  const auto cards = broken_cards(onsets, accused);
  std::unordered_set<std::string_view> units;
  std::vector<BrokenDevice> broken;
  for (const auto& onset : onsets) {
    if (onset.card.scope != scope || (onset.*accused).empty()) continue;
    const auto& card = cards.at(onset.card);
    if (card.is_guilty || card.first != &onset) continue;
    broken.push_back({.onset = &onset, .is_first = units.insert(unit_of(onset)).second});
  }
  return broken;
}

/// How likely each of them had to be this one's. A node that is bad breaks what is on it: of its first device
/// nobody knows that it is, and of each further one the share of the node counts.
std::vector<double> chances_of(const std::string& who, const CaseAgainst& found,
                               const std::vector<BrokenDevice>& broken, Accused accused) {
  std::map<std::string_view, double> on_node;
  for (const auto* onset : found.onsets) {
    auto& share = on_node[unit_of(*onset)];
    share = std::max(share, (onset->*accused).at(who).node);
  }
  std::vector<double> chances;
  for (const auto& [onset, is_first] : broken) {
    const auto there = on_node.find(unit_of(*onset));
    chances.push_back(is_first || there == on_node.end() ? found.share : std::max(found.share, there->second));
  }
  return chances;
}

/// Those under whom so many devices of a driver or resource broke: of the others no case can be enough. By driver or
/// resource; of `grown` alone unless that is null.
std::map<std::string, std::set<std::string>> names_with(const std::vector<DeviceOnset>& onsets, std::size_t least,
                                                        auto accused, const std::set<OwnerInScope>* grown) {
  std::map<std::string, std::set<std::string>> names;
  if (least == 0) return names;
  using Name = std::pair<std::string_view, std::string_view>;
  std::map<Name, std::size_t> counts;
  if (grown != nullptr) {
    for (const auto& [who, scope] : *grown) counts.emplace(Name(scope, who), 0);
  }
  for (const auto& onset : onsets) {
    for (const auto& [who, share] : onset.*accused) {
      const Name name(onset.card.scope, who);
      const auto found = grown == nullptr ? counts.try_emplace(name, 0).first : counts.find(name);
      if (found != counts.end() && ++found->second == least) names[onset.card.scope].insert(who);
    }
  }
  return names;
}

std::string words_of_case(const std::string& scope, const CaseAgainst& found) {
  std::set<std::string_view> nodes;
  std::int64_t well = 0;
  for (const auto* onset : found.onsets) {
    if (nodes.insert(unit_of(*onset)).second) well += onset->well;
  }
  return fmt::format(
      "since {} {} devices of {} broke under it on {} node{}, where others held {} that were well; it holds at most "
      "{:.1f} percent of them: {}",
      format_rfc3339(found.onsets.front()->at), found.onsets.size(), scope, nodes.size(), nodes.size() == 1 ? "" : "s",
      well, found.share * 100, words_of_devices(found));
}

/// The workloads under which the devices of a case against an image broke, and how many each.
std::map<std::string, std::size_t> breakers_in(const CaseAgainst& found) {
  std::map<std::string, std::size_t> breakers;
  for (const auto* onset : found.onsets) {
    for (const auto& [workload, share] : onset->workloads) ++breakers[workload];
  }
  return breakers;
}

/// Whether it is enough without the workload that broke most: what one of them does says nothing of what all run.
bool is_enough_without_the_largest(const std::string& image, const std::string& scope,
                                   const std::map<std::string, std::size_t>& breakers,
                                   const std::vector<DeviceOnset>& onsets, std::size_t least) {
  const auto largest = std::ranges::max_element(breakers, {}, [](const auto& entry) { return entry.second; });
  auto rest = onsets;
  std::erase_if(rest, [&](const DeviceOnset& onset) {
    return onset.images.contains(image) && onset.workloads.contains(largest->first);
  });
  const std::set<std::string> name{image};
  const auto cases = cases_against(rest, scope, &DeviceOnset::images, &name);
  const auto found = cases.find(image);
  return found != cases.end() && is_enough(found->second, least);
}

/// Whether an image that breaks devices is unlikely to have left out, each time, those that run it, held devices then
/// and broke none. Each more of them makes it less likely: a few of many are enough.
bool has_left_out_too_many(const std::string& image, const std::string& scope, const CaseAgainst& found,
                           const std::map<std::string, std::size_t>& breakers, const SuspectHearing& hearing) {
  if (!hearing.tell_tenants) return false;
  struct Share {
    WallTime at;
    double of = 0;    // of all devices, that ran it
    double well = 0;  // and were held by those who broke none
  };
  std::vector<Share> shares;
  for (const auto* onset : found.onsets) shares.push_back({.at = onset->at, .of = onset->images.at(image).scope});
  bool is_enough = false;
  hearing.tell_tenants(image, scope, [&](const Bystander& tenant) {
    if (breakers.contains(tenant.workload)) return false;
    double chance = 1;
    for (auto& share : shares) {
      if (tenant.since <= share.at) share.well += tenant.share;
      chance *= 1 - std::clamp(share.well / share.of, 0.0, 1.0);
    }
    is_enough = chance < Suspects::kLeftOut;
    return is_enough;
  });
  return is_enough;
}

std::string words_of_breakers(const std::map<std::string, std::size_t>& breakers) {
  std::string words = fmt::format("; {} workloads held them: ", breakers.size());
  std::size_t named = 0;
  for (const auto& [workload, count] : breakers) {
    if (named == kMostNamed) return words + fmt::format(" and {} more", breakers.size() - named);
    words += (named++ == 0 ? "" : ", ") + workload;
  }
  return words;
}

}  // namespace

std::string words_of_devices(const CaseAgainst& found) {
  std::string devices;
  for (std::size_t i = 0; i < found.onsets.size() && i < kMostNamed; ++i) {
    devices += (i == 0 ? "" : ", ") + to_string(found.onsets[i]->card);
  }
  if (found.onsets.size() > kMostNamed) devices += fmt::format(" and {} more", found.onsets.size() - kMostNamed);
  return devices;
}

double chance_of_at_least(std::size_t least, const std::vector<double>& probabilities) {
  if (least == 0) return 1;
  // How likely exactly so many happen; what reaches `least` stays there.
  std::vector<double> exactly(least + 1, 0.0);
  exactly[0] = 1;
  for (const double each : probabilities) {
    const double p = std::clamp(each, 0.0, 1.0);
    exactly[least] += exactly[least - 1] * p;
    for (std::size_t count = least - 1; count > 0; --count) {
      exactly[count] = exactly[count] * (1 - p) + exactly[count - 1] * p;
    }
    exactly[0] *= 1 - p;
  }
  return exactly[least];
}

std::map<std::string, CaseAgainst> cases_against(const std::vector<DeviceOnset>& onsets, const std::string& scope,
                                                 Accused accused, const std::set<std::string>* names) {
  const auto broken = broken_devices(onsets, scope, accused);
  std::map<std::string, CaseAgainst> cases;
  for (const auto& [onset, is_first] : broken) {
    for (const auto& [who, share] : onset->*accused) {
      if (names != nullptr && !names->contains(who)) continue;
      auto& found = cases[who];
      found.share = std::max(found.share, share.scope);
      found.onsets.push_back(onset);
    }
  }
  weigh(cases,
        [&](const std::string& who, const CaseAgainst& found) { return chances_of(who, found, broken, accused); });
  return cases;
}

void weigh(std::map<std::string, CaseAgainst>& cases,
           const std::function<std::vector<double>(const std::string&, const CaseAgainst&)>& chances) {
  for (auto& [who, found] : cases) {
    const bool is_none = found.onsets.size() < Suspects::kFewest || found.share > Suspects::kLargestShare;
    if (is_none || found.share <= 0) continue;
    // No more than this have such a share: it is any of them that chance may have picked.
    const auto chance = chance_of_at_least(found.onsets.size(), chances(who, found));
    found.chance = std::min(1.0, chance / found.share);
  }
}

bool is_enough(const CaseAgainst& found, std::size_t least) {
  return least > 0 && found.onsets.size() >= least && found.share <= Suspects::kLargestShare &&
         found.chance < Suspects::kChance;
}

void Suspects::note(DeviceOnset onset) {
  const auto place = std::ranges::lower_bound(onsets_, order_of(onset), {}, order_of);
  if (place != onsets_.end() && order_of(*place) == order_of(onset)) return;
  for (const auto* names : {&onset.workloads, &onset.images}) {
    for (const auto& [who, share] : *names) grown_.emplace(who, onset.card.scope);
  }
  for (const auto& [who, share] : onset.grounds) grown_.emplace(who, onset.card.scope);
  onsets_.insert(place, std::move(onset));
  if (onsets_.size() > kMost) onsets_.erase(onsets_.begin());
  ++revision_;
}

/// A wall clock that was once ahead must not hold anything against anybody for years.
void Suspects::pull_back(WallTime now) {
  bool is_ahead = false;
  const auto pull = [&](WallTime& time) {
    is_ahead = is_ahead || time > now;
    time = std::min(time, now);
  };
  for (auto& onset : onsets_) {
    pull(onset.at);
    pull(onset.since);
  }
  for (auto& [who, suspicion] : suspicions_) {
    pull(suspicion.since);
    if (suspicion.clean_since) pull(*suspicion.clean_since);
  }
  if (!is_ahead) return;
  std::ranges::sort(onsets_, {}, order_of);
  ++revision_;
}

void Suspects::forget(const SuspectHearing& hearing) {
  const auto before = onsets_.size();
  std::erase_if(onsets_, [&](const DeviceOnset& onset) {
    return hearing.now.wall - onset.at >= kWindow || (hearing.released && onset.since <= *hearing.released);
  });
  for (const auto& [who, until] : hearing.acknowledged) {
    for (auto& onset : onsets_) {
      if (onset.since <= until && clear(onset, who)) ++revision_;
    }
  }
  std::erase_if(onsets_, is_of_no_use);
  if (onsets_.size() != before) ++revision_;
}

/// What was put down to it is no evidence any more.
void Suspects::acquit(const OwnerInScope& who, WallTime until) {
  for (auto& onset : onsets_) {
    if (onset.card.scope != who.second || onset.at > until) continue;
    (void)clear(onset, who.first);
  }
  std::erase_if(onsets_, is_of_no_use);
  ++revision_;
}

std::optional<WallTime> Suspects::last_under(const OwnerInScope& who) const {
  std::optional<WallTime> last;
  for (const auto& onset : onsets_) {
    if (onset.card.scope == who.second && !onset.excused && onset.grounds.contains(who.first)) last = onset.at;
  }
  return last;
}

void Suspects::end_suspicions(const SuspectHearing& hearing) {
  const auto now = hearing.now.wall;
  std::vector<OwnerInScope> over;
  for (auto& [who, suspicion] : suspicions_) {
    const auto word = hearing.acknowledged.find(who.first);
    const bool is_cleared = hearing.least == 0 || (hearing.released && suspicion.since <= *hearing.released) ||
                            (word != hearing.acknowledged.end() && suspicion.since <= word->second);
    const bool is_on_bad = hearing.on_bad.contains(who);
    if (release_of_ground(who.first)) {
      const auto last = std::max(last_under(who).value_or(suspicion.since), suspicion.clean_since.value_or(WallTime()));
      if (std::exchange(suspicion.clean_since, last) != last) ++revision_;
    } else if (is_on_bad == suspicion.clean_since.has_value()) {
      suspicion.clean_since = is_on_bad ? std::nullopt : std::optional(now);
      ++revision_;
    }
    if (is_cleared || (suspicion.clean_since && now - *suspicion.clean_since >= kClean)) over.push_back(who);
  }
  for (const auto& who : over) {
    suspicions_.erase(who);
    acquit(who, now);
  }
}

std::vector<DeviceOnset> Suspects::judge(const SuspectHearing& hearing) {
  std::vector<DeviceOnset> excused;
  pull_back(hearing.now.wall);
  forget(hearing);
  end_suspicions(hearing);
  if (judged_ == std::pair(revision_, hearing.least)) return excused;
  std::set<OwnerInScope> before;
  for (const auto& [who, suspicion] : suspicions_) before.insert(who);
  // Of a case that has not grown nothing is new.
  const auto* grown = judged_ && judged_->second == hearing.least ? &grown_ : nullptr;
  for (const auto& [scope, names] : names_with(onsets_, hearing.least, &DeviceOnset::workloads, grown))
    judge_workloads(scope, names, hearing, excused);
  for (const auto& [scope, names] : names_with(onsets_, hearing.least, &DeviceOnset::images, grown))
    judge_images(scope, names, hearing, excused);
  std::set<OwnerInScope> accused;
  for (const auto& [who, suspicion] : suspicions_) {
    if (!before.contains(who)) accused.insert(who);
  }
  drop_grounds(accused, hearing.least);
  // What is put down to a workload is none of what chance may have picked: that weighs on every node and release.
  const auto* weighed = accused.empty() ? grown : nullptr;
  for (const auto& [scope, names] : names_with(onsets_, hearing.least, &DeviceOnset::grounds, weighed))
    judge_grounds(scope, names, hearing);
  judged_ = std::pair(revision_, hearing.least);
  grown_.clear();
  return excused;
}

void Suspects::judge_workloads(const std::string& scope, const std::set<std::string>& names,
                               const SuspectHearing& hearing, std::vector<DeviceOnset>& excused) {
  for (const auto& [workload, found] : cases_against(onsets_, scope, &DeviceOnset::workloads, &names)) {
    const OwnerInScope who{workload, scope};
    if (!is_enough(found, hearing.least) || suspicions_.contains(who)) continue;
    accuse(who, words_of_case(scope, found), hearing.now.wall, excused);
  }
}

void Suspects::judge_images(const std::string& scope, const std::set<std::string>& names, const SuspectHearing& hearing,
                            std::vector<DeviceOnset>& excused) {
  for (const auto& [image, found] : cases_against(onsets_, scope, &DeviceOnset::images, &names)) {
    const OwnerInScope who{image, scope};
    if (!is_enough(found, hearing.least) || suspicions_.contains(who)) continue;
    const auto breakers = breakers_in(found);
    if (breakers.size() < kFewestOfImage) continue;
    // Most images are acquitted by this, at a fraction of what the next question costs.
    if (has_left_out_too_many(image, scope, found, breakers, hearing)) continue;
    if (!is_enough_without_the_largest(image, scope, breakers, onsets_, hearing.least)) continue;
    accuse(who, words_of_case(scope, found) + words_of_breakers(breakers), hearing.now.wall, excused);
  }
}

/// Of a device that was excused before, or has broken under others too, nobody else is guilty a second time.
void Suspects::accuse(const OwnerInScope& who, std::string evidence, WallTime now, std::vector<DeviceOnset>& excused) {
  suspicions_.emplace(who, Suspicion{.since = now, .clean_since = {}, .evidence = std::move(evidence)});
  const auto accused = [&](const DeviceOnset& onset) {
    return onset.workloads.contains(who.first) || onset.images.contains(who.first);
  };
  const bool is_image =
      std::ranges::any_of(onsets_, [&](const DeviceOnset& onset) { return onset.images.contains(who.first); });
  std::set<DeviceKey> not_again;
  for (const auto& [key, card] : broken_cards(onsets_, is_image ? &DeviceOnset::images : &DeviceOnset::workloads)) {
    if (card.is_guilty) not_again.insert(key);
  }
  for (const auto& onset : onsets_) {
    if (onset.excused) not_again.insert(onset.card);
  }
  for (auto& onset : onsets_) {
    if (onset.card.scope != who.second || !accused(onset) || not_again.contains(onset.card)) continue;
    onset.excused = true;
    excused.push_back(onset);
  }
  ++revision_;
}

/// Of a node or release of which a case is no more once a workload or image stands accused, nothing was ever to be
/// said.
void Suspects::drop_grounds(const std::set<OwnerInScope>& accused, std::size_t least) {
  std::map<std::string, std::set<std::string>> touched;
  for (const auto& onset : onsets_) {
    const auto holds = [&](const OwnerInScope& who) {
      return onset.card.scope == who.second &&
             (onset.workloads.contains(who.first) || onset.images.contains(who.first));
    };
    if (std::ranges::none_of(accused, holds)) continue;
    for (const auto& [ground, share] : onset.grounds) {
      if (suspicions_.contains({ground, onset.card.scope})) touched[onset.card.scope].insert(ground);
    }
  }
  for (const auto& [scope, names] : touched) {
    const auto cases = cases_against_grounds(onsets_, suspicions_, scope, names);
    for (const auto& ground : names) {
      const auto found = cases.find(ground);
      if (found != cases.end() && is_enough_against_ground(ground, found->second, least)) continue;
      suspicions_.erase({ground, scope});
      ++revision_;
    }
  }
}

void Suspects::judge_grounds(const std::string& scope, const std::set<std::string>& names,
                             const SuspectHearing& hearing) {
  for (const auto& [ground, found] : cases_against_grounds(onsets_, suspicions_, scope, names)) {
    if (!is_enough_against_ground(ground, found, hearing.least)) continue;
    const bool is_new =
        suspicions_
            .try_emplace({ground, scope},
                         Suspicion{.since = hearing.now.wall,
                                   .clean_since = release_of_ground(ground) ? std::optional(found.onsets.back()->at)
                                                                            : std::nullopt,
                                   .evidence = words_of_ground_case(ground, scope, found)})
            .second;
    if (is_new) ++revision_;
  }
}

bool Suspects::has_owners() const {
  return std::ranges::any_of(suspicions_, [](const auto& entry) { return !is_ground_name(entry.first.first); });
}

const Suspicion* Suspects::find(const std::string& who, const std::string& scope) const {
  const auto found = suspicions_.find({who, scope});
  return found == suspicions_.end() ? nullptr : &found->second;
}

std::optional<WallTime> Suspects::next_change_at() const {
  std::optional<WallTime> next;
  if (!onsets_.empty()) next = onsets_.front().at + kWindow;
  for (const auto& [who, suspicion] : suspicions_) {
    if (!suspicion.clean_since) continue;
    const auto at = *suspicion.clean_since + kClean;
    next = std::min(next.value_or(at), at);
  }
  return next;
}

void Suspects::load(std::vector<DeviceOnset> onsets, std::map<OwnerInScope, Suspicion> suspicions) {
  onsets_ = std::move(onsets);
  std::ranges::sort(onsets_, {}, order_of);
  if (onsets_.size() > kMost) onsets_.erase(onsets_.begin(), onsets_.end() - static_cast<std::ptrdiff_t>(kMost));
  suspicions_ = std::move(suspicions);
  judged_.reset();
  grown_.clear();
}

}  // namespace dhc
