#include "k8s-client/model/decode_namespace.h"

#include "k8s-client/model/decode_meta.h"

namespace dhc::k8s {

bool read_namespace(JsonObject root, Fault& fault, const KeptFields& kept, Namespace& space) {
  return read_meta_only(root, fault, kept, Kind::Namespace, space.meta);
}

}  // namespace dhc::k8s
