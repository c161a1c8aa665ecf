#pragma once
#include "app/log.h"
#include "app/message.h"
#include "domain/contract/verdict.h"

namespace dhc {

/// One line naming an object that could not be read, the field and the fault.
void log_unreadable(Log& log, const k8s::Unreadable& bad);

/// One line for a verdict that is new.
void log_verdict(Log& log, const Verdict& verdict);

/// One line, at level debug, for a verdict that no longer holds.
void log_verdict_ended(Log& log, const Verdict& verdict);

/// One line for an action that was carried out or failed; what merely repeats a verdict stands at level debug.
void log_outcome(Log& log, const Outcome& outcome);

}  // namespace dhc
