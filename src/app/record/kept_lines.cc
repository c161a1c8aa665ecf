#include "app/record/kept_lines.h"

#include <iterator>
#include <utility>

namespace dhc::record {

namespace {
constexpr std::string_view kCount = "\"n\":";

/// The entries of a kind: `Pod/` to before `Pod0`.
auto range_of(const std::map<std::string, Span, std::less<>>& map, std::string_view kind) {
  std::string from(kind);
  from += '/';
  std::string to(kind);
  to += static_cast<char>('/' + 1);
  return std::pair(map.lower_bound(from), map.lower_bound(to));
}
}  // namespace

void KeptLines::note(const Line& line, std::int64_t offset) {
  const Span span{.offset = offset, .size = static_cast<std::int64_t>(line.text.size())};
  may_end_ = line.what == What::Take || line.what == What::Plan || line.what == What::Idle;
  switch (line.what) {
    case What::List: {
      lists_.insert_or_assign(line.key, span);
      const auto [from, to] = range_of(objects_, line.key);
      objects_.erase(from, to);
      break;
    }
    case What::Object:
      objects_.insert_or_assign(line.key, span);
      break;
    case What::Gone:
      objects_.erase(line.key);
      break;
    case What::Told:
      words_.insert_or_assign(line.key, span);
      break;
    case What::Base:
    case What::Policy:
    case What::Rejected:
    case What::Leads:
    case What::Earlier:
    case What::Clock:
    case What::Webhook:
    case What::Take:
      // A configuration that is taken in ends what was wrong with the one before.
      if (line.what == What::Policy) latest_.erase(What::Rejected);
      latest_.insert_or_assign(line.what, span);
      break;
    case What::File:
    case What::Bad:
    case What::Answer:
    case What::Plan:
    case What::Idle:
    case What::Begun:
      break;
  }
}

std::vector<KeptLines::Part> KeptLines::parts() const {
  std::vector<Part> all;
  const auto add = [&](What what) {
    if (const auto found = latest_.find(what); found != latest_.end())
      all.push_back({.what = what, .key = {}, .span = found->second});
  };
  for (const auto what :
       {What::Base, What::Policy, What::Rejected, What::Leads, What::Earlier, What::Clock, What::Webhook})
    add(what);
  for (const auto& [kind, span] : lists_) {
    const auto [from, to] = range_of(objects_, kind);
    all.push_back({.what = What::List, .key = kind, .span = span, .count = std::distance(from, to)});
    for (auto at = from; at != to; ++at) all.push_back({.what = What::Object, .key = at->first, .span = at->second});
  }
  for (const auto& [key, span] : words_) all.push_back({.what = What::Told, .key = key, .span = span});
  add(What::Take);
  return all;
}

std::string with_count(std::string_view list, std::int64_t count) {
  const auto at = list.find(kCount);
  if (at == std::string_view::npos) return std::string(list);
  const auto begin = at + kCount.size();
  auto end = begin;
  while (end < list.size() && list[end] >= '0' && list[end] <= '9') ++end;
  return std::string(list.substr(0, begin)) + std::to_string(count) + std::string(list.substr(end));
}

}  // namespace dhc::record
