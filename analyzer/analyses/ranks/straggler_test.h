/* SPDX-License-Identifier: MIT
 *
 * What the files of the search for stragglers share: stragglers.c, arrival_times.c,
 * tested_collectives.c, unnamed_members.c, late_groups.c, late_stretches.c, late_at_times.c.
 */
#pragma once

#include "analyses/analysis.h"
#include "analyses/thresholds.h"
#include "base/ordered_values.h"

/* Of the communicator that is tested: unnamed_members.c. */
struct unnamed_members {
  struct arena arena;
  double clocks_ns;                /* by the common clock no two members are further apart */
  u32 comm, begin, n;              /* its tested collectives: */
  struct ordered_values *ready;    /* [n] when each was ready, by its index among the members; */
  double *from_ns;                 /* from when times count whose ratio is asked */
  struct ordered_values *computed; /* [n_steps] by index in the first of them; NULL: not asked */
  u32 *last, n_last; /* who is last anywhere in the latest round, of those in the roster */
  u32 passed;        /* so many of the roster's members have a name, one after the other */
};

/* Of a long run times may be kept in some steps only (enum kept_times). */
enum tested_in { TESTED_IN_KEPT = 1, TESTED_IN_ALL };

struct straggler_test {
  struct analysis *a;
  struct arena scratch;
  u32 *by_comm; /* all collectives, by communicator, in order */
  u32 *tested;  /* those of them that are tested */
  u32 n_tested;
  u32 *first;     /* [n_comms + 1] in tested */
  u32 *roster;    /* [n_comms] of them the one in which most members were found */
  u32 *missed;    /* [n_ranks] of the communicator of the round: those in which it was not found */
  u32 *best_comm; /* [n_ranks] communicator of the rank's smallest p so far */
  double *best_p;
  double tests;
  double *values;           /* [n_ranks] scratch */
  double *lateness, *sizes; /* [n_tested] scratch */
  u32 *last_of;             /* [n_tested] of the latest round: the last member, INDEX_NONE; */
  double *late_of;          /* how much later it was than the median of the others, ns; */
  double *middle_of;        /* and when the middle member was ready */
  double correlation; /* of lateness in one step and the next, in the communicator of the round */
  double *busy_ns; /* [n_arrivals] since the rank left the communicator's collective before; NAN */
  u8 *tested_in;   /* [n_comms] enum tested_in; 0: not chosen yet */
  bool *by_clock;  /* [n_comms] the common clock says who came last; else the time busy */
  bool *unwaited;  /* [n_collectives] nobody waited for the member that came last */
  bool *named;
  u32 n_named;
  bool *in_group; /* [n_ranks] of a group that is tested as one */
  struct unnamed_members unnamed;
  u32 meeting; /* communicator of the next: how many steps lie between its meetings */
  double meeting_steps;
  /* of one round, by rank */
  u32 *times_last;
  double *imposed_ns;
  /* late_at_times.c; zeroes between two communicators: [n_ranks] events by rank and by host, and
   * members without a name by host */
  u32 *events_of_rank, *events_of_host, *on_host;
};

enum { MOST_STRETCHES = 8 };

/* Tested collectives [begin, end) of a communicator, and in how many of them the rank was last. */
struct stretch {
  u32 begin, end, times;
};

/* `times` and `tested` are those of the stretches. */
struct verdict {
  u32 rank, times, tested, members;
  double p, typical_ns, error_ns; /* how late it is in the median; that figure's standard error */
  double skew_ns;                 /* how far the mean of the middle nine tenths is from it */
  double imposed_ns;              /* per tested collective of the communicator */
  struct stretch *late;           /* in order; none: in the whole run */
  u32 n_late;
  bool at_times; /* `late`: wherever it is late; `tested`: where anybody is */
  u32 period;    /* it is then late every so many steps; 0: at no fixed distance */
  u32 longer;    /* steps in which its device computes longer, if that is why it is named; else 0 */
};

/* How much later than others, in a step, is worth mentioning. */
static inline double worth_mentioning_ns(const struct straggler_test *c) {
  return WORTH_MENTIONING * c->a->results->step_median_ms * 1e6;
}

/* How many threads so many values are worth. */
unsigned straggler_threads(const struct straggler_test *c, u64 values);

/* Before the first question about arrivals: reads the model, decides by which clock arrivals of
 * each communicator are compared. */
void arrival_times_prepare(struct straggler_test *c);

/* When a member was ready, on an axis on which differences between members are meaningful; NAN if
 * not known. The second leaves out its time in other communicators. */
double arrival_time(const struct straggler_test *c, const struct arrival *member);
double arrival_own_time(const struct straggler_test *c, const struct arrival *member);

/* The index of a rank among the members; INDEX_NONE if it is none. */
u32 member_of(const struct straggler_test *c, const struct collective *collective, u32 rank);

/* The second, of a rank; NAN if it is no member. */
double member_own_time(const struct straggler_test *c, const struct collective *collective,
                       u32 rank);

/* How much later than the middle member a rank was in tested collectives [begin, end): returns how
 * many are in c->lateness. After a round of tests. */
