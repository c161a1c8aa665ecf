#pragma once
#include <utility>

namespace dhc {

/// Whether `news` says what is known already, but for its version, which is taken over.
template <class T>
bool is_repeated(T& known, T& news) {
  auto version = std::exchange(news.meta.resource_version, known.meta.resource_version);
  const bool same = known == news;
  (same ? known : news).meta.resource_version = std::move(version);
  return same;
}

}  // namespace dhc
