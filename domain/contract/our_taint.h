#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "domain/contract/device_key.h"
#include "k8s-client/model/node.h"
#include "k8s-client/model/object.h"

namespace dhc {

/// The name of the one DeviceTaintRule that we make for a device: the same in every process. People read pool and
/// device in it; the hash behind them tells apart what reads the same.
[[nodiscard]] std::string rule_name(const DeviceKey& key);

/// The name that version 0.1.0 gave it: such a rule goes on under it.
[[nodiscard]] std::string old_rule_name(const DeviceKey& key);

/// The name of the rule that we make for a device because another one of its physical card is bad. It is never
/// `rule_name(key)`: that rule is of an incident of its own.
[[nodiscard]] std::string card_rule_name(const DeviceKey& key);
/// Whether the name may be one of these.
[[nodiscard]] bool may_be_card_rule(std::string_view name);

/// `text` as a label's value: as it is if it is one, else in letters of one, shortened, with a hash of the whole. Empty
/// stays empty. **Source:** meta/v1: at most 63 of letters, digits, `-`, `_` and `.`, the first and last no sign.
[[nodiscard]] std::string label_value(std::string_view text);

/// True if we made the rule, as far as it says so itself: our label and our kind of name. One that is known by its UID
/// is ours whatever its label says.
[[nodiscard]] bool is_our_rule(const k8s::DeviceTaintRule& rule);

/// Whether the rule has the name that we give to one for the device that it selects, or our label besides our kind of
/// name: then what it does is on our account, whoever has changed it.
[[nodiscard]] bool bears_our_name(const k8s::DeviceTaintRule& rule);

/// The bad device for whose card the rule was made; none: it is the rule of a device's own incident, or not ours.
[[nodiscard]] std::optional<DeviceKey> same_card_as(const k8s::DeviceTaintRule& rule);

/// The device that the rule selects, if it selects exactly one.
[[nodiscard]] std::optional<DeviceKey> device_of(const k8s::DeviceTaintRule& rule);

/// What is not as we applied it on a rule of our name, in words; none: it is. If it was as we applied it once, that is
/// an operator's word: it is neither applied again nor deleted (invariant I14).
[[nodiscard]] std::optional<std::string> changed_by_other(const k8s::DeviceTaintRule& rule);

/// The DeviceTaintRule as we make it: ours, and nobody has changed it.
[[nodiscard]] bool is_as_we_make_it(const k8s::DeviceTaintRule& rule);

/// How many incidents the rule remembers; 0: it does not say.
[[nodiscard]] std::int64_t incidents_on(const k8s::DeviceTaintRule& rule);

/// True if an operator wrote the acknowledgement on our rule.
[[nodiscard]] bool is_acknowledged(const k8s::DeviceTaintRule& rule);

/// Where our taint stands in `spec.taints`, counted from 0; none: the node has none. If there is none as we make it,
/// one with our key and another effect or value is meant.
[[nodiscard]] std::optional<std::size_t> our_taint_on(const k8s::Node& node);

/// The taint of our rules that keeps new pods off a device.
[[nodiscard]] k8s::Taint rule_taint();

/// The only taint that we put on a node.
[[nodiscard]] k8s::Taint node_taint();

}  // namespace dhc
