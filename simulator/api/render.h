#pragma once
#include <string>
#include <string_view>

#include "base/now.h"
#include "simulator/api/field.h"
#include "simulator/api/kinds.h"

namespace dhc::sim {

/// The shape in which a client asked for objects.
struct Rendering {
  enum class Form : std::uint8_t { Whole, Metadata, Table } form = Form::Whole;
  bool core_event = false;     ///< Events as core/v1 has them.
  bool whole_in_rows = false;  ///< `includeObject=Object`.
  std::string api_version;     ///< Of whole objects, if it is not the stored one.
  WallTime now;                ///< For the ages in a Table.
};

/// The shape that an Accept header asks for: its first alternative that we have. **Source:** the API's content
/// negotiation (`as=Table`, `as=PartialObjectMetadata`).
[[nodiscard]] Rendering rendering_for(std::string_view accept, std::string_view include_object);

/// One object in that shape, as JSON text.
[[nodiscard]] std::string render_object(Res res, const Json& object, const Rendering& rendering);

/// The list object's head: kind, apiVersion, metadata, then items in between. Items are rendered texts, joined by `,`.
[[nodiscard]] std::string render_list(Res res, const Rendering& rendering, const std::string& items,
                                      const std::string& rv, const std::string& continue_token, std::size_t remaining);

/// One row of a Table, as JSON text.
[[nodiscard]] std::string render_row(Res res, const Json& object, const Rendering& rendering);

/// A Table of rows (rendered texts, joined by `,`).
[[nodiscard]] std::string render_table(Res res, const std::string& rows, const std::string& rv,
                                       const std::string& continue_token, bool with_columns);

/// An Event as core/v1 has it.
[[nodiscard]] Json as_core_event(const Json& event);

}  // namespace dhc::sim
