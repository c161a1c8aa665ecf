#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace dhc::planted {

/// What really breaks devices in a schedule, besides the few that break by themselves in any fleet.
enum class Truth : std::uint8_t { Nothing, Cards, Program, Node, Driver, ProgramAndCards };
inline constexpr std::array<Truth, 6> kTruths = {Truth::Nothing, Truth::Cards,  Truth::Program,
                                                 Truth::Node,    Truth::Driver, Truth::ProgramAndCards};
[[nodiscard]] std::string to_string(Truth truth);

/// What became of the schedules with one truth.
struct Tally {
  std::size_t schedules = 0;
  std::size_t onsets = 0;
  std::size_t right = 0;         ///< Suspicions of the program that breaks devices.
  std::size_t wrong = 0;         ///< Of any other workload.
  std::size_t visible = 0;       ///< Schedules in which the program broke three devices and holds at most 30 percent.
  std::size_t in_the_end = 0;    ///< Of these, how many were told within the week.
  std::size_t clear = 0;         ///< Of these, on three nodes, by one so small that three devices alone convict it;
  std::size_t at_once = 0;       ///< and how many of them were told by the third device.
  std::size_t taken = 0;         ///< Devices that were taken out of service for the program, in all schedules,
  std::size_t most_taken = 0;    ///< and the most within a day, in one.
  std::size_t bad_excused = 0;   ///< Truly bad cards that were given back,
  std::size_t most_excused = 0;  ///< and how often one of them.
};

/// Nodes of eight devices, of the largest fleet that is measured.
inline constexpr int kMostNodes = 123;

/// Plays one schedule of a week: a fleet of random size, of four nodes and up, workloads that come and go, faults by
/// the truth, and the controller's own bounds and suspicions.
void play(Truth truth, std::uint64_t seed, int most_nodes, Tally& tally);

/// Plays so many schedules of each truth.
[[nodiscard]] std::map<Truth, Tally> play_all(std::size_t schedules);

/// The table that the page shows.
[[nodiscard]] std::string table_of(const std::map<Truth, Tally>& tallies);

}  // namespace dhc::planted
