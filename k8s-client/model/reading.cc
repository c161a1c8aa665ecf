#include "k8s-client/model/reading.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

namespace dhc::k8s {

namespace {

constexpr std::size_t kMessageCharacters = 1024;
constexpr std::size_t kNameBytes = 1024;

template <class Value>
void settle(std::vector<MapEntry<Value>>& entries) {
  // Not stable_sort: libstdc++ 12's is deprecated to clang.
  std::ranges::sort(entries,
                    [](const auto& a, const auto& b) { return std::tie(a.key, b.order) < std::tie(b.key, a.order); });
  const auto repeated = std::ranges::unique(entries, {}, &MapEntry<Value>::key);
  entries.erase(repeated.begin(), repeated.end());
  std::erase_if(entries, [](const auto& entry) { return !entry.value.has_value(); });
}

}  // namespace

bool Fault::in(std::string_view field) {
  const bool joined = path_.empty() || path_.front() == '[';
  path_ = fmt::format("{}{}{}", field, joined ? "" : ".", path_);
  return false;
}

bool Fault::in(std::size_t index) {
  const bool joined = path_.empty() || path_.front() == '[';
  path_ = fmt::format("[{}]{}{}", index, joined ? "" : ".", path_);
  return false;
}

std::string Fault::text() const { return path_.empty() ? std::string(why_) : fmt::format("{}: {}", path_, why_); }

std::string_view cut_message(std::string_view text) {
  if (text.size() <= kMessageCharacters) return text;
  std::size_t characters = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool starts_character = (static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U;
    if (starts_character && characters++ == kMessageCharacters) return text.substr(0, i);
  }
  return text;
}

bool is_clean_name(std::string_view text) {
  return text.size() <= kNameBytes &&
         std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20U || c == 0x7F; });
}

std::vector<StringMap::value_type> settled(std::vector<MapEntry<std::string_view>>& entries) {
  settle(entries);
  std::vector<StringMap::value_type> map;
  map.reserve(entries.size());
  for (const auto& entry : entries) map.emplace_back(entry.key, entry.value.value_or(std::string_view()));
  return map;
}

std::vector<ResourceAmount> settled(std::vector<MapEntry<std::int64_t>>& entries) {
  settle(entries);
  std::vector<ResourceAmount> amounts;
  amounts.reserve(entries.size());
  for (const auto& entry : entries) amounts.emplace_back(entry.key, entry.value.value_or(0));
  return amounts;
}

bool is_own_annotation(std::string_view key) {
  return key == "kubernetes.io/config.mirror" || key == "batch.kubernetes.io/job-completion-index" ||
         key == "batch.kubernetes.io/job-index-failure-count";
}

void note_owner(OwnerRef owner, bool is_controller, Meta& meta) {
  if (is_controller) {
    meta.controller = std::move(owner);
  } else {
    meta.has_other_owner = true;
  }
}

void cut_condition_message(std::string& message) {
  constexpr std::size_t kLongest = 32UL * 1024;
  if (message.size() > kLongest) message.resize(kLongest);
}

void settle_effect(Taint& taint) {
  const auto& effect = taint.effect;
  if (effect != "NoSchedule" && effect != "NoExecute" && effect != "PreferNoSchedule") taint.effect = "None";
}

}  // namespace dhc::k8s
