/* SPDX-License-Identifier: MIT
 *
 * Which ranks communicate with each other through kernels that have no call, such as DeepEP's. All
 * members of a group run these kernels in the same order, and each kernel ends on all of them at
 * the same time, however far apart it begins. So ranks belong together if their kernels are the
 * same operations in the same order, and the distances between their ends are the same. The group
 * gets a communicator, and its kernels numbers by which match_collectives.c finds those that belong
 * together.
 */
#include <errno.h>

#include "base/checked_memory.h"
#include "base/robust.h"
#include "join/joining.h"
#include "kernels/communication.h"

/* Above the identities of process groups without a name. */
#define KERNEL_GROUP 0x6b65726e656c0000ull
#define FIRST_SEQ 65536u   /* above any shift */
#define TOGETHER_NS 20000  /* ends of one collective differ by up to 7 us on eight real ranks */
#define LEAST_TOGETHER 0.9 /* of the kernels that are compared */
#define LEAST_COMPARED 3u  /* fewer may agree by chance */

/* The kernels of one library on one rank whose members wait for each other, in order. */
struct member {
  u32 rank;
  u32 *kernels; /* index into events.kernels */
  u32 n;
  u32 group; /* index into grouping.members of the group's first; itself if it is that */
  i32 shift; /* its k-th kernel is the first member's k + shift */
};

struct grouping {
  struct model *model;
  u8 library;
  struct member *members; /* [n] */
  u32 n;
  i64 *apart;             /* scratch */
  u64 compared, together; /* of all pairs that belong together */
};

static const struct rank_kernel *kernel_at(const struct grouping *g, const struct member *m,
                                           u32 k) {
  return &internal_of(g->model)->events[m->rank].kernels.at[m->kernels[k]];
}

/* How many kernels of `a` end together with those of `b` if the k-th is the k + shift-th there. */
static u32 count_together(struct grouping *g, const struct member *a, const struct member *b,
                          i32 shift, u32 *compared) {
  u32 n = 0, alike = 0, close = 0;
  for (i64 k = 0; k < a->n; k++) {
    if (k + shift < 0 || k + shift >= b->n)
      continue;
    const struct rank_kernel *one = kernel_at(g, a, (u32)k);
    const struct rank_kernel *other = kernel_at(g, b, (u32)(k + shift));
    n++;
    if (one->op == other->op)
      g->apart[alike++] = one->end - other->end;
  }
  *compared = n;
  if (alike < LEAST_COMPARED)
    return 0;
  i64 clocks = model_same_host(g->model, a->rank, b->rank) ? 0 : median_i64(g->apart, alike);
  for (u32 i = 0; i < alike; i++)
    close += g->apart[i] - clocks <= TOGETHER_NS && clocks - g->apart[i] <= TOGETHER_NS;
  return close;
}

/* Recordings may begin or end at different kernels: both ends are tried. */
static bool belongs_to(struct grouping *g, struct member *m, u32 first) {
  const struct member *head = &g->members[first];
  const i32 shifts[] = {0, (i32)head->n - (i32)m->n};
  for (u32 i = 0; i < 2; i++) {
    u32 compared, close = count_together(g, m, head, shifts[i], &compared);
    if (!close || close < LEAST_TOGETHER * compared)
      continue;
    m->group = first;
    m->shift = shifts[i];
    g->compared += compared;
    g->together += close;
    return true;
  }
  return false;
}

static void list_member(struct grouping *g, u32 rank) {
  const struct rank_events *events = &internal_of(g->model)->events[rank];
  struct member *m = &g->members[g->n];
  *m = (struct member){.rank = rank, .kernels = memory_array(events->kernels.n, sizeof(u32))};
  for (u32 i = 0; i < events->kernels.n; i++) {
    u8 op = events->kernels.at[i].op;
    if (comm_op_library(op) == g->library && comm_op_like(op))
      m->kernels[m->n++] = i;
  }
  m->group = g->n;
  g->n++;
}

