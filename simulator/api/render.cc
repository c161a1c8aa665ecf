#include "simulator/api/render.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "simulator/api/columns.h"

namespace dhc::sim {
namespace {

std::string dumped(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json metadata_only(const Json& object) {
  return {{"kind", "PartialObjectMetadata"},
          {"apiVersion", "meta.k8s.io/v1"},
          {"metadata", object.value("metadata", Json::object())}};
}

std::string list_meta(const std::string& rv, const std::string& continue_token, std::size_t remaining) {
  Json meta = {{"resourceVersion", rv}};
  if (!continue_token.empty()) {
    meta["continue"] = continue_token;
    if (remaining > 0) meta["remainingItemCount"] = remaining;
  }
  return dumped(meta);
}

}  // namespace

Rendering rendering_for(std::string_view accept, std::string_view include_object) {
  Rendering rendering;
  rendering.whole_in_rows = include_object == "Object";
  const auto table = accept.find("as=Table");
  const auto partial = accept.find("as=PartialObjectMetadata");
  if (table != std::string_view::npos && table < partial) {
    rendering.form = Rendering::Form::Table;
  } else if (partial != std::string_view::npos) {
    rendering.form = Rendering::Form::Metadata;
  }
  return rendering;
}

Json as_core_event(const Json& event) {
  Json out = {{"kind", "Event"}, {"apiVersion", "v1"}, {"metadata", event.value("metadata", Json::object())}};
  for (const auto* same : {"reason", "type", "action", "eventTime", "series", "reportingInstance"}) {
    if (event.contains(same)) out[same] = event[same];
  }
  out["involvedObject"] = event.value("regarding", Json::object());
  out["message"] = event.value("note", "");
  out["reportingComponent"] = event.value("reportingController", "");
  out["source"] = Json::object();
  out["firstTimestamp"] = nullptr;
  out["lastTimestamp"] = nullptr;
  return out;
}

std::string render_object(Res res, const Json& object, const Rendering& rendering) {
  switch (rendering.form) {
    case Rendering::Form::Metadata:
      return dumped(metadata_only(object));
    case Rendering::Form::Table:
      return render_table(res, render_row(res, object, rendering), text(object, {"metadata", "resourceVersion"}), "",
                          true);
    case Rendering::Form::Whole:
      break;
  }
  if (!rendering.api_version.empty()) {
    Json other = object;
    other["apiVersion"] = rendering.api_version;
    return dumped(other);
  }
  return dumped(rendering.core_event && res == Res::Events ? as_core_event(object) : object);
}

std::string render_list(Res res, const Rendering& rendering, const std::string& items, const std::string& rv,
                        const std::string& continue_token, std::size_t remaining) {
  const bool partial = rendering.form == Rendering::Form::Metadata;
  const auto kind = partial ? std::string("PartialObjectMetadataList") : std::string(type_of(res).kind) + "List";
  std::string version(partial ? "meta.k8s.io/v1" : (rendering.core_event ? "v1" : api_version_of(res)));
  if (!partial && !rendering.api_version.empty()) version = rendering.api_version;
  return fmt::format(R"({{"kind":"{}","apiVersion":"{}","metadata":{},"items":[{}]}})", kind, version,
                     list_meta(rv, continue_token, remaining), items);
}

std::string render_row(Res res, const Json& object, const Rendering& rendering) {
  const Json inner = rendering.whole_in_rows ? object : metadata_only(object);
  return dumped({{"cells", cells_of(res, object, rendering.now)}, {"object", inner}});
}

std::string render_table(Res res, const std::string& rows, const std::string& rv, const std::string& continue_token,
                         bool with_columns) {
  return fmt::format(
      R"({{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"columnDefinitions":{},"rows":[{}]}})",
      list_meta(rv, continue_token, 0), with_columns ? dumped(columns_of(res)) : "null", rows);
}

}  // namespace dhc::sim
