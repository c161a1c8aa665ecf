# 0.1.0 was not written to be compiled in batches: these files use names that another of their batch uses too.
set_source_files_properties(
  k8s-client/model/decode_device_taint_rule.cc
  k8s-client/model/decode_pod.cc
  k8s-client/model/decode_resource_claim.cc
  k8s-client/model/decode_resource_slice.cc
  k8s-client/protocol/api_error.cc
  k8s-client/protocol/http_reader.cc
  k8s-client/protocol/lease_requests.cc
  k8s-client/protocol/retry_after.cc
  k8s-client/resolver.cc
  reconcilers/notice/events.cc
  reconcilers/taint/rules.cc
  reconcilers/uninstall/plan.cc
  src/app/admin_server.cc
  src/domain/state_record.cc
  PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
