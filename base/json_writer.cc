#include "base/json_writer.h"

#include <algorithm>

#include "base/json_text.h"
#include "base/rfc3339.h"

namespace dhc {

namespace {

bool is_plain(char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }

}  // namespace

void JsonWriter::add_text(std::string_view text) {
  if (!std::ranges::all_of(text, is_plain)) return (void)(out_ += json_text(text));
  out_ += '"';
  out_ += text;
  out_ += '"';
}

void JsonWriter::add_number(double number) { out_ += json_text(number); }

void JsonWriter::add_time(WallTime time) {
  out_ += '"';
  out_ += format_rfc3339(time);
  out_ += '"';
}

}  // namespace dhc
