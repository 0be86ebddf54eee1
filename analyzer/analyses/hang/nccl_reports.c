/* SPDX-License-Identifier: MIT
 *
 * What NCCL itself reports of communicators while their ranks stall: if it reports an error,
 * this is why a call does not finish that all members have made.
 */

#include "analyses/hang/verdict.h"
#include "base/quantity.h"
#include "base/sorting.h"
#include "model/stalls.h"

i32 nccl_error_of(const struct flight_record *flight, u32 group, u32 rank) {
  u32 first = FIRST_NOT(0, flight->n_nccl, i, flight->nccl[i].rank < rank);
  const struct flight_nccl *report = FIND(flight->nccl + first, flight->n_nccl - first, one,
                                          one->rank == rank && one->group == group && one->result);
  return report ? report->result : 0;
}

/* All unknown errors count as one. */
static u32 error_kind(i32 result) {
  enum { UNKNOWN = 63 };
  return result > 0 && result < UNKNOWN ? (u32)result : UNKNOWN;
}

/* "NCCL reports on ranks 1, 3: unhandled system error.", for one error. */
static char *describe_error(const struct call_index *index, i32 result) {
  const struct flight_record *flight = index->flight;
  u32 *ranks = arena_array(index->arena, flight->n_nccl, sizeof(u32)), n = 0;
  FOR_EACH(flight->nccl, flight->n_nccl, each)
    if (each->result && error_kind(each->result) == error_kind(result) &&
        (!n || ranks[n - 1] != each->rank))
      ranks[n++] = each->rank;
  char *list = verdict_rank_list(index, ranks, n);
  return say(index, "NCCL reports on %s: %s.", list, nccl_error_text(result));
}

static void describe_errors(const struct call_index *index, struct collective_check *check) {
  const struct flight_record *flight = index->flight;
  char *text = NULL;
  u64 described = 0;
  FOR_EACH(flight->nccl, flight->n_nccl, one) {
    i32 result = one->result;
    u64 kind = 1ull << error_kind(result);
    if (!result || (described & kind))
      continue;
    described |= kind;
    text = arena_list(index->arena, text, " ", "%s", describe_error(index, result));
  }
  if (!text)
    text = say(index, "NCCL reports no error on the %s of which that is known.",
               plural(check->nccl_ranks, "rank").text);
  check->nccl = text;
}

void add_nccl_reports(const struct call_index *index, struct collective_check *check) {
  const struct flight_record *flight = index->flight;
  if (!flight->n_nccl)
    return;
  check->nccl_ranks = 0;
  check->nccl_errors = arena_array(index->arena, flight->n_nccl, sizeof(*check->nccl_errors));
  for (u32 i = 0; i < flight->n_nccl; i++) {
    const struct flight_nccl *report = &flight->nccl[i];
    const struct flight_group *group = &flight->groups[report->group];
    check->nccl_ranks += !i || flight->nccl[i - 1].rank != report->rank;
    if (report->result)
      check->nccl_errors[check->n_nccl_errors++] =
          (struct check_nccl_error){.rank = flight->ranks[report->rank].rank,
                                    .group = flight_group_label(group),
                                    .result = report->result,
                                    .words = nccl_error_text(report->result)};
  }
  describe_errors(index, check);
}
