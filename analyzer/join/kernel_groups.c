/* SPDX-License-Identifier: MIT
 *
 * Which ranks communicate with each other through kernels that have no call, such as DeepEP's. All
 * members of a group run these kernels in the same order, and each kernel ends on all of them at
 * the same time, however far apart it begins. So ranks belong together if their kernels are the
 * same operations in the same order, and the distances between their ends are those of their
 * clocks. The group gets a communicator, and its kernels numbers by which match_collectives.c finds
 * those that belong together.
 */
#include <math.h>

#include "base/checked_memory.h"
#include "base/quantity.h"
#include "base/robust.h"
#include "base/sorting.h"
#include "join/joining.h"
#include "kernels/communication.h"

/* Above the identities of process groups without a name. */
#define KERNEL_GROUP 0x6b65726e656c0000ull
#define FIRST_SEQ 65536u   /* above any shift */
#define TOGETHER_NS 20000  /* ends of one collective differ by up to 7 us on eight real ranks */
#define LEAST_TOGETHER 0.9 /* of the kernels that are compared */
#define LEAST_COMPARED 3u  /* fewer may agree by chance */
#define QUICK_LOOK 64u     /* kernels after which a comparison may be given up */
#define MOST_APART 64      /* kernels by which recordings may begin apart */

/* Kernels of one library may belong to several groups, such as those of tensor and of data
 * parallelism. They are told apart by stream, or by operation, if they cannot all be of one. */
enum partition { BY_NOTHING, BY_STREAM, BY_OPERATION, PARTITIONS };

/* The kernels of one part on one rank whose members wait for each other, in order. */
struct member {
  u32 rank;
  u16 part;
  u32 *kernels; /* index into events.kernels */
  u32 n;
  u32 group; /* index into grouping.members of the group's first; itself if it is that */
  i32 shift; /* its k-th kernel is the first member's k + shift */
};

struct grouping {
  struct model *model;
  u8 library;
  enum partition partition;
  VECTOR(struct member) members;
  double *when, *apart, *scratch; /* of the kernels that are compared */
  u64 compared, together;         /* of all pairs that belong together */
};

static const struct rank_kernel *kernel_at(const struct grouping *g, const struct member *m,
                                           u32 k) {
  return &model_events(g->model, m->rank)->kernels.at[m->kernels[k]];
}

/* How many of the distances between two ranks' ends are those of their clocks: none on one host,
 * and a line over time between hosts. */
static u32 count_close(struct grouping *g, u32 n, bool same_clock) {
  struct line clocks = {0};
  u32 close = 0;
  if (!same_clock)
    clocks = fit_line(g->when, g->apart, n, MOST_DRIFT, g->scratch);
  for (u32 i = 0; i < n; i++)
    close += fabs(g->apart[i] - line_at(&clocks, g->when[i])) <= TOGETHER_NS;
  return close;
}

/* How many kernels of `a` end together with those of `b` if the k-th is the k + shift-th there. */
static u32 count_together(struct grouping *g, const struct member *a, const struct member *b,
                          i32 shift, u32 *compared) {
  u32 n = 0, alike = 0;
  for (i64 k = 0; k < a->n; k++) {
    if (k + shift < 0 || k + shift >= b->n)
      continue;
    const struct rank_kernel *one = kernel_at(g, a, (u32)k);
    const struct rank_kernel *other = kernel_at(g, b, (u32)(k + shift));
    if (n++ == QUICK_LOOK && alike < QUICK_LOOK / 2)
      return 0; /* the operations are others */
    if (one->op != other->op)
      continue;
    g->when[alike] = (double)(one->end - kernel_at(g, a, 0)->end);
    g->apart[alike++] = (double)(one->end - other->end);
  }
  *compared = n;
  if (alike < LEAST_COMPARED)
    return 0;
  return count_close(g, alike, model_same_host(g->model, a->rank, b->rank));
}

