/* How a pod on a bad device is evicted: taint -> credit -> settle -> charge -> evict -> count, by two controllers of which one leads, over an API
 * server whose readers all lag, whose answers get lost and on which others write too. README.md says what is left out, and why that is sound.
 *
 * Each action is one step and bears the name of the code that it stands for (a word of a comment in brackets says where). Time is not modelled: a time
 * that passes is a step that may come at any moment, except for the four bounds that are marked ASSUMED.
 */

#ifndef JOBS
#define JOBS 1
#endif
#ifndef PODS
#define PODS 2      /* of each Job */
#endif
#ifndef DEVICES
#define DEVICES 2
#endif
#ifndef CAP
#define CAP 8       /* caps.perDay: evictions that may be charged */
#endif
#ifndef FAULTS
#define FAULTS 2    /* of crashes, stopped processes, lost answers, refusals, conflicts, strangers' writes: in all */
#endif
#ifndef FLIPS
#define FLIPS 3     /* of all devices' words: Unhealthy, Healthy, Unhealthy, ... */
#endif
#ifndef MOST
#define MOST 3      /* jobRetry.maxPerJob */
#endif

/* A UID is a place in a Job and a generation: the first pod of each place, and the one that replaces it. */
#define UIDS (JOBS * PODS * 2)
#define JOB(u) ((u) / (PODS * 2))
#define FIRST(u) (((u) & 1) == 0)
#define ELSEWHERE DEVICES /* a device that never fails */
#define V(l, u) ((l) * UIDS + (u))
#define W(l, d) ((l) * DEVICES + (d))
#define X(l, j) ((l) * JOBS + (j))
#define LOSS(u) (JOB(u) * DEVICES + on[u])
#define Y(l, u) ((l) * JOBS * DEVICES + LOSS(u))

/* one step: what is before the arrow must hold */
#ifdef TELL /* each action once, for the runner */
#define SAY(name) c_code { static int told; if (!told) { told = 1; printf name; } }
#else
#define SAY(name) printf name
#endif
#ifdef RECORDED /* a recording has as many faults, and as many words, as it has: nothing is counted */
#define FAULT skip
#define FLIP skip
#else
#define FAULT left--
#define FLIP flips++
#endif
#define STEP(name, guard, ...) :: d_step { guard -> SAY(name); __VA_ARGS__; k = 0; m = 0; n = 0 }
#if JOBS * PODS == 1
#define EACH_U(a) a(0) a(1)
#define SUM_U(a) (a(0) + a(1))
#define EACH_FIRST(a) a(0)
#elif JOBS * PODS == 2
#define EACH_U(a) a(0) a(1) a(2) a(3)
#define SUM_U(a) (a(0) + a(1) + a(2) + a(3))
#define EACH_FIRST(a) a(0) a(2)
#elif JOBS * PODS == 6
#define EACH_U(a) a(0) a(1) a(2) a(3) a(4) a(5) a(6) a(7) a(8) a(9) a(10) a(11)
#define SUM_U(a) (a(0) + a(1) + a(2) + a(3) + a(4) + a(5) + a(6) + a(7) + a(8) + a(9) + a(10) + a(11))
#define EACH_FIRST(a) a(0) a(2) a(4) a(6) a(8) a(10)
#endif
#if DEVICES == 1
#define EACH_D(a) a(0)
#define SUM_D(a) (a(0))
#elif DEVICES == 2
#define EACH_D(a) a(0) a(1)
#define SUM_D(a) (a(0) + a(1))
#endif
#if JOBS == 1
#define EACH_J(a) a(0)
#elif JOBS == 2
#define EACH_J(a) a(0) a(1)
#endif

/* --- what the API server has ------------------------------------------------------------------------------------------------------------------- */
#define NOT_YET 0
#define RUNS 1
#define TERMINATING 2
#define GONE 3
#define OURS 1    /* of a rule: it stands */
#define REMOVED 2 /* an operator has deleted it: an acknowledgement */
#define NONE 0    /* of credits and charges */
#define GIVEN 1
#define SPENT 2
#define UNSPENT 3
#define CHARGED 1
#define COUNTED 3

byte left = FAULTS + 1;       /* how many faults may still come, and 1 while the devices' words may change; 0: all is over */
bit bad[DEVICES];             /* the last word about the device, as the pods' status has it */
bit ever_bad[DEVICES];
byte flips;                   /* how often the words have changed */
byte rule[DEVICES];           /* our DeviceTaintRule */
byte pod[UIDS];
byte on[UIDS];                /* the device that the pod holds */
byte credit[UIDS];            /* the Job's annotation */
byte raised[JOBS];            /* spec.backoffLimit, above its owner's 0 */
bit reverted[JOBS];           /* another client has lowered it below our last credit */
byte charge[UIDS];            /* the state ConfigMap: charges and what has counted */
bit loss[JOBS * DEVICES];     /* and which Job lost a pod to which device */
byte last_writer = 2;         /* of the state; 2: nobody of this term */

/* --- what others have read ---------------------------------------------------------------------------------------------------------------------- */
byte known[JOBS];             /* the limit in the Job controller's cache, above its owner's 0: as low as it may be */
bit counted[UIDS];            /* pods that the Job controller has counted as failed */

