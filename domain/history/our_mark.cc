#include "domain/history/our_mark.h"

#include <utility>

namespace dhc {
namespace {

struct MarkRow {
  MarkStep none;
  MarkStep stands;
  MarkStep leaving;
  MarkStep asked;
};

// clang-format off
/// Why, where the row does not say it:
/// - Kept, while asked: the request cannot be recalled, so its effect is still our own doing.
/// - Refused, while asked: it is asked for again.
MarkRow row_of(MarkEvent event) {
  using P = MarkPhase;
  switch (event) {                 //     None          Stands                            Leaving        Asked
    case MarkEvent::Seen:    return {{P::Stands},  {P::Stands},                      {P::Leaving},  {P::Asked}};
    case MarkEvent::Gone:    return {{P::None},    {P::None, /*by_operator=*/true},  {P::None},     {P::None}};
    case MarkEvent::Lost:    return {{P::None},    {P::None},                        {P::None},     {P::None}};
    case MarkEvent::Meant:   return {{P::None},    {P::Leaving},                     {P::Leaving},  {P::Asked}};
    case MarkEvent::Kept:    return {{P::None},    {P::Stands},                      {P::Stands},   {P::Asked}};
    case MarkEvent::Sent:    return {{P::None},    {P::Asked},                       {P::Asked},    {P::Asked}};
    case MarkEvent::Refused: return {{P::None},    {P::Stands},                      {P::Leaving},  {P::Leaving}};
  }
  return {{P::None}, {P::Stands}, {P::Leaving}, {P::Asked}};
}
// clang-format on

}  // namespace

MarkStep step_of(MarkPhase phase, MarkEvent event) {
  const auto row = row_of(event);
  switch (phase) {
    case MarkPhase::None:
      return row.none;
    case MarkPhase::Stands:
      return row.stands;
    case MarkPhase::Leaving:
      return row.leaving;
    case MarkPhase::Asked:
      return row.asked;
  }
  return row.none;
}

void OurMark::see(std::string uid) {
  phase_ = step_of(phase_, MarkEvent::Seen).to;
  uid_ = std::move(uid);
}

bool OurMark::take(MarkEvent event) {
  const auto step = step_of(phase_, event);
  phase_ = step.to;
  if (phase_ == MarkPhase::None) uid_.clear();
  return step.by_operator;
}

std::string_view to_string(MarkPhase phase) {
  switch (phase) {
    case MarkPhase::None:
      return "None";
    case MarkPhase::Stands:
      return "Stands";
    case MarkPhase::Leaving:
      return "Leaving";
    case MarkPhase::Asked:
      return "Asked";
  }
  return "Unknown";
}

std::string_view to_string(MarkEvent event) {
  switch (event) {
    case MarkEvent::Seen:
      return "Seen";
    case MarkEvent::Gone:
      return "Gone";
    case MarkEvent::Lost:
      return "Lost";
    case MarkEvent::Meant:
      return "Meant";
    case MarkEvent::Kept:
      return "Kept";
    case MarkEvent::Sent:
      return "Sent";
    case MarkEvent::Refused:
      return "Refused";
  }
  return "Unknown";
}

}  // namespace dhc
