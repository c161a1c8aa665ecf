#include "app/webhook/bulletin.h"

#include <algorithm>
#include <ranges>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "base/rfc3339.h"
#include "base/wake.h"
#include "domain/contract/names.h"
#include "domain/history/incident_id.h"

namespace dhc {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kOpened = "io.device-health.incident.opened";
constexpr std::string_view kClosed = "io.device-health.incident.closed";
constexpr std::string_view kQuarantined = "io.device-health.device.quarantined";
constexpr std::string_view kEvicted = "io.device-health.pod.evicted";
constexpr std::string_view kNodeHandedOver = "io.device-health.node.handed-over";
constexpr std::string_view kNodeTakenBack = "io.device-health.node.taken-back";
constexpr std::size_t kLongestTold = 1024;

/// Somebody has told it.
bool is_over(const News& news, const Now& now) { return news.at + Bulletin::kNewsFor <= now.wall; }

std::string short_id(const std::string& identity) { return fmt::format("{:016x}", stable_hash(identity)); }

std::string news_id(std::string_view type, const std::string& identity) {
  return short_id(fmt::format("{}|{}", type, identity));
}

std::string incident_news_id(std::string_view type, const DeviceKey& key, WallTime opened_at) {
  return news_id(type, to_string(key) + "|" + format_rfc3339(opened_at));
}

/// What events about one incident have in common.
Json incident_data(const DeviceKey& key, WallTime opened_at, const std::string& node, const std::string& policy) {
  return {{"incident", incident_id(key, opened_at)}, {"device", to_string(key)}, {"node", node}, {"policy", policy}};
}

std::string_view mode_of(const std::string& policy, const Policy& all) {
  const auto found = std::ranges::find(all.policies, policy, &DevicePolicy::name);
  return found == all.policies.end() ? std::string_view() : to_string(effective_mode(&*found, all));
}

News eviction_news(const eviction::EvictPod& evict, const std::string& policy, const Policy& all, const Now& now) {
  const auto device = to_string(evict.key);
  return {.id = news_id(kEvicted, evict.uid),
          .type = std::string(kEvicted),
          .subject = "Pod/" + evict.ns + "/" + evict.name,
          .at = now.wall,
          .data = json_text({{"pod", {{"namespace", evict.ns}, {"name", evict.name}, {"uid", evict.uid}}},
                             {"device", device},
                             {"node", evict.device_node},
                             {"policy", policy},
                             {"mode", mode_of(policy, all)}})};
}

std::string policy_for_device(const DeviceKey& key, const IncidentStore& incidents) {
  const auto* record = incidents.find(key);
  return record == nullptr ? std::string() : record->past.policy;
}

News node_news(std::string_view type, const std::string& node, const std::string& uid, const std::string& condition,
               std::string_view status, const std::string& why, WallTime at) {
  return {.id = news_id(type, uid + "|" + condition + "|" + format_rfc3339(at)),
          .type = std::string(type),
          .subject = "Node/" + node,
          .at = at,
          .data = json_text({{"node", {{"name", node}, {"uid", uid}}},
                             {"condition", {{"type", condition}, {"status", status}}},
                             {"message", printable_cut(why, kLongestTold)}})};
}

News object_news(std::string_view type, const std::string& slot, const HandedObject& object, const World& world,
                 WallTime at) {
  const auto* node = world.node(object.node);
  Json of_object = {{"apiVersion", object.api_version}, {"kind", object.kind}};
  if (!object.ns.empty()) of_object["namespace"] = object.ns;
  of_object["name"] = object.name;
  return {.id = news_id(type, slot + "|" + object.incident),
          .type = std::string(type),
          .subject = "Node/" + object.node,
          .at = at,
          .data = json_text({{"node", {{"name", object.node}, {"uid", node == nullptr ? "" : node->meta.uid}}},
                             {"object", std::move(of_object)},
                             {"incident", object.incident},
                             {"policy", object.policy}})};
}

}  // namespace

bool Bulletin::look(const BulletinSight& sight) {
  if (!sight.policy.limits.webhook) {
    *this = Bulletin();
    return false;
  }
  std::erase_if(told_, [&](const auto& entry) { return sight.now.mono - entry.second > 2 * kNewsFor; });
  look_at_incidents(sight);
  look_at_evictions(sight);
  look_at_nodes(sight);
  look_at_objects(sight);
  const bool has_more = keep(sight.now);
  flush(sight);
  return has_more;
}

