/* What a recording holds the model to: process 0 is the one that recorded, and takes a step that a recording tells of only where the recording has it next.
 * Process 1 is whoever led before it or between, and the steps of others and the answers' ways stay free. `conform` reads this file, puts MAY_x before the
 * guard of each step x of controller.pml that is named here and DID_x before its effect, and writes all recordings into one tree (tree.h): a node is what
 * comes next, its first child what comes after it, its sibling what another recording has instead. */

c_decl {
\#include "tree.h"
}

int at;    /* the node that is next; 0: none */
byte want; /* its label */
byte val;  /* and value */
byte mask; /* what of the protocol the recording's policies ask for, and can be read from it */
byte shown; /* of the state */
bit asked; /* for an eviction that is not answered yet */

#define NEXT c_code { reach(now.at); now.at = child_of[now.at]; now.want = label_of[now.at]; now.val = value_of[now.at]; }
#define OTHERWISE c_code { now.at = sibling_of[now.at]; now.want = label_of[now.at]; now.val = value_of[now.at]; }
#define FIRST_STEP c_code { now.at = child_of[0]; now.want = label_of[now.at]; now.val = value_of[now.at]; }
#define NEXT_IF(c) if :: (c) -> NEXT :: else fi
#define OF_TAINT(l) ((l) == 0 && (mask & 1))
#define OF_CREDIT(l) ((l) == 0 && (mask & 2))
#define SHOWS_HEALTH (mask & 4)
#define OF_STATE(l) ((l) == 0 && (mask & 8))

/* the labels; projection.py has the same */
#define L_BEGINS 1   /* it leads */
#define L_ENDS 2     /* it leads no more */
#define L_MASK 3
#define L_POD 4      /* views: what it shows is the value */
#define L_RULE 5
#define L_JOB 6
#define L_STATE 7
#define L_TAINT 8    /* orders */
#define L_GIVE 9
#define L_SPEND 10
#define L_REGIVE 11
#define L_FREE 12
#define L_WRITE 13
#define L_EVICT 14
#define L_WRITTEN 15 /* answers */
#define L_NOT_WRITTEN 16
#define L_ACCEPTED 17
#define L_REFUSED 18
#define L_DOUBTFUL 19
#define L_QUIET 20   /* the recording goes on for long, and nothing more happens */

/* What the recording's policies do not ask for holds nothing, and nobody else touches it. What only the assertions know is the same for all. */
#define TAINT_IS_NOT_ASKED(l) ((l) == 0 && !OF_TAINT(0))
#define CHARGE_IS_NOT_ASKED(l) ((l) == 0 && !OF_STATE(0))
#define CREDIT_IS_NOT_ASKED(l) ((l) == 0 && !OF_CREDIT(0))
#define ASKS_FOR_TAINT (mask == 0 || (mask & 1))
#define ASKS_FOR_CREDIT (mask == 0 || (mask & 2))
#define MAY_operator_deletes_rule(d) (ASKS_FOR_TAINT)
#define MAY_revert_limit(j) (ASKS_FOR_CREDIT)
#define MAY_count(u) (ASKS_FOR_CREDIT)
#define MAY_device_healthy(d) (mask == 0 || SHOWS_HEALTH)
inline forget_what_is_not_asked() {
  forget_orders(1);
  knows_the_beginning(0);
  seen_bad[0] = !SHOWS_HEALTH;
  knows_the_beginning(1);
  shown = NONE;
  evictions = 0;
  known[0] = 0;
  ever_lost[0] = 0;
  ever_bad[0] = 1;
  drained[0] = 0;
  has_drained = 0;
  has_reverted = 0;
  has_removed = 0;
  if
  :: !OF_TAINT(0) ->
     rule[0] = NONE;
     seen_rule[0] = NONE
  :: else
  fi;
  if
  :: !OF_CREDIT(0) ->
     credit[0] = NONE;
     raised[0] = 0;
     reverted[0] = 0;
     counted[0] = 0;
     seen_credit[0] = NONE;
     seen_revert[0] = 0
  :: else
  fi;
  if
  :: !SHOWS_HEALTH -> bad[0] = 1
  :: else
  fi;
  if
  :: !OF_STATE(0) ->
     charge[0] = NONE;
     loss[0] = 0;
     book[V(0, 0)] = NONE;
     lost[0] = 0
  :: else
  fi
}

/* Process 1 does one thing at a time, and what it was shown is not old: what it leaves behind is the same. */
#define IS_IDLE (!IS_BUSY(1) && !has_orders(1))

/* --- process 0 takes these only where the recording has them ------------------------------------------------------------------------------------------ */
#define MAY_begin_term(l) ((l) == 1 || want == L_BEGINS)
#define DID_begin_term(l) if :: (l) == 0 -> asked = 0; NEXT :: else fi
#define MAY_crash(l) ((l) == 1)
#define MAY_crash_and_lease_runs_out(l) ((l) == 1)
#define MAY_freeze(l) ((l) == 1)

#define POD_IS(state, health) ((state) == (val >> 2) && ((val & 3) == 2 || (health) == (val & 3)))
#define MAY_watch_pods(l) ((l) == 1 || (want == L_POD && POD_IS(pod[0], bad[0])))
#define DID_watch_pods(l) NEXT_IF((l) == 0)
#define MAY_watch_rules(l) ((l) == 1 || (OF_TAINT(l) && want == L_RULE && rule[0] == val))
#define DID_watch_rules(l) NEXT_IF((l) == 0)
#define JOB_IS(state, lowered) ((state) + 4 * (lowered) == val)
#define MAY_watch_jobs(l) ((l) == 1 || (OF_CREDIT(l) && want == L_JOB && JOB_IS(credit[0], reverted[0])))
#define DID_watch_jobs(l) NEXT_IF((l) == 0)

