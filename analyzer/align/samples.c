/* SPDX-License-Identifier: MIT */
#include "align/samples.h"

#include <math.h>
#include <string.h>

#include "base/checked_memory.h"
#include "base/robust.h"
#include "base/sorting.h"
#include "kernels/communication.h"
#include "model/rank_events.h"

static u32 known_ends(const struct model *model, const struct collective *collective) {
  return NUMBER_OF(members_of(model, collective), collective->n_arrivals, one,
                   one->end != NS_UNKNOWN);
}

/* All members that came left it, and at least two members' ends are known. */
static bool is_usable(const struct model *model, u32 index, const u32 *last_of_comm) {
  const struct collective *collective = &model->collectives[index];
  u32 known = 0;
  if (!op_is_barrier_like(collective->op) || collective->mismatched ||
      index > last_of_comm[collective->comm])
    return false;
  FOR_EACH_MEMBER(model, collective, member)
    if (member->end != NS_UNKNOWN && ++known == 2)
      return true;
  return false;
}

#define MOST_OUTSTANDING 64u /* collectives that a member has begun and not ended */

/* By communicator: the last collective that all members came to and, of those, as many left as any
 * of the last ones. After it some member did no more: what the others left then failed, on each of
 * them at another time. */
static u32 *last_finished(const struct model *model, struct arena *arena) {
  struct last {
    u32 members, ends, looked;
  } *of = arena_array(arena, model->n_comms, sizeof(*of));
  u32 *last = arena_array(arena, model->n_comms, sizeof(u32));
  FOR_EACH(model->collectives, model->n_collectives, one)
    of[one->comm].members = MAX(one->n_arrivals, of[one->comm].members);
  for (u32 i = model->n_collectives; i-- > 0;) {
    const struct collective *one = &model->collectives[i];
    struct last *comm = &of[one->comm];
    if (comm->looked == MOST_OUTSTANDING || one->n_arrivals < comm->members ||
        !op_is_barrier_like(one->op))
      continue;
    if (one->n_arrivals && members_of(model, one)->times == TIMES_LEFT_OUT)
      continue;
    u32 ends = known_ends(model, one);
    if (comm->looked++ == 0 || ends > comm->ends) {
      last[one->comm] = i;
      comm->ends = ends;
    }
  }
  return last;
}

/* Barrier-like collectives of one communicator, operation and size (to a power of two). */
struct class {
  u32 key, count, seen;
  struct clock_sample *sample;
};
#define MOST_CLASSES 12u /* of a communicator; rarer ones beyond that are left out */

static u32 class_key(const struct collective *collective) {
  u32 size = collective->bytes ? 64u - (u32)__builtin_clzll(collective->bytes) : 0;
  return 1 + collective->op * 128u + size;
}

static struct class *class_of(struct class *classes, const struct collective *collective) {
  struct class *of_comm = classes + (size_t)collective->comm * MOST_CLASSES;
  u32 key = class_key(collective);
  FOR_EACH_CHANGED(of_comm, MOST_CLASSES, one) {
    if (one->key == 0)
      one->key = key;
    if (one->key == key)
      return one;
  }
  return NULL;
}

/* How many of each class are taken: what one communicator may give, shared evenly. */
static void make_samples(struct samples *samples, const struct model *model, struct class *classes,
                         struct arena *arena) {
  for (u32 c = 0; c < model->n_comms; c++) {
    struct class *of_comm = classes + (size_t)c * MOST_CLASSES;
    u32 used = 0;
    while (used < MOST_CLASSES && of_comm[used].key)
      used++;
    FOR_EACH_CHANGED(of_comm, used, item) {
      u32 wanted = MOST_SAMPLED / used;
      wanted = MIN(item->count, wanted);
      item->sample = &samples->at[samples->n++];
      *item->sample =
          (struct clock_sample){.on_host = model->comms[c].backend != TSCOPE_BACKEND_NCCL,
                                .collectives = arena_array(arena, wanted, sizeof(u32))};
      item->sample->n = wanted;
    }
  }
}

static void choose_collectives(struct samples *samples, const struct model *model,
                               struct arena *arena) {
  size_t n_classes = size_product(model->n_comms, MOST_CLASSES);
  struct class *classes = arena_array(arena, n_classes, sizeof(*classes));
  const u32 *last = last_finished(model, arena);
  samples->at = arena_array(arena, n_classes, sizeof(*samples->at));
  for (u32 i = 0; i < model->n_collectives; i++) {
    struct class *class =
        is_usable(model, i, last) ? class_of(classes, &model->collectives[i]) : NULL;
    if (class)
      class->count++;
  }
  make_samples(samples, model, classes, arena);
  for (u32 i = 0; i < model->n_collectives; i++) {
    struct class *class =
        is_usable(model, i, last) ? class_of(classes, &model->collectives[i]) : NULL;
    if (!class)
      continue;
    u64 wanted = class->sample->n, before = class->seen * wanted / class->count;
    if ((++class->seen) * wanted / class->count > before)
      class->sample->collectives[before] = i;
  }
}

