#include "bench/suspects/planted.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "domain/findings/suspects.h"
#include "domain/incidents/suspect_state.h"
#include "domain/limits/workload_book.h"

namespace dhc::planted {

namespace {
using std::chrono::hours;
using std::chrono::minutes;

constexpr WallTime kBegin{Seconds(1'800'000'000)};
constexpr Millis kStep = minutes(10);
constexpr Millis kWeek = hours(24 * 7);
const std::string kScope = "gpu.example.com";
constexpr int kPerNode = 8;
/// By themselves. **Source:** 6.5 failures in 1,000 node-days of 8 GPUs (Meta's RSC-1).
constexpr double kOfItself = 0.0008;  // a device and day

struct Device {
  int workload = -1;  // that holds it
  bool is_bad = false;
  std::optional<WallTime> away_until;  // tainted
  double a_day = kOfItself;
};

struct Workload {
  std::string name;
  bool is_poison = false;
  double a_day = 0;  // how often it breaks a device
  WallTime ends;
  int wanted = 0;
  int holds = 0;
};

class Schedule {
 public:
  Schedule(Truth truth, std::uint64_t seed, int most_nodes, Tally& tally) : dice_(seed), truth_(truth), tally_(tally) {
    nodes_ = 4 + below(most_nodes - 3);
    is_packed_ = below(2) == 0;
    devices_.resize(static_cast<std::size_t>(nodes_ * kPerNode));
    plant();
    fill();
  }

  void run() {
    ++tally_.schedules;
    for (now_ = kBegin; now_ < kBegin + kWeek; now_ += kStep) {
      come_and_go();
      roll_driver();
      break_devices();
      judge();
    }
    close();
  }

 private:
  int below(int bound) { return std::uniform_int_distribution<int>(0, bound - 1)(dice_); }
  double uniform() { return std::uniform_real_distribution<double>(0, 1)(dice_); }
  bool happens(double a_day) { return uniform() < a_day * (std::chrono::duration<double>(kStep) / hours(24)); }
  bool has_program() const { return truth_ == Truth::Program || truth_ == Truth::ProgramAndCards; }

  void plant() {
    if (truth_ == Truth::Cards || truth_ == Truth::ProgramAndCards) {
      const int bad = 1 + below(std::max(2, nodes_ / 8));
      for (int i = 0; i < bad; ++i) {
        const auto card = static_cast<std::size_t>(below(static_cast<int>(devices_.size())));
        bad_cards_.insert(card);
        devices_[card].a_day = 1 + uniform() * 12;
      }
    }
    if (truth_ == Truth::Node) {
      const int nodes = 1 + below(2);
      for (int i = 0; i < nodes; ++i) {
        const int node = below(nodes_);
        for (int d = 0; d < kPerNode; ++d)
          devices_[static_cast<std::size_t>(node * kPerNode + d)].a_day = 0.5 + 4 * uniform();
      }
    }
    if (truth_ == Truth::Driver) {
      rolls_at_ = kBegin + hours(below(100));
      roll_pause_ = minutes(5 + below(60));
    }
    poison_at_ = kBegin + hours(below(72));
  }

  void roll_driver() {
    if (!rolls_at_ || now_ < *rolls_at_ || rolled_ == nodes_) return;
    rolls_at_ = now_ + roll_pause_;
    for (int d = 0; d < kPerNode; ++d) {
      auto& device = devices_[static_cast<std::size_t>(rolled_ * kPerNode + d)];
      device.a_day = std::max(device.a_day, 0.2 + 3 * uniform());
    }
    ++rolled_;
  }

  /// Of the devices that are held, or of those whose driver is as new as this node's, whichever is larger; and of the
  /// node.
  [[nodiscard]] OwnerShare share_of(int workload, std::size_t node) const {
    struct Held {
      double all = 0;
      double its = 0;
      void count(bool is_its) {
        ++all;
        if (is_its) ++its;
      }
      [[nodiscard]] double share() const { return all == 0 ? 1 : its / all; }
    };
    Held everywhere;
    Held as_new;
    Held there;
    const bool is_rolled = std::cmp_less(node, rolled_);
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      if (devices_[i].workload < 0) continue;
      const auto at_node = i / kPerNode;
      const bool is_its = devices_[i].workload == workload;
      everywhere.count(is_its);
      if (!is_rolled || (at_node >= node && std::cmp_less(at_node, rolled_))) as_new.count(is_its);
      if (at_node == node) there.count(is_its);
    }
    return {.scope = std::max(everywhere.share(), as_new.share()), .node = there.share()};
  }

  bool is_free(std::size_t i) const {
    return devices_[i].workload < 0 && !devices_[i].is_bad && !devices_[i].away_until;
  }

  std::optional<std::size_t> place_for() {
    const auto count = devices_.size();
    const auto first = is_packed_ ? 0 : static_cast<std::size_t>(below(static_cast<int>(count)));
    for (std::size_t i = 0; i < count; ++i) {
      const auto at = (first + i) % count;
      if (is_free(at)) return at;
    }
    return std::nullopt;
  }

  Workload& at(int workload) { return workloads_[static_cast<std::size_t>(workload)]; }

  void take(std::size_t device, int workload) {
    devices_[device].workload = workload;
    ++at(workload).holds;
    ++held_;
  }
  void leave(std::size_t device) {
    --at(devices_[device].workload).holds;
    --held_;
    devices_[device].workload = -1;
  }

  void start(bool is_poison) {
    // A few are large, most are small.
    const int size = std::max(1, static_cast<int>(std::pow(2.0, uniform() * std::log2(std::max(2, nodes_ * 3)))));
    Workload fresh{.name = fmt::format("ml/Job/w-{}", workloads_.size()),
                   .is_poison = is_poison,
                   .a_day = is_poison ? 3 + uniform() * 140 : 0,
                   .ends = now_ + (is_poison ? Millis(kWeek) : Millis(minutes(60 + below(5000)))),
                   .wanted = is_poison ? std::max(3, std::min(size, nodes_)) : size};
    workloads_.push_back(fresh);
    give(static_cast<int>(workloads_.size()) - 1);
  }

  void give(int workload) {
    while (at(workload).holds < at(workload).wanted) {
      const auto place = place_for();
      if (!place) return;
      take(*place, workload);
    }
  }

  void fill() {
    while (held_ < devices_.size() * 8 / 10 && place_for()) start(false);
  }

  void come_and_go() {
    if (has_program() && poison_ < 0 && now_ >= poison_at_) {
      poison_ = static_cast<int>(workloads_.size());
      start(true);
    }
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      auto& device = devices_[i];
      if (device.away_until && now_ >= *device.away_until) device.away_until.reset();
      if (device.workload < 0 || now_ < at(device.workload).ends) continue;
      leave(i);
      device.is_bad = false;  // it is reset between its holders
    }
    fill();
    if (poison_ >= 0) give(poison_);
  }

  static std::string node_of(std::size_t device) { return fmt::format("node-{}", device / kPerNode); }
  static DeviceKey key_of(std::size_t device) {
    return DeviceKey::dra(kScope, node_of(device), fmt::format("gpu-{}", device % kPerNode));
  }
  std::size_t number_of(const DeviceKey& card) const {
    std::size_t i = 0;
    while (key_of(i) != card) ++i;
    return i;
  }

  void break_devices() {
    std::vector<std::size_t> broken;
    std::map<std::size_t, int> on_node;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      auto& device = devices_[i];
      if (device.workload < 0 || device.is_bad) continue;
      if (!happens(device.a_day + at(device.workload).a_day)) continue;
      device.is_bad = true;
      broken.push_back(i);
      ++on_node[i / kPerNode];
    }
    // The brake holds a node's mass fault, and a cluster's.
    if (broken.size() > 2 && broken.size() * 10 > devices_.size() * 3) return;
    for (const auto i : broken) {
      if (on_node[i / kPerNode] >= 3) continue;
      open_incident(i);
    }
  }

