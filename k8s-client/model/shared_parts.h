#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/handle_set.h"
#include "base/shared_text.h"
#include "k8s-client/model/object.h"
#include "k8s-client/model/shared.h"
#include "k8s-client/model/shared_list.h"

namespace dhc::k8s {

/// What the records of one watch have in common: names of namespaces, nodes and resources, labels, annotations, owners,
/// conditions, scheduling terms, images, requests and attributes are kept once, by whatever reader they were made.
class SharedParts {
 public:
  /// Puts what is known already in the place of what is equal in this object.
  void share(Object& object);

 private:
  struct PairHash {
    [[nodiscard]] std::size_t operator()(const StringMap::value_type& pair) const;
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
  struct TextHash {
    [[nodiscard]] std::size_t operator()(const SharedText& text) const { return std::hash<SharedText>{}(text); }
  };
  struct IsFree {
    bool operator()(const SharedText& text) const { return text.empty(); }
  };
  struct IsUsed {
    bool operator()(const SharedText& text) const { return !text.is_last(); }
  };
  void share_text(SharedText& text);
  void share_pairs(StringMap& map);
  void share_meta(Meta& meta);
  void share_pod(Pod& pod);

  HandleSet<SharedText, TextHash, std::equal_to<>, IsFree, IsUsed> texts_;

  SharedEntries<StringMap::value_type, PairHash> pairs_;
  SharedEntries<OwnerRef, OwnerHash> owners_;
  SharedEntries<Condition, ConditionHash> conditions_;
  SharedEntries<std::vector<ContainerImage>, ImagesHash> images_;
  SharedPool<SchedulingTerms> scheduling_;
  SharedPool<std::vector<DeviceRequest>> requests_;
};

}  // namespace dhc::k8s
