#include "app/memory.h"

#include <malloc.h>

namespace dhc {

namespace {
/// Above the text of the stored state, which is made anew in each turn that charges.
constexpr int kBigBuffer = 1 << 20;
}  // namespace

void keep_little_memory() {
  // What cannot be set costs memory only.
  (void)mallopt(M_ARENA_MAX, 1);
  (void)mallopt(M_MMAP_THRESHOLD, kBigBuffer);
}

void give_back_memory() { (void)malloc_trim(0); }

}  // namespace dhc
