#pragma once
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/now.h"
#include "domain/contract/subject.h"
#include "k8s-client/model/meta.h"
#include "k8s-client/model/pod.h"

namespace dhc {

enum class Mode : std::uint8_t { Off, Observe, Enforce };

/// A Kubernetes label selector. Empty selects everything. **Source:** meta/v1 LabelSelector.
struct LabelSelector {
  enum class Operator : std::uint8_t { In, NotIn, Exists, DoesNotExist };
  struct Requirement {
    std::string key;
    Operator op = Operator::Exists;
    std::vector<std::string> values;
    friend bool operator==(const Requirement&, const Requirement&) = default;
  };
  std::vector<Requirement> requirements;  ///< matchLabels become `In` with one value.
  [[nodiscard]] bool matches(const k8s::StringMap& labels) const { return first_unmet(labels) == nullptr; }
  /// The first requirement that these labels do not meet; null: they meet all.
  [[nodiscard]] const Requirement* first_unmet(const k8s::StringMap& labels) const;
  friend bool operator==(const LabelSelector&, const LabelSelector&) = default;
};

/// A compiled RE2 expression: linear time on hostile text, shared between copies of a policy.
class MessagePattern {
 public:
  /// Compiles; the error text is RE2's own.
  [[nodiscard]] static std::expected<MessagePattern, std::string> compile(std::string_view text);
  [[nodiscard]] bool matches(std::string_view message) const;
  [[nodiscard]] const std::string& text() const;
  friend bool operator==(const MessagePattern& a, const MessagePattern& b) { return a.text() == b.text(); }

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

/// A claim condition that counts as a signal: the driver's own words. **Source:** KEP-4817.
struct ClaimConditionMatch {
  std::string type;
  std::string status;
  friend bool operator==(const ClaimConditionMatch&, const ClaimConditionMatch&) = default;
};

/// A taint in a driver's ResourceSlice that counts as a signal; globs. **Source:** KEP-5055.
struct DeviceTaintMatch {
  std::string key;
  std::string value = "*";
  std::string effect;  ///< Empty: NoSchedule or NoExecute. None is information, and counts only if it is named.
  [[nodiscard]] bool fits(const k8s::Taint& taint) const;
  friend bool operator==(const DeviceTaintMatch&, const DeviceTaintMatch&) = default;
};

/// Whether one of them fits.
[[nodiscard]] bool fits_any(const std::vector<DeviceTaintMatch>& wanted, const k8s::Taint& taint);

/// What a policy applies to: every selector must fit, and any signal.
struct Match {
  std::vector<std::string> resources;  ///< Globs over device-plugin resources.
  std::vector<std::string> drivers;    ///< Globs over DRA drivers. Both lists empty: every device.
  LabelSelector namespaces;
  LabelSelector pods;
  LabelSelector nodes;
  std::vector<k8s::Health> health = {k8s::Health::Unhealthy};
  std::vector<std::string> health_words;  ///< Words of `health` that are neither Healthy, Unknown nor Unhealthy.
  std::optional<MessagePattern> message;
  std::vector<ClaimConditionMatch> claim_conditions;
  std::vector<DeviceTaintMatch> device_taints;
  friend bool operator==(const Match&, const Match&) = default;
};

/// How a pod is told before it is evicted.
struct NoticeRules {
  Millis deadline = std::chrono::minutes(5);       ///< The pod's time from the notice to the eviction.
  Millis extend_up_to = std::chrono::minutes(30);  ///< `extendUpTo`: how much longer the pod may ask for.
  bool whole_owner = false;  ///< `scope: Owner`: the other pods of its controller are told which pod goes.
  friend bool operator==(const NoticeRules&, const NoticeRules&) = default;
};

/// How a matched pod is evicted.
struct EvictRules {
  Millis after{0};  ///< Waited after the incident opened.
  std::optional<std::int64_t> grace_period_seconds;
  Millis cordon_wait = std::chrono::minutes(30);  ///< `cordonWait`: how long after its node's cordon a pod may wait.
  bool bare_pods = false;
  bool shared_claims_together = false;
  bool groups_together = false;  ///< `groups: Together`: all pods of a gang are told and evicted as one unit, or none.
  bool untainted = false;        ///< Evict from a DRA device although the scheduler could hand it straight back.
  /// `whenNoReplacement.wait`: how long an eviction that is due waits for a place to go.
  Millis no_replacement_wait = std::chrono::minutes(10);
  bool hold_without_replacement = false;   ///< `whenNoReplacement.then: Hold`; the default evicts all the same.
  std::optional<NoticeRules> notice = {};  ///< Absent: the pod is told by SIGTERM alone.
  friend bool operator==(const EvictRules&, const EvictRules&) = default;
};

/// How new pods are kept off a matched device.
struct TaintRules {
  /// What a DRA device gets. Staged: effect None first, until the API server has said what NoExecute would do.
  enum class Device : std::uint8_t { Never, NoSchedule, Staged };
  Device device = Device::NoSchedule;
  bool partitions = true;                   ///< The other devices of a bad DRA device's card get the taint too.
  bool node = false;                        ///< `node: NoSchedule`: taint the whole node of bad device-plugin devices.
  std::int64_t node_at_least_devices = 2;   ///< Only when so many of the node's devices are bad,
  std::int64_t node_at_least_percent = 25;  ///< and so many of a hundred.
  friend bool operator==(const TaintRules&, const TaintRules&) = default;
};

/// When a taint goes away again, and how long a device that fails again is held.
struct RecoverRules {
  Millis healthy_for = std::chrono::minutes(10);  ///< Evidence of health must last so long without interruption.
  Millis hold = std::chrono::hours(72);           ///< Without evidence: doubled with each incident, at most 7 days.
  bool probation = true;  ///< `then: Probation` untaints after the hold; Keep waits for an operator.
  Millis half_life = std::chrono::hours(336);  ///< Of the penalty.
  double quarantine_above = 2;          ///< A penalty above this holds the device until an operator acknowledges.
  std::string identity_attribute = {};  ///< Slice attribute that names the physical device; empty: a well-known one.
  friend bool operator==(const RecoverRules&, const RecoverRules&) = default;
};

/// How a Job gets back the retry that hardware takes.
struct JobRetryRules {
  /// What becomes of a pod whose loss cannot be credited, the strictest last. HoldIfFatal: held if the loss would end
  /// its Job, or what it costs is not known. Without credits Hold is the same.
  enum class NotCreditable : std::uint8_t { Evict, HoldIfFatal, Hold };
  bool credit = true;
  std::int64_t max_per_job = 3;
  Millis settle = Seconds(10);  ///< How long a credit must have been seen on the Job before its pod is evicted.
  NotCreditable not_creditable = NotCreditable::HoldIfFatal;  ///< `whenNotCreditable`.
  bool take_back = false;
  bool recreate_once = false;
  std::int64_t rejections = 3;                          ///< Rejected replacements that make a node a rejecting one,
  Millis rejections_within = std::chrono::minutes(10);  ///< within this time.
  bool taints_rejecting_node = false;                   ///< Taint such a node.
  friend bool operator==(const JobRetryRules&, const JobRetryRules&) = default;
};

/// A condition of the node by which others are told to repair or replace it.
struct HandOverCondition {
  std::string type;
  bool is_problem = true;  ///< `unhealthy: "True"`: True says that the node is bad; else False does.
  friend bool operator==(const HandOverCondition&, const HandOverCondition&) = default;
};

/// A custom resource by which others are told: an order to whoever repairs nodes.
struct HandOverResource {
  std::string api_version;  ///< `group/version`; never one of Kubernetes' own groups.
  std::string kind;
  std::string ns;           ///< Empty: the kind is cluster-scoped.
  std::string name;         ///< With its placeholders.
  std::string text;         ///< The whole template as JSON, with its placeholders.
  bool per_device = false;  ///< `per: Device`: one for each device that is a ground; else one for the node.
  bool keeps = false;       ///< `whenRecovered: Keep`.
  friend bool operator==(const HandOverResource&, const HandOverResource&) = default;
};

/// When a node is handed over to whoever repairs nodes, and how that is told: by one of the two, or both.
struct HandOverRules {
  std::int64_t incidents = 0;               ///< So many of one device, the last of which goes on; 0: none is enough.
  Millis within = std::chrono::hours(168);  ///< They opened within this time.
  bool on_quarantine = true;                ///< A quarantined device is enough.
  std::optional<HandOverCondition> condition = {};  ///< `nodeCondition`.
  std::optional<HandOverResource> resource = {};    ///< `resource`.
  friend bool operator==(const HandOverRules&, const HandOverRules&) = default;
};

/// Where a policy that enforces does so; elsewhere it observes. All that is given must hold.
struct EnforceOn {
  std::vector<std::string> namespaces;  ///< Names or globs; empty: every one.
  LabelSelector nodes;
  std::int64_t percent = 100;  ///< `devices`: of a hundred physical cards, always the same ones and more.
  friend bool operator==(const EnforceOn&, const EnforceOn&) = default;
};

/// One `DeviceHealthPolicy` document, validated.
struct DevicePolicy {
  std::string name;
  Mode mode = Mode::Observe;
  std::optional<EnforceOn> enforce_on = {};  ///< Absent: `mode` holds for all that the policy matches.
  std::int64_t priority = 0;
  Match match = {};
  Millis after = Seconds(60);                   ///< Continuously in the matched state before the incident opens.
  std::optional<TaintRules> taint = {};         ///< Absent: nothing is tainted.
  std::optional<JobRetryRules> job_retry = {};  ///< Absent: no Job gets a retry back, nor is one ended.
  std::optional<EvictRules> evict = {};         ///< Absent: nothing is evicted.
  RecoverRules recover = {};
  std::optional<HandOverRules> hand_over = {};  ///< Absent: no node is handed over.
  friend bool operator==(const DevicePolicy&, const DevicePolicy&) = default;
};

/// How much may be out of service on our account: a share, and a number that is always allowed.
struct Cap {
  std::int64_t percent = 100;  ///< Of the known devices of a driver or resource.
  std::int64_t at_least = 0;
  friend bool operator==(const Cap&, const Cap&) = default;
};

/// A pause of a part of the cluster: what all the selectors fit that are given.
struct ScopedPause {
  std::vector<std::string> nodes = {};  ///< Names or globs; empty: every one; likewise below.
  LabelSelector node_labels = {};
  std::vector<std::string> drivers = {};  ///< With `resources`: the devices of either; neither: every device.
  std::vector<std::string> resources = {};
  std::vector<std::string> namespaces = {};
  WallTime until{};
  std::string reason = {};  ///< Any words.
  std::string by = {};      ///< Whoever wrote it, by his own account; empty: not said.
  friend bool operator==(const ScopedPause&, const ScopedPause&) = default;
};

/// When a brake of a narrower scope engages: on more than a share, and at least a number.
struct BrakeShare {
  std::int64_t percent = 0;
  std::int64_t at_least = 0;  ///< 0: there is no such brake.
  friend bool operator==(const BrakeShare&, const BrakeShare&) = default;
};

/// Where the webhook's events are sent.
struct WebhookUrl {
  bool tls = true;
  std::string host;  ///< Name or IP, IPv6 without brackets.
  std::uint16_t port = 443;
  std::string target;  ///< Path and query; may hold a token, so nobody prints it.
  friend bool operator==(const WebhookUrl&, const WebhookUrl&) = default;
};

/// One receiver elsewhere that is told of incidents, evictions and nodes handed over.
struct WebhookRules {
  WebhookUrl url;
  std::string secret_file;       ///< Its content is the key of the signature.
  std::string ca_file = {};      ///< PEM of whom to trust; empty: the system's roots.
  std::int64_t per_minute = 30;  ///< Requests, retries included.
  std::string source = {};       ///< Of the CloudEvents; empty: our own namespace's.
  friend bool operator==(const WebhookRules&, const WebhookRules&) = default;
};

/// The `ControllerLimits` document.
struct Limits {
  bool paused = false;
  std::vector<ScopedPause> pauses = {};
  std::int64_t evictions_per_minute = 10;
  std::int64_t max_in_flight = 5;
  std::int64_t per_node = 2;
  std::int64_t per_owner = 1;
  std::int64_t taints_per_minute = 60;
  std::int64_t brake_percent = 30;
  std::int64_t brake_at_least = 3;
  std::int64_t brake_count = 0;   ///< So many bad devices engage it whatever share they are; 0: the share alone counts.
  BrakeShare brake_by_message{};  ///< The same words on so many devices of a driver or resource.
  BrakeShare brake_by_owner{.percent = 30, .at_least = 0};  ///< So many of the devices that one workload holds.
  Millis brake_within = std::chrono::minutes(5);
  Millis brake_trial_after = std::chrono::minutes(30);  ///< An engaged brake goes half-open: one trial at a time.
  Millis brake_trial_runs = std::chrono::minutes(5);    ///< How long a later pod must run well for a trial to pass.
  Millis counted_grace = std::chrono::hours(1);         ///< The part of a pod's grace period that counts as in flight.
  Cap cap_cluster{.percent = 10, .at_least = 2};        ///< Devices out of service on our account at once,
  Cap cap_node{.percent = 50, .at_least = 1};           ///< and on one node.
  Cap cap_per_day{.percent = 5, .at_least = 4};         ///< Evictions within 24 h.
  /// Devices that one workload's pods take out of service within 24 h; the share is that of the devices they hold.
  Cap cap_owner_per_day{.percent = 1, .at_least = 2};
  Cap cap_nodes_handed_over{.percent = 5, .at_least = 1};  ///< Nodes at once, of those with devices of one kind.
  /// How many devices must have broken under a workload before it may be suspected; 0: it never is.
  std::int64_t suspect_after = 3;
  std::optional<WebhookRules> webhook = {};  ///< None: nobody elsewhere is told.
  friend bool operator==(const Limits&, const Limits&) = default;
};

/// The whole validated configuration. Policies are sorted: higher priority first, then by name; the first that matches
/// wins.
struct Policy {
  std::vector<DevicePolicy> policies;
  Limits limits;
  Mode mode_cap = Mode::Observe;  ///< The controller's own `--mode`.
  std::string own_namespace;      ///< Where we run; empty outside a cluster.
  std::string own_pod_uid;        ///< Our own pod, if we are one; its siblings share its controller.
  std::string brake_release;  ///< Value of `device-health.io/brake-release` on the configuration's ConfigMap, RFC 3339;
                              ///< empty if none.
  std::string cap_release;    ///< Likewise, of `device-health.io/cap-release`.
  std::string pause_until = {};          ///< Likewise, of `device-health.io/pause-until`;
  std::string pause_reason = {};         ///< and of `device-health.io/pause-reason`, any words.
  std::vector<ScopedPause> pauses = {};  ///< Likewise, of annotations `device-health.io/pause.NAME`, by name.
  std::optional<Subject> source;  ///< The configuration's ConfigMap, if it came from one: news of no object goes there.
  bool events = true;             ///< `--events`.
  bool status = false;            ///< `--status`: write the status ConfigMap.
  friend bool operator==(const Policy&, const Policy&) = default;
};

/// Whether the policy asks for DeviceTaintRules.
[[nodiscard]] bool makes_rules(const DevicePolicy& policy);

/// What a policy may do at all: its own mode, at most the controller's, wherever it is. A policy that has gone (null)
/// leaves the controller's. What it may do to one device or pod: domain/findings/enforcement.h.
[[nodiscard]] Mode effective_mode(const DevicePolicy* rules, const Policy& policy);

/// True if `text` fits the glob: `*` any run of characters, `?` one. Linear in practice, no recursion.
[[nodiscard]] bool glob_matches(std::string_view glob, std::string_view text);

[[nodiscard]] std::string_view to_string(Mode mode);

}  // namespace dhc