static bool belongs_shifted(struct grouping *g, struct member *m, u32 first, i32 shift) {
  u32 compared, close = count_together(g, m, &g->members.at[first], shift, &compared);
  if (!close || close < LEAST_TOGETHER * compared)
    return false;
  m->group = first;
  m->shift = shift;
  g->compared += compared;
  g->together += close;
  return true;
}

/* Recordings may begin and end at different kernels: their beginnings and ends are tried first,
 * then what begins a few kernels earlier or later. */
static bool belongs_to(struct grouping *g, struct member *m, u32 first) {
  i32 ends = (i32)g->members.at[first].n - (i32)m->n;
  if (belongs_shifted(g, m, first, 0) || (ends && belongs_shifted(g, m, first, ends)))
    return true;
  for (i32 apart = 1; apart <= MOST_APART; apart++)
    if (belongs_shifted(g, m, first, apart) || belongs_shifted(g, m, first, -apart))
      return true;
  return false;
}

/* In the order of their launches, which is the same on all ranks; on several streams the kernels
 * may begin in another. */
ORDER_INDICES_BY(by_launch, struct rank_kernel, UP(correlation) UP(start))

static u16 part_of(const struct grouping *g, const struct rank_kernel *kernel) {
  return g->partition == BY_STREAM ? kernel->stream : g->partition == BY_OPERATION ? kernel->op : 0;
}

static struct member *member_of(struct grouping *g, u32 rank, u16 part, u32 kernels) {
  struct member *known =
      FIND(g->members.at, g->members.n, one, one->rank == rank && one->part == part);
  if (known)
    return known;
  struct member new = {.rank = rank,
                       .part = part,
                       .kernels = memory_array(kernels, sizeof(u32)),
                       .group = g->members.n};
  VECTOR_PUSH(&g->members, new);
  return &g->members.at[new.group];
}

static void list_members(struct grouping *g, u32 rank) {
  const struct rank_events *events = model_events(g->model, rank);
  u32 first = g->members.n;
  for (u32 i = 0; i < events->kernels.n; i++) {
    const struct rank_kernel *kernel = &events->kernels.at[i];
    bool waits = comm_op_like(kernel->op) != 0;
    if (comm_op_library(kernel->op) != g->library || (!waits && g->partition != BY_NOTHING))
      continue;
    struct member *m = member_of(g, rank, part_of(g, kernel), events->kernels.n);
    if (waits)
      m->kernels[m->n++] = i;
  }
  for (struct member *m = g->members.at + first; m < g->members.at + g->members.n; m++)
    SORT_INDICES(m->kernels, m->n, events->kernels.at, by_launch);
}

/* Several groups of one library are numbered. */
static const char *name_of_group(const struct grouping *g, u32 group, struct arena *arena) {
  const char *library = comm_library_name(g->library);
  u32 number = 0, groups = 0;
  for (u32 i = 0; i < g->members.n; i++)
    if (g->members.at[i].group == i) {
      groups++;
      number = i == group ? groups : number;
    }
  return groups > 1 ? arena_printf(arena, "%s, group %u", library, number) : library;
}

/* A communicator for a rank's kernels of the library. Of a group of which only one member was found
 * the size is not known, nor where ranks are missing. */
