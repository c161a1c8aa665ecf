#include "reconcilers/hand_over/execute.h"

#include <utility>

#include <fmt/format.h>

#include "reconcilers/hand_over/build.h"

namespace dhc::hand_over {

namespace {

/// Where it is, as the server serves it now: a definition may come, go and change.
Result<std::string> find_path(const ObjectName& object, const k8s::Client& client, const std::stop_token& stop) {
  const auto request = build_kinds(object);
  if (!request) return std::unexpected(request.error());
  return object_path(object, client.call(*request, stop));
}

/// Where it is, in whatever version its group is served: what was made in one that has gone is stored all the same.
/// Empty: its kind is served in none, and without its kind there is no object.
Result<std::string> find_in_any_version(const ObjectName& object, const k8s::Client& client,
                                        const std::stop_token& stop) {
  auto path = find_path(object, client, stop);
  if (path || path.error().kind != ErrorKind::Invalid) return path;
  const auto request = build_group(object);
  if (!request) return std::string();
  const auto others = other_versions(object, client.call(*request, stop));
  if (!others) return std::unexpected(others.error());
  for (const auto& other : *others) {
    path = find_path(other, client, stop);
    if (path || path.error().kind != ErrorKind::Invalid) return path;
  }
  return std::string();
}

Result<ObjectSighting> look(const ObjectName& object, const std::string& path, const k8s::Client& client,
                            const std::stop_token& stop) {
  return sighting_of(object, client.call(build_object_read(path), stop));
}

/// Of a name that is not free.
Status why_not(const ObjectName& object, ObjectStanding standing) {
  const auto name = title_of(object);
  switch (standing) {
    case ObjectStanding::Absent:
    case ObjectStanding::Ours:
      return {};
    case ObjectStanding::Leaving:
      return fail(ErrorKind::Declined, fmt::format("{} of an earlier incident is still being deleted", name));
    case ObjectStanding::Earlier:
      return fail(ErrorKind::Contested,
                  fmt::format("{} of an earlier incident is there: delete it, or put {{incident}} "
                              "into the name",
                              name));
    case ObjectStanding::Foreign:
      return fail(ErrorKind::Contested,
                  fmt::format("{} is there, is not ours and is left as it is: delete it, or choose another "
                              "metadata.name",
                              name));
  }
  return {};
}

}  // namespace

Status execute(const ApplyNodeConditions& action, const k8s::Client& client, std::stop_token stop) {
  return k8s::send(build_conditions(action), client, std::move(stop));
}

Status execute(const MakeObject& action, const k8s::Client& client, const std::stop_token& stop) {
  const auto& object = action.object;
  const auto path = find_path(object, client, stop);
  if (!path) return std::unexpected(path.error());
  const auto request = build_creation(object, action.text, *path);
  if (!request) return std::unexpected(request.error());
  // An apply cannot say "only if there is none", and would change what another has made.
  auto found = look(object, *path, client, stop);
  if (!found) return std::unexpected(with_remedy(std::move(found.error()), object, *path));
  if (found->standing != ObjectStanding::Absent) return why_not(object, found->standing);
  auto answer = client.call(*request, stop);
  if (answer) return {};
  if (answer.error().kind != ErrorKind::Conflict)
    return std::unexpected(with_remedy(std::move(answer.error()), object, *path));
  // Between the read and the creation somebody else was there, or an earlier request of ours.
  found = look(object, *path, client, stop);
  if (!found) return std::unexpected(with_remedy(std::move(found.error()), object, *path));
  if (found->standing == ObjectStanding::Absent) return fail(ErrorKind::Conflict, "it was there, and is gone again");
  return why_not(object, found->standing);
}

Status execute(const RemoveObject& action, const k8s::Client& client, const std::stop_token& stop) {
  const auto& object = action.object;
  const auto path = find_in_any_version(object, client, stop);
  if (!path) return std::unexpected(path.error());
  if (path->empty()) return {};
  auto found = look(object, *path, client, stop);
  if (!found) return std::unexpected(with_remedy(std::move(found.error()), object, *path));
  if (found->standing != ObjectStanding::Ours) return {};
  auto answer = client.call(build_deletion(*path, found->uid), stop);
  if (answer || answer.error().kind == ErrorKind::NotFound) return {};
  return std::unexpected(with_remedy(std::move(answer.error()), object, *path));
}

}  // namespace dhc::hand_over
