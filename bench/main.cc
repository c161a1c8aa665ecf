#include "bench/benches.h"

int main() {
  dhc::bench::decode();
  dhc::bench::world_memory();
  const bool reacted = dhc::bench::reaction();
  const bool tainted = dhc::bench::taints();
  dhc::bench::many_devices();
  return reacted && tainted ? 0 : 1;
}
