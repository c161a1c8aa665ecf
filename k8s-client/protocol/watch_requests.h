#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/now.h"
#include "k8s-client/model/kept_fields.h"
#include "k8s-client/model/object.h"
#include "k8s-client/protocol/request.h"

namespace dhc::k8s {

/// How the objects of a watch are written.
enum class WireFormat : std::uint8_t { Json, Protobuf };

/// What one watch looks at: every object of a kind, or less.
struct WatchTarget {
  Kind kind = Kind::Pod;
  std::string ns;    ///< Only this namespace; empty: all.
  std::string name;  ///< Only the object of this name; empty: all. RBAC by resourceName needs it.
  KeptFields kept = {};
  WireFormat wire = WireFormat::Json;  ///< Protobuf: where we can read it; a server that has none answers in JSON.
  friend bool operator==(const WatchTarget&, const WatchTarget&) = default;
};

/// How many API versions of the kind we can read, newest first; at least 1.
[[nodiscard]] std::size_t version_count(Kind kind);

/// The API version that `version` stands for, such as `resource.k8s.io/v1`; `v1` for the core group.
[[nodiscard]] std::string_view api_version_of(Kind kind, std::size_t version);

/// True if protobuf is asked for.
[[nodiscard]] bool asks_protobuf(const WatchTarget& target, std::size_t version);

/// Whether a server without this kind is one that we can work with: true for all but the core group, without which the
/// other end is no Kubernetes at all.
[[nodiscard]] bool may_be_absent(Kind kind);

/// One page (500 objects) of a list; `continue_token` is empty for the first. No resourceVersion: a consistent read,
/// never older than what was seen before.
[[nodiscard]] Request build_list(const WatchTarget& target, std::size_t version, std::string_view continue_token);

/// One object of a list at most: what is asked is the version, which no consistent read gives older than another has
/// been.
[[nodiscard]] Request build_check(const WatchTarget& target, std::size_t version);

/// How long a stream may be silent: bookmarks come about once a minute. **Source:** kube-apiserver's watch cache.
inline constexpr Millis kWatchIdle = Seconds(90);
/// How long a page of a list may take.
inline constexpr Millis kListTotal = Seconds(60);

/// A watch of what happens after `resource_version`, ended by the server after 5 to 10 minutes as `chance` in [0,1)
/// says, so that watches spread over the servers.
[[nodiscard]] Request build_watch(const WatchTarget& target, std::size_t version, std::string_view resource_version,
                                  double chance);

/// A watch that begins with every object as it is, no older than `resource_version` if that is not empty.
/// **Source:** KEP-3157.
[[nodiscard]] Request build_watch_list(const WatchTarget& target, std::size_t version,
                                       std::string_view resource_version, double chance);

}  // namespace dhc::k8s
