#include "simulator/api/watch_stream.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simulator/api/answer.h"

namespace dhc::sim {

WatchStream::WatchStream(Options options) : options_(std::move(options)), at_(options_.from) {}

std::string WatchStream::event(std::string_view type, const Json& object) {
  std::string body;
  if (options_.rendering.form == Rendering::Form::Table) {
    body = render_table(options_.res, render_row(options_.res, object, options_.rendering),
                        text(object, {"metadata", "resourceVersion"}), "", !columns_sent_);
    columns_sent_ = true;
  } else {
    body = render_object(options_.res, object, options_.rendering);
  }
  return fmt::format(R"({{"type":"{}","object":{}}})"
                     "\n",
                     type, body);
}

std::string WatchStream::bookmark(std::uint64_t rv, bool initial_end) const {
  const bool partial = options_.rendering.form == Rendering::Form::Metadata;
  Json metadata = {{"resourceVersion", std::to_string(rv)}};
  if (initial_end) metadata["annotations"] = {{"k8s.io/initial-events-end", "true"}};
  std::string kind = partial ? "PartialObjectMetadata" : std::string(type_of(options_.res).kind);
  std::string version = partial ? "meta.k8s.io/v1" : std::string(api_version_of(options_.res));
  if (options_.rendering.form == Rendering::Form::Table) {
    kind = "Table";
    version = "meta.k8s.io/v1";
  }
  return fmt::format(R"({{"type":"BOOKMARK","object":{{"kind":"{}","apiVersion":"{}","metadata":{}}}}})"
                     "\n",
                     kind, version, metadata.dump());
}

void WatchStream::add_initial(const Store& store, std::vector<std::string>& lines) {
  for (const auto& [name, object] : store.all(options_.res)) {
    if (options_.selection.matches(*object)) lines.push_back(event("ADDED", *object));
  }
  at_ = store.rv();
  if (options_.initial_bookmark) lines.push_back(bookmark(at_, true));
}

void WatchStream::add_changes(const Store& store, std::vector<std::string>& lines) {
  const auto& changes = store.changes(options_.res);
  const auto first = std::partition_point(changes.begin(), changes.end(), [&](const Change& c) { return c.rv <= at_; });
  for (auto it = first; it != changes.end(); ++it) {
    const bool was = it->before != nullptr && options_.selection.matches(*it->before);
    const bool is = it->type != ChangeType::Deleted && options_.selection.matches(*it->object);
    // An object that leaves the selection is reported as deleted, with its new state.
    if (is) lines.push_back(event(was ? "MODIFIED" : "ADDED", *it->object));
    if (was && !is) lines.push_back(event("DELETED", *it->object));
  }
  at_ = std::max(at_, store.rv());
}

WatchOutput WatchStream::finish(std::vector<std::string> lines, bool ended) {
  WatchOutput out;
  out.ended = ended;
  if (options_.faults.reorder) std::ranges::reverse(lines);
  for (const auto& line : lines) {
    out.bytes += line;
    if (options_.faults.duplicate) out.bytes += line;
  }
  const auto cut_after = options_.faults.cut_after;
  if (cut_after && sent_ + out.bytes.size() >= *cut_after) {
    out.bytes.resize(*cut_after - std::min(sent_, *cut_after));
    out.ended = true;
    out.cut = true;
  }
  sent_ += out.bytes.size();
  return out;
}

WatchOutput WatchStream::poll(const Store& store, const Now& now) {
  std::vector<std::string> lines;
  if (started_ && server_ != store.server()) return {.bytes = {}, .ended = true, .cut = true};
  options_.rendering.now = now.wall;
  if (!started_) {
    started_ = true;
    server_ = store.server();
    next_bookmark_ = now.mono + options_.bookmark_every;
    if (options_.initial_events) {
      add_initial(store, lines);
    } else if (at_ < store.oldest_rv(options_.res)) {
      const auto words = fmt::format("too old resource version: {} ({})", at_, store.oldest_rv(options_.res));
      lines.push_back(R"({"type":"ERROR","object":)" + failure(410, "Expired", words).dump() + "}\n");
      return finish(std::move(lines), true);
    }
  }
  add_changes(store, lines);
  if (options_.ends_at && now.mono >= *options_.ends_at) {
    if (options_.bookmarks && at_ <= store.rv()) lines.push_back(bookmark(at_, false));
    return finish(std::move(lines), true);
  }
  if (options_.bookmarks && now.mono >= *next_bookmark_) {
    // A client that is ahead of the server, as after etcd was restored, is told nothing. **Source:**
    // cacheWatcher.process drops every event up to the version that was asked for, bookmarks too.
    if (at_ <= store.rv()) lines.push_back(bookmark(at_, false));
    next_bookmark_ = now.mono + options_.bookmark_every;
  }
  return finish(std::move(lines), false);
}

std::optional<MonoTime> WatchStream::next_due() const {
  if (!options_.bookmarks) return options_.ends_at;
  if (!options_.ends_at) return next_bookmark_;
  return next_bookmark_ ? std::min(*options_.ends_at, *next_bookmark_) : *options_.ends_at;
}

}  // namespace dhc::sim
