#include "reconcilers/job_retry/draft.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "domain/contract/names.h"
#include "reconcilers/shared/job_credit.h"

namespace dhc::job_retry {

namespace {

bool is_unspent(const RetryCredit& credit) { return credit.state == RetryCredit::State::Unspent; }

std::optional<std::string> annotation(const k8s::Meta& meta, std::string_view key) {
  const auto found = k8s::find(meta.annotations, key);
  return found ? std::optional<std::string>(*found) : std::nullopt;
}

/// The annotations' times are whole seconds: what differs in less is the same.
WallTime whole_seconds(WallTime at) { return std::chrono::floor<Seconds>(at); }

}  // namespace

bool Draft::has_room(std::int64_t most) const {
  return credits_.has_unspent() || (static_cast<std::int64_t>(credits_.credits.size()) < most && limit_ < kLimitless);
}

void Draft::credit(const k8s::Pod& pod, const std::string& device, RetryCredit::State state, WallTime at) {
  device_ = device;
  RetryCredit* credit = credits_.find(pod.meta.uid);
  if (credit == nullptr) {
    const auto unspent = std::ranges::find_if(credits_.credits, is_unspent);
    if (unspent != credits_.credits.end()) credit = &*unspent;
  }
  if (credit == nullptr) {
    credits_.limit = ++limit_;
    credit = &credits_.credits.emplace_back();
    credit->limit = limit_;
  }
  credit->pod_uid = pod.meta.uid;
  credit->pod = pod.meta.name;
  credit->device = device;
  credit->at = whole_seconds(at);
  credit->state = state;
}

void Draft::take_back() {
  const auto before = credits_.credits.size();
  std::erase_if(credits_.credits, is_unspent);
  limit_ -= static_cast<std::int64_t>(before - credits_.credits.size());
  credits_.limit = limit_;
}

void Draft::leave_limit() {
  const auto stands = record_.job.backoff_limit;
  if (limit_ < stands) credits_ = record_.credits;
  std::erase_if(credits_.credits, [&](const RetryCredit& credit) {
    return credit.limit > stands && record_.credits.find(credit.pod_uid) == nullptr;
  });
  credits_.limit = record_.credits.limit;
  limit_ = stands;
}

void Draft::lose(std::string_view what, const k8s::Pod& pod, const std::string& device, WallTime at) {
  const auto known = std::ranges::find(losses_, pod.meta.uid, &JobLoss::pod_uid);
  if (known != losses_.end()) {
    if (what == to_string(Reason::JobDiedOfDevice)) known->what = what;
    return;
  }
  at = whole_seconds(at);
  if (losses_.size() >= kMostLosses) {
    const auto oldest = std::ranges::min_element(losses_, {}, &JobLoss::at);
    if (at <= oldest->at) return;
    losses_.erase(oldest);
  }
  device_ = device;
  losses_.push_back(
      {.what = std::string(what), .pod_uid = pod.meta.uid, .pod = pod.meta.name, .device = device, .at = at});
}

bool Draft::rests_on_version() const {
  return limit_ < record_.job.backoff_limit ||
         std::ranges::any_of(
             credits_.credits,
             [&](const RetryCredit& credit) {
               const auto* before = record_.credits.find(credit.pod_uid);
               return is_unspent(credit) && (before == nullptr || !is_unspent(*before));
             });
}

std::optional<PatchJob> Draft::patch(bool by_test) const {
  const auto& job = record_.job;
  PatchJob patch{.ns = job.meta.ns,
                 .name = job.meta.name,
                 .uid = job.meta.uid,
                 .resource_version = job.meta.resource_version,
                 .limit_before = job.backoff_limit,
                 .limit = limit_,
                 .notes = {},
                 .has_annotations = job.meta.has_annotations,
                 .by_test = by_test && !rests_on_version(),
                 .device = device_};
  const auto note = [&](std::string_view key, std::string text) {
    patch.notes.push_back(
        {.annotation = std::string(key), .before = annotation(job.meta, key), .text = std::move(text)});
  };
  if (credits_ != record_.credits) note(kRetryCreditsAnnotation, format_retry_credits(credits_));
  if (losses_ != record_.losses) note(kLossesAnnotation, format_losses(losses_));
  if (patch.notes.empty()) return std::nullopt;
  return patch;
}

}  // namespace dhc::job_retry
