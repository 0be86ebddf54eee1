/* SPDX-License-Identifier: MIT
 *
 * Ranks compared with each other. A few ranks are all shown; of many, those that cost their peers
 * most.
 */
#include <math.h>

#include "base/sorting.h"
#include "base/statistics.h"
#include "report/text/section.h"
#include "report/text/table.h"

enum { ALL_SHOWN = 8, WORST_SHOWN = 5, BESIDE_STRAGGLERS = 2, MOST_SHOWN = 12 };

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

/* The value shown beside differences of medians is a median too. If most steps have no compute, a
 * median of 0 says nothing, and no difference is shown. */
static double compute_of(const struct rank_result *rank) {
  return rank->median_compute_ms > 0 ? rank->median_compute_ms : rank->mean_compute_ms;
}

static struct rank_row row_of(struct arena *arena, const struct rank_result *rank) {
  return (struct rank_row){.of = *rank,
                           .rank = arena_printf(arena, "%4u", rank->rank),
                           .reason = straggler_reason_words[rank->reason],
                           .compute_ms = compute_of(rank),
                           .style = rank->straggler ? STYLE_CRITICAL : STYLE_PLAIN};
}

/* Stragglers first, then by the wait they impose; unknown ones last; else by rank. */
static double known_wait(const struct rank_result *rank) {
  return isnan(rank->imposed_wait_ms) ? -1 : rank->imposed_wait_ms;
}

ORDER_POINTERS_BY(worst_first, struct rank_result, DOWN(straggler) DOWN_OF(known_wait) UP(rank))

/* What is left out of the table, in one line. */
static void put_rest(struct pen *pen, const struct rank_result *const *ranks, u32 n) {
  double *compute = arena_array(&pen->scratch, n, sizeof(*compute)), most_wait = NAN;
  u32 known = LIST_KNOWN(compute, 0, n, i, compute_of(ranks[i]));
  for (u32 i = 0; i < n; i++)
    most_wait = fmax(most_wait, ranks[i]->imposed_wait_ms);
  section_line(pen, STYLE_PLAIN, "the other %s ranks", count_of(n).text);
  if (known) {
    SORT(compute, known, by_double);
    pen_item(pen, STYLE_PLAIN, "compute %s to %s, median %s", duration_ms(compute[0]).text,
             duration_ms(compute[known - 1]).text, duration_ms(median_of(compute, known)).text);
  }
  item_if_known(pen, STYLE_PLAIN, "peers wait at most %s", duration_ms(most_wait));
  pen_newline(pen);
}

static void put_ranks(struct pen *pen, const struct results *results) {
  u32 n = results->n_ranks, shown = n;
  const struct rank_result **ranks = arena_array(&pen->scratch, n, sizeof(*ranks));
  struct rank_row *rows = arena_array(&pen->scratch, n, sizeof(*rows));
  for (u32 i = 0; i < n; i++)
    ranks[i] = &results->ranks[i];
  if (n > ALL_SHOWN) {
    u32 stragglers = NUMBER_OF(results->ranks, n, one, one->straggler);
    SORT(ranks, n, worst_first);
    shown = stragglers == 0 ? WORST_SHOWN : stragglers + BESIDE_STRAGGLERS;
    shown = shown < MOST_SHOWN ? shown : MOST_SHOWN;
  }
  for (u32 i = 0; i < shown; i++)
    rows[i] = row_of(&pen->scratch, ranks[i]);
  table_print(pen,
              &TABLE(struct rank_row, columns, .style_offset = offsetof(struct rank_row, style)),
              rows, shown);
  if (shown < n)
    put_rest(pen, ranks + shown, n - shown);
}

static void put_summary(struct pen *pen, const struct results *results) {
  u32 *stragglers = arena_array(&pen->scratch, results->n_ranks, sizeof(*stragglers));
  u32 n = LIST_WHERE(stragglers, 0, results->n_ranks, i, results->ranks[i].straggler,
                     results->ranks[i].rank);
  section_label(pen, "stragglers");
  if (n)
    item_of_ranks(pen, STYLE_CRITICAL, stragglers, n, 40);
  else
    pen_item(pen, model_lacks_ranks(results->model) ? STYLE_WARNING : STYLE_PLAIN, "%s",
             say_no_straggler(results, &pen->scratch));
  if (results->dist_steps > 0)
    pen_item(pen, STYLE_PLAIN, "judged on %s", plural(results->dist_steps, "step").text);
  const char *why_none = say_why_no_straggler(results, &pen->scratch);
  if (why_none)
    section_value(pen, "", STYLE_PLAIN, "%s", why_none);
}

static void put_imbalance(struct pen *pen, const struct results *results) {
  section_label(pen, "imbalance");
  if (isnan(results->wall_frac_lost_to_imbalance) && isnan(results->imbalance_cv) &&
      isnan(results->sync_skew_ms)) {
    pen_item(pen, STYLE_PLAIN, "%s", quantity_unknown);
    return;
  }
  item_if_known(pen, STYLE_PLAIN, "%s of the wall time lost",
                percent(results->wall_frac_lost_to_imbalance));
  if (isnan(results->imbalance_cv))
    pen_item(pen, STYLE_PLAIN, "of compute unknown");
  else
    pen_item(pen, STYLE_PLAIN, "compute CV over ranks %s", percent(results->imbalance_cv).text);
  item_if_known(pen, STYLE_PLAIN, "arrival skew %s", duration_ms(results->sync_skew_ms));
}

static bool any_known(const struct results *results) {
  return ANY(results->ranks, results->n_ranks, one,
             !isnan(one->mean_compute_ms) || !isnan(one->imposed_wait_ms));
}

void body_distributed(struct pen *pen, const struct results *results) {
  put_summary(pen, results);
  put_imbalance(pen, results);
  if (any_known(results))
    put_ranks(pen, results);
}
