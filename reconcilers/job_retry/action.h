#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "domain/cluster/touched.h"
#include "reconcilers/shared/action_facts.h"

namespace dhc::job_retry {

/// One patch of one Job: its limit and our annotations change together or not at all.
struct PatchJob {
  struct Note {
    std::string annotation;
    std::optional<std::string> before;  ///< Absent: the annotation is not there.
    std::string text;
    friend bool operator==(const Note&, const Note&) = default;
  };
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::int64_t limit_before = 0;
  std::int64_t limit = 0;  ///< `spec.backoffLimit`; as before if it is not to change.
  std::vector<Note> notes;
  bool has_annotations = false;  ///< The Job has an annotation, whose ever.
  /// After three conflicts in a row: what matters is tested, and the version is left out, because another client writes
  /// the Job all the time.
  bool by_test = false;
  // what led here, for logs and metrics
  std::string device;
  [[nodiscard]] ActionFacts facts() const;
  [[nodiscard]] std::string words() const;
  [[nodiscard]] std::optional<WriteKey> write_key() const;
  /// What a change of the limit that stands asks for, as in Asks.
  [[nodiscard]] static std::string asks_from(std::int64_t limit);
  /// Notes whose decisions rest on it, when it is sent and when it is answered.
  void touch(Touched& touched) const;
  friend bool operator==(const PatchJob&, const PatchJob&) = default;
};

/// Makes one replacement of a Job that died of hardware.
struct RecreateJob {
  std::string ns;
  std::string name;  ///< Of the dead Job.
  std::string uid;   ///< Of the dead Job.
  std::string device;
  [[nodiscard]] ActionFacts facts() const;
  [[nodiscard]] std::string words() const;
  [[nodiscard]] std::optional<WriteKey> write_key() const;
  /// Notes whose decisions rest on it, when it is sent and when it is answered.
  void touch(Touched& touched) const;
  friend bool operator==(const RecreateJob&, const RecreateJob&) = default;
};

}  // namespace dhc::job_retry
