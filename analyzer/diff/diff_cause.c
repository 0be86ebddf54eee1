/* SPDX-License-Identifier: MIT
 *
 * Why steps take longer, or shorter. If one rank changed and the others wait for it, their waiting
 * (which a report by phases shows as backward, or as communication) is not the cause: the cause is
 * that rank and what it spends its time on. Else it is the part of all ranks' steps that changed
 * most, with waiting considered last.
 */
#include <math.h>
#include <string.h>

#include "analyses/thresholds.h"
#include "base/quantity.h"
#include "base/rank_list.h"
#include "base/statistics.h"
#include "diff/diff.h"

/* This share of the step's change must be in a part for it to be the cause. */
#define CAUSE_SHARE 0.5

/* What a rank does by itself, whatever its peers do. The first that explains enough is named,
 * because a rank that waits for its input is also idle. */
static const struct own_part {
  enum step_part part; /* "rank 3 became slower in its <part>" */
  size_t offset;       /* of a double in struct rank_result */
} own_parts[] = {{PART_INPUT, offsetof(struct rank_result, data_ms)},
                 {PART_COMPUTE, offsetof(struct rank_result, mean_compute_ms)},
                 {PART_HOST, offsetof(struct rank_result, idle_ms)}};

/* NAN where there is no rank. */
static double part_of(const struct rank_result *rank, size_t offset) {
  return rank ? *(const double *)((const char *)rank + offset) : NAN;
}

static const struct rank_result *rank_of(const struct results *r, u32 rank) {
  return FIND(r->ranks, r->n_ranks, one, one->rank == rank);
}

/* Mean over the runs of a side that know it. */
static double mean_level(struct diffing *d, u32 side, u32 rank, size_t offset) {
  u32 n = d->sides[side]->n;
  double *values = arena_array(&d->scratch, n, sizeof(*values));
  for (u32 i = 0; i < n; i++)
    values[i] = part_of(rank_of(d->sides[side]->runs[i], rank), offset);
  return diff_mean(values, n);
}

struct change {
  u32 rank;
  double before, after;
};

static double growth_ms(const struct change *change) {
  return change->after - change->before;
}

/* The ranks whose part changed by at least `enough` more than the median rank's, first in
 * `changes`; returns how many. Peers are in step with each other: fewer than three cannot show
 * which one differs. */
static u32 find_outliers(struct change *changes, u32 n, double enough, double *scratch,
                         double *typical) {
  for (u32 i = 0; i < n; i++)
    scratch[i] = growth_ms(&changes[i]);
  *typical = median_of(scratch, n);
  u32 odd = 0;
  for (u32 i = 0; i < n; i++) {
    double excess = growth_ms(&changes[i]) - *typical;
    if (enough > 0 ? excess < enough : excess > enough)
      continue;
    struct change one = changes[i];
    memmove(&changes[odd + 1], &changes[odd], (i - odd) * sizeof(one));
    changes[odd++] = one;
  }
  return 2 * odd < n ? odd : 0;
}

static char *describe_ranks_changed(struct diffing *d, const struct diff_cause *cause,
                                    double step_change) {
  return say(d, "%s became %s in %s %s", ranks_in(d->arena, cause->ranks, cause->n_ranks),
             step_change > 0 ? "slower" : "faster", cause->n_ranks > 1 ? "their" : "its",
             step_part_words[cause->part]);
}

/* How long the other ranks waited, a step. */
static double peers_wait_ms(struct diffing *d, u32 side, const struct diff_cause *cause) {
  const struct results *r = d->sides[side]->runs[0];
  double *waits = arena_array(&d->scratch, r->n_ranks, sizeof(*waits));
  u32 n = LIST_WHERE(
      waits, 0, r->n_ranks, i, !ranks_have(cause->ranks, cause->n_ranks, r->ranks[i].rank),
      mean_level(d, side, r->ranks[i].rank, offsetof(struct rank_result, exposed_wait_ms)));
  return diff_mean(waits, n);
}

/* Waiting that has little to do with the change is not mentioned beside it. */
static void drop_small_wait(struct diff_cause *cause, double enough) {
  double grew = cause->wait_after_ms - cause->wait_before_ms;
  if (!(enough > 0 ? grew >= enough : grew <= enough))
    cause->wait_before_ms = cause->wait_after_ms = NAN;
}

/* Whether ranks are the cause. */
static bool find_rank_cause(struct diffing *d, double enough) {
  struct diff_cause *cause = &d->out->cause;
  u32 n_ranks = d->after->n_ranks, odd = 0;
  struct change *changes = arena_array(&d->scratch, n_ranks, sizeof(*changes));
  double *scratch = arena_array(&d->scratch, n_ranks, sizeof(*scratch));
  for (size_t part = 0; !odd && part < LENGTH_OF(own_parts); part++) {
    u32 n = 0;
    FOR_EACH(d->after->ranks, n_ranks, one) {
      u32 rank = one->rank;
      changes[n] = (struct change){rank, mean_level(d, BEFORE, rank, own_parts[part].offset),
                                   mean_level(d, AFTER, rank, own_parts[part].offset)};
      n += !isnan(growth_ms(&changes[n]));
    }
    odd = n > 2 ? find_outliers(changes, n, enough, scratch, &cause->peers_ms) : 0;
    if (odd)
      cause->part = own_parts[part].part;
  }
  if (odd) {
    cause->ranks = arena_array(d->arena, odd, sizeof(*cause->ranks));
    cause->before_ms = cause->after_ms = 0;
    FOR_EACH(changes, odd, change) {
      cause->ranks[cause->n_ranks++] = change->rank;
      cause->before_ms += change->before / odd;
      cause->after_ms += change->after / odd;
    }
    cause->text = describe_ranks_changed(d, cause, enough);
    cause->wait_before_ms = peers_wait_ms(d, BEFORE, cause);
    cause->wait_after_ms = peers_wait_ms(d, AFTER, cause);
    drop_small_wait(cause, enough);
  } else {
    cause->peers_ms = NAN;
  }
  return odd > 0;
}

