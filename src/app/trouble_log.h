#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "app/log.h"
#include "k8s-client/model/object.h"

namespace dhc {

/// Logs what is wrong with the watches once: ten watches that cannot reach one server are one line, and so is their
/// return. Thread-safe.
class TroubleLog {
 public:
  /// `cluster` says whom we speak to and as whom, without secrets.
  TroubleLog(Log& log, std::string cluster);

  /// What is wrong with a kind's watch now; empty: nothing.
  void note(k8s::Kind kind, const std::string& problem);

  /// How often the server's data has been older than what was known of a kind, and how the last time.
  void note_back(k8s::Kind kind, std::uint64_t times, const std::string& how);

 private:
  Log& log_;
  const std::string cluster_;
  std::mutex mutex_;
  std::map<k8s::Kind, std::string> problems_;
  std::map<k8s::Kind, std::uint64_t> went_back_;
};

}  // namespace dhc
