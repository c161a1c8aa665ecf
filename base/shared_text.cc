#include "base/shared_text.h"

#include <algorithm>
#include <limits>
#include <new>
#include <stdexcept>

namespace dhc {

std::uint64_t SharedText::made_of(std::string_view text) {
  if (text.empty()) return 0;
  if (text.size() <= kMostInside) {
    std::uint64_t word = 0;
    auto* bytes = reinterpret_cast<char*>(&word);
    *bytes = static_cast<char>(text.size() * 2 + 1);
    std::memcpy(bytes + 1, text.data(), text.size());
    return word;
  }
  if (text.size() > std::numeric_limits<std::uint32_t>::max()) throw std::length_error("SharedText");
  auto* memory = ::operator new(sizeof(Body) + text.size());
  auto* body = new (memory) Body{1, static_cast<std::uint32_t>(text.size())};
  std::memcpy(reinterpret_cast<char*>(body + 1), text.data(), text.size());
  return reinterpret_cast<std::uint64_t>(body);
}

void SharedText::release(Body* body) noexcept {
  body->~Body();
  ::operator delete(body);
}

/// Every ordered index by device or pod spends its time here.
std::strong_ordering SharedText::order(const SharedText& a, const SharedText& b) noexcept {
  const auto first = a.view();
  const auto second = b.view();
  const int found = std::memcmp(first.data(), second.data(), std::min(first.size(), second.size()));
  return found != 0 ? found <=> 0 : first.size() <=> second.size();
}

std::string SharedText::joined(std::string_view a, std::string_view b) {
  std::string text;
  text.reserve(a.size() + b.size());
  text.append(a).append(b);
  return text;
}

}  // namespace dhc
