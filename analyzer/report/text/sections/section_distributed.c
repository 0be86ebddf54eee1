/* SPDX-License-Identifier: MIT
 *
 * Ranks compared with each other. A few ranks are all shown; of many, those that cost their peers
 * most.
 */
#include <math.h>

#include "base/sorting.h"
#include "base/statistics.h"
#include "report/rank_order.h"
#include "report/text/section.h"
#include "report/text/table.h"

enum { WORST_SHOWN = 5, BESIDE_STRAGGLERS = 2, MOST_SHOWN = 12 };

struct rank_row {
  struct rank_result of;
  const char *rank; /* its text */
  const char *reason;
  double compute_ms;
  enum style style;
};

static const struct column columns[] = {
    {"rank", COLUMN_TEXT, offsetof(struct rank_row, rank), 0, 0},
    {"host", COLUMN_TEXT, offsetof(struct rank_row, of.host), 0, 6},
    {"compute", COLUMN_MS, offsetof(struct rank_row, compute_ms), 0, 0},
    {"to peers", COLUMN_CHANGE, offsetof(struct rank_row, of.rel_slowdown), 1, 0},
    {"last in", COLUMN_SHARE, offsetof(struct rank_row, of.slowest_fraction), 0, 0},
    {"", COLUMN_BAR, offsetof(struct rank_row, of.slowest_fraction), 3, 6},
    {"z", COLUMN_DECIMAL, offsetof(struct rank_row, of.z), 5, 0},
    {"p", COLUMN_PROBABILITY, offsetof(struct rank_row, of.p_value), 4, 0},
    {"peers wait", COLUMN_MS, offsetof(struct rank_row, of.imposed_wait_ms), 0, 0},
    {"why", COLUMN_TEXT, offsetof(struct rank_row, reason), 2, 0},
};

static struct rank_row row_of(struct arena *arena, const struct rank_result *rank) {
  return (struct rank_row){.of = *rank,
                           .rank = arena_printf(arena, "%4u", rank->rank),
                           .reason = straggler_reason_words[rank->reason],
                           .compute_ms = compute_of(rank),
                           .style = rank->straggler ? STYLE_CRITICAL : STYLE_PLAIN};
}

/* What is left out of the table, in one line. */
static void put_rest(struct pen *pen, const struct rank_result *const *ranks, u32 n) {
  double *compute = arena_array(&pen->scratch, n, sizeof(*compute)), most_wait = NAN;
  u32 known = LIST_KNOWN(compute, 0, n, i, compute_of(ranks[i]));
  FOR_EACH(ranks, n, rank)
    most_wait = fmax(most_wait, (*rank)->imposed_wait_ms);
  section_line(pen, STYLE_PLAIN, "the other %s ranks", count_of(n).text);
  if (known) {
    SORT(compute, known, by_double);
    pen_item(pen, STYLE_PLAIN, "compute %s to %s, median %s", duration_ms(compute[0]).text,
             duration_ms(compute[known - 1]).text, duration_ms(median_of(compute, known)).text);
  }
  if (!isnan(most_wait))
    pen_item(pen, STYLE_PLAIN, "peers wait at most %s", duration_ms(most_wait).text);
  pen_newline(pen);
}

static void put_ranks(struct pen *pen, const struct results *results) {
  u32 n = results->n_ranks, shown = n;
  const struct rank_result **ranks = ranks_in_order(results, &pen->scratch);
  struct rank_row *rows = arena_array(&pen->scratch, n, sizeof(*rows));
  if (n > FEW_RANKS) {
    u32 stragglers = NUMBER_OF(results->ranks, n, one, one->straggler);
    shown = stragglers == 0 ? WORST_SHOWN : stragglers + BESIDE_STRAGGLERS;
    shown = MIN(shown, MOST_SHOWN);
  }
  for (u32 i = 0; i < shown; i++)
    rows[i] = row_of(&pen->scratch, ranks[i]);
  table_print(pen,
              &TABLE(struct rank_row, columns, .style_offset = offsetof(struct rank_row, style)),
              rows, shown);
  if (shown < n)
    put_rest(pen, ranks + shown, n - shown);
}

static bool any_known(const struct results *results) {
  return ANY(results->ranks, results->n_ranks, one,
             !isnan(one->mean_compute_ms) || !isnan(one->imposed_wait_ms));
}

void body_distributed(struct pen *pen, const struct results *results) {
  put_facts(pen, SECTION_distributed, results);
  if (any_known(results))
    put_ranks(pen, results);
}
