#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/now.h"
#include "domain/contract/device_key.h"
#include "domain/contract/owner_share.h"

namespace dhc {

/// A physical device that went bad, and whose pods may have made it so.
struct DeviceOnset {
  DeviceKey card;
  std::string node;                               ///< Empty: it belongs to none.
  WallTime at;                                    ///< When its incident opened.
  WallTime named_at;                              ///< The same, whatever becomes of the clock: it names the incident.
  WallTime since;                                 ///< Since when it had been bad.
  std::int64_t well = 0;                          ///< How many devices others held on its node then that were not bad.
  std::map<std::string, OwnerShare> workloads;    ///< That held it, by `workload_of`.
  std::map<std::string, OwnerShare> images = {};  ///< That ran on it, by `images_on`.
  /// Its node, and the releases that served it there, by `grounds_of`.
  std::map<std::string, GroundShare> grounds = {};
  bool excused = false;  ///< It was put down to one of them: that is done once.
  friend bool operator==(const DeviceOnset&, const DeviceOnset&) = default;
};

/// A workload, or each that runs an image, under which devices of one driver or resource go bad that are well under
/// others; or a node, or a release of a driver, likewise.
struct Suspicion {
  WallTime since;
  /// Since when it has held no bad device; none: it holds one. Of a release: since when nothing has broken under it.
  std::optional<WallTime> clean_since;
  std::string evidence;  ///< A sentence.
  friend bool operator==(const Suspicion&, const Suspicion&) = default;
};

/// A workload, by `workload_of`, an image, by `images_on`, or a node or release, by `grounds_of`; and a driver or
/// resource.
using OwnerInScope = std::pair<std::string, std::string>;

/// A pod that runs an image now and holds devices.
struct Bystander {
  std::string workload;
  WallTime since;    ///< When its pod was made,
  double share = 0;  ///< which holds so much of the driver's or resource's devices that are held.
};

/// What one judgement is made of.
struct SuspectHearing {
  std::size_t least = 3;          ///< How many devices must have broken under a workload; 0: nobody is suspected.
  std::set<OwnerInScope> on_bad;  ///< Of those who are suspected: who holds a bad device now.
  /// Workloads, images and nodes that somebody vouches for: what broke up to then is not held against them.
  std::map<std::string, WallTime> acknowledged;
  std::optional<WallTime> released;  ///< Likewise for all, by an operator.
  Now now;
  /// Tells who runs an image now and holds devices of the driver or resource, guilty or not, one after the other, until
  /// that is enough.
  using IsEnough = std::function<bool(const Bystander&)>;
  std::function<void(const std::string& image, const std::string& scope, const IsEnough&)> tell_tenants = {};
};

/// Tells a guilty workload from guilty devices. Hardware breaks under whoever holds it: a workload that holds 3 percent
/// of the devices holds 3 percent of those that break. Where one node or one release of the driver is to blame, it
/// holds its share of the node or of that release. A device that breaks under different workloads is itself the cause,
/// and counts against nobody. Likewise an image, under ever new workloads; but where few of its workloads break
/// devices, they are guilty and not what they run. What is put down to neither may speak against a node, or a release
/// of the driver: that excuses nobody.
class Suspects {
 public:
  /// How long an onset counts.
  static constexpr Millis kWindow = std::chrono::hours(24 * 7);
  /// How long a workload must hold no bad device for the suspicion to end.
  static constexpr Millis kClean = std::chrono::hours(24);
  /// Whoever has a larger share of the devices is never suspected: what breaks then breaks under it anyway.
  static constexpr double kLargestShare = 0.3;
  /// How likely it may be that chance alone has put the onsets together, for any workload of a share like this.
  static constexpr double kChance = 0.001;
  /// Fewer devices than these are no case against anybody.
  static constexpr std::size_t kFewest = 3;
  /// So many different workloads must have broken devices for their image to be suspected.
  static constexpr std::size_t kFewestOfImage = 3;
  /// How likely chance must have left out those that run the image and broke nothing, if the image breaks devices.
  static constexpr double kLeftOut = 0.05;
  /// How many onsets are remembered: the newest.
  static constexpr std::size_t kMost = 300;