u32 list_lateness_of(struct straggler_test *c, u32 begin, u32 end, u32 rank);

/* When the first member left the communicator's collective before this one; NAN at its first. */
double own_work_begin(const struct straggler_test *c, const struct collective *collective);

/* By what ratio one time of a collective (as above) is longer than another, as a logarithm, both
 * counted from there. Where cores are shared, the same work takes now longer, now shorter, by a
 * factor: of few steps a mean of ratios tells more than one of differences. */
double ratio_of_times(double begin, double time, double other);

/* The error of the difference between a member's arrival and the others', ns. */
double arrival_error(const struct straggler_test *c, const struct collective *collective, u32 rank);

/* tested_collectives.c: sets `tested`, `first` and how many tests that makes. */
void choose_tested_collectives(struct straggler_test *c);
/* Of a communicator, as its members that have no name yet would have it; there are as many. False
 * if there are too few such members. */
bool choose_tested_again(struct straggler_test *c, u32 comm);
const struct collective *tested_collective(const struct straggler_test *c, u32 i);
/* Of a communicator that has any, the one in which most members were found. */
const struct collective *tested_roster(const struct straggler_test *c, u32 comm);

/* unnamed_members.c: before the first round, after the last, and when a rank gets its name. */
void unnamed_members_order(struct straggler_test *c, u32 comm);
void unnamed_members_forget(struct straggler_test *c);
void unnamed_members_take_out(struct straggler_test *c, u32 rank);

/* Fills in what is of one round; returns how many members there are where most are. */
u32 unnamed_members_find_last(struct straggler_test *c);

/* How much later the rank was than the median of the others, or earlier: in all tested collectives
 * of the steps in which it is late; in ns, or by what ratio. Returns how many are in c->lateness.
 */
u32 unnamed_members_list_lateness(struct straggler_test *c, const struct verdict *v, bool ratios);

/* In how many steps, of those in which it is known, the device of a member without a name computes
 * so much longer than the median of the others' that it matters. */
u32 unnamed_members_longer_compute(struct straggler_test *c, u32 rank, u32 *of);

/* late_stretches.c, after a round of tests: how lateness in a step is correlated with that in the
 * next, for members without a name; its mean is taken in and between the stretches of `parts`, if
 * given, each for itself. */
double lateness_correlation(struct straggler_test *c, u32 comm, const struct verdict *parts);

/* Whether so many collectives can show anything by how often one is last who has a share of the
 * chances. If not, how late it is, against its scatter, says more. */
bool straggler_counts_tell(const struct straggler_test *c, u32 tested, double share, double tests);

/* Whether a tested collective is in the steps in which a rank is late. */
bool is_in_late_steps(const struct verdict *v, u32 i);

/* Sets the verdict's lateness from `n` values of c->lateness, which it reorders. */
void lateness_measure(const struct straggler_test *c, u32 n, struct verdict *v);

/* Gives a rank the name. */
void straggler_name(struct straggler_test *c, u32 comm, const struct verdict *v);

/* late_stretches.c, after a round of tests: of a rank that is last more often than chance allows,
 * finds out whether it is so only in stretches of steps, and judges these alone. */
void late_stretches_narrow(struct straggler_test *c, u32 comm, struct verdict *v);

/* The rank that is last in a stretch of steps though not in most of the run; false if there is
 * none.
 */
bool late_stretches_find(struct straggler_test *c, u32 comm, u32 members, struct verdict *v);

/* late_at_times.c, after a round of tests: names the rank, or the ranks of a host, that are late in
 * some steps only; false if there are none. */
bool late_at_times_name(struct straggler_test *c, u32 comm, u32 members);

/* Names ranks that are late in turns, as one in even steps and one in odd ones. Of two ranks, too:
 * before either has a name. */
bool late_in_turns_name(struct straggler_test *c, u32 comm, u32 members);

/* Of those in c->in_group, who are last in most steps: whether they are so for what they do at a
 * fixed distance, or are typically (`typical_ns`, of all steps) late by less than half as much as
 * where they are late; then judges these steps alone. `share`: of the members. */
bool late_at_times_narrow(struct straggler_test *c, u32 comm, double share, struct verdict *v);

/* compared_work.c, once stragglers have their names: fills in the compute of each rank beside its
 * peers', and how uneven it is; and says why stragglers are late, as far as its work shows it. */
void work_compare(struct straggler_test *c);
void imbalance_fill(struct straggler_test *c);

/* late_groups.c: ranks that are last by turns: those of a few hosts of several ranks that a gap
 * parts from the others, those of the rank's host, or a few of the communicator's parted so. */
void late_hosts_test(struct straggler_test *c, u32 comm);
void late_host_test(struct straggler_test *c, u32 comm, u32 rank);
void late_group_test(struct straggler_test *c, u32 comm);

/* Gives the name to those members in c->in_group that are late themselves by at least so much. */
void late_group_name(struct straggler_test *c, u32 comm, double least_ns, struct verdict v,
                     const char *together);
