#include "reconcilers/notice/peers.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "domain/contract/names.h"
#include "reconcilers/shared/notice_terms.h"

namespace dhc::notice {

namespace {

Notice notice_about(const ToldPod& told, const k8s::Pod& peer) {
  const auto shown = notice_on(peer);
  return {.peer = told.pod->meta.name,
          .number = shown ? shown->number : 0,  // of its own notices: one to come is told apart by it
          .device = told.notice.device,
          .reason = told.notice.reason,
          .message = "another pod of the same controller is to be evicted",
          .at = told.notice.at,
          .deadline = told.notice.deadline};
}

/// The pods of its controller that run: first those whose program reads a notice, in the order of their names.
std::vector<const k8s::Pod*> siblings_of(const k8s::Pod& pod, const PlanInput& input) {
  std::vector<const k8s::Pod*> siblings;
  if (!pod.meta.controller) return siblings;
  for (const auto* uids : input.world.pods_owned_by(pod.meta.controller_identity())) {
    if (uids == nullptr) continue;
    for (const auto& uid : *uids) {
      const auto* record = input.world.pod(uid);
      const bool runs = record != nullptr && record->readable && is_live(record->pod) && !record->pod.meta.deletion;
      if (runs && uid != pod.meta.uid) siblings.push_back(&record->pod);
    }
  }
  std::ranges::sort(siblings, {}, [](const k8s::Pod* one) {
    return std::tuple(!one->shows_kept_annotation, std::string_view(one->meta.name), std::string_view(one->meta.uid));
  });
  if (siblings.size() > kMostPeers) siblings.resize(kMostPeers);
  return siblings;
}

/// Taken back once; what still stands then was never ours.
bool was_taken_back(const k8s::Pod& pod, const PlanInput& input) {
  const auto text = k8s::find(pod.meta.annotations, kNoticeAnnotation).value_or("");
  return input.requests.notices().was_taken_back(pod.meta.uid, text);
}

}  // namespace

bool asks_for_peers(const std::vector<const AffectedPod*>& open) {
  return std::ranges::any_of(open, [](const AffectedPod* affected) {
    const auto& evict = affected->policy->evict;
    return evict && evict->notice && evict->notice->whole_owner;
  });
}

std::map<std::string, std::optional<Notice>> notices_of_peers(const std::vector<ToldPod>& told,
                                                              const std::function<bool(const std::string&)>& is_open,
                                                              const PlanInput& input) {
  std::map<std::string, std::optional<Notice>> notices;
  if (input.policy.mode_cap != Mode::Enforce) return notices;
  for (const auto& uid : input.world.with_notice()) {
    const auto& record = *input.world.pod(uid);
    const auto shown = notice_on(record.pod);
    const bool speaks_of_peer = shown && !shown->peer.empty();
    if (speaks_of_peer && record.readable && is_live(record.pod) && !is_open(uid) && !was_taken_back(record.pod, input))
      notices.emplace(uid, std::nullopt);
  }
  for (const auto& one : told) {
    for (const auto* peer : siblings_of(*one.pod, input)) {
      const auto* condition = our_condition(*peer);
      if (is_open(peer->meta.uid) || (condition != nullptr && condition->status == "True")) continue;
      auto notice = notice_about(one, *peer);
      auto& standing = notices[peer->meta.uid];
      const auto order = [](const Notice& of) { return std::tie(of.deadline, of.peer); };
      if (!standing || order(notice) < order(*standing)) standing = std::move(notice);
    }
  }
  return notices;
}

}  // namespace dhc::notice