/* A communicator for a rank's kernels of the library. Of a group of which only one member was found
 * the size is not known, nor where ranks are missing. */
static void define_comm(const struct grouping *g, const struct member *m) {
  struct rank_events *events = &internal_of(g->model)->events[m->rank];
  u32 old = events->n_comms, size = 0, place = 0;
  struct comm_definition *comms = arena_array(&events->arena, size_sum(old, 1), sizeof(*comms));
  if (old)
    memcpy(comms, events->comms, old * sizeof(*comms));
  for (u32 i = 0; i < g->n; i++)
    if (g->members[i].group == m->group) {
      place = &g->members[i] == m ? size : place;
      size++;
    }
  bool all = size > 1 && g->model->n_ranks >= g->model->world_size;
  comms[old] = (struct comm_definition){.identity = (KERNEL_GROUP | g->library) +
                                                    ((u64)g->members[m->group].rank << 8),
                                        .parent = 1,
                                        .comm = TSCOPE_UNKNOWN,
                                        .rank = all ? place : TSCOPE_UNKNOWN_RANK,
                                        .size = all ? size : 0,
                                        .name = comm_library_name(g->library),
                                        .backend = TSCOPE_BACKEND_NCCL,
                                        .library = g->library};
  events->comms = comms;
  events->n_comms = old + 1;
  for (u32 i = 0; i < events->kernels.n; i++)
    if (comm_op_library(events->kernels.at[i].op) == g->library)
      events->kernels.at[i].comm = old;
  for (u32 k = 0; k < m->n; k++)
    events->kernels.at[m->kernels[k]].seq = (u32)((i32)FIRST_SEQ + m->shift) + k;
}

static int group_library(struct grouping *g) {
  u32 groups = 0, matched = 0;
  for (u32 i = 0; i < g->n; i++) {
    for (u32 first = 0; first < i && g->members[i].group == i; first++)
      if (g->members[first].group == first)
        belongs_to(g, &g->members[i], first);
    groups += g->members[i].group == i;
    matched += g->members[i].group != i;
  }
  for (u32 i = 0; i < g->n; i++)
    define_comm(g, &g->members[i]);
  if (g->n > 1 && matched == 0)
    return model_note(g->model,
                      "kernels of %s on %u ranks do not end together: they are not matched, and "
                      "waiting is not told from moving data there",
                      comm_library_name(g->library), g->n);
  if (matched == 0)
    return 0;
  return model_note(g->model,
                    "kernels of %s have no calls; those of different ranks are matched by their "
                    "order, in %u group%s: %.1f %% of %llu end within %u us of each other",
                    comm_library_name(g->library), groups, groups == 1 ? "" : "s",
                    100.0 * (double)g->together / (double)g->compared,
                    (unsigned long long)g->compared, TOGETHER_NS / 1000);
}

static bool uses_library(const struct rank_events *events, u8 library) {
  for (u32 i = 0; i < events->kernels.n; i++)
    if (comm_op_library(events->kernels.at[i].op) == library)
      return true;
  return false;
}

int group_kernels(struct model *model) {
  u32 n = model->n_ranks, most = 0;
  int result = 0;
  for (u32 r = 0; r < n; r++)
    most = internal_of(model)->events[r].kernels.n > most ? internal_of(model)->events[r].kernels.n
                                                          : most;
  for (u8 library = 1; library < COMM_LIBRARIES && most && result == 0; library++) {
    struct grouping g = {.model = model,
                         .library = library,
                         .members = memory_array(n, sizeof(*g.members)),
                         .apart = memory_array(most, sizeof(i64))};
    for (u32 r = 0; r < n; r++)
      if (uses_library(&internal_of(model)->events[r], library))
        list_member(&g, r);
    if (g.n)
      result = group_library(&g);
    for (u32 i = 0; i < g.n; i++)
      free(g.members[i].kernels);
    free(g.members);
    free(g.apart);
  }
  return result;
}
