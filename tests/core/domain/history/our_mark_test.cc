#include "domain/history/our_mark.h"

#include <doctest/doctest.h>

namespace dhc::our_mark_test {

namespace {

using P = MarkPhase;
using E = MarkEvent;

OurMark in_phase(P phase) { return {phase, "uid-1"}; }

}  // namespace

TEST_CASE("what stands of ours goes where the table says, from every phase, by every pair of events") {
  for (const auto phase : kMarkPhases) {
    for (const auto first : kMarkEvents) {
      for (const auto second : kMarkEvents) {
        CAPTURE(to_string(phase));
        CAPTURE(to_string(first));
        CAPTURE(to_string(second));
        auto mark = in_phase(phase);
        const auto take = [&](E event) {
          const auto step = step_of(mark.phase(), event);
          if (event == E::Seen) {
            mark.see("uid-2");
          } else {
            CHECK(mark.take(event) == step.by_operator);
          }
          CHECK(mark.phase() == step.to);
          CHECK(mark.stands() == (step.to != P::None));
          if (!mark.stands()) CHECK(mark.uid().empty());
        };
        take(first);
        const auto between = mark;
        // Only what we neither mean to remove nor have asked for is an operator's doing when it goes.
        CHECK(step_of(between.phase(), second).by_operator == (second == E::Gone && between.phase() == P::Stands));
        take(second);
        // A request on its way cannot be recalled: until it is answered or seen, its effect is ours.
        if (between.phase() == P::Asked && mark.stands()) CHECK(mark.is_leaving());
        // Nothing but the World makes a mark of nothing.
        if (!between.stands() && second != E::Seen) CHECK_FALSE(mark.stands());
      }
    }
  }
}

TEST_CASE("a removal that was asked for is written down as one that is meant") {
  CHECK(OurMark(P::Asked, "u").reads_as({P::Leaving, "u"}));
  CHECK_FALSE(OurMark(P::Stands, "u").reads_as({P::Leaving, "u"}));
  CHECK_FALSE(OurMark(P::Stands, "u").reads_as({P::Stands, "v"}));
  CHECK_FALSE(OurMark(P::Stands, "").reads_as({}));
}

}  // namespace dhc::our_mark_test
