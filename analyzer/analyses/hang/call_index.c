/* SPDX-License-Identifier: MIT */
#include "analyses/hang/verdict.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_place(const void *left, const void *right) {
  const struct place *a = left, *b = right;
  if (a->group != b->group)
    return a->group > b->group ? 1 : -1;
  return (a->rank > b->rank) - (a->rank < b->rank);
}

static int by_cell(const void *left, const void *right) {
  const struct cell *a = left, *b = right;
  if (a->group != b->group)
    return a->group > b->group ? 1 : -1;
  if (a->seq != b->seq)
    return a->seq > b->seq ? 1 : -1;
  if (a->rank != b->rank)
    return a->rank > b->rank ? 1 : -1;
  return (a->call > b->call) - (a->call < b->call);
}

struct place *book_place(const struct book *book, u32 group, u32 rank) {
  struct place key = {.group = group, .rank = rank};
  u32 first = book->first_place[group], n = book->first_place[group + 1] - first;
  return n ? bsearch(&key, book->places + first, n, sizeof key, by_place) : NULL;
}

/* The first cell not before (group, seq, rank). */
static u32 lower_cell(const struct book *book, u32 group, i64 seq, u32 rank) {
  struct cell key = {.group = group, .seq = seq, .rank = rank};
  u32 low = 0, high = book->n_cells;
  while (low < high) {
    u32 middle = low + (high - low) / 2;
    if (by_cell(&book->cells[middle], &key) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

const struct cell *book_cell(const struct book *book, u32 group, i64 seq, u32 rank) {
  u32 at = lower_cell(book, group, seq, rank);
  const struct cell *cell = &book->cells[at];
  return at < book->n_cells && cell->group == group && cell->seq == seq && cell->rank == rank
             ? cell
             : NULL;
}

const struct cell *book_cells(const struct book *book, u32 group, i64 seq, u32 *n) {
  u32 at = lower_cell(book, group, seq, 0);
  *n = 0;
  while (at + *n < book->n_cells && book->cells[at + *n].group == group &&
         book->cells[at + *n].seq == seq)
    ++*n;
  return *n ? &book->cells[at] : NULL;
}

static int open_places(struct book *book) {
  const struct ledger *ledger = book->ledger;
  u32 n = 0;
  book->first_place = arena_array(book->arena, ledger->n_groups + 1u, sizeof(u32));
  if (!book->first_place)
    return -ENOMEM;
  for (u32 g = 0; g < ledger->n_groups; g++) {
    book->first_place[g] = n;
    n += ledger->groups[g].n_members;
  }
  book->first_place[ledger->n_groups] = n;
  book->places = arena_array(book->arena, n + 1u, sizeof *book->places);
  if (!book->places)
    return -ENOMEM;
  for (u32 g = 0; g < ledger->n_groups; g++) {
    struct place *places = book->places + book->first_place[g];
    for (u32 m = 0; m < ledger->groups[g].n_members; m++)
      places[m] = (struct place){.group = g,
                                 .rank = ledger->groups[g].members[m],
                                 .called = SEQ_UNKNOWN,
                                 .completed = SEQ_UNKNOWN,
                                 .front = SEQ_UNKNOWN,
                                 .front_call = INDEX_NONE};
    if (ledger->groups[g].n_members)
      qsort(places, ledger->groups[g].n_members, sizeof *places, by_place);
  }
  return 0;
}

static void account(struct book *book, u32 index) {
  const struct ledger_call *call = &book->ledger->calls[index];
  struct place *place = book_place(book, call->group, call->rank);
  if (!place)
    return;
  book->cells[book->n_cells++] =
      (struct cell){.group = call->group, .rank = call->rank, .seq = call->seq, .call = index};
  if (call->seq > place->called)
    place->called = call->seq;
  if (call->state == LEDGER_COMPLETED && call->seq > place->completed)
    place->completed = call->seq;
  if (is_pending(call) && (place->front == SEQ_UNKNOWN || call->seq < place->front)) {
    place->front = call->seq;
    place->front_call = index;
  }
}

/* PyTorch counts a group's collectives and messages apart but has one progress for both. That of a
 * group in which messages were sent, or whose numbers do not agree with the calls, tells nothing.
 */
static int find_reliable(const struct book *book, bool **reliable) {
  const struct ledger *ledger = book->ledger;
  *reliable = arena_array(book->arena, ledger->n_groups + 1u, sizeof(bool));
  if (!*reliable)
    return -ENOMEM;
  memset(*reliable, true, ledger->n_groups);
  for (u32 i = 0; i < ledger->n_calls; i++)
    if (ledger->calls[i].message)
      (*reliable)[ledger->calls[i].group] = false;
  for (u32 i = 0; i < ledger->n_progress; i++) {
    const struct ledger_progress *progress = &ledger->progress[i];
    const struct place *place = book_place(book, progress->group, progress->rank);
    if (!place || (place->called != SEQ_UNKNOWN && progress->called != place->called))
      (*reliable)[progress->group] = false;
  }
  return 0;
}

static int take_progress(struct book *book) {
  bool *reliable;
  int error = find_reliable(book, &reliable);
  for (u32 i = 0; i < book->ledger->n_progress && !error; i++) {
    const struct ledger_progress *progress = &book->ledger->progress[i];
    struct place *place = book_place(book, progress->group, progress->rank);
    if (!place || !reliable[progress->group])
      continue;
    if (progress->called > place->called)
      place->called = progress->called;
    if (progress->completed > place->completed)
      place->completed = progress->completed;
  }
  return error;
}

int book_open(struct book *book, const struct ledger *ledger, struct arena *arena) {
  *book = (struct book){.ledger = ledger, .arena = arena};
  int error = open_places(book);
  if (error)
    return error;
  book->cells = arena_array(arena, ledger->n_calls + 1u, sizeof *book->cells);
  if (!book->cells)
    return -ENOMEM;
  for (u32 i = 0; i < ledger->n_calls; i++) {
    const struct ledger_call *call = &ledger->calls[i];
    if (!call->message && !call->inside && call->seq != SEQ_UNKNOWN)
      account(book, i);
  }
  if (book->n_cells)
    qsort(book->cells, book->n_cells, sizeof *book->cells, by_cell);
  return take_progress(book);
}

enum standing book_standing(const struct book *book, const struct place *place, i64 seq,
                            i64 created) {
  const struct ledger_rank *rank = &book->ledger->ranks[place->rank];
  if (!rank->seen)
    return STANDS_UNRECORDED;
  const struct cell *cell = book_cell(book, place->group, seq, place->rank);
  if (cell) {
    const struct ledger_call *call = &book->ledger->calls[cell->call];
    return is_pending(call)                  ? STANDS_PENDING
           : call->state == LEDGER_COMPLETED ? STANDS_DONE
           : place->completed >= seq         ? STANDS_DONE
                                             : STANDS_CALLED;
  }
  if (place->called != SEQ_UNKNOWN && seq > place->called)
    return STANDS_ABSENT;
  if (place->called != SEQ_UNKNOWN)
    return STANDS_DONE; /* called, and no longer kept */
  /* Nothing is kept of this group: it would be if the record goes back beyond the peers' call. */
  if (rank->kept_all || rank->n_calls == 0)
    return STANDS_ABSENT;
  bool goes_back =
      created != NS_UNKNOWN && rank->first_created != NS_UNKNOWN && created >= rank->first_created;
  return goes_back ? STANDS_ABSENT : STANDS_UNKNOWN;
}

bool verdict_joins_all(const char *op) {
  static const char *const one_way[] = {"broadcast", "reduce", "gather", "scatter", "send", "recv"};
  const char *name = *op == '_' ? op + 1 : op;
  for (size_t i = 0; i < sizeof one_way / sizeof *one_way; i++) {
    size_t n = strlen(one_way[i]);
    if (strncmp(name, one_way[i], n) == 0 && strncmp(name, "reduce_scatter", 14) != 0)
      return false;
  }
  return strcmp(op, "coalesced") != 0;
}

char *verdict_call_name(const struct book *book, const struct ledger_call *call) {
  const struct ledger_group *group = &book->ledger->groups[call->group];
  char seq[32] = "";
  if (call->seq != SEQ_UNKNOWN && !call->message)
    snprintf(seq, sizeof seq, " %lld", (long long)call->seq);
  if (!group->desc || strcmp(group->desc, group->name) == 0)
    return arena_printf(book->arena, "%s%s of group %s", call->op, seq, group->name);
  return arena_printf(book->arena, "%s%s of %s (group %s)", call->op, seq, group->desc,
                      group->name);
}

static int by_u32(const void *left, const void *right) {
  u32 a = *(const u32 *)left, b = *(const u32 *)right;
  return (a > b) - (a < b);
}

/* Ranges longer than this many are cut: the JSON has them all. */
#define MOST_RANGES 8u

char *verdict_rank_list(const struct book *book, const u32 *ranks, u32 n) {
  u32 *sorted = arena_array(book->arena, n + 1u, sizeof(u32));
  char text[400];
  size_t used = 0;
  if (!sorted)
    return NULL;
  for (u32 i = 0; i < n; i++)
    sorted[i] = book->ledger->ranks[ranks[i]].rank;
  if (n)
    qsort(sorted, n, sizeof(u32), by_u32);
  used += (size_t)snprintf(text, sizeof text, n == 1 ? "rank " : "ranks ");
  for (u32 i = 0, ranges = 0; i < n; ranges++) {
    u32 last = i;
    while (last + 1 < n && sorted[last + 1] == sorted[last] + 1)
      last++;
    const char *comma = ranges ? ", " : "";
    if (ranges == MOST_RANGES) {
      snprintf(text + used, sizeof text - used, " and %u more", n - i);
      break;
    }
    used += (size_t)(last == i ? snprintf(text + used, sizeof text - used, "%s%u", comma, sorted[i])
                               : snprintf(text + used, sizeof text - used,
                                          last == i + 1 ? "%s%u, %u" : "%s%u-%u", comma, sorted[i],
                                          sorted[last]));
    i = last + 1;
  }
  return arena_text(book->arena, text);
}
