#include "reconcilers/hand_over/render.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/json_read.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "domain/cluster/card_names.h"
#include "domain/contract/names.h"
#include "domain/policy/config_documents.h"

namespace dhc::hand_over {

namespace {
using Json = nlohmann::ordered_json;

/// Controllers make Jobs, pods and labels of these names.
constexpr std::size_t kLongestName = 63;
/// Of one value in a name.
constexpr std::size_t kLongestPart = 40;
/// Of one value anywhere. **Source:** resource.k8s.io: names and attributes are shorter; a device plugin's IDs have no
/// bound.
constexpr std::size_t kLongestValue = 253;

bool is_small(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_letter_or_digit(char c) { return is_small(c) || (c >= 'A' && c <= 'Z'); }

std::string short_hash(std::string_view text) { return fmt::format("{:016x}", stable_hash(text)).substr(0, 8); }

void trim(std::string& text, bool (*fits)(char)) {
  while (!text.empty() && !fits(text.back())) text.pop_back();
  text.erase(text.begin(), std::ranges::find_if(text, fits));
}

/// At most `most` bytes; what is longer, or was another word, ends in a hash of it.
std::string with_hash(std::string text, std::string_view whole, std::size_t most, bool is_same, bool (*fits)(char)) {
  if (is_same && text.size() <= most) return text;
  const auto hash = short_hash(whole);
  text.resize(std::min(text.size(), most - hash.size() - 1));
  trim(text, fits);
  return text.empty() ? hash : text + "-" + hash;
}

/// A value as a part of an object's name.
std::string fit_for_name(std::string_view value) {
  std::string text;
  bool is_same = true;
  for (const char c : value) {
    const char small = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    is_same = is_same && (is_small(small) || small == '-');
    text += is_small(small) ? small : '-';
  }
  const auto before = text.size();
  trim(text, is_small);
  is_same = is_same && text.size() == before;
  return with_hash(std::move(text), value, kLongestPart, is_same, is_small);
}

std::string fit_for_label(std::string value) {
  const auto whole = value;
  for (char& c : value) {
    if (!is_letter_or_digit(c) && c != '-' && c != '_' && c != '.') c = '-';
  }
  trim(value, is_letter_or_digit);
  const bool is_same = value == whole;
  return with_hash(std::move(value), whole, kLongestName, is_same, is_letter_or_digit);
}

/// Why nothing stands for the placeholder.
std::string why_missing(Placeholder one) {
  switch (one) {
    case Placeholder::Driver:
    case Placeholder::Pool:
      return "a device of a device plugin has no driver and no pool: name {resource}, or match drivers alone";
    case Placeholder::Resource:
      return "a device of a DRA driver has no resource: name {driver}, or match resources alone";
    case Placeholder::Identity:
      return "no hardware identity of the device is known: see recover.identityAttribute";
    case Placeholder::Node:
    case Placeholder::Policy:
    case Placeholder::Incident:
    case Placeholder::Device:
      break;
  }
  return "it is not known";
}

class Filler {
 public:
  explicit Filler(const Fillings& fillings) : fillings_(fillings) {}

  template <class Fit>
  std::string fill(std::string_view text, Fit fit) {
    std::string filled;
    for (const auto& part : parts_of(text)) {
      filled += part.placeholder ? fit(*part.placeholder, value_of(*part.placeholder)) : std::string(part.text);
    }
    return filled;
  }

  std::string fill(std::string_view text) {
    return fill(text, [](Placeholder, const std::string& value) { return value; });
  }

  void fill_values(Json& json) {
    if (json.is_string()) {
      json = fill(json.get_ref<const std::string&>());
    } else if (json.is_structured()) {
      for (auto& value : json) fill_values(value);
    }
  }

  [[nodiscard]] const std::optional<std::string>& problem() const { return problem_; }

 private:
  const std::string& value_of(Placeholder one) {
    const auto& value = fillings_.at(static_cast<std::size_t>(one));
    if (problem_) return value;
    if (value.empty()) {
      problem_ = fmt::format("handOver.resource names {{{}}}, and {}", word_of(one), why_missing(one));
    } else if (printable_cut(value, kLongestValue) != value) {
      // Cut or mended it would name another device.
      problem_ = fmt::format(
          "handOver.resource names {{{}}}, and that of the device is longer than {} bytes or not "
          "printable: hand it over by a nodeCondition",
          word_of(one), kLongestValue);
    }
    return value;
  }

  const Fillings& fillings_;
  std::optional<std::string> problem_;
};

}  // namespace

Fillings fillings_of(const Ground& ground, const std::string& node, const std::string& incident) {
  Fillings fillings;
  const auto set = [&](Placeholder one, std::string value) {
    fillings.at(static_cast<std::size_t>(one)) = std::move(value);
  };
  const auto& key = ground.record->key;
  const bool is_dra = key.source == DeviceKey::Source::Dra;
  set(Placeholder::Node, node);
  set(Placeholder::Policy, ground.policy->name);
  set(Placeholder::Incident, incident);
  set(Placeholder::Device, key.device);
  set(is_dra ? Placeholder::Driver : Placeholder::Resource, key.scope);
  if (is_dra) set(Placeholder::Pool, key.place);
  const auto& card = ground.record->card;
  // A partition goes with its card as well.
  std::string identity(card_name_of({.attribute = card.attribute, .value = card.value}, key.device));
  // A replica goes with its card.
  if (identity.empty() && names_hardware(key)) identity = card_by_name(key);
  set(Placeholder::Identity, std::move(identity));
  return fillings;
}

std::expected<std::string, std::string> object_name(const HandOverResource& rules, const Fillings& fillings) {
  Filler filler(fillings);
  auto name = filler.fill(rules.name, [](Placeholder one, const std::string& value) {
    // Both are names by Kubernetes' own rules.
    return one == Placeholder::Node || one == Placeholder::Policy ? value : fit_for_name(value);
  });
  if (filler.problem()) return std::unexpected(*filler.problem());
  const bool is_nodes_own = rules.name == fmt::format("{{{}}}", word_of(Placeholder::Node));
  if (!is_nodes_own) name = with_hash(name, name, kLongestName, true, is_small);
  if (!is_dns_subdomain(name))
    return std::unexpected(
        fmt::format("handOver.resource makes '{}', which is no object's name", printable_cut(name, 80)));
  return name;
}

std::expected<std::string, std::string> object_text(const HandOverResource& rules, const Fillings& fillings,
                                                    const std::string& name) {
  Json object = read_json<Json>(rules.text);
  if (!object.is_object() || !object.contains("metadata") || !object["metadata"].is_object())
    return std::unexpected("the template of handOver.resource cannot be read");
  Filler filler(fillings);
  auto& metadata = object["metadata"];
  metadata["name"] = name;
  Json labels = metadata.contains("labels") && metadata["labels"].is_object() ? metadata["labels"] : Json::object();
  for (auto& label : labels) {
    // A fixed label is the user's own word.
    if (label.is_string() && label.get_ref<const std::string&>().contains('{'))
      label = fit_for_label(filler.fill(label.get_ref<const std::string&>()));
  }
  Json notes = metadata.contains("annotations") && metadata["annotations"].is_object() ? metadata["annotations"]
                                                                                       : Json::object();
  filler.fill_values(notes);
  if (object.contains("spec")) filler.fill_values(object["spec"]);
  if (filler.problem()) return std::unexpected(*filler.problem());
  labels[std::string(kManagedByLabel)] = kManagedBy;
  notes[std::string(kIncidentAnnotation)] = fillings.at(static_cast<std::size_t>(Placeholder::Incident));
  notes[std::string(kPolicyAnnotation)] = fillings.at(static_cast<std::size_t>(Placeholder::Policy));
  metadata["labels"] = std::move(labels);
  metadata["annotations"] = std::move(notes);
  return json_text(object);
}

}  // namespace dhc::hand_over