void Bulletin::forget_unwritten() {
  std::set<std::string> forgotten;
  for (const auto& one : pending_) {
    if (one.revision > 0) forgotten.insert(one.news.id);
  }
  // What was told to go on goes on until its end is told. Of several ends of one device the first was of that.
  for (const auto& one : pending_ | std::views::reverse) {
    if (one.closed && one.revision > 0) going_.insert_or_assign(one.closed->first, one.closed->second);
  }
  std::erase_if(going_, [&](const auto& entry) {
    return forgotten.contains(incident_news_id(kOpened, entry.first, entry.second.opened_at));
  });
  std::erase_if(pending_, [](const Pending& one) { return one.revision > 0; });
  std::erase_if(kept_, [&](const RecentNews& one) { return forgotten.contains(one.news->id); });
  for (const auto& id : forgotten) {
    told_.erase(id);
    added_.erase(id);
  }
  seen_revision_.reset();
  is_changed_ = true;
}

void Bulletin::recall(std::vector<News> news, const Now& now) {
  for (auto& one : news) {
    const auto id = one.id;
    add(std::move(one), 0, now);
    added_.erase(id);
  }
}

/// What is no news any more is left out when the state is written for another reason.
bool Bulletin::keep(const Now& now) {
  std::erase_if(kept_, [&](const RecentNews& one) { return !told_.contains(one.news->id) || is_over(*one.news, now); });
  if (kept_.size() > kMostKept) kept_.erase(kept_.begin(), kept_.end() - kMostKept);
  if (!std::exchange(is_changed_, false)) return false;
  bool has_more = false;
  for (auto& one : kept_) {
    one.follows = follows_.contains(one.news->id);
    has_more = has_more || (!one.follows && added_.contains(one.news->id));
  }
  added_.clear();
  return has_more;
}

void Bulletin::look_at_incidents(const BulletinSight& sight) {
  // Whatever opens or ends an incident counts it up.
  const auto revision = sight.incidents.revision();
  if (std::exchange(seen_revision_, revision) == revision) return;
  follows_.clear();
  is_changed_ = true;
  const auto& records = sight.incidents.records();
  for (const auto& [key, record] : records) {
    if (key.is_device()) look_at(record, sight);
  }
  for (auto entry = going_.begin(); entry != going_.end();) {
    if (records.contains(entry->first)) {
      ++entry;
      continue;
    }
    close(entry->first, entry->second, sight.now.wall, "the device is known no more", sight);
    entry = going_.erase(entry);
  }
}

void Bulletin::look_at(const DeviceRecord& record, const BulletinSight& sight) {
  const auto known = going_.find(record.key);
  const auto* facts = record.incident.facts();
  const auto* end = record.incident.end();
  // Perhaps before this term.
  if (end != nullptr && end->opened_at) {
    const Going ended{.opened_at = *end->opened_at, .node = node_of(record, sight.world), .policy = record.past.policy};
    follows_.insert(close(record.key, ended, end->at, end->why, sight));
  }
  if (known != going_.end() && (facts == nullptr || named_at(*facts) != known->second.opened_at)) {
    close(record.key, known->second, facts == nullptr ? sight.now.wall : facts->opened_at,
          facts == nullptr ? "what was remembered of it was deleted" : "another incident of the device has opened",
          sight);
    going_.erase(known);
  }
  if (facts == nullptr) return;
  const auto device = to_string(record.key);
  const auto node = node_of(record, sight.world);
  const auto& policy = record.past.policy;
  going_.insert_or_assign(record.key, Going{.opened_at = named_at(*facts), .node = node, .policy = policy});
  auto data = incident_data(record.key, named_at(*facts), node, policy);
  data["mode"] = mode_of(policy, sight.policy);
  data["since"] = format_rfc3339(facts->since);
  if (!record.past.incidents.empty()) data["reason"] = printable_cut(record.past.incidents.back().reason, kLongestTold);
  const auto revision = sight.incidents.revision();
  auto id = incident_news_id(kOpened, record.key, named_at(*facts));
  follows_.insert(id);
  add({.id = std::move(id),
       .type = std::string(kOpened),
       .subject = device,
       .at = facts->opened_at,
       .data = json_text(data)},
      revision, sight.now);
  if (!record.is_quarantined()) return;
  data["incidents"] = record.past.count;
  id = incident_news_id(kQuarantined, record.key, named_at(*facts));
  follows_.insert(id);
  add({.id = std::move(id),
       .type = std::string(kQuarantined),
       .subject = device,
       .at = facts->opened_at,
       .data = json_text(data)},
      revision, sight.now);
}

std::string Bulletin::close(const DeviceKey& key, const Going& going, WallTime at, const std::string& why,
                            const BulletinSight& sight) {
  const auto device = to_string(key);
  auto data = incident_data(key, going.opened_at, going.node, going.policy);
  data["mode"] = mode_of(going.policy, sight.policy);
  data["why"] = printable_cut(why, kLongestTold);
  auto id = incident_news_id(kClosed, key, going.opened_at);
  const auto told = going_.find(key);
  const bool goes_on = told != going_.end() && told->second.opened_at == going.opened_at;
  add({.id = id, .type = std::string(kClosed), .subject = device, .at = at, .data = json_text(data)},
      sight.incidents.revision(), sight.now, goes_on ? std::optional(std::pair(key, told->second)) : std::nullopt);
  return id;
}

