#include "app/access_desk.h"

#include <utility>

#include "app/access_check.h"
#include "reconcilers/shared/object_requests.h"

namespace dhc {

AccessDesk::AccessDesk(const k8s::Client& client, Mode mode, std::vector<NeededVerb> needed, Log& log)
    : client_(client),
      log_(log),
      asking_([this, mode, needed = std::move(needed)](const std::stop_token& stop) { run(stop, mode, needed); }) {}

void AccessDesk::look_at(std::shared_ptr<const Policy> policy) {
  {
    const std::lock_guard lock(mutex_);
    next_ = std::move(policy);
  }
  news_.notify_one();
}

void AccessDesk::run(const std::stop_token& stop, Mode mode, const std::vector<NeededVerb>& needed) {
  (void)check_access(needed, client_, log_, stop);
  check_version(client_, mode, log_, stop);
  std::pair<std::vector<NeededVerb>, std::vector<HandOverResource>> asked;
  while (!stop.stop_requested()) {
    std::shared_ptr<const Policy> policy;
    {
      std::unique_lock lock(mutex_);
      if (!news_.wait(lock, stop, [this] { return next_ != nullptr; })) return;
      policy = std::exchange(next_, nullptr);
    }
    std::pair wanted(condition_verbs(*policy), handed_resources(*policy));
    // At a pause, or a change of anything else in the configuration, nobody is told twice what is missing.
    if (wanted == asked) {
      log_.debug("the configuration asks for no other permissions than before");
      continue;
    }
    asked = std::move(wanted);
    const auto verbs = verbs_of(*policy, stop);
    if (!verbs.empty()) (void)check_access(verbs, client_, log_, stop);
  }
}

std::vector<NeededVerb> AccessDesk::verbs_of(const Policy& policy, const std::stop_token& stop) {
  auto all = condition_verbs(policy);
  for (const auto& resource : handed_resources(policy)) {
    // Its name has placeholders, and which kind it is of does not hang on it.
    const ObjectName any{.slot = {},
                         .api_version = resource.api_version,
                         .kind = resource.kind,
                         .ns = resource.ns,
                         .name = "any",
                         .incident = "any",
                         .node = {},
                         .policy = {}};
    const auto request = build_kinds(any);
    if (!request) continue;
    const auto path = object_path(any, client_.call(*request, stop));
    if (!path) {
      log_.warn("handOver.resource cannot be made", {{"error", path.error().message}});
      continue;
    }
    for (auto& needed : object_verbs(resource, std::string(plural_of(*path)))) all.push_back(std::move(needed));
  }
  return all;
}

}  // namespace dhc