/* --- two controllers ---------------------------------------------------------------------------------------------------------------------------- */
#define STANDBY 0
#define LEADS 1
#define CLOSED 2 /* begins nothing any more, and others do not begin yet: calls under way may still arrive */
byte term[2];
/* World */
byte seen_pod[2 * UIDS];
bit seen_bad[2 * DEVICES];
byte seen_rule[2 * DEVICES];
byte seen_credit[2 * UIDS];
bit seen_revert[2 * JOBS];
bit state_is_current[2];
/* CapBook, and the losses of RequestTracker; while standing by: the state as last seen */
#define SAVED 2
#define RECALLED 4 /* saved by a process before this one */
byte book[2 * UIDS];
bit lost[2 * JOBS * DEVICES];
/* RequestTracker: evictions */
#define ORDERED 1
#define READ 2
#define SENT 3
#define FAILED 4   /* surely nothing happened */
#define OUTDATED 5 /* the fresh read shows no reason; not again before the World has moved on */
#define ACCEPTED 6
#define DOUBTED 7  /* it may have happened */
byte attempt[2 * UIDS];
bit doubted_before[2 * UIDS]; /* EvictionAttempt::in_doubt */
bit under_way[2 * UIDS];      /* an eviction that the server has, or will have, in its hands */
/* the other writes: 0 none, QUEUED, SENT */
#define ASKED 4 /* of a rule: done or in doubt; not again before the World has moved on */
byte rule_write[2 * DEVICES];
byte job_write[2 * JOBS];
byte job_pod[2 * JOBS];
byte job_credit[2 * JOBS];
byte state_write[2];
byte sent_charge[2 * UIDS];
bit sent_loss[2 * JOBS * DEVICES];

/* --- what only the assertions know ---------------------------------------------------------------------------------------------------------------- */
byte evictions;               /* of ours that have happened */
bit evicted[UIDS];
bit drained[UIDS];
bit ever_lost[JOBS * DEVICES];
bit again[UIDS];              /* came to a device to which its Job had lost a pod already */
bit was_bad[2 * UIDS];        /* the server has called the device bad since the eviction was ordered */
bit has_drained, has_reverted, has_removed;

byte k, m, n; /* of loops; 0 between steps */

/* --- the properties ------------------------------------------------------------------------------------------------------------------------------ */
/* never two writers after a term */
#define writes(l) assert(term[l] != STANDBY && term[1 - (l)] == STANDBY)

/* credits never exceed losses plus those in flight */
inline credits_are_owed(j) {
  n = 0;
  for (k : 0 .. UIDS - 1) {
    if
    :: JOB(k) == j && credit[k] != NONE ->
       n++;
       assert(credit[k] != SPENT || pod[k] >= TERMINATING);
       assert(pod[k] != NOT_YET)
    :: else
    fi
  }
  assert(raised[j] == n)
}

/* a Job has lost no more by our evictions than what its controller has read that it got back */
inline no_job_ends(j) {
  n = 0;
  for (k : 0 .. UIDS - 1) {
    if
    :: JOB(k) == j && counted[k] && !drained[k] -> n++
    :: else
    fi
  }
  assert(n <= known[j] || reverted[j])
}

/* --- World ---------------------------------------------------------------------------------------------------------------------------------------- */
#ifdef MUTANT_NO_DOUBT
#define IN_DOUBT(l, u) 0
#else
#ifdef MUTANT_LAST_ERROR /* the last answer alone: may_have_happened(attempt.error) */
#define IN_DOUBT(l, u) (attempt[V(l, u)] == DOUBTED)
#else
#define IN_DOUBT(l, u) (doubted_before[V(l, u)])
#endif
#endif

/* RequestTracker::learn and CapBook::settle, as each turn does */
inline learn_and_settle(l) {
  for (k : 0 .. UIDS - 1) {
    if
    :: seen_pod[V(l, k)] == TERMINATING && (attempt[V(l, k)] == DOUBTED || (attempt[V(l, k)] == 0 && evicted[k]) || (doubted_before[V(l, k)] && attempt[V(l, k)] >= FAILED)) ->
       attempt[V(l, k)] = ACCEPTED;
       lost[Y(l, k)] = 1
    :: else
    fi;
    if
    :: book[V(l, k)] != NONE && book[V(l, k)] != COUNTED ->
       if
       :: attempt[V(l, k)] == ACCEPTED -> book[V(l, k)] = COUNTED
       :: attempt[V(l, k)] >= ORDERED && attempt[V(l, k)] <= SENT -> skip
       :: else ->
          if
          :: seen_pod[V(l, k)] == GONE && attempt[V(l, k)] == 0 ->
#ifndef MUTANT_OWNER_OF_CHARGE /* a charge does not say whose loss it would be */
             lost[Y(l, k)] = lost[Y(l, k)] || book[V(l, k)] == RECALLED;
#endif
             book[V(l, k)] = (book[V(l, k)] == RECALLED -> COUNTED : NONE)
          :: seen_pod[V(l, k)] == GONE && attempt[V(l, k)] != 0 -> book[V(l, k)] = (IN_DOUBT(l, k) -> COUNTED : NONE)
          :: seen_pod[V(l, k)] == TERMINATING -> book[V(l, k)] = COUNTED
          :: else
          fi
       fi
    :: else
    fi;
    if
    :: seen_pod[V(l, k)] == GONE && (attempt[V(l, k)] < ORDERED || attempt[V(l, k)] > SENT) ->  /* RequestTracker::forget */
       attempt[V(l, k)] = 0;
       doubted_before[V(l, k)] = 0
    :: else
    fi
  }
}
#define POD_DIFFERS_0(u) (seen_pod[V(0, u)] != pod[u])
#define POD_DIFFERS_1(u) (seen_pod[V(1, u)] != pod[u])
#define BAD_DIFFERS_0(d) (seen_bad[W(0, d)] != bad[d])
#define BAD_DIFFERS_1(d) (seen_bad[W(1, d)] != bad[d])
#define RULE_DIFFERS_0(d) (seen_rule[W(0, d)] != rule[d])
#define RULE_DIFFERS_1(d) (seen_rule[W(1, d)] != rule[d])
#define CREDIT_DIFFERS_0(u) (seen_credit[V(0, u)] != credit[u] || seen_revert[X(0, JOB(u))] != reverted[JOB(u)])
#define CREDIT_DIFFERS_1(u) (seen_credit[V(1, u)] != credit[u] || seen_revert[X(1, JOB(u))] != reverted[JOB(u)])

