#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simulator/api/call.h"

namespace dhc::sim {
namespace {

std::optional<std::uint64_t> parse_version(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Answer bad_request(std::string_view words) { return answer_failure(400, "BadRequest", words); }

Answer version_too_large(std::uint64_t wanted, std::uint64_t current) {
  Details details;
  details.causes = Json::array({cause("ResourceVersionTooLarge", "Too large resource version")});
  return answer_failure(504, "Timeout",
                        fmt::format("Timeout: Too large resource version: {}, current: {}", wanted, current), details);
}

/// Where a paged list goes on: the version of its first page and the last name given.
struct Continue {
  std::uint64_t rv = 0;
  Name after;
};

std::string encode(const Continue& token) {
  return fmt::format("{}.{}/{}", token.rv, token.after.ns, token.after.name);
}

std::optional<Continue> decode(const std::string& text) {
  const auto dot = text.find('.');
  const auto slash = text.find('/');
  if (dot == std::string::npos || slash == std::string::npos || slash < dot) return std::nullopt;
  const auto rv = parse_version(text.substr(0, dot));
  if (!rv) return std::nullopt;
  return Continue{*rv, {text.substr(dot + 1, slash - dot - 1), text.substr(slash + 1)}};
}

std::optional<Selection> selection_of(const Call& call) {
  auto fields = call.target.param("fieldSelector");
  // core/v1 names the field involvedObject; what we store is events.k8s.io's regarding.
  for (auto at = fields.find("involvedObject."); at != std::string::npos; at = fields.find("involvedObject.")) {
    fields.replace(at, 15, "regarding.");
  }
  if (!call.path.name.empty()) {
    fields += fmt::format("{}metadata.name={}", fields.empty() ? "" : ",", call.path.name);
  }
  return Selection::parse(call.path.ns, fields, call.target.param("labelSelector"));
}

Answer initial_events_refused(const Call& call, std::string_view words) {
  Details details{"", "meta.k8s.io", "ListOptions",
                  Json::array({cause("FieldValueForbidden", words, "sendInitialEvents")})};
  return answer_failure(
      422, "Invalid",
      fmt::format("ListOptions.meta.k8s.io \"{}\" is invalid: sendInitialEvents: {}", call.path.name, words), details);
}

}  // namespace

Answer handle_get(const Call& call) {
  const auto object = call.stored();
  return object == nullptr ? not_found(call.res, call.path.name) : answer_object(call, 200, *object);
}

Answer handle_list(const Call& call) {
  const auto selection = selection_of(call);
  if (!selection) return bad_request("unable to parse requirement");
  const auto wanted_text = call.target.param("resourceVersion");
  const auto token_text = call.target.param("continue");
  if (wanted_text.empty() && token_text.empty() && !call.target.param("resourceVersionMatch").empty()) {
    return bad_request("resourceVersionMatch is forbidden unless resourceVersion is provided");
  }
  const auto wanted = wanted_text.empty() ? 0 : parse_version(wanted_text).value_or(0);
  if (wanted > call.store.rv()) return version_too_large(wanted, call.store.rv());
  Continue from{call.store.rv(), {}};
  if (!token_text.empty()) {
    const auto token = decode(token_text);
    if (!token) return bad_request("invalid continue token: continue key is not valid: invalid character");
    if (token->rv < call.store.oldest_rv(call.res)) {
      return answer_failure(410, "Expired",
                            "The provided continue parameter is too old to display a consistent list result.");
    }
    from = *token;
  }
  const auto limit = parse_version(call.target.param("limit")).value_or(0);
  std::optional<Objects> past;
  if (from.rv != call.store.rv()) past = call.store.snapshot_at(call.res, from.rv);
  const Objects& objects = past ? *past : call.store.all(call.res);
  std::string items;
  std::string next;
  std::size_t given = 0;
  std::size_t remaining = 0;
  Continue last = from;
  for (auto it = token_text.empty() ? objects.begin() : objects.upper_bound(from.after); it != objects.end(); ++it) {
    if (!selection->matches(*it->second)) continue;
    if (limit > 0 && given == limit) {
      ++remaining;
      next = encode(last);
      continue;
    }
    if (given++ > 0) items += ",";
    const bool table = call.rendering.form == Rendering::Form::Table;
    items += table ? render_row(call.res, *it->second, call.rendering)
                   : render_object(call.res, *it->second, call.rendering);
    last.after = it->first;
  }
  Answer answer = answer_json(200, Json::object());
  const auto rv = std::to_string(from.rv);
  answer.body = call.rendering.form == Rendering::Form::Table
                    ? render_table(call.res, items, rv, next, true)
                    : render_list(call.res, call.rendering, items, rv, next, remaining);
  return answer;
}

Answer handle_watch(const Call& call) {
  auto selection = selection_of(call);
  if (!selection) return bad_request("unable to parse requirement");
  WatchStream::Options options;
  options.res = call.res;
  options.selection = *std::move(selection);
  options.rendering = call.rendering;
  options.bookmarks = call.target.flag("allowWatchBookmarks");
  options.bookmark_every = call.settings.bookmark_every;
  const auto version_text = call.target.param("resourceVersion");
  const auto version = version_text.empty() ? std::optional<std::uint64_t>(0) : parse_version(version_text);
  if (!version) return bad_request("Invalid value for resourceVersion");
  options.from = *version;
  if (call.target.flag("sendInitialEvents")) {
    if (!call.settings.watch_list) {
      return initial_events_refused(call,
                                    "Forbidden: sendInitialEvents is forbidden for watch unless the WatchList "
                                    "feature gate is enabled");
    }
    if (call.target.param("resourceVersionMatch") != "NotOlderThan") {
      return initial_events_refused(call,
                                    "Forbidden: sendInitialEvents requires setting resourceVersionMatch to "
                                    "NotOlderThan");
    }
    if (*version > call.store.rv()) return version_too_large(*version, call.store.rv());
    options.initial_events = true;
    options.initial_bookmark = options.bookmarks;
  } else if (*version == 0) {
    options.initial_events = true;
  }
  if (const auto seconds = parse_version(call.target.param("timeoutSeconds")); seconds && *seconds > 0) {
    options.ends_at = call.now.mono + Seconds(*seconds);
  }
  Answer answer;
  answer.headers = {{"content-type", "application/json"}, {"cache-control", "no-cache, private"}};
  answer.watch.emplace(std::move(options));
  return answer;
}

}  // namespace dhc::sim
