#include "domain/policy/policy.h"

#include <algorithm>

#include <re2/re2.h>

namespace dhc {

namespace {
bool holds(const LabelSelector::Requirement& requirement, const k8s::StringMap& labels) {
  const auto value = k8s::find(labels, requirement.key);
  const auto listed = [&] {
    return value && std::ranges::find(requirement.values, *value) != requirement.values.end();
  };
  switch (requirement.op) {
    case LabelSelector::Operator::In:
      return listed();
    case LabelSelector::Operator::NotIn:
      return !listed();
    case LabelSelector::Operator::Exists:
      return value.has_value();
    case LabelSelector::Operator::DoesNotExist:
      return !value.has_value();
  }
  return false;
}
}  // namespace

const LabelSelector::Requirement* LabelSelector::first_unmet(const k8s::StringMap& labels) const {
  const auto unmet = std::ranges::find_if_not(requirements, [&](const Requirement& one) { return holds(one, labels); });
  return unmet == requirements.end() ? nullptr : &*unmet;
}

struct MessagePattern::Compiled {
  std::string text;
  RE2 re;
  Compiled(std::string_view pattern, const RE2::Options& options)
      : text(pattern), re(re2::StringPiece(pattern.data(), pattern.size()), options) {}
};

std::expected<MessagePattern, std::string> MessagePattern::compile(std::string_view text) {
  RE2::Options options;
  options.set_log_errors(false);
  // About 1,300 instructions: 200 of the most expensive expressions compile within the second that validation may take.
  options.set_max_mem(1 << 17);
  auto compiled = std::make_shared<const Compiled>(text, options);
  if (!compiled->re.ok()) return std::unexpected(compiled->re.error());
  MessagePattern pattern;
  pattern.compiled_ = std::move(compiled);
  return pattern;
}

bool MessagePattern::matches(std::string_view message) const {
  return compiled_ != nullptr && RE2::PartialMatch(re2::StringPiece(message.data(), message.size()), compiled_->re);
}

const std::string& MessagePattern::text() const { return compiled_->text; }

bool glob_matches(std::string_view glob, std::string_view text) {
  // The usual two-pointer walk: on a mismatch, let the last star take one more character.
  std::size_t g = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t taken = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      taken = t;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == text[t])) {
      ++g;
      ++t;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', g) == std::string_view::npos;
}

bool DeviceTaintMatch::fits(const k8s::Taint& taint) const {
  const bool by_effect =
      effect.empty() ? taint.effect == "NoSchedule" || taint.effect == "NoExecute" : glob_matches(effect, taint.effect);
  return by_effect && glob_matches(key, taint.key) && glob_matches(value, taint.value);
}

bool fits_any(const std::vector<DeviceTaintMatch>& wanted, const k8s::Taint& taint) {
  return std::ranges::any_of(wanted, [&](const DeviceTaintMatch& one) { return one.fits(taint); });
}

bool makes_rules(const DevicePolicy& policy) {
  return policy.taint && policy.taint->device != TaintRules::Device::Never;
}

Mode effective_mode(const DevicePolicy* rules, const Policy& policy) {
  return rules == nullptr ? policy.mode_cap : std::min(rules->mode, policy.mode_cap);
}

std::string_view to_string(Mode mode) {
  switch (mode) {
    case Mode::Off:
      return "off";
    case Mode::Observe:
      return "observe";
    case Mode::Enforce:
      return "enforce";
  }
  return "unknown";
}

}  // namespace dhc
