#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/record/file_order.h"
#include "app/record/reader.h"
#include "base/error.h"
#include "domain/cluster/world.h"
#include "domain/tuning/fault_trace.h"

namespace dhc::record {

/// Reads from a recording when devices were bad, by what kubelets said of devices that pods held. One thread.
class FaultReader {
 public:
  /// The next line; errors as Rerun's.
  [[nodiscard]] Status feed(std::string_view line);

  /// Once, after the last line.
  [[nodiscard]] tuning::FaultTrace finish();

 private:
  struct Seen {
    std::string node;
    std::string card;
    std::vector<tuning::Fault> faults;  // `told_to` set; of the last one `to` is not known while it goes on
    bool goes_on = false;
    bool is_silent = false;  // nobody has called it bad since `told_to`
  };
  using Place = std::pair<std::string, std::string>;

  [[nodiscard]] Status begin(const FileStep& file);
  void take(const Now& now);
  /// Whether a fault begins.
  bool note(const DeviceKey& key, const DeviceState& state, const Now& now);
  void look_at_place(const DeviceKey& key, std::set<Place>& places);
  void count_known(const std::string& scope, const std::string& node);

  Reader reader_;
  FileOrder order_;
  World world_;
  std::vector<k8s::Delivery> waiting_;
  std::map<DeviceKey, Seen> seen_;
  std::map<Place, std::int64_t> known_;  // by driver or resource, and node; the most at any time
  std::vector<tuning::Span> runs_;       // that were played
  std::size_t left_out_ = 0;
  std::size_t already_bad_ = 0;
  bool is_timed_ = false;  // the run's first time is known
  bool is_left_out_ = false;
};

}  // namespace dhc::record
