#include "k8s-client/model/decode_owner.h"

#include "k8s-client/model/decode_meta.h"

namespace dhc::k8s {

bool read_owner(JsonObject root, Fault& fault, const KeptFields& kept, Owner& owner) {
  return read_meta_only(root, fault, kept, owner.kind, owner.meta);
}

}  // namespace dhc::k8s
