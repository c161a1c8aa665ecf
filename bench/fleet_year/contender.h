#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/now.h"
#include "bench/fleet_year/fleet.h"

namespace dhc::year {

/// How much the controller had to think, in counts that no machine changes.
struct Effort {
  std::int64_t turns = 0;
  std::int64_t asked = 0;  ///< Affected pods, pod by device, about which these decided anew.
};

/// Whoever reacts to bad devices in the simulated cluster. It acts through the API server alone.
class Contender {
 public:
  Contender() = default;
  virtual ~Contender() = default;
  Contender(const Contender&) = delete;
  Contender& operator=(const Contender&) = delete;

  /// What a node's own agent tells of a device at once. Nothing for whoever watches the API server.
  virtual void reported(std::size_t device, bool bad) = 0;

  /// Does what is due. True: it has done something, and may have more to do.
  [[nodiscard]] virtual bool act() = 0;

  /// When it would next act by time alone.
  [[nodiscard]] virtual std::optional<MonoTime> next_due() const = 0;

  /// So far; nothing of whoever plans nothing.
  [[nodiscard]] virtual Effort effort() const { return {}; }
};

/// Those who are compared.
enum class Kind : std::uint8_t { Nobody, Drain, NoExecute, Ours };
inline constexpr std::array kKinds = {Kind::Nobody, Kind::Drain, Kind::NoExecute, Kind::Ours};

[[nodiscard]] std::string_view to_string(Kind kind);

}  // namespace dhc::year
