#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "domain/policy/config.h"
#include "k8s-client/model/pod.h"

namespace dhc::test {

/// One state that reaches a pod's status, in the vendor's own words.
struct VendorWord {
  k8s::Health health = k8s::Health::Unknown;
  std::string message;
};

/// A taint that a driver puts on its devices.
struct VendorTaint {
  k8s::Taint taint;
  bool is_fault = false;
};

/// A device plugin or DRA driver as it really is: one file of tests/fixtures/vendors.
struct Vendor {
  std::string file;
  std::vector<std::string> resources;
  std::vector<std::string> drivers;
  std::vector<VendorWord> words;
  std::vector<VendorTaint> taints;
  std::size_t sources = 0;  ///< Places where it was read.
  bool not_read = false;    ///< Something could not be read, and the file says what.

  [[nodiscard]] bool reports_faults() const;
};

/// Every vendor of the fixtures, sorted by file.
[[nodiscard]] std::vector<Vendor> every_vendor();

/// What is wrong with these policies in front of real vendors, one sentence each: a name that no vendor has, a name
/// whose vendor's every Unhealthy word passes the policy by (`all_words`: any one of them), a state other than
/// Unhealthy that an enforcing policy acts on, enforcement for a vendor that never reports a fault, a taint
/// of `deviceTaints` that no vendor has, and one that is taken up and is no fault (`all_words`: a fault that is not).
/// Asked of the real parser and a whole controller; selectors over pods, nodes and namespaces are taken to fit.
[[nodiscard]] std::vector<std::string> faults_of_policies(const std::string& yaml, const std::vector<Vendor>& vendors,
                                                          bool all_words);

}  // namespace dhc::test
