#include "reconcilers/notice/notice_annotation.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/rfc3339.h"
#include "domain/contract/names.h"
#include "reconcilers/notice/stops.h"
#include "reconcilers/shared/failure_outlook.h"
#include "reconcilers/shared/job_credit.h"
#include "reconcilers/shared/notice_terms.h"
#include "reconcilers/shared/retry_rules.h"

namespace dhc::notice {

namespace {

constexpr std::size_t kSaidInNotice = 120;

/// What the loss costs the pod's owner.
struct Price {
  std::string_view retry = "none";
  bool exit_is_safe = false;
};

/// Their pods come back however they end, and nobody counts.
bool counts_no_failures(const k8s::Pod& pod) {
  const auto& owner = pod.meta.controller;
  return owner && (owner->kind == "ReplicaSet" || owner->kind == "StatefulSet");
}

/// A credit counts once the Job controller must have read it. Whoever was told so once may be on its way out.
bool is_credited(const AffectedPod& affected, const JobRecord& job, bool was_safe, const PlanInput& input, Wake& wake) {
  const auto rules = retry_rules(affected, input);
  if (!rules.crediting) return false;
  const auto found = credit_case(affected, job, *rules.crediting, input);
  if (found.kind != CreditCase::Kind::Given) return false;
  if (was_safe) return true;
  if (found.seen_at == MonoTime::max()) return false;
  const auto read_at = found.seen_at + rules.crediting->settle;
  wake.note_after(input.now.mono, read_at);
  return input.now.mono >= read_at;
}

Price price_of(const AffectedPod& affected, const std::optional<Notice>& shown, const PlanInput& input, Wake& wake) {
  const auto& pod = affected.pod();
  const auto* job = job_of(pod, input.world);
  if (job == nullptr) return {.exit_is_safe = counts_no_failures(pod)};
  const auto* condition = our_condition(pod);
  const bool has_condition = condition != nullptr && condition->status == "True";
  const auto exit = outlook_of_exit(job->job, pod, has_condition);
  Price price;
  if (outlook_of_eviction(job->job, pod, has_condition).counts == Counts::Never) {
    price.retry = "ignored";
  } else if (is_credited(affected, *job, shown && shown->exit_is_safe, input, wake)) {
    price.retry = "credited";
  }
  price.exit_is_safe = exit == Counts::Never || (exit == Counts::Maybe && price.retry == "credited");
  return price;
}

std::string words_for(const AffectedPod& affected, std::size_t others) {
  auto words = fmt::format("policy {} evicts this pod from a bad device", affected.policy->name);
  if (others > 0) words += fmt::format(" and {} more", others);
  if (!affected.said.empty()) words += ": " + printable_cut(affected.said, kSaidInNotice);
  return words;
}

NoticedDevice device_of(const AffectedPod& affected) {
  const auto& containers = affected.held_device->containers;
  return {.device = to_string(affected.key),
          .container = containers.empty() ? std::string() : containers.front().str()};
}

/// The pod's bad devices but for this one, in the order of their keys.
std::vector<NoticedDevice> others_of(const AffectedPod& affected, std::vector<const AffectedPod*> open) {
  std::erase(open, &affected);
  std::ranges::sort(open, {}, [](const AffectedPod* one) -> const DeviceKey& { return one->key; });
  if (open.size() > kMostAlso) open.resize(kMostAlso);
  std::vector<NoticedDevice> others;
  for (const auto* one : open) others.push_back(device_of(*one));
  return others;
}

Notice notice_of_eviction(const AffectedPod& affected, const NoticeTerms& terms,
                          const std::vector<const AffectedPod*>& open, const PlanInput& input, Wake& wake) {
  const auto shown = notice_on(affected.pod());
  const bool is_same = shown && shown->evict && shown->at == terms.given.at;
  auto named = device_of(affected);
  const auto price = price_of(affected, is_same ? shown : std::nullopt, input, wake);
  Notice notice{.evict = true,
                .number = (shown ? shown->number : 0) + (is_same ? 0 : 1),
                .device = std::move(named.device),
                .container = std::move(named.container),
                .reason = std::string(to_string(Reason::DeviceUnhealthy)),
                .message = words_for(affected, open.size() - 1),
                .at = terms.given.at,
                .deadline = terms.until,
                .retry = std::string(price.retry),
                .exit_is_safe = price.exit_is_safe,
                .restarts = affected.held_device->restarts,
                .also = others_of(affected, open)};
  if (is_same && shown->device == notice.device) notice.restarts = shown->restarts;
  if (terms.asks_beyond) {
    notice.message = fmt::format("{} is more than evict.notice.extendUpTo of policy {} allows",
                                 format_rfc3339(*terms.asks_beyond), affected.policy->name);
  }
  if (const auto stop = stop_of(affected, input)) {
    notice.reason = to_string(stop->reason);
    notice.message = stop->reason == Reason::Paused ? "evictions are paused, the deadline stands: " + stop->words
                                                    : stop->words + "; the deadline stands";
    wake.note(stop->until);
  }
  return notice;
}

/// The same words since when they were first shown.
Notice notice_of_none(const k8s::Pod& pod, Notice notice, const PlanInput& input) {
  const auto shown = notice_on(pod);
  notice.number = shown ? shown->number : 0;
  const bool is_same =
      shown && !shown->evict && shown->peer.empty() && shown->reason == notice.reason && shown->device == notice.device;
  notice.at = is_same ? shown->at : std::chrono::floor<Seconds>(input.now.wall);
  return notice;
}

}  // namespace

std::optional<Notice> notice_for(const std::vector<const AffectedPod*>& open, const PlanInput& input,
                                 const NextSteps& next, Wake& wake) {
  const AffectedPod* held = nullptr;
  const AffectedPod* first = nullptr;
  std::optional<NoticeTerms> terms_of_first;
  for (const auto* affected : open) {
    auto terms = notice_terms(*affected, input);
    if (!terms) continue;
    if (!next.leads_to_eviction(*affected)) {
      if (held == nullptr || affected->key < held->key) held = affected;
      continue;
    }
    if (first != nullptr && std::tie(terms_of_first->until, first->key) < std::tie(terms->until, affected->key))
      continue;
    first = affected;
    terms_of_first = std::move(terms);
  }
  if (first != nullptr) return notice_of_eviction(*first, *terms_of_first, open, input, wake);
  if (held == nullptr) return std::nullopt;
  const auto* verdict = next.held_for_good(*held);
  return notice_of_none(held->pod(),
                        {.device = to_string(held->key),
                         .reason = std::string(to_string(verdict->reason)),
                         .message = "this pod is not evicted: " + verdict->message},
                        input);
}

Notice notice_with(const AffectedPod& member, const GangUnit& unit, const Notice& other, const PlanInput& input,
                   Wake& wake) {
  const auto shown = notice_on(member.pod());
  const bool is_same = shown && shown->evict && shown->at == other.at;
  const auto price = price_of(member, is_same ? shown : std::nullopt, input, wake);
  const auto terms = notice_terms(member, input);
  const auto& holder = unit.members.front()->pod().meta.name;
  const bool is_stopped = other.reason == to_string(Reason::Paused) || other.reason == to_string(Reason::Braked);
  return {.evict = true,
          .number = (shown ? shown->number : 0) + (is_same ? 0 : 1),
          .device = other.device,
          .reason = other.reason,
          .message = is_stopped ? other.message
                                : fmt::format("policy {} evicts {}: pod {} is on a bad device", member.policy->name,
                                              unit.gang.words, holder),
          .at = other.at,
          .deadline = terms ? std::optional(terms->until) : other.deadline,
          .retry = std::string(price.retry),
          .exit_is_safe = price.exit_is_safe,
          .gang = unit.gang.words,
          .with = holder};
}

std::optional<Notice> notice_of_recovery(const k8s::Pod& pod, const PlanInput& input) {
  const auto shown = notice_on(pod);
  if (!shown) return std::nullopt;
  return notice_of_none(pod,
                        {.device = shown->device,
                         .reason = std::string(to_string(Reason::Recovered)),
                         .message = "the device is healthy again"},
                        input);
}

std::string annotation_of(const std::optional<Notice>& notice, const k8s::Pod& pod, const PlanInput& input) {
  const auto seen = k8s::find(pod.meta.annotations, kNoticeAnnotation).value_or("");
  if (!notice || input.requests.notices().is_contested(pod.meta.uid, seen)) return {};
  return notice_text(*notice);
}

bool shows_but_for_words(const std::string& annotation, const k8s::Pod& pod) {
  auto shown = notice_on(pod);
  const auto wanted = read_notice(annotation);
  if (!shown || !wanted) return !shown && !wanted;
  shown->message = wanted->message;
  return *shown == *wanted;
}

}  // namespace dhc::notice
