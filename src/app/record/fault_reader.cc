#include "app/record/fault_reader.h"

#include <algorithm>
#include <chrono>
#include <variant>

#include <fmt/format.h>

#include "domain/limits/brake.h"

namespace dhc::record {

namespace {

std::string runs_left_out(std::size_t count) {
  return fmt::format("{} run{} left out: they overlap with one that was read. Give one replica's files alone.", count,
                     count == 1 ? "" : "s");
}

}  // namespace

Status FaultReader::feed(std::string_view line) {
  auto step = reader_.read(line);
  if (!step) return std::unexpected(std::move(step.error()));
  if (const auto* file = std::get_if<FileStep>(&*step)) return begin(*file);
  const auto plays = order_.plays(*step);
  if (!plays) return std::unexpected(plays.error());
  if (!*plays || is_left_out_) return {};
  if (auto* message = std::get_if<MessageStep>(&*step)) {
    if (auto* delivery = std::get_if<k8s::Delivery>(&message->message)) waiting_.push_back(std::move(*delivery));
  } else if (const auto* taken = std::get_if<TakeStep>(&*step)) {
    take(taken->now);
  } else if (const auto* planned = std::get_if<PlanStep>(&*step)) {
    take(planned->now);
  } else if (const auto* idle = std::get_if<IdleStep>(&*step)) {
    if (!idle->times.empty()) take(idle->times.back());
  }
  return {};
}

Status FaultReader::begin(const FileStep& file) {
  const auto is_new = order_.begin(file);
  if (!is_new) return std::unexpected(is_new.error());
  if (!*is_new) return {};
  world_ = World();
  waiting_.clear();
  is_timed_ = false;
  is_left_out_ = false;
  return {};
}

void FaultReader::take(const Now& now) {
  if (!is_timed_) {
    is_timed_ = true;
    if (!runs_.empty() && now.wall < runs_.back().to) {
      is_left_out_ = true;
      ++left_out_;
      waiting_.clear();
      return;
    }
    runs_.push_back({now.wall, now.wall});
  }
  runs_.back().to = std::max(runs_.back().to, now.wall);
  const bool is_news = !waiting_.empty();
  for (auto& delivery : std::exchange(waiting_, {})) (void)world_.apply(std::move(delivery), now);
  world_.refresh(now);
  (void)world_.take_touched();
  // What was bad may be well now, and what is bad is so still.
  for (auto& [key, seen] : seen_) {
    if (!seen.goes_on) continue;
    const auto* state = world_.tracker().find(key);
    const bool speaks = state != nullptr && state->has_source;
    if (speaks && state->health == k8s::Health::Healthy) {
      auto& fault = seen.faults.back();
      fault.to = std::max(*fault.told_to, now.wall);  // a clock may have been set back
      if (!seen.is_silent) fault.told_to = fault.to;
      seen.goes_on = false;
    } else if (!speaks || state->health != k8s::Health::Unhealthy) {
      seen.is_silent = true;
    }
  }
  std::set<Place> places;
  for (const auto& key : world_.tracker().not_healthy()) {
    const auto* state = world_.tracker().find(key);
    if (!state->has_source || state->health != k8s::Health::Unhealthy) continue;
    const bool begins = note(key, *state, now);
    // Each time: a pod may be read before its node and its node's slices.
    if (begins || is_news) look_at_place(key, places);
  }
  for (const auto& [scope, node] : places) count_known(scope, node);
}

void FaultReader::look_at_place(const DeviceKey& key, std::set<Place>& places) {
  auto& seen = seen_.at(key);
  if (const auto node = world_.node_of(key); !node.empty()) seen.node = node;
  if (const auto card = world_.card_of(key); seen.card.empty() || card != key) seen.card = to_string(card);
  places.emplace(key.scope, std::string());
  if (!seen.node.empty()) places.emplace(key.scope, seen.node);
}

bool FaultReader::note(const DeviceKey& key, const DeviceState& state, const Now& now) {
  auto& seen = seen_[key];
  const bool begins = !seen.goes_on;
  if (begins) {
    // A pod's old condition may say that it was bad before the recording began, or before it was last well.
    auto from = state.unhealthy_since ? state.unhealthy_since->wall : now.wall;
    if (from < runs_.front().from) ++already_bad_;
    from = std::max(from, seen.faults.empty() ? runs_.front().from : seen.faults.back().to);
    seen.faults.push_back({.from = from, .to = from, .told_to = from});
    seen.goes_on = true;
  }
  auto& told = *seen.faults.back().told_to;
  told = std::max(told, now.wall);
  seen.is_silent = false;
  return begins;
}

void FaultReader::count_known(const std::string& scope, const std::string& node) {
  auto& known = known_[{scope, node}];
  known = std::max(known, cards_there(world_, scope, node));
}

tuning::FaultTrace FaultReader::finish() {
  tuning::FaultTrace trace;
  trace.unit = "devices";
  if (runs_.empty()) return trace;
  trace.from = runs_.front().from;
  trace.to = runs_.back().to;
  std::size_t unended = 0;
  std::map<std::string, std::size_t> devices_of;  // by card
  for (const auto& [key, seen] : seen_) ++devices_of[seen.card];
  std::map<std::string, std::int64_t> broken;  // cards of a scope
  std::size_t sharing = 0;
  std::set<std::string_view> counted;
  for (auto& [key, seen] : seen_) {
    // Nobody has called it well: it may have been bad to the end.
    if (seen.goes_on) seen.faults.back().to = trace.to;
    for (const auto& fault : seen.faults) unended += *fault.told_to < fault.to ? 1U : 0U;
    const bool shares = devices_of.at(seen.card) > 1;
    sharing += shares ? 1U : 0U;
    if (counted.insert(seen.card).second) ++broken[key.scope];
    trace.broken.push_back({.name = to_string(key),
                            .in_service = runs_,
                            .faults = std::move(seen.faults),
                            .scope = key.scope,
                            .node = seen.node,
                            .card = shares ? seen.card : std::string()});
  }
  trace.known = known_;
  for (const auto& [scope, count] : broken) {
    auto& known = trace.known[{scope, {}}];
    known = std::max(known, count);
    trace.devices += static_cast<std::size_t>(known);
  }
  double days = 0;
  for (const auto& run : runs_) days += tuning::Days(run.to - run.from).count();
  trace.device_days = days * static_cast<double>(trace.devices);
  trace.remarks = {
      "A recording knows of a device what the kubelet said of it while a pod held it: claim conditions and drivers' "
      "own "
      "taints are not counted, nor what a policy's match leaves out.",
      "While the recorded controller kept pods off a device nobody spoke of it: a fault that came and went meanwhile "
      "is "
      "not known, and a device that was bad before and after was bad in between.",
      "Devices are those of drivers and resources that had a fault."};
  if (sharing > 0) {
    const auto cards = counted.size() + sharing - seen_.size();
    trace.remarks.push_back(fmt::format(
        "{} of the devices that broke are replicas or partitions of {} physical card{}: brake, caps of what is out of "
        "service and capacity count cards; failures and evictions are those of each device's pods.",
        sharing, cards, cards == 1 ? "" : "s"));
  }
  if (unended > 0) {
    trace.remarks.push_back(fmt::format(
        "{} fault{}: nobody has said when it ended. It is taken to last until the next word, or to the recording's "
        "end; a pod that would have met it meanwhile is counted as unsure, and held although well is a bound from "
        "below.",
        unended, unended == 1 ? "" : "s"));
  }
  if (already_bad_ > 0)
    trace.remarks.push_back(fmt::format("{} device{} bad when the recording began: counted from there.", already_bad_,
                                        already_bad_ == 1 ? " was" : "s were"));
  if (left_out_ > 0) trace.remarks.push_back(runs_left_out(left_out_));
  return trace;
}

}  // namespace dhc::record
