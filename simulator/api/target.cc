#include "simulator/api/target.h"

#include <nlohmann/json.hpp>

namespace dhc::sim {
namespace {

int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string decode(std::string_view text, bool query) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0) {
      out += static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2]));
      i += 2;
    } else {
      out += query && text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

/// Calls `take` with each piece of `text` between separators.
template <class Take>
void split(std::string_view text, char separator, Take take) {
  while (!text.empty()) {
    const auto end = text.find(separator);
    take(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

std::string field_value(const Json& object, const std::string& key) {
  const Json* at = &object;
  bool found = true;
  split(key, '.', [&](std::string_view step) {
    if (!found) return;
    const Json* next = field(*at, {step});
    found = next != nullptr;
    if (found) at = next;
  });
  return found && at->is_string() ? at->get<std::string>() : std::string();
}

}  // namespace

std::string Target::param(std::string_view name) const {
  const auto it = query.find(name);
  return it == query.end() ? std::string() : it->second;
}

bool Target::flag(std::string_view name) const {
  const auto value = param(name);
  return value == "true" || value == "1";
}

Target parse_target(std::string_view target) {
  Target parsed;
  const auto mark = target.find('?');
  split(target.substr(0, mark), '/', [&](std::string_view segment) {
    if (!segment.empty()) parsed.segments.push_back(decode(segment, false));
  });
  if (mark != std::string_view::npos) {
    split(target.substr(mark + 1), '&', [&](std::string_view pair) {
      const auto equals = pair.find('=');
      const auto value = equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1);
      parsed.query[decode(pair.substr(0, equals), true)] = decode(value, true);
    });
  }
  return parsed;
}

std::optional<ResourcePath> parse_resource_path(const Target& target) {
  const auto& segments = target.segments;
  ResourcePath path;
  std::size_t at = 0;
  if (segments.size() >= 3 && segments[0] == "api") {
    path.version = segments[1];
    at = 2;
  } else if (segments.size() >= 4 && segments[0] == "apis") {
    path.group = segments[1];
    path.version = segments[2];
    at = 3;
  } else {
    return std::nullopt;
  }
  // `namespaces/NS/status` is a subresource of the Namespace, not a resource in it.
  if (segments[at] == "namespaces" && segments.size() >= at + 3 && segments[at + 2] != "status") {
    path.ns = segments[at + 1];
    at += 2;
  }
  path.resource = segments[at];
  if (segments.size() > at + 1) path.name = segments[at + 1];
  if (segments.size() > at + 2) path.subresource = segments[at + 2];
  if (segments.size() > at + 3) return std::nullopt;
  return path;
}

bool Selection::parse_terms(const std::string& text, std::vector<Term>& into) {
  bool good = true;
  split(text, ',', [&](std::string_view piece) {
    Term term;
    if (piece.find(" in ") != std::string_view::npos || piece.find('(') != std::string_view::npos) good = false;
    const auto equals = piece.find('=');
    if (equals == std::string_view::npos) {
      term.op = piece.starts_with('!') ? Term::Op::Absent : Term::Op::Exists;
      term.key = piece.substr(piece.starts_with('!') ? 1 : 0);
    } else {
      const bool negative = equals > 0 && piece[equals - 1] == '!';
      term.op = negative ? Term::Op::NotEqual : Term::Op::Equal;
      term.key = piece.substr(0, negative ? equals - 1 : equals);
      auto value = piece.substr(equals + 1);
      if (value.starts_with('=')) value.remove_prefix(1);
      term.value = value;
    }
    into.push_back(std::move(term));
  });
  return good;
}

std::optional<Selection> Selection::parse(std::string ns, const std::string& field_selector,
                                          const std::string& label_selector) {
  Selection selection;
  selection.ns_ = std::move(ns);
  if (!parse_terms(field_selector, selection.fields_)) return std::nullopt;
  if (!parse_terms(label_selector, selection.labels_)) return std::nullopt;
  return selection;
}

bool Selection::matches(const Json& object) const {
  if (!ns_.empty() && ns_of(object) != ns_) return false;
  for (const auto& term : fields_) {
    const bool equal = field_value(object, term.key) == term.value;
    if (equal != (term.op == Term::Op::Equal)) return false;
  }
  for (const auto& term : labels_) {
    const Json* label = field(object, {"metadata", "labels", term.key});
    const bool equal = label != nullptr && label->is_string() && label->get<std::string>() == term.value;
    switch (term.op) {
      case Term::Op::Equal:
        if (!equal) return false;
        break;
      case Term::Op::NotEqual:
        if (equal) return false;
        break;
      case Term::Op::Exists:
        if (label == nullptr) return false;
        break;
      case Term::Op::Absent:
        if (label != nullptr) return false;
        break;
    }
  }
  return true;
}

bool label_selector_matches(const Json& selector, const Json& object) {
  const Json* labels = field(selector, {"matchLabels"});
  if (labels == nullptr) return true;
  for (const auto& [key, value] : labels->items()) {
    const Json* label = field(object, {"metadata", "labels", key});
    if (label == nullptr || *label != value) return false;
  }
  return true;
}

}  // namespace dhc::sim