  void open_incident(std::size_t i) {
    auto& device = devices_[i];
    const auto& workload = at(device.workload);
    // What a suspect breaks opens no incident.
    if (suspects_.find(workload.name, kScope) != nullptr) return;
    ++tally_.onsets;
    const auto share = share_of(device.workload, i / kPerNode);
    suspects_.note({.card = key_of(i),
                    .node = node_of(i),
                    .at = now_,
                    .since = now_,
                    .well = 0,
                    .workloads = {{workload.name, share}}});
    if (workload.is_poison) {
      poisoned_.insert(i);
      poisoned_nodes_.insert(i / kPerNode);
      largest_share_ = std::max(largest_share_, share.scope);
    }
    move(i);
  }

  /// Taints the device and evicts its pod, if the bounds let it.
  void move(std::size_t i) {
    auto& device = devices_[i];
    const int holder = device.workload;
    const auto& workload = at(holder);
    (void)book_.settle(now());
    const auto lost = WorkloadTally(book_).count(workload.name, kScope);
    const auto most = std::max<std::size_t>(2, static_cast<std::size_t>(workload.holds) / 100);
    if (lost >= most) return;
    book_.note(workload.name, key_of(i), now_);
    if (workload.is_poison) {
      ++tally_.taken;
      tally_.most_taken = std::max(tally_.most_taken, lost + 1);
    }
    device.away_until = now_ + hours(24);
    leave(i);
    device.is_bad = false;
    give(holder);
  }

