// Every use of the incident table in this program passes here: the linker puts it before the table's own function
// (`--wrap`, cmake/suites.cmake), so that the controller counts nothing itself.
#include "domain/history/incident_table.h"
#include "tests/support/core/coverage.h"

namespace dhc::test {

IncidentStep real_step(IncidentPhase phase,
                       IncidentEvent event) asm("__real__ZN3dhc7step_ofENS_13IncidentPhaseENS_13IncidentEventE");
IncidentStep counted_step(IncidentPhase phase,
                          IncidentEvent event) asm("__wrap__ZN3dhc7step_ofENS_13IncidentPhaseENS_13IncidentEventE");

IncidentStep counted_step(IncidentPhase phase, IncidentEvent event) {
  Coverage::note_step(phase, event);
  return real_step(phase, event);
}

}  // namespace dhc::test