/* The names of the parts of a step for the case that all ranks changed alike, in the order in which
 * one that explains enough is chosen. The parts of a step come before its phases, which contain
 * waiting. */
static const struct all_part {
  enum diff_figure figure;
  enum step_part part;
} all_parts[] = {{FIGURE_DATA, PART_INPUT},
                 {FIGURE_COMPUTE, PART_COMPUTE},
                 {FIGURE_EXPOSED_TRANSFER, PART_TRANSFER},
                 {FIGURE_EXPOSED_MEMCPY, PART_MEMCPY},
                 {FIGURE_EXPOSED_WAIT, PART_WAIT},
                 {FIGURE_IDLE, PART_IDLE},
                 {FIGURE_FORWARD, PART_FORWARD},
                 {FIGURE_BACKWARD, PART_BACKWARD},
                 {FIGURE_OPTIMIZER, PART_OPTIMIZER}};

static void find_common_cause(struct diffing *d, double enough) {
  struct diff_cause *cause = &d->out->cause;
  const struct diff_row *found = NULL;
  for (size_t i = 0; !found && i < LENGTH_OF(all_parts); i++)
    FOR_EACH(d->out->rows, d->out->n_rows, row) {
      double changed = row->after - row->before;
      if (row->figure != all_parts[i].figure)
        continue;
      if (enough > 0 ? changed >= enough : changed <= enough) {
        found = row;
        cause->part = all_parts[i].part;
      }
    }
  if (!found)
    return;
  cause->before_ms = found->before;
  cause->after_ms = found->after;
  cause->text =
      say(d, "%s takes %s %s a step", step_part_words[cause->part],
          duration_ms(fabs(found->after - found->before)).text, enough > 0 ? "more" : "less");
}

/* How much more of the part this rank has than the median of the others, in one run. */
static double excess_ms(const struct results *r, u32 rank, size_t offset, double *scratch) {
  u32 n = LIST_KNOWN(scratch, 0, r->n_ranks, i,
                     r->ranks[i].rank == rank ? (double)NAN : part_of(&r->ranks[i], offset));
  return part_of(rank_of(r, rank), offset) - median_of(scratch, n);
}

/* The largest probability, of the ranks named, that runs of one kind differ so much in them. */
static void noise_of_ranks(struct diffing *d) {
  struct diff_cause *cause = &d->out->cause;
  size_t part = 0, n_parts = LENGTH_OF(own_parts);
  while (part + 1 < n_parts && own_parts[part].part != cause->part)
    part++;
  u32 most_ranks = 0;
  EACH_RUN(d, side, i)
    most_ranks = MAX(d->sides[side]->runs[i]->n_ranks, most_ranks);
  double *values = arena_array(&d->scratch, d->out->n_runs, sizeof(*values));
  double *scratch = arena_array(&d->scratch, most_ranks, sizeof(*scratch));
  cause->p_value = 0;
  FOR_EACH(cause->ranks, cause->n_ranks, each) {
    u32 n = 0;
    EACH_RUN(d, side, i)
      values[n++] = excess_ms(d->sides[side]->runs[i], *each, own_parts[part].offset, scratch);
    double p = diff_compare(d, values).p_value;
    p *= (double)most_ranks * (double)n_parts; /* any rank and part could have been it */
    cause->p_value = p > cause->p_value || isnan(p) ? fmin(p, 1) : cause->p_value;
  }
}

/* A rank may have become slower beyond noise although the steps, which vary by more than it costs,
 * have not: then it is mentioned. A part of all ranks is a figure like others. */
void diff_cause(struct diffing *d) {
  struct diff_result *out = d->out;
  double change_ms = out->step_after_ms - out->step_before_ms;
  bool beyond = out->step_p_value < DIFF_SIGNIFICANCE;
  if (isnan(out->step_p_value) || (!beyond && !d->several) ||
      fabs(out->step_change) < (beyond ? DIFF_LEAST_CHANGE : WORTH_MENTIONING))
    return;
  bool of_ranks = find_rank_cause(d, CAUSE_SHARE * change_ms);
  if (of_ranks && d->several)
    noise_of_ranks(d);
  else if (!of_ranks && beyond)
    find_common_cause(d, CAUSE_SHARE * change_ms);
  if (!beyond && !(out->cause.p_value < DIFF_SIGNIFICANCE))
    out->cause = unknown_diff_cause;
}