  Now now() const { return {.mono = MonoTime(std::chrono::duration_cast<Millis>(now_ - kBegin)), .wall = now_}; }

  void judge() {
    SuspectHearing hearing{.least = kLeast, .on_bad = {}, .acknowledged = {}, .released = {}, .now = now()};
    for (const auto& device : devices_) {
      if (device.workload >= 0 && device.is_bad) hearing.on_bad.emplace(at(device.workload).name, kScope);
    }
    if (below(500) == 0) suspects_ = parse_suspect_state(suspect_state_text(suspects_));
    const auto excused = suspects_.judge(hearing);
    for (const auto& [who, suspicion] : suspects_.suspicions()) {
      if (!told_.insert(who.first).second) continue;
      const bool is_right = poison_ >= 0 && at(poison_).name == who.first;
      ++(is_right ? tally_.right : tally_.wrong);
      if (is_right) told_at_ = poisoned_.size();
    }
    for (const auto& onset : excused) {
      const auto i = number_of(onset.card);
      devices_[i].away_until.reset();
      if (!bad_cards_.contains(i)) continue;
      ++tally_.bad_excused;
      tally_.most_excused = std::max(tally_.most_excused, ++times_excused_[i]);
    }
  }

  /// Whether what is visible can tell it at all: enough devices on so many nodes, and a share that is small enough.
  void close() {
    if (poisoned_.size() < kLeast || largest_share_ > Suspects::kLargestShare) return;
    ++tally_.visible;
    if (told_at_) ++tally_.in_the_end;
    // On three nodes, and nothing else broke: the share must be smaller than the root of what chance may do.
    if (largest_share_ > std::sqrt(Suspects::kChance) || poisoned_nodes_.size() < kLeast) return;
    ++tally_.clear;
    if (told_at_ && *told_at_ <= kLeast) ++tally_.at_once;
  }

  static constexpr std::size_t kLeast = 3;
  std::mt19937_64 dice_;
  Truth truth_;
  Tally& tally_;
  int nodes_ = 0;
  bool is_packed_ = false;
  WallTime now_ = kBegin;
  std::vector<Device> devices_;
  std::vector<Workload> workloads_;
  std::set<std::size_t> bad_cards_;
  std::size_t held_ = 0;
  int poison_ = -1;
  WallTime poison_at_;
  std::optional<WallTime> rolls_at_;
  Millis roll_pause_{0};
  int rolled_ = 0;
  Suspects suspects_;
  WorkloadBook book_;
  std::map<std::size_t, std::size_t> times_excused_;
  std::set<std::string> told_;
  std::set<std::size_t> poisoned_;  // devices
  std::set<std::size_t> poisoned_nodes_;
  double largest_share_ = 0;
  std::optional<std::size_t> told_at_;
};

}  // namespace

std::string to_string(Truth truth) {
  switch (truth) {
    case Truth::Nothing:
      return "nothing";
    case Truth::Cards:
      return "bad cards";
    case Truth::Program:
      return "a bad program";
    case Truth::Node:
      return "bad nodes";
    case Truth::Driver:
      return "a bad driver, rolled out";
    case Truth::ProgramAndCards:
      return "a bad program and bad cards";
  }
  return {};
}

void play(Truth truth, std::uint64_t seed, int most_nodes, Tally& tally) {
  Schedule(truth, seed, most_nodes, tally).run();
}

std::map<Truth, Tally> play_all(std::size_t schedules) {
  std::map<Truth, Tally> tallies;
  for (const auto truth : kTruths) {
    for (std::size_t i = 0; i < schedules; ++i) {
      play(truth, i * 7919 + static_cast<std::size_t>(truth), kMostNodes, tallies[truth]);
    }
  }
  return tallies;
}

std::string table_of(const std::map<Truth, Tally>& tallies) {
  std::string text =
      "| what breaks devices | schedules | incidents | suspected rightly | wrongly | visible | in the end | clear | at "
      "the "
      "third device | most devices a day | bad cards given back | most of one |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  std::size_t right = 0;
  std::size_t wrong = 0;
  for (const auto& [truth, tally] : tallies) {
    right += tally.right;
    wrong += tally.wrong;
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", to_string(truth),
                        tally.schedules, tally.onsets, tally.right, tally.wrong, tally.visible, tally.in_the_end,
                        tally.clear, tally.at_once, tally.most_taken, tally.bad_excused, tally.most_excused);
  }
  return text + fmt::format(
                    "\nPrecision: {:.2f} percent.\n",
                    right + wrong == 0 ? 0.0 : 100.0 * static_cast<double>(right) / static_cast<double>(right + wrong));
}

}  // namespace dhc::planted
