#pragma once

namespace dhc::bench {

/// Microseconds and allocations for each decoded object, on stdout.
void decode();

/// Bytes that the World keeps for each pod, on stdout.
void world_memory();

}  // namespace dhc::bench
