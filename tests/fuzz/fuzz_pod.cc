#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "k8s-client/model/decoder.h"

// Any bytes as one object of any kind: the first byte picks the kind, the rest is the object. What is read must have an
// identity, what is bad must say why, and the same bytes must say the same a second time and, if it is one item there,
// in a list.

namespace {

using namespace dhc::k8s;

void must(bool holds) {
  if (!holds) std::abort();
}

void check_object(Decoder& decoder, std::string_view text) {
  const auto read = decoder.decode_object(text);
  must(decoder.decode_object(text) == read);
  if (!read) {
    must(!read.error().why.empty());
    return;
  }
  const auto& meta = meta_of(*read);
  must(!meta.name.empty() && !meta.uid.empty() && !meta.resource_version.empty());
  const auto* pod = std::get_if<Pod>(&*read);
  if (pod != nullptr) {
    for (const auto& request : pod->requests) must(request.amount > 0);
    for (const auto& resource : pod->allocated) must(!resource.name.empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto kind = kAllKinds.at(data[0] % kAllKinds.size());
  Decoder decoder(kind, {.prefix = "device-health.io/"});
  check_object(decoder, text);
  const auto page = decoder.decode_list(text);
  if (page) must(!page->resource_version.empty());
  const std::string list = R"({"metadata":{"resourceVersion":"1"},"items":[)" + std::string(text) + "]}";
  const auto items = decoder.decode_list(list);
  const auto alone = decoder.decode_object(text);
  // Brackets that do not fit in a part that is skipped are seen only by the list, which has to find the item's end.
  if (alone && items && items->objects.size() == 1) must(items->objects[0] == *alone);
  return 0;
}
