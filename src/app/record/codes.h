#pragma once
#include "base/error.h"
#include "domain/cluster/owner_sight.h"
#include "domain/contract/device_key.h"
#include "domain/policy/policy.h"
#include "k8s-client/model/object.h"
#include "k8s-client/protocol/delivery.h"

namespace dhc::record {

// Enums are recorded by their number. A new enumerator comes last, or `kVersion` is raised; here it becomes readable.

template <class Enum>
inline constexpr Enum kLast = Enum();
template <>
inline constexpr auto kLast<k8s::PodPhase> = k8s::PodPhase::Unknown;
template <>
inline constexpr auto kLast<k8s::Health> = k8s::Health::Unhealthy;
template <>
inline constexpr auto kLast<k8s::JobFailureRule::Action> = k8s::JobFailureRule::Action::FailIndex;
template <>
inline constexpr auto kLast<k8s::NodeRequirement::Operator> = k8s::NodeRequirement::Operator::Unknown;
template <>
inline constexpr auto kLast<k8s::LabelRequirement::Operator> = k8s::LabelRequirement::Operator::Unknown;
template <>
inline constexpr auto kLast<k8s::WatchWord> = k8s::WatchWord::Doubted;
template <>
inline constexpr auto kLast<OwnerSight::State> = OwnerSight::State::Failed;
template <>
inline constexpr auto kLast<Mode> = Mode::Enforce;
template <>
inline constexpr auto kLast<LabelSelector::Operator> = LabelSelector::Operator::DoesNotExist;
template <>
inline constexpr auto kLast<TaintRules::Device> = TaintRules::Device::Staged;
template <>
inline constexpr auto kLast<JobRetryRules::NotCreditable> = JobRetryRules::NotCreditable::Hold;
template <>
inline constexpr auto kLast<DeviceKey::Source> = DeviceKey::Source::NodeTaint;
template <>
inline constexpr auto kLast<k8s::Kind> = k8s::Kind::Lease;
template <>
inline constexpr auto kLast<ErrorKind> = ErrorKind::Malformed;

}  // namespace dhc::record