/* A standby that led before has seen all until the end of its term, one that has not led the beginning; when it leads, each watch goes on. */
#define WATCHES(l) \
  STEP(("watch_pods %d\n", l), term[l] == LEADS && SUM_U(POD_DIFFERS_##l) + SUM_D(BAD_DIFFERS_##l) > 0, watch_pods(l)) \
  STEP(("watch_rules %d\n", l), term[l] == LEADS && SUM_D(RULE_DIFFERS_##l) > 0, watch_rules(l)) \
  STEP(("watch_jobs %d\n", l), term[l] == LEADS && SUM_U(CREDIT_DIFFERS_##l) > 0, watch_jobs(l)) \
  STEP(("watch_state %d\n", l), term[l] == LEADS && !state_is_current[l] && state_write[l] == 0, watch_state(l))

inline watch_pods(l) {
  for (k : 0 .. UIDS - 1) {
    seen_pod[V(l, k)] = pod[k]
  }
  for (k : 0 .. DEVICES - 1) { seen_bad[W(l, k)] = bad[k] }
  if
  :: term[l] == LEADS -> learn_and_settle(l)
  :: else
  fi
}
inline watch_rules(l) {
  for (k : 0 .. DEVICES - 1) {
    if
    :: rule_write[W(l, k)] == ASKED && seen_rule[W(l, k)] != rule[k] -> rule_write[W(l, k)] = 0
    :: else
    fi;
    seen_rule[W(l, k)] = rule[k]
  }
}
inline watch_jobs(l) {
  for (k : 0 .. UIDS - 1) { seen_credit[V(l, k)] = credit[k] }
  for (k : 0 .. JOBS - 1) { seen_revert[X(l, k)] = reverted[k] }
}
/* StateDesk::see: what shows our last write is as good as its answer; what is not ours of this term is loaded */
inline shows_own(l) {
  for (k : 0 .. UIDS - 1) { book[V(l, k)] = (book[V(l, k)] == CHARGED && charge[k] != NONE -> SAVED : book[V(l, k)]) }
}
inline watch_state(l) {
  state_is_current[l] = 1;
  if
  :: term[l] == LEADS && last_writer == l -> shows_own(l)
  :: else ->
     load(l);
     if
     :: term[l] == LEADS -> learn_and_settle(l)
     :: else
     fi
  fi
}
inline load(l) {
  for (k : 0 .. UIDS - 1) { book[V(l, k)] = (charge[k] == CHARGED -> RECALLED : charge[k]) }
  for (k : 0 .. JOBS * DEVICES - 1) { lost[(l) * JOBS * DEVICES + k] = loss[k] || (term[l] == LEADS && lost[(l) * JOBS * DEVICES + k]) }
}

/* --- election and fence [k8s-client/protocol/lease_machine, src/app/leader_fence] ------------------------------------------------------------------ */
#define IS_ORDERED_0(u) (attempt[V(0, u)] == ORDERED || attempt[V(0, u)] == READ)
#define IS_ORDERED_1(u) (attempt[V(1, u)] == ORDERED || attempt[V(1, u)] == READ)
#define HOLDS_ORDERS(l) ((l == 0 && SUM_U(IS_ORDERED_0) > 0) || (l == 1 && SUM_U(IS_ORDERED_1) > 0))
/* Controller::take(Leading): begins as after a start, with a warm World */
inline begin_term(l) {
  forget_orders(l);
  term[l] = LEADS;
  if
  :: last_writer == l -> last_writer = 2
  :: else
  fi;
#ifdef OLD_VIEWS
  learn_and_settle(l)
#else
  knows_the_beginning(l);
#ifdef FIRST_LISTS
  watch_rules(l);
  watch_jobs(l);
  watch_state(l);
  watch_pods(l)
#endif
#endif
}
inline forget_orders(l) {
  for (k : 0 .. UIDS - 1) {
    attempt[V(l, k)] = 0;
    doubted_before[V(l, k)] = 0;
    was_bad[V(l, k)] = under_way[V(l, k)] && was_bad[V(l, k)]
  }
  for (k : 0 .. DEVICES - 1) { rule_write[W(l, k)] = (rule_write[W(l, k)] == SENT -> SENT : 0) }
}
inline crash(l) {
  term[l] = CLOSED;
  forget_orders(l)
}
/* ASSUMED: 15 s after the last renewal was sent all calls of a term are over, at the server too: 14 s for us, 1 s for it. */
inline lease_runs_out(l) {
#ifndef MUTANT_NO_END_BY
  for (k : 0 .. UIDS - 1) { under_way[V(l, k)] = 0; was_bad[V(l, k)] = 0 }
  for (k : 0 .. DEVICES - 1) { rule_write[W(l, k)] = 0 }
  for (m : 0 .. JOBS - 1) { drop_job_write(l, m) }
  drop_state_write(l);
#endif
  term[l] = STANDBY;
#ifdef RECORDED
  forget_orders(l);
#endif
  next_begins(l)
}
/* Nobody needs to wait: one who has seen nothing yet does nothing. Two processes that know the same are the same; so the other one is needed while this
 * one still has orders in its hands. */
#ifdef OLD_VIEWS
inline next_begins(l) {
  watch_pods(l);
  watch_rules(l);
  watch_jobs(l);
  watch_state(l)
}
#else
inline next_begins(l) {
  knows_the_beginning(l);
  if
  :: HOLDS_ORDERS(l) -> begin_term(1 - l)
  :: else -> begin_term(l)
  fi
}
#endif
/* What it has seen of each kind is the oldest that there is; when it leads, each watch goes on. */
inline knows_the_beginning(l) {
  for (k : 0 .. UIDS - 1) {
    seen_pod[V(l, k)] = (FIRST(k) -> RUNS : NOT_YET);
    seen_credit[V(l, k)] = NONE;
    book[V(l, k)] = NONE
  }
  for (k : 0 .. DEVICES - 1) {
    seen_bad[W(l, k)] = 0;
    seen_rule[W(l, k)] = NONE
  }
  for (k : 0 .. JOBS - 1) { seen_revert[X(l, k)] = 0 }
  for (k : 0 .. JOBS * DEVICES - 1) { lost[(l) * JOBS * DEVICES + k] = 0 }
  state_is_current[l] = 0
}
inline drop_job_write(l, j) {
  job_write[X(l, j)] = 0;
  job_pod[X(l, j)] = 0;
  job_credit[X(l, j)] = 0
}
inline drop_state_write(l) {
  state_write[l] = 0;
  for (n : 0 .. UIDS - 1) { sent_charge[V(l, n)] = 0 }
  for (n : 0 .. JOBS * DEVICES - 1) { sent_loss[(l) * JOBS * DEVICES + n] = 0 }
}
#ifdef MUTANT_NO_FENCE
#define admits(l) (1)
#else
#define admits(l) (term[l] == LEADS)
#endif

#define has_orders(l) (SUM_U(IS_ORDERED_##l) > 0)
#define BEGUN_0(u) (under_way[V(0, u)])
#define BEGUN_1(u) (under_way[V(1, u)])
#define APPLYING_0(d) (rule_write[W(0, d)] == SENT)
#define APPLYING_1(d) (rule_write[W(1, d)] == SENT)
#if JOBS == 1
#define PATCHING(l) (job_write[X(l, 0)] == SENT)
#else
#define PATCHING(l) (job_write[X(l, 0)] == SENT || job_write[X(l, 1)] == SENT)
#endif
/* calls that may still arrive */
#define IS_BUSY(l) (SUM_U(BEGUN_##l) + SUM_D(APPLYING_##l) > 0 || PATCHING(l) || state_write[l] == SENT)
#ifdef OLD_VIEWS
#define ELECTION(l) \
  STEP(("begin_term %d\n", l), term[l] == STANDBY && term[1 - l] == STANDBY, begin_term(l)) \
  ENDS(l)
#else
#define ELECTION(l) ENDS(l)
#endif
#define ENDS(l) \
  STEP(("lease_runs_out %d\n", l), term[l] == CLOSED, lease_runs_out(l)) \
  STEP(("crash %d\n", l), left > 1 && term[l] == LEADS && IS_BUSY(l), FAULT; crash(l)) \
  STEP(("crash_and_lease_runs_out %d\n", l), left > 1 && term[l] == LEADS && !IS_BUSY(l), FAULT; crash(l); lease_runs_out(l)) \
  STEP(("freeze %d\n", l), left > 1 && term[l] == LEADS && has_orders(l), FAULT; freeze(l))
/* the process is stopped in the middle: what it has decided waits for the fence */
inline freeze(l) { term[l] = CLOSED }

/* --- taint [reconcilers/taint] ---------------------------------------------------------------------------------------------------------------------- */
#define TAINT(l, d) \
  STEP(("taint_plan %d %d\n", l, d), term[l] == LEADS && seen_bad[W(l, d)] && seen_rule[W(l, d)] == NONE && rule_write[W(l, d)] == 0, rule_write[W(l, d)] = SENT) \
  STEP(("apply_rule %d %d\n", l, d), rule_write[W(l, d)] == SENT, apply_rule(l, d)) \
  STEP(("taint_fails %d %d\n", l, d), left > 1 && rule_write[W(l, d)] == SENT && term[l] == LEADS, FAULT; rule_write[W(l, d)] = 0)
/* by server-side apply under one name: whether the answer arrives makes no difference */
inline apply_rule(l, d) {
  writes(l);
  rule_write[W(l, d)] = (term[l] == LEADS && seen_rule[W(l, d)] == NONE -> ASKED : 0);
  if
  :: rule[d] == NONE -> rule[d] = OURS
  :: else
  fi
}

/* --- credit [reconcilers/job_retry] ------------------------------------------------------------------------------------------------------------------ */
#define IS_BAD(l, u) (on[u] < DEVICES && seen_bad[W(l, on[u])])
#define ENTRY_0_0(u) (JOB(u) == 0 && seen_credit[V(0, u)] != NONE)
#define ENTRY_0_1(u) (JOB(u) == 1 && seen_credit[V(0, u)] != NONE)
#define ENTRY_1_0(u) (JOB(u) == 0 && seen_credit[V(1, u)] != NONE)
#define ENTRY_1_1(u) (JOB(u) == 1 && seen_credit[V(1, u)] != NONE)
#define FREE_0_0(u) (JOB(u) == 0 && seen_credit[V(0, u)] == UNSPENT)
#define FREE_0_1(u) (JOB(u) == 1 && seen_credit[V(0, u)] == UNSPENT)
#define FREE_1_0(u) (JOB(u) == 0 && seen_credit[V(1, u)] == UNSPENT)
#define FREE_1_1(u) (JOB(u) == 1 && seen_credit[V(1, u)] == UNSPENT)
/* Draft::has_room */
#define ROOM_IN(l, j) (SUM_U(ENTRY_##l##_##j) < MOST || SUM_U(FREE_##l##_##j) > 0)
#if JOBS == 1
#define HAS_ROOM(l, u) ROOM_IN(l, 0)
#else
#define HAS_ROOM(l, u) ((JOB(u) == 0 && ROOM_IN(l, 0)) || (JOB(u) == 1 && ROOM_IN(l, 1)))
#endif
/* Every patch names the version that was seen, or tests all of it that matters: one that was made on an older Job changes nothing, and is left out. */
#ifdef MUTANT_NO_VERSION
#define JOB_IS_CURRENT(l, u) (1)
#else
#define JOB_IS_CURRENT(l, u) (SUM_U(CREDIT_DIFFERS_##l) == 0)
#endif
#define MAY_PATCH(l, u) (term[l] == LEADS && job_write[X(l, JOB(u))] == 0 && JOB_IS_CURRENT(l, u))
#define GIVE(l, u) \
  STEP(("give_credit %d %d\n", l, u), MAY_PATCH(l, u) && seen_pod[V(l, u)] == RUNS && IS_BAD(l, u) && (seen_credit[V(l, u)] == NONE || seen_credit[V(l, u)] == UNSPENT) && \
              !seen_revert[X(l, JOB(u))] && HAS_ROOM(l, u), patch_job(l, u, GIVEN))
/* Review::settle */
#define REVIEW(l, u) \
  STEP(("mark_spent %d %d\n", l, u), MAY_PATCH(l, u) && seen_pod[V(l, u)] == GONE && seen_credit[V(l, u)] == GIVEN && !seen_revert[X(l, JOB(u))] && counted[u], patch_job(l, u, SPENT)) \
  STEP(("mark_given %d %d\n", l, u), MAY_PATCH(l, u) && seen_pod[V(l, u)] == TERMINATING && seen_credit[V(l, u)] == UNSPENT && !seen_revert[X(l, JOB(u))], patch_job(l, u, GIVEN)) \
  STEP(("mark_unspent %d %d\n", l, u), MAY_PATCH(l, u) && seen_pod[V(l, u)] == RUNS && !IS_BAD(l, u) && seen_credit[V(l, u)] == GIVEN && !seen_revert[X(l, JOB(u))] && \
              (attempt[V(l, u)] == 0 || attempt[V(l, u)] == FAILED) && RECOVERED_FOR_LONG(u), patch_job(l, u, UNSPENT))
/* ASSUMED: in recover.healthyFor (10 min) every eviction that was sent before has come to its end, and the watch has shown it (a view is 5 min old at most). */
#define RECOVERED_FOR_LONG(u) (pod[u] == RUNS && !under_way[V(0, u)] && !under_way[V(1, u)])
inline patch_job(l, u, to) {
  job_write[X(l, JOB(u))] = SENT;
  job_pod[X(l, JOB(u))] = u;
  job_credit[X(l, JOB(u))] = to
}
#define PATCH(l, j) \
  STEP(("patch_job %d %d\n", l, j), job_write[X(l, j)] == SENT, job_changes(l, j)) \
  STEP(("job_conflict %d %d\n", l, j), left > 1 && job_write[X(l, j)] == SENT, FAULT; drop_job_write(l, j)) /* conflict: another client has written the Job; or lost on its way */ \
  DOUBLE(l, j)
/* Draft::credit: an unspent credit moves to the pod, or the limit rises by one. Whether the answer arrives makes no difference. */
inline job_changes(l, j) {
  writes(l);
  give_or_mark(job_pod[X(l, j)], job_credit[X(l, j)], j);
  drop_job_write(l, j);
#ifndef MUTANT_NO_VERSION
  if
  :: job_write[X(1 - l, j)] != 0 -> drop_job_write(1 - l, j)  /* it names an older version: 409 */
  :: else
  fi;
#endif
  credits_are_owed(j)
}
inline give_or_mark(u, to, j) {
  if
  :: to == GIVEN && credit[u] == NONE ->
     n = UIDS;
     for (k : 0 .. UIDS - 1) {
       if
       :: n == UIDS && JOB(k) == j && credit[k] == UNSPENT -> n = k
       :: else
       fi
     }
     if
     :: n < UIDS -> credit[n] = NONE
     :: else -> raised[j]++
     fi
#ifdef MUTANT_NO_VERSION
  :: to == GIVEN && credit[u] != NONE -> raised[j]++
#endif
  :: else
  fi;
  credit[u] = to
}
#ifdef MUTANT_DOUBLE_CREDIT
#define DOUBLE(l, j) STEP(("patch_twice %d %d\n", l, j), left > 1 && job_write[X(l, j)] == SENT && job_credit[X(l, j)] == GIVEN, FAULT; raised[j]++; credit[job_pod[X(l, j)]] = GIVEN; credits_are_owed(j))
#else
#define DOUBLE(l, j)
#endif

/* --- eviction [reconcilers/eviction] ------------------------------------------------------------------------------------------------------------------ */
#define CHARGES_0(u) (book[V(0, u)] != NONE)
#define CHARGES_1(u) (book[V(1, u)] != NONE)
/* the gates, in their order; those that only wait for time to pass, or that hold for ever and say so, are left out */
#define GATE_EVICTION(l, u) (seen_pod[V(l, u)] == RUNS && (attempt[V(l, u)] == 0 || attempt[V(l, u)] == FAILED || attempt[V(l, u)] == DOUBTED || \
                             (attempt[V(l, u)] == OUTDATED && seen_pod[V(l, u)] == pod[u] && seen_bad[W(l, on[u])] == bad[on[u]])))
#define GATE_WINDOW(l, u) IS_BAD(l, u)
#define GATE_SAME_DEVICE(l, u) (!(again[u] && lost[Y(l, u)]))
#ifdef MUTANT_NO_TAINT_WAIT
#define GATE_TAINT(l, u) (1)
#elif defined RECORDED
#define GATE_TAINT(l, u) (TAINT_IS_NOT_ASKED(l) || seen_rule[W(l, on[u])] == OURS)
#else
#define GATE_TAINT(l, u) (seen_rule[W(l, on[u])] == OURS)
#endif
#ifdef MUTANT_UNSEEN_PATCH
#define SHOWS_OWN_PATCH(l, u) (1)
#else
/* held_for_credit: a change of ours that the watch does not show yet may have taken back the credit that it shows. */
#define SHOWS_OWN_PATCH(l, u) (credit[u] != UNSPENT && !(job_credit[X(l, JOB(u))] == UNSPENT && job_pod[X(l, JOB(u))] == u))
#endif
#define SHOWS_CREDIT(l, u) (SHOWS_OWN_PATCH(l, u) && (seen_credit[V(l, u)] == GIVEN || seen_credit[V(l, u)] == SPENT) && !seen_revert[X(l, JOB(u))])
#ifdef MUTANT_NO_CREDIT_WAIT
#define GATE_CREDIT(l, u) (1)
#elif defined RECORDED
#define GATE_CREDIT(l, u) (CREDIT_IS_NOT_ASKED(l) || SHOWS_CREDIT(l, u))
#else
#define GATE_CREDIT(l, u) SHOWS_CREDIT(l, u)
#endif
#define GATE_CAPS(l, u) (book[V(l, u)] != NONE || SUM_U(CHARGES_##l) < CAP)
#ifdef MUTANT_CHARGE_AFTER_EVICT
#define GATE_CHARGE(l, u) (book[V(l, u)] != NONE)
#elif defined RECORDED
#define GATE_CHARGE(l, u) (CHARGE_IS_NOT_ASKED(l) || book[V(l, u)] == SAVED || book[V(l, u)] == RECALLED)
#else
#define GATE_CHARGE(l, u) (book[V(l, u)] == SAVED || book[V(l, u)] == RECALLED)
#endif
#define PASSES(l, u) (term[l] == LEADS && on[u] < DEVICES && GATE_EVICTION(l, u) && GATE_WINDOW(l, u) && GATE_SAME_DEVICE(l, u) && GATE_TAINT(l, u) && GATE_CREDIT(l, u) && GATE_CAPS(l, u))

/* ASSUMED: in an hour every eviction that was sent before has come to its end, and the watch has shown it. */
#define OUT_OF_USE_FOR_LONG(u) (pod[u] == RUNS && !under_way[V(0, u)] && !under_way[V(1, u)])
#define MAY_BE_GIVEN_UP(l, u) (book[V(l, u)] != NONE && book[V(l, u)] != COUNTED && (attempt[V(l, u)] == 0 || attempt[V(l, u)] == FAILED || attempt[V(l, u)] == OUTDATED) && !IN_DOUBT(l, u))

#ifdef MUTANT_NO_READ_BEFORE_EVICT
#define STANDS(u) (1)
#else
#define STANDS(u) (pod[u] == RUNS && bad[on[u]])
#endif
#define EVICT(l, u) \
  STEP(("charge %d %d\n", l, u), PASSES(l, u) && book[V(l, u)] == NONE, book[V(l, u)] = CHARGED) /* Gates::is_not_charged */ \
  STEP(("give_charge_up %d %d\n", l, u), left > 1 && term[l] == LEADS && seen_pod[V(l, u)] == RUNS && MAY_BE_GIVEN_UP(l, u) && OUT_OF_USE_FOR_LONG(u), FAULT; book[V(l, u)] = NONE) /* CapBook::settle */ \
  STEP(("order_eviction %d %d\n", l, u), PASSES(l, u) && GATE_CHARGE(l, u), order_eviction(l, u)) \
  STEP(("read_before_eviction %d %d\n", l, u), attempt[V(l, u)] == ORDERED && admits(l), read_before_eviction(l, u)) \
  STEP(("send_eviction %d %d\n", l, u), attempt[V(l, u)] == READ && admits(l), attempt[V(l, u)] = SENT; under_way[V(l, u)] = 1) \
  STEP(("fence_refuses %d %d\n", l, u), attempt[V(l, u)] >= ORDERED && attempt[V(l, u)] <= READ && term[l] != LEADS, attempt[V(l, u)] = 0; keep_word(l, u)) /* LeaderFence: not sent */ \
  STEP(("eviction_refused %d %d\n", l, u), left > 1 && attempt[V(l, u)] == READ && term[l] == LEADS, FAULT; attempt[V(l, u)] = FAILED; keep_word(l, u); learn_and_settle(l)) /* the read failed, or a budget refuses */ \
  STEP(("no_answer %d %d\n", l, u), left > 1 && attempt[V(l, u)] == SENT && term[l] == LEADS, FAULT; no_answer(l, u)) \
  STEP(("eviction_lost %d %d\n", l, u), left > 1 && under_way[V(l, u)] && attempt[V(l, u)] != SENT, FAULT; under_way[V(l, u)] = 0; was_bad[V(l, u)] = attempt[V(l, u)] >= ORDERED && attempt[V(l, u)] <= SENT && was_bad[V(l, u)]) \
  STEP(("evict %d %d\n", l, u), under_way[V(l, u)], evict(l, u))

inline order_eviction(l, u) {
  attempt[V(l, u)] = ORDERED;
  was_bad[V(l, u)] = bad[on[u]] || (under_way[V(l, u)] && was_bad[V(l, u)]);
#ifndef MUTANT_NO_SETTLE
  /* ASSUMED: jobRetry.settle (10 s) after we have seen the credit the Job controller has read it, too. It may have done so before; it makes no difference. */
  n = 0;
  for (k : 0 .. UIDS - 1) {
    if
    :: JOB(k) == JOB(u) && seen_credit[V(l, k)] != NONE -> n++
    :: else
    fi
  }
  known[JOB(u)] = (n > known[JOB(u)] -> n : known[JOB(u)])
#endif
}
inline keep_word(l, u) { was_bad[V(l, u)] = under_way[V(l, u)] && was_bad[V(l, u)] }
/* Exchange: what the eviction rests on is read afresh */
inline read_before_eviction(l, u) {
  if
  :: STANDS(u) -> attempt[V(l, u)] = READ
  :: else ->
     attempt[V(l, u)] = OUTDATED;
     keep_word(l, u);
     if
     :: term[l] == LEADS -> learn_and_settle(l)
     :: else
     fi
  fi
}
/* RequestTracker::eviction_done with what may have happened */
inline no_answer(l, u) {
  attempt[V(l, u)] = DOUBTED;
#ifndef MUTANT_NO_DOUBT
  doubted_before[V(l, u)] = 1;
  lost[Y(l, u)] = 1;
#endif
  learn_and_settle(l)
}
inline evict(l, u) {
  under_way[V(l, u)] = 0;
  if
  :: pod[u] == RUNS ->
     writes(l);
     assert(rule[on[u]] != NONE);                                  /* no eviction before the taint is seen */
     assert(credit[u] != NONE || has_reverted);                    /* nor before the credit is */
     assert(was_bad[V(l, u)]);                                     /* nothing is evicted on a Healthy last word */
     assert(charge[u] != NONE);                                    /* nor what is not written down */
     assert(evictions < CAP);
     assert(!again[u]);                                            /* nobody is evicted twice for the same device */
     pod[u] = TERMINATING;
#ifndef RECORDED
     evictions++;
#endif
     evicted[u] = 1;
     ever_lost[LOSS(u)] = 1;
     if
     :: attempt[V(l, u)] == SENT ->
        attempt[V(l, u)] = ACCEPTED;
        lost[Y(l, u)] = 1
     :: else
     fi
  :: pod[u] != RUNS && attempt[V(l, u)] == SENT -> attempt[V(l, u)] = OUTDATED
  :: else
  fi;
  was_bad[V(l, u)] = 0;
  if
  :: term[l] == LEADS -> learn_and_settle(l)
  :: else
  fi
}

/* --- the state ConfigMap [reconcilers/incident_state, src/app/turn/state_desk] ------------------------------------------------------------------------ */
#define WRITTEN(l, u) (book[V(l, u)] == SAVED || book[V(l, u)] == RECALLED -> CHARGED : book[V(l, u)])
#define BOOK_DIFFERS_0(u) (book[V(0, u)] == CHARGED || WRITTEN(0, u) != charge[u])
#define BOOK_DIFFERS_1(u) (book[V(1, u)] == CHARGED || WRITTEN(1, u) != charge[u])
#if JOBS * DEVICES == 2
#define LOSS_DIFFERS(l) (lost[(l) * 2] != loss[0] || lost[(l) * 2 + 1] != loss[1])
#elif JOBS * DEVICES == 4
#define LOSS_DIFFERS(l) (lost[(l) * 4] != loss[0] || lost[(l) * 4 + 1] != loss[1] || lost[(l) * 4 + 2] != loss[2] || lost[(l) * 4 + 3] != loss[3])
#else
#define LOSS_DIFFERS(l) (lost[l] != loss[0])
#endif
#ifdef MUTANT_NO_STATE_VERSION
#define STATE_IS_CURRENT(l) (1)
#else
#define STATE_IS_CURRENT(l) (state_is_current[l])
#endif
#define STATE(l) \
  STEP(("plan_state %d\n", l), term[l] == LEADS && state_write[l] == 0 && STATE_IS_CURRENT(l) && (SUM_U(BOOK_DIFFERS_##l) > 0 || LOSS_DIFFERS(l)), plan_state(l)) \
  STEP(("write_state %d\n", l), state_write[l] == SENT, write_state(l, 1)) \
  STEP(("write_state_unanswered %d\n", l), left > 1 && state_write[l] == SENT, FAULT; write_state(l, 0)) \
  STEP(("state_conflict %d\n", l), left > 1 && state_write[l] == SENT, FAULT; drop_state_write(l))
inline plan_state(l) {
  state_write[l] = SENT;
  for (k : 0 .. UIDS - 1) { sent_charge[V(l, k)] = WRITTEN(l, k) }
  for (k : 0 .. JOBS * DEVICES - 1) { sent_loss[(l) * JOBS * DEVICES + k] = lost[(l) * JOBS * DEVICES + k] }
}
inline write_state(l, answered) {
  writes(l);
  for (k : 0 .. UIDS - 1) {
    charge[k] = sent_charge[V(l, k)];
    if
    :: answered && term[l] == LEADS && book[V(l, k)] == CHARGED && charge[k] != NONE -> book[V(l, k)] = SAVED
    :: else
    fi
  }
  for (k : 0 .. JOBS * DEVICES - 1) { loss[k] = sent_loss[(l) * JOBS * DEVICES + k] }
  drop_state_write(l);
  last_writer = l;
  state_is_current[l] = answered;
  state_is_current[1 - l] = 0;
#ifndef MUTANT_NO_STATE_VERSION
  if
  :: state_write[1 - l] != 0 -> drop_state_write(1 - l)  /* it names an older version: 409 */
  :: else
  fi
#endif
}

/* --- the others --------------------------------------------------------------------------------------------------------------------------------------- */
/* The devices are alike: the first one goes bad first. */
#define REPORTS(d) \
  STEP(("device_unhealthy %d\n", d), left > 0 && flips < FLIPS && !bad[d] && (d == 0 || ever_bad[0]), bad[d] = 1; ever_bad[d] = 1; FLIP; note_bad(d)) \
  STEP(("device_healthy %d\n", d), left > 0 && flips < FLIPS && bad[d], bad[d] = 0; FLIP)
inline note_bad(d) {
  for (k : 0 .. UIDS - 1) {
    if
    :: on[k] == d && (under_way[V(0, k)] || (attempt[V(0, k)] >= ORDERED && attempt[V(0, k)] <= SENT)) -> was_bad[V(0, k)] = 1
    :: else
    fi;
    if
    :: on[k] == d && (under_way[V(1, k)] || (attempt[V(1, k)] >= ORDERED && attempt[V(1, k)] <= SENT)) -> was_bad[V(1, k)] = 1
    :: else
    fi
  }
}
#define OPERATOR(d) STEP(("operator_deletes_rule %d\n", d), left > 1 && !has_removed && rule[d] == OURS, FAULT; rule[d] = REMOVED; has_removed = 1)
#define KUBELET(u) STEP(("pod_ends %d\n", u), pod[u] == TERMINATING, pod[u] = GONE)
#ifdef RECORDED /* its replacement is another recording */
#define IS_LAST(u) (1)
#else
#define IS_LAST(u) (!FIRST(u))
#endif
#define COUNT(u) STEP(("count %d\n", u), pod[u] >= TERMINATING && !counted[u] && IS_LAST(u), count(u))
/* The scheduler's cache may be as old as can be: a replacement that comes to one of our devices is one of the faults. */
#define REPLACE(u) \
  STEP(("replace_elsewhere %d\n", u), pod[u] >= TERMINATING && !counted[u], count(u); come(u, ELSEWHERE)) \
  REPLACE_ON(u, 0) REPLACE_ON(u, 1)
#define REPLACE_ON(u, d) STEP(("replace_on %d %d\n", u, d), left > 1 && d < DEVICES && pod[u] >= TERMINATING && !counted[u], FAULT; count(u); come(u, d))
inline count(u) {
  counted[u] = 1;
  no_job_ends(JOB(u));
  /* the Job's status is another one: what rests on its version is refused */
  for (m : 0 .. 1) {
    if
    :: job_write[X(m, JOB(u))] != 0 && job_credit[X(m, JOB(u))] == UNSPENT -> drop_job_write(m, JOB(u))
    :: else
    fi
  }
}
inline come(u, d) {
  pod[(u) + 1] = RUNS;
  on[(u) + 1] = d;
  if
  :: d < DEVICES -> again[(u) + 1] = ever_lost[JOB(u) * DEVICES + d]
  :: else
  fi
}
#define DRAIN(u) STEP(("drain %d\n", u), left > 1 && !has_drained && pod[u] == RUNS, FAULT; pod[u] = TERMINATING; drained[u] = 1; has_drained = 1)
#define REVERT(j) STEP(("revert_limit %d\n", j), left > 1 && !has_reverted && raised[j] > 0, FAULT; revert(j))
inline revert(j) {
  reverted[j] = 1;
  has_reverted = 1;
  for (m : 0 .. 1) {
    if
    :: job_write[X(m, j)] != 0 -> drop_job_write(m, j)
    :: else
    fi
  }
}

/* --- once faults have stopped ---------------------------------------------------------------------------------------------------------------------------- */
#define CREDITED(l, u) (seen_credit[V(l, u)] == GIVEN || seen_credit[V(l, u)] == SPENT)
#define REASON(l, u) ((again[u] && lost[Y(l, u)])                 /* ReplacementOnSameDevice */ \
                      || seen_rule[W(l, on[u])] == REMOVED         /* DeviceStillSchedulable */ \
                      || seen_revert[X(l, JOB(u))]                 /* NotCreditable: CreditReverted */ \
                      || (!CREDITED(l, u) && !HAS_ROOM(l, u))      /* NotCreditable: CreditLimitReached */ \
                      || !GATE_CAPS(l, u))                         /* CapReached */
#define STAYS(u) \
  if \
  :: pod[u] == RUNS && on[u] < DEVICES && bad[on[u]] -> assert((term[0] == LEADS && REASON(0, u)) || (term[1] == LEADS && REASON(1, u))) \
  :: else \
  fi; \
  assert(!evicted[u] || charge[u] == COUNTED);

init {
  d_step {
    for (k : 0 .. UIDS - 1) {
      on[k] = ELSEWHERE;
      if
      :: FIRST(k) ->
         pod[k] = RUNS;
         on[k] = (k / 2) % DEVICES;
         seen_pod[V(0, k)] = RUNS;
         seen_pod[V(1, k)] = RUNS
      :: else
      fi
    }
#ifdef RECORDED
    FIRST_STEP;
#else
    term[0] = LEADS;
#endif
    k = 0
  }
#ifdef NO_CYCLES
accept:
#endif
  do
  EACH_D(REPORTS)
#ifdef OTHERS
  EACH_D(OPERATOR)
#endif
  EACH_U(KUBELET)
  EACH_U(COUNT)
  EACH_FIRST(REPLACE)
#ifdef OTHERS
  EACH_U(DRAIN)
#endif
#ifdef OTHERS
  EACH_J(REVERT)
#endif
#define TAINT_0(d) TAINT(0, d)
#define TAINT_1(d) TAINT(1, d)
#define GIVE_0(u) GIVE(0, u)
#define GIVE_1(u) GIVE(1, u)
#define REVIEW_0(u) REVIEW(0, u)
#define REVIEW_1(u) REVIEW(1, u)
#define PATCH_0(j) PATCH(0, j)
#define PATCH_1(j) PATCH(1, j)
#define EVICT_0(u) EVICT(0, u)
#define EVICT_1(u) EVICT(1, u)
  WATCHES(0)
  WATCHES(1)
  ELECTION(0)
  ELECTION(1)
  EACH_D(TAINT_0)
  EACH_D(TAINT_1)
  EACH_U(GIVE_0)
  EACH_U(GIVE_1)
  EACH_U(REVIEW_0)
  EACH_U(REVIEW_1)
  EACH_J(PATCH_0)
  EACH_J(PATCH_1)
  EACH_U(EVICT_0)
  EACH_U(EVICT_1)
  STATE(0)
  STATE(1)
#ifdef RECORDED
  RECORDING
#else
  STEP(("faults_stop\n"), left > 0, left = 0)
#endif
  :: else ->
     d_step {
       assert(left == 0);
       EACH_U(STAYS)
       skip
     }
     break
  od
}
