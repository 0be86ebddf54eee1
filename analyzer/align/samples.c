/* SPDX-License-Identifier: MIT */
#include "align/samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/robust.h"

static bool is_barrier_like(u8 op) {
  return op == TSCOPE_OP_ALLREDUCE || op == TSCOPE_OP_ALLGATHER || op == TSCOPE_OP_REDUCE_SCATTER ||
         op == TSCOPE_OP_ALLTOALL || op == TSCOPE_OP_BARRIER;
}

/* At least two members' ends are known. */
static bool is_usable(const struct model *model, const struct collective *collective) {
  u32 known = 0;
  if (!is_barrier_like(collective->op) || collective->mismatched)
    return false;
  for (u32 i = 0; i < collective->n_arrivals && known < 2; i++)
    known += model->arrivals[collective->first_arrival + i].end != NS_UNKNOWN;
  return known == 2;
}

/* Picks every so many-th usable collective of each communicator. `usable` counts them. */
static int choose_collectives(struct samples *samples, const struct model *model, const u32 *usable,
                              struct arena *arena) {
  struct sample **of_comm = calloc(model->n_comms + 1, sizeof(struct sample *));
  u32 *seen = calloc(model->n_comms + 1, sizeof(*seen));
  bool room = of_comm && seen;
  for (u32 c = 0; c < model->n_comms && room; c++) {
    if (usable[c] == 0)
      continue;
    struct sample *sample = of_comm[c] = &samples->at[samples->n++];
    sample->comm = c;
    sample->collectives = arena_array(arena, usable[c] < MOST_SAMPLES ? usable[c] : MOST_SAMPLES,
                                      sizeof(*sample->collectives));
    room = sample->collectives != NULL;
  }
  for (u32 i = 0; i < model->n_collectives && room; i++) {
    u32 comm = model->collectives[i].comm;
    struct sample *sample = of_comm[comm];
    if (!sample || !is_usable(model, &model->collectives[i]))
      continue;
    u64 wanted = usable[comm] < MOST_SAMPLES ? usable[comm] : MOST_SAMPLES;
    if (seen[comm]++ * wanted / usable[comm] >= sample->n && sample->n < wanted)
      sample->collectives[sample->n++] = i;
  }
  free(of_comm);
  free(seen);
  return room ? 0 : -ENOMEM;
}

static int fill_sample(struct sample *sample, const struct model *model, u32 *member_of_rank,
                       struct arena *arena) {
  for (u32 r = 0; r < model->n_ranks; r++)
    member_of_rank[r] = INDEX_NONE;
  for (u32 k = 0; k < sample->n; k++) {
    const struct collective *collective = &model->collectives[sample->collectives[k]];
    for (u32 i = 0; i < collective->n_arrivals; i++)
      member_of_rank[model->arrivals[collective->first_arrival + i].rank] = 0;
  }
  for (u32 r = 0; r < model->n_ranks; r++)
    if (member_of_rank[r] != INDEX_NONE)
      member_of_rank[r] = sample->n_members++;
  sample->members = arena_array(arena, sample->n_members, sizeof(*sample->members));
  sample->ends = arena_array(arena, (size_t)sample->n * sample->n_members, sizeof(i64));
  if (!sample->members || !sample->ends)
    return -ENOMEM;
  for (u32 r = 0; r < model->n_ranks; r++)
    if (member_of_rank[r] != INDEX_NONE)
      sample->members[member_of_rank[r]] = r;
  for (size_t i = 0; i < (size_t)sample->n * sample->n_members; i++)
    sample->ends[i] = NS_UNKNOWN;
  for (u32 k = 0; k < sample->n; k++) {
    const struct collective *collective = &model->collectives[sample->collectives[k]];
    for (u32 i = 0; i < collective->n_arrivals; i++) {
      const struct arrival *arrival = &model->arrivals[collective->first_arrival + i];
      sample->ends[(size_t)k * sample->n_members + member_of_rank[arrival->rank]] = arrival->end;
    }
  }
  return 0;
}

/* A message whose both ends are known, by the pair of ranks it is between. */
struct message {
  u32 comm, low, high; /* low < high: ranks, as index into model.ranks */
  u32 collective;
  bool upwards; /* from low to high */
};

static int by_pair(const void *left, const void *right) {
  const struct message *a = left, *b = right;
  if (a->comm != b->comm)
    return a->comm < b->comm ? -1 : 1;
  if (a->low != b->low)
    return a->low < b->low ? -1 : 1;
  if (a->high != b->high)
    return a->high < b->high ? -1 : 1;
  if (a->upwards != b->upwards)
    return a->upwards ? -1 : 1;
  return a->collective < b->collective ? -1 : a->collective > b->collective;
}

