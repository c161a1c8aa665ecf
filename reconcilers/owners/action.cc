#include "reconcilers/owners/action.h"

#include <fmt/format.h>

namespace dhc::owners {

ActionFacts ReadOwner::facts() const {
  return {.name = "ReadOwner",
          .kind = owner.kind,
          .ns = ns,
          .object = owner.name,
          .uid = owner.uid,
          .what = owner.api_version,
          .queue = Queue::Reads};
}

std::string ReadOwner::words() const {
  return fmt::format("read of {} {}{}{}", owner.kind, ns, ns.empty() ? "" : "/", owner.name);
}

std::optional<WriteKey> ReadOwner::write_key() const { return std::nullopt; }

void ReadOwner::touch(Touched& touched) const { touched.owners_in(ns); }

}  // namespace dhc::owners
