#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simulator/controllers/job_account.h"
#include "simulator/controllers/state.h"

namespace dhc::sim {
namespace {

constexpr std::string_view kFinalizer = "batch.kubernetes.io/job-tracking";

/// 10 s, doubling, at most 10 minutes. **Source:** Job controller, measured on 1.37.1 (10.8, 21.0, 40.4, 80.2 s).
Millis back_off(int failures) {
  if (failures <= 0) return Millis(0);
  const auto doubled = Seconds(10) * (1LL << std::min(failures - 1, 10));
  return std::min<Millis>(doubled, Seconds(600));
}

void drop_finalizer(State& state, const Name& name) {
  state.store.edit(Res::Pods, name, [](Json& pod) {
    auto& finalizers = pod["metadata"]["finalizers"];
    if (!finalizers.is_array()) {
      pod["metadata"].erase("finalizers");
      return;
    }
    std::erase(finalizers.get_ref<Json::array_t&>(), Json(kFinalizer));
    if (finalizers.empty()) pod["metadata"].erase("finalizers");
  });
}

void sync_by(JobMemory& memory, MonoTime when) {
  if (!memory.sync_at || when < *memory.sync_at) memory.sync_at = when;
}

/// Whether the index may have a new pod now; its back-off is its own with backoffLimitPerIndex.
bool is_free(const State& state, JobMemory& memory, const JobAccount& account, std::int64_t index) {
  if (account.indexes_taken.contains(index) || memory.indexes.failed.contains(index)) return false;
  const auto failures = memory.indexes.failures.find(index);
  if (failures == memory.indexes.failures.end()) return true;
  const auto pause_over = failures->second.last + back_off(failures->second.count);
  if (state.mono() >= pause_over) return true;
  sync_by(memory, pause_over);
  return false;
}

void create_pods(State& state, JobMemory& memory, const Json& job, const JobAccount& account, std::int64_t missing) {
  const bool indexed = text(job, {"spec", "completionMode"}) == "Indexed";
  const auto completions = number(job, {"spec", "completions"}, missing);
  std::int64_t index = 0;
  for (; missing > 0; --missing) {
    Json pod_template = job["spec"]["template"];
    pod_template["metadata"]["finalizers"] = Json::array({kFinalizer});
    std::string name;
    if (indexed) {
      while (index < completions && !is_free(state, memory, account, index)) ++index;
      if (index >= completions) return;
      if (is_per_index(job)) {
        const auto failures = memory.indexes.failures.find(index);
        const auto count = failures == memory.indexes.failures.end() ? 0 : failures->second.count;
        pod_template["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] = std::to_string(count);
      }
      const auto word = std::to_string(index);
      pod_template["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] = word;
      pod_template["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] = word;
      name = fmt::format("{}-{}-{}", name_of(job), word, state.store.new_suffix());
      ++index;
    }
    memory.expected.insert(uid_of(*create_pod(state, job, pod_template, name)));
  }
}

/// Deletes running pods and says how many: this happens before the status is written, so a Job that is behind can kill
/// a healthy pod. **Source:** job_controller.go syncJob, seen on 1.37.1.
std::int64_t delete_active(State& state, const JobAccount& account, std::size_t keep) {
  std::int64_t deleted = 0;
  for (auto i = keep; i < account.active.size(); ++i) {
    const Name name{ns_of(*account.active[i]), name_of(*account.active[i])};
    const auto pod = state.store.get(Res::Pods, name);
    if (pod == nullptr || uid_of(*pod) != uid_of(*account.active[i]) || is_deleting(*pod)) continue;
    state.store.request_delete(Res::Pods, name);
    ++deleted;
  }
  return deleted;
}

void add_condition(Json& job, std::string_view type, std::string_view reason, std::string_view message,
                   const std::string& now) {
  set_condition(job, type, "True", reason, message, now);
  for (auto& condition : job["status"]["conditions"]) {
    if (text(condition, {"type"}) == type) condition["lastProbeTime"] = now;
  }
}

std::string_view words_for(const std::string& reason) {
  if (reason == "BackoffLimitExceeded") return "Job has reached the specified backoff limit";
  if (reason == "FailedIndexes") return "Job has failed indexes";
  if (reason == "MaxFailedIndexesExceeded") return "Job has exceeded the specified maximal number of failed indexes";
  return "A pod of the Job matched a FailJob rule";
}

/// Decides on the cached Job and pods, acts on the pods, then writes the status; false: the Job has changed since it
/// was read, come again.
bool sync(State& state, JobMemory& memory, const Json& job, JobAccount account) {
  const auto now = state.store.time_text();
  const bool per_index = is_per_index(job);
  if (per_index) look_at_indexes(account, job, memory.indexes, state.mono());
  for (const auto& uid : account.newly_ended) {
    if (per_index || !memory.backed_off.insert(uid).second) continue;
    ++memory.failures;
    memory.last_failure = state.mono();
  }
  if (!account.newly_succeeded.empty()) memory.failures = 0;

  auto failed = number(job, {"status", "failed"}) + static_cast<std::int64_t>(account.newly_failed.size());
  const auto succeeded =
      number(job, {"status", "succeeded"}) + static_cast<std::int64_t>(account.newly_succeeded.size());
  auto reason = account.fail_job ? std::string("PodFailurePolicy") : failure_target(job);
  if (reason.empty() && failed > number(job, {"spec", "backoffLimit"}, 6)) reason = "BackoffLimitExceeded";
  if (reason.empty() && per_index) reason = failed_by_index(job, memory.indexes, succeeded);
  const bool complete = reason.empty() && is_complete(job, succeeded, account);

  Json after = job;
  auto& status = after["status"];
  std::int64_t killed = 0;
  if (!reason.empty() || complete) {
    killed = delete_active(state, account, 0);
    if (!reason.empty()) failed += killed;
  } else {
    const bool suspended = job["spec"].value("suspend", false);
    const auto over = succeeded + static_cast<std::int64_t>(memory.indexes.failed.size());
    const auto target = suspended ? 0 : wanted_active(job, over);
    const auto counted =
        static_cast<std::int64_t>(account.active.size()) + (replaces_when_failed(job) ? account.terminating : 0);
    const auto pause_over = memory.last_failure + back_off(memory.failures);
    if (counted > target) {
      delete_active(state, account, static_cast<std::size_t>(target));
    } else if (counted < target && memory.failures > 0 && state.mono() < pause_over) {
      sync_by(memory, pause_over);
    } else if (counted < target && memory.expected.empty()) {
      create_pods(state, memory, job, account, target - counted);
    }
  }
  if (!status.contains("startTime")) status["startTime"] = now;
  status["active"] = account.active.size();
  status["ready"] = account.ready;
  status["terminating"] = account.terminating;
  status["uncountedTerminatedPods"] = Json::object();
  if (failed > 0) status["failed"] = failed;
  if (per_index) status["failedIndexes"] = ranges_of(memory.indexes.failed);
  if (succeeded > 0) status["succeeded"] = succeeded;
  if (!reason.empty()) {
    add_condition(after, "FailureTarget", reason, words_for(reason), now);
    if (account.active.empty() && account.terminating == 0) {
      add_condition(after, "Failed", reason, words_for(reason), now);
    }
  } else if (complete) {
    add_condition(after, "SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods", now);
    if (account.active.empty() && account.terminating == 0) {
      add_condition(after, "Complete", "CompletionsReached", "Reached expected number of succeeded pods", now);
      status["completionTime"] = now;
    }
  }
  const Name name{ns_of(job), name_of(job)};
  const auto stored = state.store.get(Res::Jobs, name);
  if (stored == nullptr || uid_of(*stored) != uid_of(job)) return true;
  const bool same_version =
      text(*stored, {"metadata", "resourceVersion"}) == text(job, {"metadata", "resourceVersion"});
  // What has not changed is not written: a cache that is behind would take back what others wrote since.
  if (after != job && !same_version) return false;
  if (after != job) state.store.replace(Res::Jobs, std::move(after));
  if (!reason.empty() && killed > 0) {
    // Every pod that the failing Job kills is counted already. **Source:** seen on 1.37.1.
    for (const auto& pod : account.active) memory.counted.insert(uid_of(*pod));
  }
  for (const auto& pod : account.counted_now) {
    memory.counted.insert(uid_of(*pod));
    drop_finalizer(state, {ns_of(*pod), name_of(*pod)});
  }
  return true;
}

void release_pods(State& state, const JobAccount& account) {
  for (const auto& pod : account.all) {
    const auto finalizers = list(*pod, {"metadata", "finalizers"});
    if (std::ranges::find(finalizers, Json(kFinalizer)) != finalizers.end()) {
      drop_finalizer(state, {ns_of(*pod), name_of(*pod)});
    }
  }
}

std::optional<MonoTime> take_in(State& state) {
  const auto& store = state.store;
  const auto note = [&](const std::string& uid, Millis after) { sync_by(state.jobs[uid], store.now().mono + after); };
  const auto jobs_due = state.job_view.advance(store, state.lags.job_cache, [&](const Change& change) {
    const auto uid = uid_of(*change.object);
    if (change.type == ChangeType::Deleted) {
      state.jobs.erase(uid);
      return;
    }
    state.jobs[uid].name = {ns_of(*change.object), name_of(*change.object)};
    // A new spec is looked at at once, a new status later. **Source:** job_controller.go updateJob.
    const bool spec = change.before == nullptr || number(*change.before, {"metadata", "generation"}) !=
                                                      number(*change.object, {"metadata", "generation"});
    note(uid, spec ? Millis(0) : state.lags.job_batch);
  });
  const auto pods_due = state.job_pod_view.advance(store, state.lags.job_pod_cache, [&](const Change& change) {
    const Json* owner = controller_of(*change.object);
    if (owner == nullptr || text(*owner, {"kind"}) != "Job") return;
    const auto memory = state.jobs.find(text(*owner, {"uid"}));
    if (memory == state.jobs.end()) return;
    memory->second.expected.erase(uid_of(*change.object));
    note(text(*owner, {"uid"}), state.lags.job_batch);
  });
  if (!jobs_due) return pods_due;
  return pods_due ? std::min(*jobs_due, *pods_due) : *jobs_due;
}

}  // namespace

void run_jobs(State& state) {
  if (const auto due = take_in(state)) state.timers.wake_at(*due);
  std::map<Name, JobMemory*> waiting;
  for (auto& [uid, memory] : state.jobs) {
    if (memory.sync_at) waiting[memory.name] = &memory;
  }
  for (const auto& [name, waits] : waiting) {
    auto& memory = *waits;
    const auto job = state.job_view.objects().at(name);
    if (*memory.sync_at > state.mono()) {
      state.timers.wake_at(*memory.sync_at);
      continue;
    }
    memory.sync_at.reset();
    const auto account = account_for(*job, state.job_pod_view.owned_by(uid_of(*job)), memory.counted);
    const bool over = condition_status(*job, "Failed") == "True" || condition_status(*job, "Complete") == "True";
    if (over) {
      release_pods(state, account);
    } else if (!sync(state, memory, *job, account)) {
      sync_by(memory, state.mono() + state.lags.job_batch);
    }
    if (memory.sync_at) state.timers.wake_at(*memory.sync_at);
  }
}

}  // namespace dhc::sim
