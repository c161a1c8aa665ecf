#pragma once

namespace dhc {

/// Has the C library keep little that is free: threads that allocate at the same time share one heap, and big buffers
/// go back to the system when they are freed. Before any thread begins. A heap for each thread keeps what its lists
/// once needed: a seventh of the whole with 20,000 pods.
void keep_little_memory();

/// Gives back what is free now. After a list: its objects were there twice while it was taken in.
void give_back_memory();

}  // namespace dhc
