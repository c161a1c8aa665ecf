#pragma once

namespace dhc::bench {

/// Microseconds and allocations for each decoded object, on stdout.
void decode();

/// Bytes that the World keeps for each pod, on stdout. False if a pod with a device keeps more than it may.
[[nodiscard]] bool world_memory();

/// Microseconds from the bytes of a watch event to those of the eviction request, p50 and p99, on stdout. False if some
/// event led to no eviction: then the figures say nothing.
[[nodiscard]] bool reaction();

/// Milliseconds for a turn with a thousand bad devices: braked, tainted at once, and tainted; p50 and p99, on stdout.
/// False if some device was not tainted.
[[nodiscard]] bool taints();

/// Milliseconds and allocations of a turn in which one pod holds 500 to 4,000 bad devices, on stdout.
void many_devices();

/// Milliseconds of the loop's thread for what the live page shows of 5,000 nodes with 8 devices each, and the size of
/// it, on stdout.
void live_page();

/// The size of a recording of 8,000 devices for a day and of 10,000 for a month, and the seconds of CPU to record,
/// replay and rehearse it, on stdout. False if the replay differs.
[[nodiscard]] bool replay();

}  // namespace dhc::bench