/* A message whose both ends are known, by the pair of ranks it is between. */
struct message_pair {
  u32 comm, low, high; /* low < high: ranks, as index into model.ranks */
  u32 collective;
  bool upwards; /* from low to high */
};

ORDER_BY(by_pair, struct message_pair, UP(comm) UP(low) UP(high) DOWN(upwards) UP(collective))

struct messages {
  VECTOR(struct message_pair) all;
};

static void list_messages(const struct model *model, struct messages *messages) {
  for (u32 i = 0; i < model->n_collectives; i++) {
    const struct collective *collective = &model->collectives[i];
    const struct arrival *send = members_of(model, collective), *receive = send + 1;
    if (collective->op != TSCOPE_OP_SEND || collective->n_arrivals != 2 ||
        send->end == NS_UNKNOWN || receive->end == NS_UNKNOWN || send->rank == receive->rank)
      continue;
    bool upwards = send->rank < receive->rank;
    VECTOR_PUSH(&messages->all,
                (struct message_pair){collective->comm, upwards ? send->rank : receive->rank,
                                      upwards ? receive->rank : send->rank, i, upwards});
  }
}

/* As many of each direction, spread evenly. */
static struct clock_sample choose_messages(const struct message_pair *at, u32 n, u32 upwards,
                                           bool on_host, struct arena *arena) {
  u32 fewer = MIN(upwards, n - upwards);
  u32 each = MIN(fewer, MOST_SAMPLED / 2);
  struct clock_sample sample = {.messages = true,
                                .on_host = on_host,
                                .collectives = arena_array(arena, each, 2 * sizeof(u32))};
  for (u32 i = 0; i < each; i++) {
    sample.collectives[sample.n++] = at[(u64)i * upwards / each].collective;
    sample.collectives[sample.n++] = at[upwards + (u64)i * (n - upwards) / each].collective;
  }
  return sample;
}

static void add_messages(struct samples *samples, const struct model *model, struct arena *arena) {
  struct messages list = {0};
  list_messages(model, &list);
  SCOPED struct message_pair *messages = list.all.at;
  u32 n = list.all.n;
  struct clock_sample *all = arena_array(arena, size_sum(samples->n, n), sizeof(*all));
  SORT(messages, n, by_pair);
  memcpy(all, samples->at, samples->n * sizeof(*all));
  samples->at = all;
  for (u32 i = 0, of_pair; i < n; i += of_pair) {
    of_pair = ROW_OF_EQUALS(&messages[i], n - i, a, b,
                            a->comm == b->comm && a->low == b->low && a->high == b->high);
    u32 upwards = NUMBER_OF(&messages[i], of_pair, one, one->upwards);
    bool on_host = model->comms[messages[i].comm].backend != TSCOPE_BACKEND_NCCL;
    if (upwards > 0 && upwards < of_pair)
      all[samples->n++] = choose_messages(&messages[i], of_pair, upwards, on_host, arena);
  }
}

struct member_times member_times_of(const struct model *model,
                                    const struct collective *collective) {
  struct member_times times = {NS_UNKNOWN, NS_UNKNOWN};
  FOR_EACH_MEMBER(model, collective, arrival) {
    i64 time;
    if (!arrival_has_run(arrival) || __builtin_sub_overflow(arrival->end, arrival->start, &time))
      continue;
    times.shortest = least_known(time, times.shortest);
    times.longest = MAX(time, times.longest);
  }
  return times;
}

static void measure_times(struct clock_sample *sample, const struct model *model) {
  i64 shortest[2 * MOST_SAMPLED], longest[2 * MOST_SAMPLED];
  u32 n = 0;
  FOR_EACH(sample->collectives, sample->n, collective) {
    struct member_times times = member_times_of(model, &model->collectives[*collective]);
    if (times.shortest == NS_UNKNOWN)
      continue;
    shortest[n] = times.shortest;
    longest[n++] = times.longest;
  }
  sample->transfer_ns = n ? lower_median_i64(shortest, n) : 0;
  sample->waiting_ns = n ? lower_median_i64(longest, n) : 0;
}

void samples_collect(struct samples *samples, const struct model *model, struct arena *arena) {
  *samples = (struct samples){0};
  choose_collectives(samples, model, arena);
  add_messages(samples, model, arena);
  FOR_EACH_CHANGED(samples->at, samples->n, sample)
    measure_times(sample, model);
}

void samples_mean_times(const struct samples *samples, double *transfer_us, double *waiting_us) {
  double n = 0;
  bool collectives = samples->n && !samples->at[0].messages; /* these come first */
  *transfer_us = *waiting_us = 0;
  FOR_EACH(samples->at, samples->n, sample) {
    if (collectives && sample->messages)
      continue;
    *transfer_us += (double)sample->transfer_ns / 1e3 * sample->n;
    *waiting_us += (double)sample->waiting_ns / 1e3 * sample->n;
    n += sample->n;
  }
  *transfer_us /= fmax(n, 1);
  *waiting_us /= fmax(n, 1);
}
