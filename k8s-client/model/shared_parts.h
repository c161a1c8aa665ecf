#pragma once
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "k8s-client/model/object.h"
#include "k8s-client/model/shared.h"
#include "k8s-client/model/shared_list.h"

namespace dhc::k8s {

/// What the records of one watch have in common: labels, annotations, owners, conditions, scheduling terms, images,
/// requests and attributes are kept once, by whatever reader they were made.
class SharedParts {
 public:
  /// Puts what is known already in the place of what is equal in this object.
  void share(Object& object);

 private:
  struct PairHash {
    [[nodiscard]] std::size_t operator()(const std::pair<std::string, std::string>& pair) const;
  };
  struct OwnerHash {
    [[nodiscard]] std::size_t operator()(const OwnerRef& owner) const;
  };
  struct ConditionHash {
    [[nodiscard]] std::size_t operator()(const Condition& condition) const;
  };
  struct ImagesHash {
    [[nodiscard]] std::size_t operator()(const std::vector<ContainerImage>& images) const;
  };
  void share_meta(Meta& meta);

  SharedEntries<std::pair<std::string, std::string>, PairHash> pairs_;
  SharedEntries<OwnerRef, OwnerHash> owners_;
  SharedEntries<Condition, ConditionHash> conditions_;
  SharedEntries<std::vector<ContainerImage>, ImagesHash> images_;
  SharedPool<SchedulingTerms> scheduling_;
  SharedPool<std::vector<DeviceRequest>> requests_;
};

}  // namespace dhc::k8s