static u32 list_messages(const struct model *model, struct message *messages) {
  u32 n = 0;
  for (u32 i = 0; i < model->n_collectives; i++) {
    const struct collective *collective = &model->collectives[i];
    const struct arrival *send = &model->arrivals[collective->first_arrival], *receive = send + 1;
    if (collective->op != TSCOPE_OP_SEND || collective->n_arrivals != 2 ||
        send->end == NS_UNKNOWN || receive->end == NS_UNKNOWN || send->rank == receive->rank)
      continue;
    bool upwards = send->rank < receive->rank;
    if (messages)
      messages[n] = (struct message){collective->comm, upwards ? send->rank : receive->rank,
                                     upwards ? receive->rank : send->rank, i, upwards};
    n++;
  }
  return n;
}

/* As many of each direction, spread evenly. */
static bool choose_messages(struct sample *sample, const struct message *at, u32 n, u32 upwards,
                            struct arena *arena) {
  u32 fewer = upwards < n - upwards ? upwards : n - upwards;
  u32 each = fewer < MOST_SAMPLES / 2 ? fewer : MOST_SAMPLES / 2;
  *sample = (struct sample){.comm = at->comm, .messages = true};
  sample->collectives = arena_array(arena, 2 * each, sizeof(*sample->collectives));
  for (u32 i = 0; i < each && sample->collectives; i++) {
    sample->collectives[sample->n++] = at[(u64)i * upwards / each].collective;
    sample->collectives[sample->n++] = at[upwards + (u64)i * (n - upwards) / each].collective;
  }
  return sample->collectives != NULL;
}

static int add_messages(struct samples *samples, const struct model *model, struct arena *arena) {
  u32 n = list_messages(model, NULL);
  if (n == 0)
    return 0;
  struct message *messages = malloc(n * sizeof(*messages));
  struct sample *all = arena_array(arena, (size_t)samples->n + n, sizeof(*all));
  bool room = messages && all;
  if (room) {
    list_messages(model, messages);
    qsort(messages, n, sizeof(*messages), by_pair);
    memcpy(all, samples->at, samples->n * sizeof(*all));
    samples->at = all;
  }
  for (u32 i = 0, next; i < n && room; i = next) {
    u32 upwards = 0;
    for (next = i; next < n && messages[next].comm == messages[i].comm &&
                   messages[next].low == messages[i].low && messages[next].high == messages[i].high;
         next++)
      upwards += messages[next].upwards;
    if (upwards > 0 && upwards < next - i)
      room = choose_messages(&samples->at[samples->n++], &messages[i], next - i, upwards, arena);
  }
  free(messages);
  return room ? 0 : -ENOMEM;
}

static void measure_transfers(struct samples *samples, const struct model *model) {
  for (u32 s = 0; s < samples->n; s++) {
    for (u32 k = 0; k < samples->at[s].n; k++) {
      const struct collective *collective = &model->collectives[samples->at[s].collectives[k]];
      i64 shortest = INT64_MAX;
      for (u32 i = 0; i < collective->n_arrivals; i++) {
        const struct arrival *arrival = &model->arrivals[collective->first_arrival + i];
        if (arrival->end != NS_UNKNOWN && arrival->end - arrival->start < shortest)
          shortest = arrival->end - arrival->start;
      }
      samples->transfers_us[samples->n_transfers++] = (double)shortest / 1e3;
    }
  }
}

int samples_collect(struct samples *samples, const struct model *model, struct arena *arena) {
  *samples = (struct samples){.at = arena_array(arena, model->n_comms + 1, sizeof(*samples->at))};
  u32 *usable = arena_array(arena, model->n_comms + 1, sizeof(*usable));
  u32 *member_of_rank = arena_array(arena, model->n_ranks + 1, sizeof(*member_of_rank));
  if (!samples->at || !usable || !member_of_rank)
    return -ENOMEM;
  for (u32 i = 0; i < model->n_collectives; i++)
    usable[model->collectives[i].comm] += is_usable(model, &model->collectives[i]);
  int result = choose_collectives(samples, model, usable, arena);
  if (result == 0)
    result = add_messages(samples, model, arena);
  size_t total = 0;
  for (u32 s = 0; s < samples->n && result == 0; s++) {
    result = fill_sample(&samples->at[s], model, member_of_rank, arena);
    total += samples->at[s].n;
  }
  samples->transfers_us = arena_array(arena, total + 1, sizeof(*samples->transfers_us));
  if (!samples->transfers_us)
    result = -ENOMEM;
  if (result == 0)
    measure_transfers(samples, model);
  return result;
}

double samples_transfer_us(struct samples *samples) {
  return median_double(samples->transfers_us, samples->n_transfers);
}