static void define_comm(const struct grouping *g, const struct member *m) {
  struct rank_events *events = model_events(g->model, m->rank);
  u32 old = events->n_comms, size = 0, place = 0;
  FOR_EACH(g->members.at, g->members.n, each)
    if (each->group == m->group) {
      place = each == m ? size : place;
      size++;
    }
  bool all = size > 1 && g->model->n_ranks >= g->model->world_size;
  const struct comm_definition comm = {.identity =
                                           (KERNEL_GROUP | g->library) + ((u64)m->group << 8),
                                       .parent = 1,
                                       .comm = TSCOPE_UNKNOWN,
                                       .rank = all ? place : TSCOPE_UNKNOWN_RANK,
                                       .size = all ? size : 0,
                                       .name = name_of_group(g, m->group, &events->arena),
                                       .backend = TSCOPE_BACKEND_NCCL,
                                       .library = g->library};
  events->comms = arena_joined(&events->arena, events->comms, old, &comm, 1, sizeof(comm));
  events->n_comms = old + 1;
  for (u32 i = 0; i < events->kernels.n; i++) /* those that wait for nobody too */
    if (comm_op_library(events->kernels.at[i].op) == g->library &&
        events->kernels.at[i].comm == INDEX_NONE)
      events->kernels.at[i].comm = old;
  for (u32 k = 0; k < m->n; k++) {
    events->kernels.at[m->kernels[k]].comm = old;
    events->kernels.at[m->kernels[k]].seq = (u32)((i32)FIRST_SEQ + m->shift) + k;
  }
}

static bool has_rank(const struct grouping *g, u32 group, u32 rank) {
  return ANY(g->members.at, g->members.n, one, one->group == group && one->rank == rank);
}

static void forget_members(struct grouping *g) {
  FOR_EACH(g->members.at, g->members.n, member)
    free(member->kernels);
  g->members.n = 0;
  g->compared = g->together = 0;
}

/* Finds the groups of all ranks' kernels in parts of this kind. */
static void find_groups(struct grouping *g, enum partition partition) {
  forget_members(g);
  g->partition = partition;
  for (u32 r = 0; r < g->model->n_ranks; r++)
    list_members(g, r);
  for (u32 i = 0; i < g->members.n; i++)
    for (u32 first = 0; first < i && g->members.at[i].group == i; first++)
      if (g->members.at[first].group == first && !has_rank(g, first, g->members.at[i].rank))
        belongs_to(g, &g->members.at[i], first);
}

/* Whether all ranks are in one group, and all of its kernels end together. */
static bool is_settled(const struct grouping *g) {
  return ALL(g->members.at, g->members.n, one, one->group == 0) && g->together == g->compared;
}

/* In the parts in which the most kernels end together; in as few as will do. */
static void find_best_groups(struct grouping *g) {
  enum partition best = BY_NOTHING;
  find_groups(g, BY_NOTHING);
  u64 most = g->together;
  for (enum partition p = BY_STREAM; p < PARTITIONS && !is_settled(g); p++) {
    find_groups(g, p);
    best = g->together > most + most / 50 ? p : best;
    most = best == p ? g->together : most;
  }
  if (best != g->partition)
    find_groups(g, best);
}

static void group_library(struct grouping *g) {
  u32 groups = 0, alone = 0;
  find_best_groups(g);
  for (u32 i = 0; i < g->members.n; i++) {
    groups += g->members.at[i].group == i;
    alone += g->members.at[i].rank == g->members.at[0].rank;
    define_comm(g, &g->members.at[i]);
  }
  if (g->members.n > alone && g->together == 0) {
    model_note(g->model,
               "kernels of %s on several ranks do not end together: they are not matched, "
               "and waiting is not told from moving data there",
               comm_library_name(g->library));
    return;
  }
  if (g->together == 0)
    return;
  model_note(g->model,
             "kernels of %s have no calls; those of different ranks are matched by their "
             "order, in %s: %s of %llu end within %u us of each other",
             comm_library_name(g->library), plural(groups, "group").text,
             percent((double)g->together / (double)g->compared).text,
             (unsigned long long)g->compared, TOGETHER_NS / 1000);
}

void group_kernels(struct model *model) {
  u32 most = MOST_OF(u32, internal_of(model)->events, model->n_ranks, one, one->kernels.n);
  struct grouping g = {.model = model,
                       .when = memory_array(most, sizeof(double)),
                       .apart = memory_array(most, sizeof(double)),
                       .scratch = memory_array(most, sizeof(double))};
  for (g.library = 1; g.library < COMM_LIBRARIES && most; g.library++)
    group_library(&g);
  forget_members(&g);
  FREE_EACH(&g, members.at, when, apart, scratch);
}
