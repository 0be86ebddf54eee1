/* SPDX-License-Identifier: MIT */
#include "sampled_cluster.h"

#include <stdio.h>
#include <string.h>

#include "model/span_call_sites.h"

static struct call_sites *new_sites(struct cluster *c, u32 rank) {
  static struct call_frame frames[] = {
      {.file = "/home/me/train.py", .function = "train", .line = 10},
      {.file = "/home/me/train.py", .function = "log", .line = 20},
      {.file = "/home/me/train.py", .function = "train", .line = 30},
      {.file = "/home/me/train.py", .function = "check", .line = 40}};
  static const u32 numbers[] = {0, 1, 2, 3};
  static struct call_stack stacks[] = {
      {numbers, 1, 0}, {numbers + 1, 1, 0}, {numbers + 2, 1, 0}, {numbers + 3, 1, 0}};
  struct call_sites *sites = arena_alloc(&c->arena, sizeof(*sites));
  u32 n_spans = c->timelines[rank].n_spans;
  *sites = (struct call_sites){.frames = frames, .n_frames = 4, .stacks = stacks, .n_stacks = 4};
  sites->n_sites = 1; /* none of which is of a span */
  sites->of_span = arena_array(&c->arena, n_spans + 1u, sizeof(u32));
  memset(sites->of_span, 0xff, n_spans * sizeof(u32));
  sites->samples = arena_array(&c->arena, c->model.steps.n * 100u, sizeof(*sites->samples));
  return sites;
}

static void sample_step(struct call_sites *sites, i64 first, i64 begin, i64 end, i64 slow,
                        i64 other) {
  for (i64 at = first; at < end; at += (i64)sites->sample_ns)
    sites->samples[sites->n_samples++] =
        (struct line_sample){.time = at,
                             .represented_ns = (i64)sites->sample_ns,
                             .interval_ns = (i64)sites->sample_ns,
                             .activity = TSCOPE_ACTIVITY_SLEEP,
                             .stack = at < begin + slow - other      ? 1
                                      : at < begin + slow            ? 3
                                      : at < begin + slow + 300 * MS ? 0
                                                                     : 2};
}

void cluster_sample(struct cluster *c, const i64 *slow, i64 other, i64 apart, u32 seed) {
  const struct steps *steps = &c->model.steps;
  for (u32 r = 0; r < c->model.n_ranks; r++) {
    struct call_sites *sites = new_sites(c, r);
    sites->sample_ns = apart;
    for (u32 s = 0; s < steps->n; s++) {
      u32 at = s * c->model.n_ranks + r;
      i64 first = seed ? (i64)(uniform_share(&seed) * (double)apart) : 5 * MS;
      sample_step(sites, steps->begin[at] + first, steps->begin[at], steps->end[at], slow[at],
                  slow[at] ? other : 0);
    }
    c->timelines[r].call_sites = sites;
  }
}

enum { INNER_LINES = 6 };

void cluster_call_function(struct cluster *c, const char *inner, const char *outer) {
  enum { FRAMES = 4 + INNER_LINES + 1 };
  const char *file = "/home/me/train.py";
  for (u32 r = 0; r < c->model.n_ranks; r++) {
    struct call_sites *sites = arena_alloc(&c->arena, sizeof(*sites));
    *sites = *c->timelines[r].call_sites;
    struct call_frame *frames = arena_array(&c->arena, FRAMES, sizeof(*frames));
    struct call_stack *stacks = arena_array(&c->arena, 4 + INNER_LINES, sizeof(*stacks));
    memcpy(frames, sites->frames, 4 * sizeof(*frames));
    memcpy(stacks, sites->stacks, 4 * sizeof(*stacks));
    frames[FRAMES - 1] = (struct call_frame){.file = file, .function = outer, .line = 100};
    for (u32 i = 4; i < FRAMES - 1; i++) {
      u32 *path = arena_array(&c->arena, 3, sizeof(*path));
      path[0] = i;
      path[1] = FRAMES - 1;
      frames[i] = (struct call_frame){.file = file, .function = inner, .line = 200 + i};
      stacks[i] = (struct call_stack){path, 3, 0};
    }
    sites->frames = frames;
    sites->n_frames = FRAMES;
    sites->stacks = stacks;
    sites->n_stacks = 4 + INNER_LINES;
    for (u32 i = 0, turn = 0; i < sites->n_samples; i++)
      if (sites->samples[i].stack == 1)
        sites->samples[i].stack = 4 + turn++ % INNER_LINES;
    c->timelines[r].call_sites = sites;
  }
}

void cluster_call_twice(struct cluster *c) {
  static const u32 always[] = {1, 0}, slow[] = {1, 3};
  static struct call_stack stacks[4];
  memcpy(stacks, c->timelines[0].call_sites->stacks, sizeof(stacks));
  stacks[0] = (struct call_stack){always, 2, 0};
  stacks[1] = (struct call_stack){slow, 2, 0};
  for (u32 r = 0; r < c->model.n_ranks; r++) {
    struct call_sites *sites = arena_alloc(&c->arena, sizeof(*sites));
    *sites = *c->timelines[r].call_sites;
    sites->stacks = stacks;
    c->timelines[r].call_sites = sites;
  }
}

void cluster_hold_gil(struct cluster *c) {
  for (u32 r = 0; r < c->model.n_ranks; r++) {
    const struct call_sites *sites = c->timelines[r].call_sites;
    u32 since = 0;
    for (u32 i = 0; i < sites->n_samples; i++) {
      struct line_sample *sample = &sites->samples[i];
      if (sample->stack != 1)
        continue;
      sample->activity = TSCOPE_ACTIVITY_GIL;
      if (since++ % 3)
        continue;
      sample->activity = TSCOPE_ACTIVITY_RUNNING;
      sample->stack = 3;
      sample->beside = sample->holds_gil = true;
    }
  }
}

void cluster_call_library(struct cluster *c, u32 stack, const char *file, const char *function) {
  enum { OWN = 4 };
  for (u32 r = 0; r < c->model.n_ranks; r++) {
    struct call_sites *sites = arena_alloc(&c->arena, sizeof(*sites));
    *sites = *c->timelines[r].call_sites;
    struct call_frame *frames = arena_array(&c->arena, OWN + 1, sizeof(*frames));
    struct call_stack *stacks = arena_array(&c->arena, OWN, sizeof(*stacks));
    u32 *numbers = arena_array(&c->arena, 2, sizeof(*numbers));
    memcpy(frames, sites->frames, OWN * sizeof(*frames));
    memcpy(stacks, sites->stacks, OWN * sizeof(*stacks));
    char *path = arena_alloc(&c->arena, 256);
    snprintf(path, 256, "/usr/lib/python3/site-packages/%s", file);
    frames[OWN] =
        (struct call_frame){.file = path, .function = function, .line = 690, .others = true};
    numbers[0] = OWN;
    numbers[1] = stack;
    stacks[stack] = (struct call_stack){numbers, 2, 0};
    sites->frames = frames;
    sites->n_frames = OWN + 1;
    sites->stacks = stacks;
    c->timelines[r].call_sites = sites;
  }
}

struct cluster *cluster_late(u32 steps, u32 ranks, double noise, const i64 *late, const i64 *seen,
                             u32 seed) {
  struct cluster_options o = healthy_cpu();
  o.ranks = ranks;
  o.steps = steps;
  o.noise = noise;
  o.seed = seed;
  o.late_input = late;
  struct cluster *c = cluster_new(&o);
  cluster_sample(c, seen, 0, 10 * MS, seed);
  return c;
}
