/* SPDX-License-Identifier: MIT
 *
 * Tick clock of one process -> its CLOCK_MONOTONIC, through the anchors in its trace.
 */
#pragma once

#include "base/arena.h"
#include "format/tscope_format.h"

struct tick_anchor {
  u64 ticks; /* unshifted */
  u64 monotonic_ns;
};

/* One stretch between two anchors: monotonic = monotonic_ns + (ticks - first) x ns_per_tick. */
struct tick_stretch {
  u64 ticks;
  i64 monotonic_ns;
  double ns_per_tick;
};

struct tick_map {
  struct tick_stretch *stretches; /* by ticks; the first reaches back, the last forward, for ever */
  u32 n;
  u32 shift;
  u32 rejected;         /* anchors that contradicted the others */
  i64 earliest, latest; /* the range of instants that are possible for this process; others are
                           moved into it */
};

/* Builds the map from a file's header and its anchors, in any order. The rate between anchors must
 * agree within 1 % with the median rate (with the header's if there are few anchors), else the
 * anchor is rejected and counted: the rate of a CPU clock does not change. */
void tick_map_build(struct tick_map *map, const struct tscope_file_header *header,
                    const struct tick_anchor *anchors, u32 n, struct arena *arena);

/* The part between two anchors that a time in chunk units (ticks >> shift) is in; for many times in
 * a row. */
const struct tick_stretch *tick_map_find(const struct tick_map *map, u64 units);

static inline i64 tick_map_sane(const struct tick_map *map, i64 monotonic_ns) {
  if (__builtin_expect(monotonic_ns < map->earliest, 0))
    return map->earliest;
  return __builtin_expect(monotonic_ns > map->latest, 0) ? map->latest : monotonic_ns;
}

static inline i64 tick_map_in(const struct tick_map *map, const struct tick_stretch *stretch,
                              u64 units) {
  double ns = (double)(i64)((units << map->shift) - stretch->ticks) * stretch->ns_per_tick;
  if (__builtin_expect(!(ns > -1e18 && ns < 1e18), 0))
    return ns > 0 ? map->latest : map->earliest;
  return tick_map_sane(map, stretch->monotonic_ns + (i64)ns);
}

/* `ticks` is unshifted. */
i64 tick_map_ns(const struct tick_map *map, u64 ticks);
