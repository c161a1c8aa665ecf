#pragma once
#include "app/message.h"
#include "domain/contract/verdict.h"
#include "domain/policy/policy.h"
#include "k8s-client/protocol/delivery.h"

namespace dhc::record {

// The fields of all that is recorded, for writing and for reading: `v(key, field)` leaves out what is empty, false or
// zero, so that a field whose default is something else takes `v.always`. A key is never given another meaning.

template <class V>
void fields(V& v, k8s::OwnerRef& x) {
  v("api", x.api_version);
  v("kind", x.kind);
  v("name", x.name);
  v("uid", x.uid);
}

template <class V>
void fields(V& v, k8s::Meta& x) {
  v("ns", x.ns);
  v("name", x.name);
  v("uid", x.uid);
  v("rv", x.resource_version);
  v("made", x.creation);
  v("end", x.deletion);
  v("endGrace", x.deletion_grace_seconds);
  v("labels", x.labels);
  v("notes", x.annotations);
  v("noted", x.has_annotations);
  v("owner", x.controller);
  v("owner2", x.has_other_owner);
}

template <class V>
void fields(V& v, k8s::ResourceAmount& x) {
  v("r", x.resource);
  v("n", x.amount);
}

template <class V>
void fields(V& v, k8s::Condition& x) {
  v("type", x.type);
  v("status", x.status);
  v("reason", x.reason);
  v("msg", x.message);
  v("at", x.last_transition);
}

template <class V>
void fields(V& v, k8s::Taint& x) {
  v("key", x.key);
  v("value", x.value);
  v("effect", x.effect);
  v("at", x.time_added);
}

template <class V>
void fields(V& v, k8s::Toleration& x) {
  v("key", x.key);
  v("value", x.value);
  v("effect", x.effect);
  v("exists", x.exists);
}

template <class V>
void fields(V& v, k8s::NodeRequirement& x) {
  v("key", x.key);
  v.always("op", x.op);
  v("values", x.values);
  v("field", x.is_field);
}

template <class V>
void fields(V& v, k8s::SchedulingTerms& x) {
  v("selector", x.node_selector);
  v("hasTerms", x.has_node_terms);
  v("terms", x.node_terms);
  v("tolerates", x.tolerations);
  v("gated", x.gated);
  v("other", x.has_other_terms);
}

template <class V>
void fields(V& v, k8s::ReportedDevice& x) {
  v("id", x.resource_id);
  v.always("h", x.health);
  v("msg", x.message);
  v("word", x.other_word);
  v("in", x.containers);
  v("restarts", x.restarts);
}

template <class V>
void fields(V& v, k8s::AllocatedResource& x) {
  v("name", x.name);
  v("devices", x.devices);
}

template <class V>
void fields(V& v, k8s::ContainerExit& x) {
  v("in", x.container);
  v("code", x.code);
}

template <class V>
void fields(V& v, k8s::ContainerImage& x) {
  v("in", x.container);
  v("runs", x.image);
}

template <class V>
void fields(V& v, k8s::PodClaim& x) {
  v("name", x.name);
  v("claim", x.claim_name);
}

template <class V>
void fields(V& v, k8s::Pod& x) {
  v("meta", x.meta);
  v("node", x.node_name);
  v.always("phase", x.phase);
  v("reason", x.status_reason);
  v("msg", x.status_message);
  v("grace", x.grace_period_seconds);
  v("claims", x.claims);
  v("asks", x.requests);
  v("holds", x.allocated);
  v("plugin", x.kubelet_plugin);
  v("folders", x.plugin_folders);
  v("began", x.last_start);
  v("exits", x.exits);
  v("conditions", x.conditions);
  v("kept", x.has_kept_condition);
  v("shows", x.shows_kept_annotation);
  v("group", x.pod_group);
  v("marked", x.is_marked);
  v("place", x.scheduling);
  v("images", x.images);
}

template <class V>
void fields(V& v, k8s::DeviceRequest& x) {
  v("name", x.name);
  v("class", x.device_class);
  v.always("n", x.count);
}

template <class V>
void fields(V& v, k8s::AllocationResult& x) {
  v("for", x.request);
  v("driver", x.driver);
  v("pool", x.pool);
  v("device", x.device);
  v("admin", x.admin_access);
  v("binding", x.binding_conditions);
  v("tolerates", x.tolerations);
}

template <class V>
void fields(V& v, k8s::ClaimDeviceStatus& x) {
  v("driver", x.driver);
  v("pool", x.pool);
  v("device", x.device);
  v("conditions", x.conditions);
  v("network", x.network);
}

template <class V>
void fields(V& v, k8s::ClaimConsumer& x) {
  v("api", x.api_group);
  v("resource", x.resource);
  v("name", x.name);
  v("uid", x.uid);
}

template <class V>
void fields(V& v, k8s::ResourceClaim& x) {
  v("meta", x.meta);
  v("asks", x.requests);
  v("allocated", x.allocated);
  v("results", x.results);
  v("for", x.reserved_for);
  v("devices", x.devices);
}

template <class V>
void fields(V& v, k8s::SliceDevice& x) {
  v("name", x.name);
  v("taints", x.taints);
  v("says", x.attributes);
  v("counters", x.counter_set);
}

template <class V>
void fields(V& v, k8s::ResourceSlice& x) {
  v("meta", x.meta);
  v("driver", x.driver);
  v("pool", x.pool);
  v("generation", x.generation);
  v("node", x.node_name);
  v("devices", x.devices);
  v("slices", x.pool_slices);
}

template <class V>
void fields(V& v, k8s::Node& x) {
  v("meta", x.meta);
  v("ready", x.ready);
  v("leaves", x.lifecycle);
  v("kept", x.kept);
  v("cordoned", x.unschedulable);
  v("boot", x.boot_id);
  v("kubelet", x.kubelet_version);
  v("taints", x.taints);
  v("capacity", x.capacity);
  v("allocatable", x.allocatable);
}

template <class V>
void fields(V& v, k8s::Namespace& x) {
  v("meta", x.meta);
}

template <class V>
void fields(V& v, k8s::Owner& x) {
  v("meta", x.meta);
}

template <class V>
void fields(V& v, k8s::EvictionInProgress& x) {
  v("of", x.observed_generation);
  v("status", x.status);
  v("reason", x.reason);
  v("msg", x.message);
}

template <class V>
void fields(V& v, k8s::DeviceTaintRule& x) {
  v("meta", x.meta);
  v("selects", x.has_selector);
  v("driver", x.driver);
  v("pool", x.pool);
  v("device", x.device);
  v("other", x.has_other_selectors);
  v("taint", x.taint);
  v("generation", x.generation);
  v("progress", x.progress);
}

template <class V>
void fields(V& v, k8s::JobFailureRule::PodCondition& x) {
  v("type", x.type);
  v.always("status", x.status);
}

template <class V>
void fields(V& v, k8s::JobFailureRule::ExitCodes& x) {
  v("of", x.container);
  v.always("in", x.in);
  v("values", x.values);
}

template <class V>
void fields(V& v, k8s::JobFailureRule& x) {
  v.always("do", x.action);
  v("conditions", x.on_pod_conditions);
  v("codes", x.on_exit_codes);
}

template <class V>
void fields(V& v, k8s::Job& x) {
  v("meta", x.meta);
  v.always("limit", x.backoff_limit);
  v("indexLimit", x.backoff_limit_per_index);
  v("mostFailed", x.max_failed_indexes);
  v("completions", x.completions);
  v.always("parallel", x.parallelism);
  v("indexed", x.indexed);
  v("suspended", x.suspended);
  v("manual", x.manual_selector);
  v("whenFailed", x.replaces_when_failed);
  v("onFailure", x.restarts_on_failure);
  v("by", x.managed_by);
  v("rules", x.failure_rules);
  v("failed", x.failed);
  v("succeeded", x.succeeded);
  v("active", x.active);
  v("terminating", x.terminating);
  v("uncounted", x.uncounted);
  v("failedIndexes", x.failed_indexes);
  v("conditions", x.conditions);
}

template <class V>
void fields(V& v, k8s::LabelRequirement& x) {
  v("key", x.key);
  v.always("op", x.op);
  v("values", x.values);
}

template <class V>
void fields(V& v, k8s::DisruptionBudget& x) {
  v("meta", x.meta);
  v("generation", x.generation);
  v("selector", x.selector);
  v("allowsUnhealthy", x.always_allows_unhealthy);
  v("of", x.observed_generation);
  v("allowed", x.disruptions_allowed);
  v("healthy", x.current_healthy);
  v("wanted", x.desired_healthy);
}

template <class V>
void fields(V& v, k8s::PodGroup& x) {
  v("meta", x.meta);
  v("whole", x.is_indivisible);
}

/// Only the controller's own come here.
template <class V>
void fields(V& v, k8s::ConfigMap& x) {
  v("meta", x.meta);
  v("data", x.data);
}

template <class V>
void fields(V& v, k8s::Unreadable& x) {
  v.always("kind", x.kind);
  v("ns", x.ns);
  v("name", x.name);
  v("uid", x.uid);
  v("why", x.why);
}

template <class V>
void fields(V& v, k8s::Remove& x) {
  v.always("kind", x.kind);
  v("ns", x.ns);
  v("name", x.name);
  v("uid", x.uid);
}

template <class V>
void fields(V& v, k8s::Told& x) {
  v.always("kind", x.kind);
  v("name", x.name);
  v("word", x.word);
  v("at", x.at);
}

template <class V>
void fields(V& v, FreshRead& x) {
  v.always("kind", x.kind);
  v("ns", x.ns);
  v("name", x.name);
  v("heldUid", x.held_uid);
  v("heldRv", x.held_version);
  v("uid", x.uid);
  v("rv", x.version);
}

template <class V>
void fields(V& v, OwnerSight& x) {
  v.always("state", x.state);
  v("meta", x.meta);
  v("why", x.why);
  v("at", x.at);
}

template <class V>
void fields(V& v, Error& x) {
  v.always("kind", x.kind);
  v("msg", x.message);
  v("retry", x.retry_after);
}

template <class V>
void fields(V& v, Subject& x) {
  v("kind", x.kind);
  v("ns", x.ns);
  v("name", x.name);
  v("uid", x.uid);
}

template <class V>
void fields(V& v, DeviceKey& x) {
  v("of", x.source);
  v("scope", x.scope);
  v("place", x.place);
  v("device", x.device);
}

// The configuration, every field of it: defaults change.

template <class V>
void fields(V& v, LabelSelector::Requirement& x) {
  v("key", x.key);
  v.always("op", x.op);
  v("values", x.values);
}

template <class V>
void fields(V& v, LabelSelector& x) {
  v("all", x.requirements);
}

template <class V>
void fields(V& v, ClaimConditionMatch& x) {
  v("type", x.type);
  v("status", x.status);
}

template <class V>
void fields(V& v, DeviceTaintMatch& x) {
  v("key", x.key);
  v.always("value", x.value);
  v("effect", x.effect);
}

template <class V>
void fields(V& v, Match& x) {
  v("resources", x.resources);
  v("drivers", x.drivers);
  v("namespaces", x.namespaces);
  v("pods", x.pods);
  v("nodes", x.nodes);
  v.always("health", x.health);
  v("words", x.health_words);
  v("message", x.message);
  v("claimConditions", x.claim_conditions);
  v("deviceTaints", x.device_taints);
}

template <class V>
void fields(V& v, NoticeRules& x) {
  v.always("deadline", x.deadline);
  v.always("extend", x.extend_up_to);
  v.always("owner", x.whole_owner);
}

template <class V>
void fields(V& v, EvictRules& x) {
  v.always("after", x.after);
  v("grace", x.grace_period_seconds);
  v.always("cordonWait", x.cordon_wait);
  v.always("bare", x.bare_pods);
  v.always("shared", x.shared_claims_together);
  v.always("groups", x.groups_together);
  v.always("untainted", x.untainted);
  v.always("wait", x.no_replacement_wait);
  v.always("hold", x.hold_without_replacement);
  v("notice", x.notice);
}

template <class V>
void fields(V& v, TaintRules& x) {
  v.always("device", x.device);
  v.always("partitions", x.partitions);
  v.always("node", x.node);
  v.always("devices", x.node_at_least_devices);
  v.always("percent", x.node_at_least_percent);
}

template <class V>
void fields(V& v, RecoverRules& x) {
  v.always("healthyFor", x.healthy_for);
  v.always("hold", x.hold);
  v.always("probation", x.probation);
  v.always("halfLife", x.half_life);
  v.always("quarantine", x.quarantine_above);
  v("identity", x.identity_attribute);
}

template <class V>
void fields(V& v, JobRetryRules& x) {
  v.always("credit", x.credit);
  v.always("most", x.max_per_job);
  v.always("settle", x.settle);
  v.always("otherwise", x.not_creditable);
  v.always("takeBack", x.take_back);
  v.always("recreate", x.recreate_once);
  v.always("rejections", x.rejections);
  v.always("within", x.rejections_within);
  v.always("taints", x.taints_rejecting_node);
}

template <class V>
void fields(V& v, EnforceOn& x) {
  v("namespaces", x.namespaces);
  v("nodes", x.nodes);
  v.always("percent", x.percent);
}

template <class V>
void fields(V& v, HandOverCondition& x) {
  v("type", x.type);
  v.always("problem", x.is_problem);
}

template <class V>
void fields(V& v, HandOverResource& x) {
  v("api", x.api_version);
  v("kind", x.kind);
  v("ns", x.ns);
  v("name", x.name);
  v("text", x.text);
  v("device", x.per_device);
  v("keeps", x.keeps);
}

template <class V>
void fields(V& v, HandOverRules& x) {
  v("incidents", x.incidents);
  v.always("within", x.within);
  v.always("quarantine", x.on_quarantine);
  v("condition", x.condition);
  v("resource", x.resource);
}

template <class V>
void fields(V& v, DevicePolicy& x) {
  v("name", x.name);
  v.always("mode", x.mode);
  v("on", x.enforce_on);
  v("priority", x.priority);
  v("match", x.match);
  v.always("after", x.after);
  v("taint", x.taint);
  v("job", x.job_retry);
  v("evict", x.evict);
  v("recover", x.recover);
  v("handOver", x.hand_over);
}

template <class V>
void fields(V& v, Cap& x) {
  v.always("percent", x.percent);
  v.always("least", x.at_least);
}

template <class V>
void fields(V& v, ScopedPause& x) {
  v("nodes", x.nodes);
  v("nodeLabels", x.node_labels);
  v("drivers", x.drivers);
  v("resources", x.resources);
  v("namespaces", x.namespaces);
  v("until", x.until);
  v("reason", x.reason);
  v("by", x.by);
}

template <class V>
void fields(V& v, BrakeShare& x) {
  v.always("percent", x.percent);
  v.always("least", x.at_least);
}

/// That there is one: what is told is kept with the state. No more: its URL may hold a token.
template <class V>
void fields(V& v, WebhookRules& x) {
  v.always("perMinute", x.per_minute);
}

template <class V>
void fields(V& v, Limits& x) {
  v("paused", x.paused);
  v("pauses", x.pauses);
  v.always("perMinute", x.evictions_per_minute);
  v.always("inFlight", x.max_in_flight);
  v.always("perNode", x.per_node);
  v.always("perOwner", x.per_owner);
  v.always("taints", x.taints_per_minute);
  v.always("brakePercent", x.brake_percent);
  v.always("brakeLeast", x.brake_at_least);
  v("brakeCount", x.brake_count);
  v("brakeMessage", x.brake_by_message);
  v("brakeOwner", x.brake_by_owner);
  v.always("brakeWithin", x.brake_within);
  v.always("trialAfter", x.brake_trial_after);
  v.always("trialRuns", x.brake_trial_runs);
  v.always("grace", x.counted_grace);
  v("capCluster", x.cap_cluster);
  v("capNode", x.cap_node);
  v("capDay", x.cap_per_day);
  v("capOwner", x.cap_owner_per_day);
  v("capHandOver", x.cap_nodes_handed_over);
  v.always("suspect", x.suspect_after);
  v("webhook", x.webhook);
}

template <class V>
void fields(V& v, Policy& x) {
  v("policies", x.policies);
  v("limits", x.limits);
  v.always("mode", x.mode_cap);
  v("ns", x.own_namespace);
  v("pod", x.own_pod_uid);
  v("brakeRelease", x.brake_release);
  v("capRelease", x.cap_release);
  v("pauseUntil", x.pause_until);
  v("pauseReason", x.pause_reason);
  v("pauses", x.pauses);
  v("source", x.source);
  v.always("events", x.events);
  v("status", x.status);
}

}  // namespace dhc::record
