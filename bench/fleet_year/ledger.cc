#include "bench/fleet_year/ledger.h"

namespace dhc::year {

std::string_view to_string(Use use) {
  static constexpr std::array<std::string_view, kUses> kNames = {"working", "redone", "moving", "stuck",
                                                                 "broken",  "barred", "idle"};
  return kNames[static_cast<std::size_t>(use)];
}

Ledger::Ledger(std::size_t devices, MonoTime start) : entries_(devices, Entry{.since = start}) {}

void Ledger::book(Entry& entry, MonoTime now) {
  sums_[index(entry.use)][static_cast<std::size_t>(entry.cause)] += now - entry.since;
  entry.since = now;
}

void Ledger::set(std::size_t device, Use use, Cause cause, MonoTime now) {
  auto& entry = entries_.at(device);
  book(entry, now);
  entry.use = use;
  entry.cause = cause;
}

void Ledger::redo(Millis worked, Cause cause) {
  // Work is booked without a fault's cause where there was none.
  sums_[index(Use::Working)][static_cast<std::size_t>(Cause::Device)] -= worked;
  sums_[index(Use::Redone)][static_cast<std::size_t>(cause)] += worked;
}

void Ledger::close(MonoTime now) {
  for (auto& entry : entries_) book(entry, now);
}

Millis Ledger::sum() const {
  Millis all{0};
  for (const auto& causes : sums_) {
    for (const auto& sum : causes) all += sum;
  }
  return all;
}

}  // namespace dhc::year
