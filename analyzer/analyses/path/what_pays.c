/* SPDX-License-Identifier: MIT
 *
 * What pays: how much shorter a step gets if one thing (a kernel, a copy, a collective, a call, an
 * operator, a phase, the waits at a line) took 90 %, 50 % or none of its time, by the replay over
 * all ranks. A thing that is not on the critical path saves nothing however much GPU time it takes,
 * and one on it saves at most its time there: so only those on it are replayed, and the largest
 * kernels.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/analyses.h"
#include "analyses/lines/lines.h"
#include "analyses/path/path_graph.h"
#include "analyses/path/path_labels.h"
#include "analyses/queries.h"
#include "base/quantity.h"
#include "base/sorting.h"

enum {
  THINGS = 12, /* on the critical path */
  KERNELS = 4, /* that take most GPU time, wherever they are */
  PHASES_AND_LINES = 8,
  FEWEST = 4, /* rows, however large a sample is */
  SHARES = 3  /* of their time that things keep */
};
static const double left[SHARES] = {0.9, 0.5, 0};

#define ON_PATH_LEAST 0.01 /* of the path */
#define KERNEL_LEAST 0.1   /* of GPU time */
#define WHY_SHARE 0.3      /* of GPU time, for a thing that hardly pays */
#define WHY_SAVES 0.02     /* of the step */
#define PAYS_LEAST 0.005   /* of the step */
#define MOST_SHOWN 6
#define VISITS_WANTED 4e6 /* of nodes, by all replays together */

/* Whether work of that kind is on the path as that category; on the host that depends on the phase.
 */
static bool is_on_path_as(u32 kind, u8 category) {
  static const u8 categories[] = {[NODE_LAUNCH] = PATH_LAUNCH,
                                  [NODE_KERNEL] = PATH_COMPUTE,
                                  [NODE_MEMCPY] = PATH_MEMCPY,
                                  [NODE_MEMSET] = PATH_MEMCPY,
                                  [NODE_COLLECTIVE] = PATH_COMMUNICATION};
  if (kind == NODE_HOST)
    return category == PATH_HOST || category == PATH_COMPUTE || category == PATH_INPUT;
  return kind <= NODE_COLLECTIVE && category == categories[kind];
}

static const char *name_of_kind(u32 kind) {
  static const char *const names[] = {
      [NODE_HOST] = "operator", [NODE_LAUNCH] = "call", [NODE_KERNEL] = "kernel",
      [NODE_MEMCPY] = "copy",   [NODE_MEMSET] = "fill", [NODE_COLLECTIVE] = "collective"};
  return names[kind];
}

/* Where it is on the path, ms a step. */
static double on_path_ms(const struct results *r, const struct work_of_name *work) {
  double ms = 0;
  FOR_EACH(r->path_by_name, r->n_path_by_name, row)
    if (row->label == work->label && is_on_path_as(work->kind, row->category_id))
      ms += row->ms;
  return ms;
}

static struct paying *add_row(struct results *r, const char *name, const char *kind,
                              struct cure_change change) {
  if (!name || r->n_pays == THINGS + KERNELS + PHASES_AND_LINES)
    return NULL;
  struct paying *row = &r->pays[r->n_pays++];
  *row = (struct paying){.name = name,
                         .shortened = name,
                         .kind = kind,
                         .path_ms = NAN,
                         .gpu_share = NAN,
                         .change = change};
  return row;
}

static void add_name(struct analysis *a, const struct work_of_name *work, double device_ns) {
  const char *shortened, *name = path_label_name(a, work->label, &shortened);
  struct paying *row =
      add_row(a->results, name, name_of_kind(work->kind),
              (struct cure_change){.kind = CHANGE_NAME, .which = work->label, .of = work->kind});
  if (!row)
    return;
  row->shortened = shortened;
  row->path_ms = on_path_ms(a->results, work);
  row->gpu_share = work->kind == NODE_KERNEL && device_ns > 0 ? work->ns / device_ns : NAN;
}

/* The one with most time on the path, or on GPUs, that has no row yet; NULL if it is too small. */
static struct work_of_name *largest(const struct results *r, struct work_of_name *works, u32 n,
                                    bool on_path, double least) {
  struct work_of_name *best = NULL;
  double most = least;
  FOR_EACH_CHANGED(works, n, each) {
    double size = on_path ? on_path_ms(r, each) : each->kind == NODE_KERNEL ? each->ns : 0;
    if (each->listed || !(size >= most))
      continue;
    best = each;
    most = size;
  }
  if (best)
    best->listed = true;
  return best;
}

static void add_names(struct analysis *a, u32 most) {
  SCOPED struct work_of_name *works = NULL;
  struct work_of_name *next;
  u32 n, added = 0;
  double least_ms = ON_PATH_LEAST * a->results->path_length_ms;
  replay_names(a, &works, &n);
  double device_ns = TOTAL(double, works, n, one, NODE_ON_DEVICE(one->kind) ? one->ns : 0);
  while (added++ < most && (next = largest(a->results, works, n, true, least_ms)))
    add_name(a, next, device_ns);
  for (added = 0; added < KERNELS && added < most && device_ns > 0 &&
                  (next = largest(a->results, works, n, false, KERNEL_LEAST * device_ns));
       added++)
    add_name(a, next, device_ns);
}

