/* SPDX-License-Identifier: MIT
 *
 * What is allocated again and again: by source and size.
 */
#include <math.h>
#include <stdlib.h>

#include "analyses/memory/memory.h"
#include "base/checked_memory.h"
#include "base/sorting.h"

struct allocation {
  i64 bytes;
  i64 lifetime; /* ns, -1 while it lives */
  u32 source;
};

ORDER_BY(alike, struct allocation, UP(source) UP(bytes))

/* Allocations in order, each with its lifetime. Live blocks carry their index in `source`. */
static void list_allocations(const struct memory_history *history, struct allocation *list,
                             u32 *n) {
  struct block_table live = {0};
  *n = 0;
  FOR_EACH(history->events, history->n_events, event) {
    struct held_block block;
    if (event->kind == MEMORY_ALLOC) {
      list[*n] = (struct allocation){event->bytes, -1, event->source};
      block = (struct held_block){.address = event->address, .time = event->time, .source = *n};
      block_table_put(&live, block);
      ++*n;
    } else if (event->kind == MEMORY_FREE && block_table_remove(&live, event->address, &block)) {
      bool timed = event->time != NS_UNKNOWN && block.time != NS_UNKNOWN;
      list[block.source].lifetime =
          timed && event->time >= block.time ? event->time - block.time : 0;
    }
  }
  block_table_free(&live);
}

struct row {
  u32 first, n; /* in the sorted list */
  double bytes;
};

ORDER_BY(most_bytes, struct row, DOWN(bytes) DOWN(n) UP(first))

static struct memory_churn describe_churn(const struct memory_history *history,
                                          const struct allocation *list, const struct row *row,
                                          struct arena *arena) {
  const struct allocation *first = &list[row->first];
  const struct memory_source *source = memory_source_of(history, first->source);
  struct memory_churn churn = {.category = allocation_category_name(source->category),
                               .source = arena_text(arena, source->place),
                               .size_bytes = (double)first->bytes,
                               .count = row->n,
                               .bytes = row->bytes,
                               .per_step =
                                   history->n_steps ? (double)row->n / history->n_steps : NAN};
  churn.lifetime_ms =
      MEAN_KNOWN(0, row->n, i, first[i].lifetime < 0 ? NAN : (double)first[i].lifetime) / 1e6;
  return churn;
}

static void list_churn(const struct memory_history *history, struct allocation *list, u32 n,
                       struct row *rows, struct arena *arena, struct memory_result *result) {
  u32 n_rows = 0;
  SORT(list, n, alike);
  for (u32 i = 0; i < n; i++) {
    if (!i || alike(&list[i - 1], &list[i]) != 0)
      rows[n_rows++] = (struct row){.first = i};
    rows[n_rows - 1].n++;
    rows[n_rows - 1].bytes += (double)list[i].bytes;
    result->churn_bytes += (double)list[i].bytes;
  }
  result->churn_allocations = n;
  SORT(rows, n_rows, most_bytes);
  result->n_churn = MIN(MEMORY_ROWS, n_rows);
  result->churn = arena_array(arena, result->n_churn, sizeof(*result->churn));
  for (u32 i = 0; i < result->n_churn; i++)
    result->churn[i] = describe_churn(history, list, &rows[i], arena);
}

void memory_find_churn(const struct memory_history *history, struct arena *arena,
                       struct memory_result *result) {
  u32 n = NUMBER_OF(history->events, history->n_events, one, one->kind == MEMORY_ALLOC);
  SCOPED struct allocation *list = memory_array(size_sum(n, 1), sizeof(*list));
  SCOPED struct row *rows = memory_array(size_sum(n, 1), sizeof(*rows));
  result->churn_bytes = 0;
  list_allocations(history, list, &n);
  list_churn(history, list, n, rows, arena, result);
}
