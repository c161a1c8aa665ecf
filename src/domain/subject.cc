#include "domain/subject.h"

#include "domain/world.h"

namespace dhc {

Subject subject_of(const k8s::Pod& pod) {
  return {.kind = "Pod", .ns = pod.meta.ns, .name = pod.meta.name, .uid = pod.meta.uid};
}

Subject subject_of(const k8s::Job& job) {
  return {.kind = "Job", .ns = job.meta.ns, .name = job.meta.name, .uid = job.meta.uid};
}

Subject subject_of_node(const World& world, const std::string& name) {
  const auto* node = world.node(name);
  return {.kind = "Node", .ns = {}, .name = name, .uid = node == nullptr ? std::string() : node->meta.uid};
}

}  // namespace dhc
