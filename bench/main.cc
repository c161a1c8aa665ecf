#include "bench/benches.h"

int main() {
  dhc::bench::decode();
  dhc::bench::world_memory();
  dhc::bench::reaction();
  dhc::bench::taints();
  dhc::bench::many_devices();
}
