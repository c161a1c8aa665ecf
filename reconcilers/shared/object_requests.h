#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "domain/incidents/handed_objects.h"
#include "k8s-client/protocol/request.h"

namespace dhc {

/// One object of another's kind, as far as requests need to know it.
struct ObjectName {
  std::string slot;  ///< What it is remembered by.
  std::string api_version;
  std::string kind;
  std::string ns;
  std::string name;
  std::string incident;  ///< By which an object of this name is known to be this one.
  std::string node;
  std::string policy;
  friend bool operator==(const ObjectName&, const ObjectName&) = default;
};

/// Of one that is remembered.
[[nodiscard]] ObjectName object_of(const std::string& slot, const HandedObject& object);

/// `Kind namespace/name`.
[[nodiscard]] std::string title_of(const ObjectName& object);

/// How long a read that comes before a write may take.
inline constexpr Millis kReadTime = Seconds(5);

/// Asks for the kinds of a group and version. **Source:** Kubernetes' API concepts, discovery; every account may.
/// Invalid if the object's group, namespace or name does not fit in a path.
[[nodiscard]] Result<k8s::Request> build_kinds(const ObjectName& object);

/// Asks for the versions of the object's group; Invalid as `build_kinds`.
[[nodiscard]] Result<k8s::Request> build_group(const ObjectName& object);

/// The object by each other version in which its group is served, as one stored object is read by any of them; none if
/// the group is not served. Malformed if what the server says of the group cannot be read.
[[nodiscard]] Result<std::vector<ObjectName>> other_versions(const ObjectName& object,
                                                             const Result<k8s::Response>& group);

/// The path of the object by what the server says of its kind. Invalid, with the remedy, if the kind is not served or
/// the namespace is missing, or one is given to a kind that has none.
[[nodiscard]] Result<std::string> object_path(const ObjectName& object, const Result<k8s::Response>& kinds);

/// What the server calls the collection of an object with this path: `gpuresets`.
[[nodiscard]] std::string_view plural_of(std::string_view path);

[[nodiscard]] k8s::Request build_object_read(const std::string& path);

/// The creation of an object that is not there, of which `text` is the whole; AlreadyExists is Conflict.
[[nodiscard]] Result<k8s::Request> build_creation(const ObjectName& object, const std::string& text,
                                                  std::string_view path);

/// The deletion of the object with this UID alone.
[[nodiscard]] k8s::Request build_deletion(const std::string& path, std::string_view uid);

/// Whose object stands under the name.
enum class ObjectStanding : std::uint8_t {
  Absent,
  Ours,     ///< Of this incident.
  Leaving,  ///< Of ours, of another incident, and about to be gone.
  Earlier,  ///< Of ours, of another incident.
  Foreign,
};
struct ObjectSighting {
  ObjectStanding standing = ObjectStanding::Absent;
  std::string uid;
};

/// What a read of the object shows. Unread if it was not answered: nothing may be concluded.
[[nodiscard]] Result<ObjectSighting> sighting_of(const ObjectName& object, const Result<k8s::Response>& answer);

/// The error of an answer, with the right that is missing where that is the cause.
[[nodiscard]] Error with_remedy(Error error, const ObjectName& object, std::string_view path);

}  // namespace dhc