#define MAY_taint_plan(l, d) (((l) == 1 && IS_IDLE) || ((l) == 0 && (OF_TAINT(l) && want == L_TAINT)))
#define DID_taint_plan(l, d) NEXT_IF((l) == 0)
#define MAY_give_credit(l, u) (((l) == 1 && IS_IDLE) || ((l) == 0 && (OF_CREDIT(l) && want == L_GIVE)))
#define DID_give_credit(l, u) NEXT_IF((l) == 0)
#define MAY_mark_spent(l, u) (((l) == 1 && IS_IDLE) || ((l) == 0 && (OF_CREDIT(l) && want == L_SPEND)))
#define DID_mark_spent(l, u) NEXT_IF((l) == 0)
#define MAY_mark_given(l, u) (((l) == 1 && IS_IDLE) || ((l) == 0 && (OF_CREDIT(l) && want == L_REGIVE)))
#define DID_mark_given(l, u) NEXT_IF((l) == 0)
#define MAY_mark_unspent(l, u) (((l) == 1 && IS_IDLE) || ((l) == 0 && (OF_CREDIT(l) && want == L_FREE)))
#define DID_mark_unspent(l, u) NEXT_IF((l) == 0)

#define MAY_order_eviction(l, u) (((l) == 1 && IS_IDLE) || ((l) == 0 && (want == L_EVICT && !asked)))
#define DID_order_eviction(l, u) if :: (l) == 0 -> asked = 1; NEXT :: else fi
#define MAY_eviction_refused(l, u) ((l) == 1 || (want == L_REFUSED && asked))
#define DID_eviction_refused(l, u) if :: (l) == 0 -> asked = 0; NEXT :: else fi
#define MAY_no_answer(l, u) ((l) == 1 || (want == L_DOUBTFUL && asked))
#define DID_no_answer(l, u) if :: (l) == 0 -> asked = 0; NEXT :: else fi

#define MAY_plan_state(l) (((l) == 1 && IS_IDLE) || (OF_STATE(l) && want == L_WRITE))
#define DID_plan_state(l) NEXT_IF((l) == 0)
#define STATE_IS(state) (val == 2 || (state) == val)
#define SHOWS_STATE (want == L_STATE && STATE_IS(charge[0]))
/* What is written next is decided as late as can be: before that nobody can tell. */
#define MAY_charge(l, u) ((l) == 1 || (OF_STATE(l) && want == L_WRITE))
#define MAY_give_charge_up(l, u) ((l) == 1 || (OF_STATE(l) && want == L_WRITE))
/* What it has written itself it sees where the recording shows it, or where that is nothing new of the pod. */
#define MAY_watch_state(l) ((l) == 1 || (OF_STATE(l) && (last_writer != 0 || SHOWS_STATE || charge[0] == shown)))
#define DID_watch_state(l) if :: (l) == 0 && last_writer == 0 && SHOWS_STATE -> shown = charge[0]; NEXT :: else fi
#define MAY_write_state(l) ((l) == 1 || term[0] != LEADS || want == L_WRITTEN)
#define DID_write_state(l) NEXT_IF((l) == 0 && term[0] == LEADS)

/* A replacement has a recording of its own. */
#define MAY_replace_elsewhere(u) (0)
#define MAY_replace_on(u, d) (0)

/* --- what the recording has and the model need not do ------------------------------------------------------------------------------------------------- */
#define IS_AT_REST (attempt[0] < ORDERED || attempt[0] > SENT)
#define RECORDING \
  /* another recording */ \
  :: d_step { c_expr { sibling_of[now.at] != 0 } -> OTHERWISE } \
  :: d_step { want == L_MASK -> mask = val; forget_what_is_not_asked(); NEXT } \
  :: d_step { want == L_ENDS && term[0] == LEADS -> freeze(0); NEXT } \
  /* what is seen already */ \
  :: d_step { want == L_POD && POD_IS(seen_pod[0], seen_bad[0]) -> NEXT } \
  :: d_step { want == L_RULE && seen_rule[0] == val -> NEXT } \
  :: d_step { want == L_JOB && JOB_IS(seen_credit[0], seen_revert[0]) -> NEXT } \
  /* the state is seen before or after its answer */ \
  :: d_step { want == L_STATE && STATE_IS(charge[0]) -> shown = charge[0]; NEXT } \
  :: d_step { want == L_STATE && state_write[0] == SENT && STATE_IS(sent_charge[0]) -> shown = sent_charge[0]; NEXT } \
  /* an update of a rule that stands; a state that is written for something else */ \
  :: d_step { want == L_TAINT && seen_rule[0] == OURS -> NEXT } \
  :: d_step { want == L_WRITE -> NEXT } \
  :: d_step { (want == L_WRITTEN || want == L_NOT_WRITTEN) && state_write[0] == 0 -> NEXT } \
  /* an answer to what is over: the server has done it, or the pod was seen to go */ \
  :: d_step { want == L_ACCEPTED && asked && (attempt[0] == ACCEPTED || (attempt[0] == 0 && evicted[0])) -> asked = 0; NEXT } \
  :: d_step { (want == L_REFUSED || want == L_DOUBTFUL) && asked && IS_AT_REST -> asked = 0; NEXT } \
  :: d_step { want == L_QUIET && (!evicted[0] || charge[0] == COUNTED) -> NEXT }
