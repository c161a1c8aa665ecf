#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/api/kinds.h"
#include "simulator/api/store.h"

namespace dhc::sim {

/// A request's target taken apart: decoded path segments and query.
struct Target {
  std::vector<std::string> segments;
  std::map<std::string, std::string, std::less<>> query;

  /// The query value, or empty.
  [[nodiscard]] std::string param(std::string_view name) const;
  /// True if the query value is `true` or `1`.
  [[nodiscard]] bool flag(std::string_view name) const;
};

[[nodiscard]] Target parse_target(std::string_view target);

/// What a path below `/api` or `/apis` names.
struct ResourcePath {
  std::string group;
  std::string version;
  std::string resource;
  std::string ns;
  std::string name;         ///< Empty: the collection.
  std::string subresource;  ///< `status`, `eviction` or empty.
};

/// Nothing if the path has not the shape of a resource.
[[nodiscard]] std::optional<ResourcePath> parse_resource_path(const Target& target);

/// Which objects a list or watch selects.
class Selection {
 public:
  /// Nothing if a selector has a shape that we do not serve.
  [[nodiscard]] static std::optional<Selection> parse(std::string ns, const std::string& field_selector,
                                                      const std::string& label_selector);

  [[nodiscard]] bool matches(const Json& object) const;

 private:
  struct Term {
    std::string key;
    std::string value;
    enum class Op : std::uint8_t { Equal, NotEqual, Exists, Absent } op = Op::Equal;
  };
  static bool parse_terms(const std::string& text, std::vector<Term>& into);

  std::string ns_;
  std::vector<Term> fields_;
  std::vector<Term> labels_;
};

/// True if every label of `selector.matchLabels` is on the object; an empty selector matches all.
[[nodiscard]] bool label_selector_matches(const Json& selector, const Json& object);

}  // namespace dhc::sim