  /// The incident of a device has opened. Safe to repeat.
  void note(DeviceOnset onset);

  /// Begins and ends suspicions; says which onsets are put down to a workload by it.
  std::vector<DeviceOnset> judge(const SuspectHearing& hearing);

  /// Null: the workload, or the image, is not suspected.
  [[nodiscard]] const Suspicion* find(const std::string& who, const std::string& scope) const;
  [[nodiscard]] const std::map<OwnerInScope, Suspicion>& suspicions() const { return suspicions_; }
  /// Whether a workload or an image is among them: a node or release alone holds nothing.
  [[nodiscard]] bool has_owners() const;

  /// When `judge` would conclude something new by time alone.
  [[nodiscard]] std::optional<WallTime> next_change_at() const;

  /// Oldest first.
  [[nodiscard]] const std::vector<DeviceOnset>& onsets() const { return onsets_; }
  /// As they are read from the state.
  void load(std::vector<DeviceOnset> onsets, std::map<OwnerInScope, Suspicion> suspicions);
  /// Counts changes of what is to be written down.
  [[nodiscard]] std::uint64_t revision() const { return revision_; }

 private:
  void pull_back(WallTime now);
  void forget(const SuspectHearing& hearing);
  void end_suspicions(const SuspectHearing& hearing);
  void acquit(const OwnerInScope& who, WallTime until);
  void judge_workloads(const std::string& scope, const std::set<std::string>& names, const SuspectHearing& hearing,
                       std::vector<DeviceOnset>& excused);
  void judge_images(const std::string& scope, const std::set<std::string>& names, const SuspectHearing& hearing,
                    std::vector<DeviceOnset>& excused);
  void accuse(const OwnerInScope& who, std::string evidence, WallTime now, std::vector<DeviceOnset>& excused);
  void judge_grounds(const std::string& scope, const std::set<std::string>& names, const SuspectHearing& hearing);
  [[nodiscard]] std::optional<WallTime> last_under(const OwnerInScope& who) const;
  void drop_grounds(const std::set<OwnerInScope>& accused, std::size_t least);

  std::vector<DeviceOnset> onsets_;
  std::map<OwnerInScope, Suspicion> suspicions_;
  std::uint64_t revision_ = 0;
  std::optional<std::pair<std::uint64_t, std::size_t>> judged_;  // the revision, and `least`, of the last judgement
  std::set<OwnerInScope> grown_;                                 // those against whom more speaks since then
};

/// What speaks against a workload.
struct CaseAgainst {
  std::vector<const DeviceOnset*> onsets;  ///< One for each device, the first.
  double share = 0;                        ///< The largest that it had of the driver or resource at one of them.
  double chance = 1;                       ///< How likely chance alone does that to any workload of such a share.
};

/// Those who may be guilty: `workloads` or `images`.
using Accused = std::map<std::string, OwnerShare> DeviceOnset::*;

/// Of each workload, or image, that was there when a device of this driver or resource broke; of those `names` alone
/// unless that is null. Points into `onsets`.
[[nodiscard]] std::map<std::string, CaseAgainst> cases_against(const std::vector<DeviceOnset>& onsets,
                                                               const std::string& scope,
                                                               Accused accused = &DeviceOnset::workloads,
                                                               const std::set<std::string>* names = nullptr);

/// How likely chance alone has made each case, by how likely each device that broke had to be one of it.
void weigh(std::map<std::string, CaseAgainst>& cases,
           const std::function<std::vector<double>(const std::string&, const CaseAgainst&)>& chances);

/// Whether a case with so many devices at the least is enough for a suspicion.
[[nodiscard]] bool is_enough(const CaseAgainst& found, std::size_t least);

/// The devices of a case, the first few by name.
[[nodiscard]] std::string words_of_devices(const CaseAgainst& found);

/// How likely at least `least` of independent events with these probabilities happen.
[[nodiscard]] double chance_of_at_least(std::size_t least, const std::vector<double>& probabilities);

}  // namespace dhc
