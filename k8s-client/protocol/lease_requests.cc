#include "k8s-client/protocol/lease_requests.h"

#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "k8s-client/model/decoder.h"

namespace dhc::k8s {

namespace {
using Json = nlohmann::ordered_json;

std::string path_of(const LeaseSubject& subject) {
  return fmt::format("/apis/coordination.k8s.io/v1/namespaces/{}/leases/{}", percent_encode(subject.ns),
                     percent_encode(subject.name));
}

Json skeleton(const LeaseSubject& subject) {
  return {{"apiVersion", "coordination.k8s.io/v1"},
          {"kind", "Lease"},
          {"metadata",
           {{"name", subject.name},
            {"namespace", subject.ns},
            {"labels", {{"app.kubernetes.io/managed-by", subject.manager}}}}}};
}

Request build_apply(const LeaseSubject& subject, const std::string& query, const Json& body) {
  return write_request(Method::Patch, path_of(subject) + query, kApplyPatch, json_text(body));
}
}  // namespace

Request build_lease_get(const LeaseSubject& subject) { return read_request(path_of(subject)); }

Request build_lease_create(const LeaseSubject& subject) {
  return build_apply(subject, fmt::format("?fieldManager={}-create", percent_encode(subject.manager)),
                     skeleton(subject));
}

Request build_lease_write(const LeaseSubject& subject, const Lease& wanted) {
  Json body = skeleton(subject);
  body["metadata"]["uid"] = wanted.meta.uid;
  body["metadata"]["resourceVersion"] = wanted.meta.resource_version;
  body["spec"] = {{"holderIdentity", wanted.holder},
                  {"leaseDurationSeconds", wanted.duration_seconds},
                  {"leaseTransitions", wanted.transitions}};
  // An empty time is refused with 500. **Source:** seen on 1.37.1.
  if (!wanted.acquire_time.empty()) body["spec"]["acquireTime"] = wanted.acquire_time;
  if (!wanted.renew_time.empty()) body["spec"]["renewTime"] = wanted.renew_time;
  return build_apply(subject, fmt::format("?fieldManager={}&force=true", percent_encode(subject.manager)), body);
}

Result<Lease> parse_lease(const Response& response) {
  Decoder decoder(Kind::Lease);
  auto object = decoder.decode_object(response.body);
  if (!object) return fail(ErrorKind::Malformed, "the server's answer is no Lease: " + object.error().why);
  auto lease = std::get<Lease>(std::move(*object));
  if (lease.meta.resource_version.empty()) return fail(ErrorKind::Malformed, "the server's Lease has no version");
  return lease;
}

}  // namespace dhc::k8s
