#include "k8s-client/model/json_document.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace dhc::k8s {

namespace {

// Documents above this size are rare: their buffers (simdjson needs about five times the size) are not kept.
constexpr std::size_t kKeptBytes = std::size_t{1} << 20U;

// One piece of identity, or empty: a name with control characters, or with a byte that was replaced, is none.
std::string name_or_nothing(JsonValue value) {
  std::string_view text;
  if (value.get_string().get(text) || !is_clean_name(text) || text.contains('?')) return {};
  return std::string(text);
}

void read_leniently(JsonObject metadata, Identity& identity) {
  identity = {};
  for (auto entry : metadata) {
    simdjson::ondemand::field field;
    std::string_view key;
    if (std::move(entry).get(field) || field.unescaped_key().get(key)) return;
    if (key == "namespace") identity.ns = name_or_nothing(field.value());
    if (key == "name") identity.name = name_or_nothing(field.value());
    if (key == "uid") identity.uid = name_or_nothing(field.value());
    if (key == "resourceVersion") identity.resource_version = name_or_nothing(field.value());
  }
}

// Control characters and all that is not ASCII: with these replaced, the rest of a document can be looked at.
void replace_suspicious(std::span<char> text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20U || static_cast<unsigned char>(c) >= 0x80U; },
      '?');
}

}  // namespace

simdjson::error_code JsonDocument::start(std::string_view json, simdjson::ondemand::document& document) {
  const auto needed = json.size() + simdjson::SIMDJSON_PADDING;
  if (buffer_.size() > kKeptBytes && needed <= kKeptBytes) {
    buffer_ = {};
    parser_ = simdjson::ondemand::parser{};
  }
  if (buffer_.size() < needed) buffer_.resize(std::max(needed, std::min(2 * needed, kKeptBytes)));
  std::ranges::copy(json, buffer_.begin());
  // What is left of the last document must not look like the end of this one.
  std::memset(buffer_.data() + json.size(), 0, simdjson::SIMDJSON_PADDING);
  return start_again(json.size(), document);
}

simdjson::error_code JsonDocument::start_again(std::size_t size, simdjson::ondemand::document& document) {
  return parser_.iterate(simdjson::padded_string_view(buffer_.data(), size, buffer_.size())).get(document);
}

std::optional<std::string> JsonDocument::text_of(std::string_view json) {
  simdjson::ondemand::document document;
  std::string_view text;
  if (start(json, document) || document.get_string().get(text)) return std::nullopt;
  return std::string(text);
}

Identity JsonDocument::identity(std::string_view json) {
  Identity identity;
  simdjson::ondemand::document document;
  JsonObject root;
  if (start(json, document)) {
    replace_suspicious(std::span(buffer_).first(json.size()));
    if (start_again(json.size(), document)) return identity;
  }
  if (document.get_object().get(root)) return identity;
  for (auto entry : root) {
    simdjson::ondemand::field field;
    std::string_view key;
    if (std::move(entry).get(field) || field.unescaped_key().get(key)) break;
    JsonObject metadata;
    if (key == "metadata" && !field.value().get_object().get(metadata)) read_leniently(metadata, identity);
  }
  return identity;
}

}  // namespace dhc::k8s
