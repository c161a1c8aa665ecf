#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dhc::planted {

/// What really breaks devices in a schedule, besides the few that break by themselves in any fleet.
enum class Truth : std::uint8_t {
  Nothing,
  Cards,
  Program,    ///< A Deployment.
  Image,      ///< Ever new Jobs of one image, each under a name of its own.
  BaseImage,  ///< A Deployment, whose image many others run well.
  Node,       ///< One or two.
  Driver,     ///< As it is rolled out.
  ProgramAndCards,
  ImageAndCards,
  Canary,  ///< A driver's new release, on a few nodes of a larger cluster.
};
inline constexpr std::array<Truth, 10> kTruths = {
    Truth::Nothing, Truth::Cards,  Truth::Program,         Truth::Image,         Truth::BaseImage,
    Truth::Node,    Truth::Driver, Truth::ProgramAndCards, Truth::ImageAndCards, Truth::Canary};
[[nodiscard]] std::string_view to_string(Truth truth);
/// Of the schedule with this number: each in turn.
[[nodiscard]] Truth truth_of(std::size_t schedule);

/// What became of the schedules with one truth.
struct Tally {
  std::size_t schedules = 0;
  std::size_t broken = 0;         ///< Devices went bad under a pod,
  std::size_t moved = 0;          ///< and pods were evicted.
  std::size_t right = 0;          ///< Suspicions of who breaks devices: the program, or its image, or a Job of it.
  std::size_t wrong = 0;          ///< Of anybody else.
  std::size_t bad_nodes = 0;      ///< Nodes that were bad and broke three devices or more,
  std::size_t nodes_right = 0;    ///< and that were named;
  std::size_t nodes_wrong = 0;    ///< and nodes that were named and are not bad.
  std::size_t drivers_right = 0;  ///< The driver's release that was bad, named.
  std::size_t drivers_wrong = 0;  ///< Any other.
  std::size_t visible = 0;        ///< Schedules in which it broke three devices and never held more than 30 percent.
  std::size_t in_the_end = 0;     ///< Of these, how many were told.
  std::size_t clear = 0;          ///< Of these, those in which the devices it broke convict it if nothing else breaks;
  std::size_t at_once = 0;        ///< and how many of them were told by then.
  std::size_t most_a_day = 0;     ///< The most devices that went out of service for one guilty workload within a day,
  std::size_t most_in_all = 0;    ///< and in all.
  std::size_t bad_excused = 0;    ///< Truly bad cards that were given back,
  std::size_t most_excused = 0;   ///< and how often one of them.

  /// Adds what became of others.
  void add(const Tally& other);
};

/// One schedule of two days, by its number: a simulated cluster of four to sixteen nodes of eight devices (where a
/// driver's new release is on few nodes, of 32 to 48), full of Deployments and Jobs that come and go; the whole
/// controller; faults by the truth; restarts, clocks that jump, watches that are cut, drivers and kubelets that begin
/// anew.
[[nodiscard]] Tally play(Truth truth, std::uint64_t number);

/// The tallies as lines, and back: what a run of schedules leaves for the next. False: these are none.
[[nodiscard]] std::string lines_of(const std::map<Truth, Tally>& tallies);
[[nodiscard]] bool add_lines(std::string_view text, std::map<Truth, Tally>& tallies);

/// The table that the page shows.
[[nodiscard]] std::string table_of(const std::map<Truth, Tally>& tallies);

}  // namespace dhc::planted
