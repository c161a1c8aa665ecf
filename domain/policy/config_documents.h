#pragma once
#include <optional>
#include <string_view>

#include "base/yaml_tree.h"
#include "domain/policy/config_reading.h"
#include "domain/policy/policy.h"

namespace dhc {

/// The `metadata.name` of a document; nothing if there was a mistake, which is then noted; the same below.
[[nodiscard]] std::optional<std::string> read_name(const YamlNode& document, MistakeList& mistakes);

/// The spec of a DeviceHealthPolicy; the name is left empty.
[[nodiscard]] DevicePolicy read_policy_spec(const YamlNode& spec, MistakeList& mistakes);

/// The `taint` of a policy.
[[nodiscard]] TaintRules read_taint(const YamlNode& node, MistakeList& mistakes);

/// The `recover` of a policy.
[[nodiscard]] RecoverRules read_recover(const YamlNode& node, MistakeList& mistakes);

/// The `jobRetry` of a policy.
[[nodiscard]] JobRetryRules read_job_retry(const YamlNode& node, MistakeList& mistakes);

/// Whether a node may be tainted: `Never` or `NoSchedule`. NoExecute is refused with the reason.
[[nodiscard]] std::optional<bool> read_node_taint(const YamlNode& node, std::string_view path, MistakeList& mistakes);

/// The `handOver` of a policy.
[[nodiscard]] HandOverRules read_hand_over(const YamlNode& node, MistakeList& mistakes);

/// The `handOver.resource` of a policy.
[[nodiscard]] std::optional<HandOverResource> read_hand_over_resource(const YamlNode& node, MistakeList& mistakes);

/// The `enforceOn` of a policy.
[[nodiscard]] EnforceOn read_enforce_on(const YamlNode& node, MistakeList& mistakes);

/// Globs over device-plugin resources, or over drivers.
[[nodiscard]] std::vector<std::string> read_device_globs(const YamlNode& node, const std::string& path, bool resource,
                                                         MistakeList& mistakes);

/// One of the `pauses` of a ControllerLimits.
[[nodiscard]] ScopedPause read_pause(const YamlNode& node, const std::string& path, MistakeList& mistakes);

/// The `webhook` of a ControllerLimits.
[[nodiscard]] std::optional<WebhookRules> read_webhook(const YamlNode& node, MistakeList& mistakes);

/// Globs over namespaces' names.
[[nodiscard]] std::vector<std::string> read_namespace_globs(const YamlNode& node, const std::string& path,
                                                            MistakeList& mistakes);

/// The `match` of a policy.
[[nodiscard]] Match read_match(const YamlNode& node, MistakeList& mistakes);

/// One of today's words for a device's health, or one as Kubernetes makes them that is like none of these. **Source:**
/// KEP-4680: the words of today, and that others will follow.
[[nodiscard]] bool is_health_word(std::string_view word);

/// The known word that was meant: one that is as good as `word`, or empty. A new word may hold a known one, as
/// PermanentlyUnhealthy does.
[[nodiscard]] std::string_view health_word_meant(std::string_view word);

/// The spec of a ControllerLimits.
[[nodiscard]] Limits read_limits_spec(const YamlNode& spec, MistakeList& mistakes);

/// A label selector by Kubernetes' rules. **Source:** apimachinery, meta/v1/validation.
[[nodiscard]] LabelSelector read_selector(const YamlNode& node, std::string_view path, MistakeList& mistakes);

/// True if `text` is a DNS-1123 subdomain: a Kubernetes object's name, or the prefix of a label.
[[nodiscard]] bool is_dns_subdomain(std::string_view text);

/// Whether it is the key of a label or annotation, or the value of a label that is not empty. **Source:** apimachinery,
/// util/validation.
[[nodiscard]] bool is_label_key(std::string_view text);
[[nodiscard]] bool is_label_value(std::string_view text);

}  // namespace dhc
