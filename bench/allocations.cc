#include "bench/allocations.h"

#include <atomic>
#include <cstdlib>
#include <malloc.h>
#include <new>

namespace {
std::atomic<std::size_t> made{0};
std::atomic<std::size_t> live{0};
}  // namespace

void* operator new(std::size_t size) {
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  made.fetch_add(1, std::memory_order_relaxed);
  live.fetch_add(malloc_usable_size(memory), std::memory_order_relaxed);
  return memory;
}

void operator delete(void* memory) noexcept {
  live.fetch_sub(malloc_usable_size(memory), std::memory_order_relaxed);
  std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

namespace dhc::bench {

Allocations allocations() { return {made.load(), live.load()}; }

}  // namespace dhc::bench
