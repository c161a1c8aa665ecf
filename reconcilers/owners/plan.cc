#include "reconcilers/owners/plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "domain/cluster/owner_chain.h"

namespace dhc::owners {

namespace {

/// The next read of a namespace: of the owner that was never read, or the longest ago.
struct Wanted {
  MonoTime last_at;
  ReadOwner read;
};

class Planner {
 public:
  explicit Planner(const PlanInput& input) : input_(input) {}

  Planned<ReadOwner> run(std::span<const Verdict> verdicts, const std::set<std::string>& pods) {
    for (const auto& uid : pods) {
      if (const auto* record = input_.world.pod(uid)) want_unknown(record->pod.meta);
    }
    for (const auto& verdict : verdicts) {
      const bool is_of_owner = verdict.reason == Reason::OptOutUnknown || verdict.reason == Reason::OptedOut;
      if (!is_of_owner && verdict.subject.kind != "Job") continue;
      if (const auto* job = input_.world.job(verdict.subject.uid)) {
        // What its dead pods come to depends on the owners above it.
        want_first(job->job.meta);
      } else if (const auto* record = input_.world.pod(verdict.subject.uid)) {
        if (verdict.reason == Reason::OptOutUnknown) want_unknown(record->pod.meta);
        if (verdict.reason == Reason::OptedOut) want_again(record->pod.meta);
      }
    }
    choose();
    planned_.wake_at = wake_.at();
    return std::move(planned_);
  }

 private:
  void want_first(const k8s::Meta& owned) {
    const auto chain = chain_above(owned, input_.world);
    if (chain.unknown != nullptr && chain.readable) want(owned.ns, *chain.unknown);
  }

  void want_unknown(const k8s::Meta& pod) {
    const auto chain = chain_above(pod, input_.world);
    if (chain.unknown != nullptr) {
      if (chain.readable) want(pod.ns, *chain.unknown);
    } else if (chain.oldest_at && input_.now.mono - *chain.oldest_at >= kOwnerWordAge) {
      want(pod.ns, *chain.oldest);
    }
  }

  void want_again(const k8s::Meta& pod) {
    const auto chain = chain_above(pod, input_.world);
    if (chain.opted_out_by == nullptr) return;
    const MonoTime again_at = chain.opted_out_by->at + kOwnerWordAge;
    if (input_.now.mono < again_at) return wake_.note(again_at);
    want(pod.ns, *chain.opted_out);
  }

  void want(const std::string& ns, const k8s::OwnerRef& owner) {
    const auto key = owner_key(ns, owner);
    if (!wanted_.insert(key).second) return;
    const MonoTime not_before = input_.requests.owner_reads().not_before(key);
    if (input_.now.mono < not_before) return wake_.note(not_before);
    const auto* sight = input_.world.owner_sights().find(ns, owner);
    const Wanted wanted{.last_at = sight == nullptr ? MonoTime::min() : sight->at,
                        .read = {.ns = ns, .owner = owner, .asked_at = input_.now.mono}};
    const auto [first, is_new] = by_namespace_.try_emplace(ns, wanted);
    if (!is_new && wanted.last_at < first->second.last_at) first->second = wanted;
  }

  /// One of each namespace, the one that has waited longest first.
  void choose() {
    const auto& past = input_.requests.owner_reads();
    std::vector<std::tuple<MonoTime, std::string, const ReadOwner*>> order;
    for (const auto& [ns, wanted] : by_namespace_) {
      if (const auto until = past.busy_until(ns, input_.now)) {
        wake_.note(until);
      } else {
        order.emplace_back(past.last_of(ns), ns, &wanted.read);
      }
    }
    std::ranges::sort(order);
    auto tokens = past.tokens();  // without those that this plan takes
    for (const auto& [last, ns, read] : order) {
      if (tokens.available(input_.now.mono) <= 0) return wake_.note(tokens.ready_at(1, input_.now.mono));
      tokens.take(1, input_.now.mono);
      planned_.actions.push_back(*read);
    }
  }

  const PlanInput& input_;
  Wake wake_;
  std::set<std::string> wanted_;  // the owners' keys
  std::map<std::string, Wanted> by_namespace_;
  Planned<ReadOwner> planned_;
};

}  // namespace

Planned<ReadOwner> plan(const PlanInput& input, std::span<const Verdict> verdicts, const std::set<std::string>& pods) {
  return Planner(input).run(verdicts, pods);
}

}  // namespace dhc::owners
