#pragma once
#include "domain/incidents/state_text.h"
#include "domain/policy/policy.h"

namespace dhc {

/// Takes into our own state what 0.1.0 has written since it was taken over: after a rollback it has led, from the state
/// that it had written last, and knows nothing of ours. Safe to repeat, and with a state that has nothing new.
///
/// An incident is told by when it began. One that began later than ours counts; of the same one an end or an
/// acknowledgement counts. Losses, so that nobody is evicted twice, are those of both. What 0.1.0 has only read off our
/// own rules and taints says nothing, nor that it has found them gone: it does not know the names of our rules. So what
/// of ours stands for an incident that goes on is to be seen anew. The caps and the brake are ours alone. `policy` says
/// how fast penalties decay.
void merge_earlier(StateContent& ours, StateContent earlier, const Policy& policy);

}  // namespace dhc