void Bulletin::note_eviction(const eviction::EvictPod& evict, const Policy& policy, const IncidentStore& incidents,
                             const Now& now) {
  if (!policy.limits.webhook || !evicted_.insert(evict.uid).second) return;
  add(eviction_news(evict, policy_for_device(evict.key, incidents), policy, now), 0, now);
}

/// Those whose answer was lost, or that the leader before has sent, are seen in the cluster.
void Bulletin::look_at_evictions(const BulletinSight& sight) {
  const auto& attempts = sight.requests.evictions();
  for (const auto& [uid, attempt] : attempts) {
    if (attempt.state != Attempt::State::Accepted) continue;
    const auto* record = sight.world.pod(uid);
    if (record == nullptr || evicted_.contains(uid)) continue;
    const auto& pod = record->pod;
    eviction::EvictPod evict;
    evict.ns = pod.meta.ns;
    evict.name = pod.meta.name;
    evict.uid = uid;
    evict.key = attempt.key;
    evict.device_node = pod.node_name;
    note_eviction(evict, sight.policy, sight.incidents, sight.now);
  }
  std::erase_if(evicted_, [&](const auto& uid) { return attempts.find(uid) == attempts.end(); });
}

void Bulletin::look_at_nodes(const BulletinSight& sight) {
  std::set<std::pair<std::string, std::string>> standing;
  for (const auto& name : sight.world.nodes_with_conditions()) {
    const auto& node = *sight.world.node(name);
    for (const auto& condition : node.kept) {
      if (!condition.last_transition) continue;
      const bool is_over = condition.reason == kHandedOverReason;
      const std::pair key(node.meta.uid, condition.type);
      if (is_over) {
        standing.insert(key);
        handed_over_.insert_or_assign(key, HandedOver{.node = name, .at = *condition.last_transition});
      } else {
        handed_over_.erase(key);
      }
      add(node_news(is_over ? kNodeHandedOver : kNodeTakenBack, name, node.meta.uid, condition.type, condition.status,
                    condition.message, *condition.last_transition),
          0, sight.now);
    }
  }
  for (auto entry = handed_over_.begin(); entry != handed_over_.end();) {
    if (standing.contains(entry->first)) {
      ++entry;
      continue;
    }
    const auto& [uid, type] = entry->first;
    const auto* node = sight.world.node(entry->second.node);
    const bool is_there = node != nullptr && node->meta.uid == uid;
    auto news = node_news(kNodeTakenBack, entry->second.node, uid, type, "",
                          is_there ? "the condition was removed" : "the node is gone", sight.now.wall);
    news.id = news_id(kNodeTakenBack, uid + "|" + type + "|gone|" + format_rfc3339(entry->second.at));
    add(std::move(news), 0, sight.now);
    entry = handed_over_.erase(entry);
  }
}

void Bulletin::look_at_objects(const BulletinSight& sight) {
  if (sight.handed == nullptr) return;
  std::map<std::string, HandedObject> standing;
  for (const auto& [slot, object] : sight.handed->all()) {
    if (object.phase != HandedObject::Phase::Made) continue;
    standing.emplace(slot, object);
    add(object_news(kNodeHandedOver, slot, object, sight.world, object.at), 0, sight.now);
  }
  for (const auto& [slot, object] : std::exchange(objects_, standing)) {
    const auto still = standing.find(slot);
    if (still == standing.end() || still->second.incident != object.incident)
      add(object_news(kNodeTakenBack, slot, object, sight.world, sight.now.wall), 0, sight.now);
  }
}

void Bulletin::add(News news, std::uint64_t revision, const Now& now,
                   std::optional<std::pair<DeviceKey, Going>> closed) {
  if (is_over(news, now) || !told_.try_emplace(news.id, now.mono).second) return;
  kept_.push_back({.news = std::make_shared<const News>(news)});
  added_.insert(news.id);
  is_changed_ = true;
  pending_.push_back({.news = std::move(news), .revision = revision, .since = now.mono, .closed = std::move(closed)});
}

/// In their order: what became so first is told first.
void Bulletin::flush(const BulletinSight& sight) {
  const auto is_ready = [&](const Pending& one) {
    return one.revision == 0 || (sight.saved_revision && *sight.saved_revision >= one.revision) ||
           sight.now.mono >= one.since + kUnsavedPatience;
  };
  auto rest = std::ranges::find_if_not(pending_, is_ready);
  std::ranges::transform(pending_.begin(), rest, std::back_inserter(ready_),
                         [](Pending& one) { return std::move(one.news); });
  pending_.erase(pending_.begin(), rest);
}

std::optional<MonoTime> Bulletin::next_change_at() const {
  if (pending_.empty()) return std::nullopt;
  return pending_.front().since + kUnsavedPatience;
}

}  // namespace dhc
