/* SPDX-License-Identifier: MIT
 *
 * Device memory: how much, for what, and what prevents its use.
 */

#include "report/text/section.h"
#include "report/text/table.h"

#define MOST_ROWS 8u
enum { STACK_DEPTH = 12 };
#define LEAST_OF_STACK 0.02
#define LEAST_SHARE 0.01 /* rows below are summed up */

static void put_uses(struct pen *pen, const struct memory_result *memory) {
  static const struct column columns[] = {
      {"live at the peak", COLUMN_TEXT, offsetof(struct memory_use, category), 0, 0},
      {"size", COLUMN_MEMORY, offsetof(struct memory_use, bytes), 0, 0},
      {"share", COLUMN_SHARE, offsetof(struct memory_use, share), 0, 0},
      {"", COLUMN_BAR, offsetof(struct memory_use, share), 2, 8},
      {"from", COLUMN_TEXT, offsetof(struct memory_use, source), 1, 16},
  };
  u32 n = 0, most = section_rows(pen, memory->n_live_at_peak, MOST_ROWS);
  struct memory_use *rows = arena_array(&pen->scratch, size_sum(most, 1), sizeof(*rows));
  double rest = 0;
  FOR_EACH(memory->live_at_peak, memory->n_live_at_peak, one) {
    struct memory_use use = *one;
    use.category = use.category ? use.category : quantity_unknown;
    if (n == most || (!pen->view->top && use.share < LEAST_SHARE))
      rest += use.bytes;
    else
      rows[n++] = use;
  }
  if (rest > 0)
    rows[n++] = (struct memory_use){
        .category = "the rest", .bytes = rest, .share = rest / memory->peak_allocated_bytes};
  table_print(pen, &TABLE(struct memory_use, columns, .bars = STYLE_COMPUTE), rows, n);
}

/* The stacks of the user's own code with most live memory, callers above what they call. */
static void put_stacks(struct pen *pen, const struct memory_result *memory) {
  static const struct column columns[] = {
      {"by stack, with what it calls", COLUMN_TEXT, offsetof(struct memory_stack, frame), 0, 24},
      {"size", COLUMN_MEMORY, offsetof(struct memory_stack, bytes), 0, 0},
      {"share", COLUMN_SHARE, offsetof(struct memory_stack, share), 0, 0},
  };
  u32 n = 0, most = section_rows(pen, memory->n_stacks_at_peak, MOST_ROWS);
  struct memory_stack *rows = arena_array(&pen->scratch, most, sizeof(*rows));
  u32 own[STACK_DEPTH], n_own = 0; /* rows that are open */
  for (u32 i = 0; i < memory->n_stacks_at_peak && n < most; i++) {
    const struct memory_stack *stack = &memory->stacks_at_peak[i];
    while (n_own && memory->stacks_at_peak[own[n_own - 1]].depth >= stack->depth)
      n_own--;
    if (stack->own != ANSWER_YES || stack->share < LEAST_OF_STACK || n_own == STACK_DEPTH)
      continue;
    rows[n] = *stack;
    rows[n++].frame = arena_printf(&pen->scratch, "%*s%s", (int)(2 * n_own), "", stack->frame);
    own[n_own++] = i;
  }
  if (n > 1) {
    pen_newline(pen);
    table_print(pen, &TABLE(struct memory_stack, columns), rows, n);
  }
}

static void put_churn(struct pen *pen, const struct memory_result *memory) {
  static const struct column columns[] = {
      {"allocated most", COLUMN_TEXT, offsetof(struct memory_churn, category), 0, 0},
      {"times", COLUMN_COUNT, offsetof(struct memory_churn, count), 0, 0},
      {"of", COLUMN_MEMORY, offsetof(struct memory_churn, size_bytes), 0, 0},
      {"in all", COLUMN_MEMORY, offsetof(struct memory_churn, bytes), 0, 0},
      {"from", COLUMN_TEXT, offsetof(struct memory_churn, source), 1, 16},
  };
  u32 n = 0, most = section_rows(pen, memory->n_churn, MOST_ROWS);
  struct memory_churn *rows = arena_array(&pen->scratch, most, sizeof(*rows));
  for (u32 i = 0; i < memory->n_churn && n < most; i++) {
    struct memory_churn churn = memory->churn[i];
    churn.category = churn.category ? churn.category : quantity_unknown;
    if (churn.count > 1)
      rows[n++] = churn;
  }
  table_print(pen, &TABLE(struct memory_churn, columns), rows, n);
}

void body_memory(struct pen *pen, const struct results *results) {
  put_facts(pen, SECTION_memory, results);
  const struct memory_result *memory = &results->memory;
  pen_newline(pen);
  put_uses(pen, memory);
  put_stacks(pen, memory);
  put_churn(pen, memory);
}
