#include "reconcilers/eviction/exchange.h"

#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "domain/contract/names.h"
#include "domain/limits/attempt.h"
#include "k8s-client/model/decoder.h"
#include "k8s-client/protocol/object_path.h"
#include "reconcilers/eviction/build.h"
#include "reconcilers/eviction/retry_terms.h"
#include "reconcilers/eviction/signal.h"

namespace dhc::eviction {

namespace {

template <class T>
Result<T> read_as(k8s::Kind kind, const Result<k8s::Response>& answer) {
  if (!answer) return std::unexpected(answer.error());
  auto object = k8s::Decoder(kind, kKeptFields).decode_object(answer->body);
  if (!object) return fail(ErrorKind::Malformed, object.error().why);
  auto* value = std::get_if<T>(&*object);
  if (value == nullptr) return fail(ErrorKind::Malformed, "the server's answer is another kind of object");
  return std::move(*value);
}

/// Adds what the server has of an object to what was held of it. A read that failed has shown nothing.
template <class T>
void note_read(FreshReads& reads, FreshRead held, const Result<T>& found) {
  if (!found && found.error().kind != ErrorKind::NotFound) return;
  if (found) {
    held.uid = found->meta.uid;
    held.version = found->meta.resource_version;
  }
  reads.push_back(std::move(held));
}

Result<k8s::Pod> pod_in(const Result<k8s::Response>& answer) { return read_as<k8s::Pod>(k8s::Kind::Pod, answer); }

/// What a failed read means for an eviction that was not sent: nothing has happened, whatever happened to the read.
Error before_eviction(Error error) {
  switch (error.kind) {
    case ErrorKind::Cancelled:
      return error;
    case ErrorKind::NotFound:
    case ErrorKind::TooManyRequests:
    case ErrorKind::Unauthorized:
    case ErrorKind::Forbidden:
    case ErrorKind::Invalid:
      break;
    case ErrorKind::Conflict:
    case ErrorKind::Contested:
    case ErrorKind::Gone:
    case ErrorKind::Blocked:
    case ErrorKind::Doubtful:
    case ErrorKind::Declined:
    case ErrorKind::Outdated:
    case ErrorKind::Altered:
    case ErrorKind::Unread:
    case ErrorKind::Unavailable:
    case ErrorKind::TimedOut:
    case ErrorKind::Malformed:
      error.kind = ErrorKind::Unread;
      break;
  }
  error.message = "the read before the eviction failed: " + error.message;
  return error;
}

/// As above, for another object than the pod itself: that it is gone says that the signal is.
Error signal_gone(Error error, std::string_view what) {
  if (error.kind != ErrorKind::NotFound) return before_eviction(std::move(error));
  error.kind = ErrorKind::Outdated;
  error.message = fmt::format("the read before the eviction shows that {} is gone: nothing was evicted", what);
  return error;
}

}  // namespace

Exchange::Exchange(EvictPod action) : action_(std::move(action)) {}

std::optional<k8s::Request> Exchange::next() {
  if (step_ == Step::Over) return std::nullopt;
  auto built = request();
  if (built) return std::move(*built);
  end(std::unexpected(std::move(built.error())));
  return std::nullopt;
}

Result<k8s::Request> Exchange::request() const {
  switch (step_) {
    case Step::ReadPod:
    case Step::LookAgain:
      return build_read(action_.ns, action_.name);
    case Step::ReadReporter:
      return build_read(action_.signal.witness_ns, action_.signal.witness_name);
    case Step::ReadClaim:
      return build_claim_read(action_.ns, action_.signal.claim_name);
    case Step::ReadSlice:
      return build_slice_read(action_.signal.slice_name);
    case Step::ReadJob:
      return build_job_read(action_.ns, action_.retry->job_name);
    case Step::Evict:
    case Step::Over:
      break;
  }
  return build_eviction(action_);
}

void Exchange::take(const Result<k8s::Response>& answer) {
  switch (step_) {
    case Step::ReadPod:
      return take_pod(answer);
    case Step::ReadReporter:
      return take_reporter(answer);
    case Step::ReadClaim:
      return take_claim(answer);
    case Step::ReadSlice:
      return take_slice(answer);
    case Step::ReadJob:
      return take_job(answer);
    case Step::Evict:
      return take_eviction(answer);
    case Step::LookAgain:
      return take_look(answer);
    case Step::Over:
      return;
  }
}

void Exchange::end(Status outcome) {
  outcome_ = std::move(outcome);
  step_ = Step::Over;
}

void Exchange::read_claim_or_go_on() {
  if (action_.signal.claim_name.empty()) return read_job_if_signal_stands();
  step_ = Step::ReadClaim;
}

void Exchange::read_job_if_signal_stands() {
  if (auto judged = judge_signal(action_, fresh_); !judged) return end(std::move(judged));
  step_ = action_.retry ? Step::ReadJob : Step::Evict;
}

/// The pod itself, as a read shows it.
void Exchange::note_pod(const Result<k8s::Pod>& pod) {
  note_read(reads_,
            {.kind = k8s::Kind::Pod,
             .ns = action_.ns,
             .name = action_.name,
             .held_uid = action_.uid,
             .held_version = action_.seen_version},
            pod);
}

void Exchange::take_pod(const Result<k8s::Response>& answer) {
  auto pod = pod_in(answer);
  note_pod(pod);
  if (!pod) return end(std::unexpected(before_eviction(std::move(pod.error()))));
  if (auto judged = judge_pod(action_, *pod); !judged) return end(std::move(judged));
  fresh_.reporter = std::move(*pod);
  if (action_.signal.witness_uid.empty()) return read_claim_or_go_on();
  step_ = Step::ReadReporter;
}

void Exchange::take_reporter(const Result<k8s::Response>& answer) {
  const auto what = fmt::format("pod {}, which reports the device,", action_.signal.witness_name);
  auto pod = pod_in(answer);
  note_read(reads_,
            {.kind = k8s::Kind::Pod,
             .ns = action_.signal.witness_ns,
             .name = action_.signal.witness_name,
             .held_uid = action_.signal.witness_uid,
             .held_version = action_.signal.witness_version},
            pod);
  if (pod && pod->meta.uid != action_.signal.witness_uid) pod = fail(ErrorKind::NotFound, "another UID");
  if (!pod) return end(std::unexpected(signal_gone(std::move(pod.error()), what)));
  fresh_.reporter = std::move(*pod);
  read_claim_or_go_on();
}

void Exchange::take_claim(const Result<k8s::Response>& answer) {
  auto claim = read_as<k8s::ResourceClaim>(k8s::Kind::ResourceClaim, answer);
  note_read(reads_,
            {.kind = k8s::Kind::ResourceClaim,
             .ns = action_.ns,
             .name = action_.signal.claim_name,
             .held_uid = action_.signal.claim_uid,
             .held_version = action_.signal.claim_version},
            claim);
  if (!claim) {
    return end(std::unexpected(signal_gone(std::move(claim.error()), "claim " + action_.signal.claim_name)));
  }
  fresh_.claim = std::move(*claim);
  if (action_.signal.slice_name.empty()) return read_job_if_signal_stands();
  step_ = Step::ReadSlice;
}

void Exchange::take_slice(const Result<k8s::Response>& answer) {
  auto slice = read_as<k8s::ResourceSlice>(k8s::Kind::ResourceSlice, answer);
  note_read(reads_,
            {.kind = k8s::Kind::ResourceSlice,
             .ns = {},
             .name = action_.signal.slice_name,
             .held_uid = action_.signal.slice_uid,
             .held_version = action_.signal.slice_version},
            slice);
  if (!slice) {
    return end(std::unexpected(signal_gone(std::move(slice.error()), "slice " + action_.signal.slice_name)));
  }
  fresh_.slice = std::move(*slice);
  read_job_if_signal_stands();
}

void Exchange::take_job(const Result<k8s::Response>& answer) {
  auto job = read_as<k8s::Job>(k8s::Kind::Job, answer);
  note_read(reads_,
            {.kind = k8s::Kind::Job,
             .ns = action_.ns,
             .name = action_.retry->job_name,
             .held_uid = action_.retry->job_uid,
             .held_version = action_.retry->job_version},
            job);
  if (!job) return end(std::unexpected(signal_gone(std::move(job.error()), "Job " + action_.retry->job_name)));
  if (auto judged = judge_retry(action_, *job); !judged) return end(std::move(judged));
  step_ = Step::Evict;
}

void Exchange::take_eviction(const Result<k8s::Response>& answer) {
  if (answer) return end({});
  doubt_ = answer.error();
  // An answer that cannot be read is no answer.
  if (doubt_.kind == ErrorKind::Malformed) doubt_.kind = ErrorKind::Unavailable;
  if (!may_have_happened(doubt_)) return end(std::unexpected(doubt_));
  step_ = Step::LookAgain;
}

void Exchange::take_look(const Result<k8s::Response>& answer) {
  const auto pod = pod_in(answer);
  note_pod(pod);
  const bool gone = pod ? pod->meta.uid != action_.uid : pod.error().kind == ErrorKind::NotFound;
  if (gone || (pod && pod->meta.deletion)) return end({});
  if (!pod) {
    doubt_.message += "; then the pod could not be read: " + pod.error().message;
  } else if (doubt_.kind == ErrorKind::Doubtful) {
    doubt_.kind = ErrorKind::Declined;
  } else {
    // Nobody has answered: what stands now may still be evicted by a server that is slow.
    doubt_.message += "; the pod still exists";
  }
  end(std::unexpected(doubt_));
}

}  // namespace dhc::eviction