static void add_phases_and_lines(struct analysis *a, u32 most) {
  struct results *r = a->results;
  double unmarked = lines_unmarked_training(a);
  const struct {
    const char *name;
    double ms;
    struct cure_change change;
  } phases[] = {
      {"input", r->data_ms, {.kind = CHANGE_INPUT}},
      {"forward", r->forward_ms, {.kind = CHANGE_PHASE, .which = TSCOPE_PHASE_FORWARD}},
      {"backward", r->backward_ms, {.kind = CHANGE_PHASE, .which = TSCOPE_PHASE_BACKWARD}},
      {"optimizer", r->optimizer_ms, {.kind = CHANGE_PHASE, .which = TSCOPE_PHASE_OPTIMIZER}},
      {"outside the phases",
       r->other_ms * (1 - unmarked),
       {.kind = CHANGE_OUTSIDE, .left = unmarked}},
  };
  FOR_EACH(phases, LENGTH_OF(phases), each)
    if (each->ms >= ON_PATH_LEAST * r->step_mean_ms && most && most--)
      add_row(r, each->name, "phase", each->change);
  FOR_EACH(r->what_if, r->n_what_if, one)
    if (one->kind == WHAT_IF_LINE && most && most--)
      add_row(r, r->lines.at[one->rank].place, "line", one->cure.changes[0]);
}

/* What holds the step up instead of something that takes much GPU time. */
static const char *why_not(struct analysis *a, const struct paying *row) {
  const struct results *r = a->results;
  if (!(row->gpu_share >= WHY_SHARE) || row->saves_at_0 >= WHY_SAVES || !r->n_path_by_name)
    return NULL;
  const struct path_name_result *longest =
      FIND(r->path_by_name, r->n_path_by_name, one, strcmp(one->name, row->name) != 0);
  if (!longest)
    return NULL;
  return say(a, "%s of GPU time, saves %s: %s of it is on the critical path, which is %s %s (%s)",
             percent(row->gpu_share).text, percent(row->saves_at_0).text,
             percent(fmin(1, row->path_ms / (row->gpu_share * r->ov_compute_ms))).text,
             percent(longest->ms / r->path_length_ms).text, longest->shortened, longest->category);
}

static double *saving(struct paying *row, u32 share) {
  return share == 0 ? &row->saves_at_90 : share == 1 ? &row->saves_at_50 : &row->saves_at_0;
}

/* A wait at a line is there or not: what a part of it would save is not told. */
static bool is_asked(const struct paying *row, u32 share) {
  return row->change.kind != CHANGE_LINE || left[share] == 0;
}

ORDER_BY(most_first, struct paying, DOWN(saves_at_0) BY_TEXT(name))

static void replay_rows(struct analysis *a) {
  struct results *r = a->results;
  u32 most = r->n_pays * SHARES, n = 0;
  struct cure_change *changes = arena_array(a->arena, most, sizeof(*changes));
  struct cure *cures = arena_array(a->arena, most, sizeof(*cures));
  struct saving *savings = arena_array(a->arena, most, sizeof(*savings));
  double now_ms = analysis_length_ms(a);
  FOR_EACH(r->pays, r->n_pays, row)
    for (u32 share = 0; share < SHARES; share++) {
      if (!is_asked(row, share))
        continue;
      changes[n] = row->change;
      changes[n].left += (1 - row->change.left) * left[share];
      cures[n] = (struct cure){&changes[n], 1};
      n++;
    }
  replay_many_savings(a, cures, n, 2 * VISITS_WANTED, savings);
  n = 0;
  FOR_EACH_CHANGED(r->pays, r->n_pays, row)
    for (u32 share = 0; share < SHARES; share++)
      *saving(row, share) = is_asked(row, share) ? savings[n++].ms / now_ms : NAN;
  FOR_EACH_CHANGED(r->pays, r->n_pays, pay)
    pay->why = why_not(a, pay);
  SORT(r->pays, r->n_pays, most_first);
  r->pays_shown =
      fmin(MOST_SHOWN, NUMBER_OF(r->pays, r->n_pays, one, one->saves_at_0 >= PAYS_LEAST));
}

void what_pays_analyse(struct analysis *a) {
  struct results *r = a->results;
  u32 nodes = replay_first_nodes(a);
  if (r->what_if_reason || !nodes)
    return;

  double rows = fmax(FEWEST, VISITS_WANTED / nodes / SHARES), names = rows / 2;
  r->pays = arena_array(a->arena, size_sum(THINGS + KERNELS, PHASES_AND_LINES), sizeof(*r->pays));
  add_names(a, names > THINGS ? THINGS : (u32)names);
  add_phases_and_lines(a, rows > r->n_pays ? (u32)rows - r->n_pays : 0);
  replay_rows(a);
}
