#include "domain/contract/subject.h"

namespace dhc {

Subject subject_of(const k8s::Pod& pod) {
  return {.kind = "Pod", .ns = pod.meta.ns, .name = pod.meta.name, .uid = pod.meta.uid};
}

Subject subject_of(const k8s::Job& job) {
  return {.kind = "Job", .ns = job.meta.ns, .name = job.meta.name, .uid = job.meta.uid};
}

}  // namespace dhc
