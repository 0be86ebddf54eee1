/* SPDX-License-Identifier: MIT
 *
 * The lines of one rank, written or read.
 */
#include "analyses/analyses.h"
#include "analyses/carry_found.h"
#include "analyses/lines/line_stacks.h"
#include "analyses/lines/line_sums.h"
#include "model/rank_facts.h"

static void carry_line(struct carrier *c, struct line_sum *sum) {
  CARRY_EACH(c, sum, file, function, line, waits, collectives, samples, calls, of_backward, wait_ns,
             idle_ns, input_ns, comm_ns, exposed_ns, host_ns, host_input_ns, host_outside_ns,
             host_launching_ns, host_capturing_ns, worker_ns, launches, gpu_ns, backward_gpu_ns);
  c->bad |= !sum->file || !sum->function;
}

static void carry_frame(struct carrier *c, struct line_sums *sums, struct call_frame **frame) {
  bool known = *frame != NULL;
  CARRY(c, &known);
  if (!known)
    return;
  if (c->reads)
    *frame = arena_alloc(&sums->arena, sizeof(**frame));
  CARRY_EACH(c, *frame, file, function, line, first_line);
  c->bad |= !(*frame)->file;
}

static void carry_path(struct carrier *c, struct sampled_path *path) {
  CARRY(c, &path->ns);
  CARRY_LIST(c, path->frames, path->n, 7, carry_call_frame);
  for (u32 i = 0; i < path->n && c->reads; i++)
    c->bad |= !path->frames[i].file;
}

static void carry_part(struct carrier *c, struct sampled_part *part) {
  static const struct column times[] = {EACH_COLUMN(struct part_time, slice, steps, ns)};
  u32 kind = part->kind;
  CARRY(c, &part->key);
  CARRY(c, &kind);
  part->kind = kind;
  CARRY_EACH(c, part, file, function, line);
  FOR_EACH_CHANGED(part->activity_ns, ACTIVITIES, activity_n)
    CARRY(c, activity_n);
  CARRY_EACH(c, part, gil_ns, compiling_ns);
  part->n_times = carry_count(c, part->n_times, 3);
  CARRY_ARRAY(c, part->times, part->n_times);
  carry_columns(c, part->times, part->n_times, sizeof(*part->times), COLUMNS(times));
  CARRY_LIST(c, part->paths, part->n_paths, 2, carry_path);
}

static void check_part(struct carrier *c, const struct sampled_part *part) {
  c->bad |= part->kind >= PART_KINDS;
  for (u32 i = 0; i < part->n_times && !c->bad; i++)
    c->bad |= part->times[i].slice >= SLICES;
}

static void carry_parts(struct carrier *c, struct rank_parts *parts) {
  CARRY_LIST(c, parts->at, parts->n, 24, carry_part);
  for (u32 i = 0; i < parts->n && c->reads; i++)
    check_part(c, &parts->at[i]);
  FOR_EACH_CHANGED(parts->steps, SLICES, step)
    CARRY(c, step);
  CARRY(c, &parts->sample_ns);
}

/* Whether there are any, and their stacks, come first: lines_rank() writes them. */
void lines_carry(struct analysis *a, u32 rank, struct carrier *c) {
  struct line_sums *sums = &a->line_sums[rank];
  bool known = false;
  if (c->reads)
    CARRY(c, &known);
  if (known)
    line_tree_read(a->line_tree, rank, c);
  struct arena *before = carrier_read_into(c, &sums->arena);
  CARRY_EACH(c, sums, sites, samples, of_functions, of_operators, calls_unknown, idle_unknown,
             input_ns, input_waits_ns, outside_ns, launching_ns, capturing_ns, training_ns,
             worker_ns, worker_ready_ns, fewer.wanted, fewer.missed, fewer.slowest_us, last_ends);
  carry_frame(c, sums, &sums->last);
  carry_frame(c, sums, &sums->loop);
  FOR_EACH_CHANGED(sums->functions, HOST_TIMES, function) {
    CARRY(c, &function->ns);
    carry_frame(c, sums, &function->frame);
  }
  carry_parts(c, &sums->parts);
  CARRY_LIST(c, sums->at, sums->n, 41, carry_line);
  if (c->bad)
    *sums = (struct line_sums){.arena = sums->arena};
  carrier_read_into(c, before);
}
