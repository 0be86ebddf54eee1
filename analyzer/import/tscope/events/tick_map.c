/* SPDX-License-Identifier: MIT */
#include "import/tscope/events/tick_map.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/checked_memory.h"
#include "base/robust.h"
#include "base/sorting.h"

#define LEAST_STRETCH_NS 1000000 /* closer anchors give no useful rate */
#define RATE_TOLERANCE 0.01
#define SANEST_NS 1000000000000000000ull /* 31 years of uptime */
#define LONGEST_RUN_NS 31536000000000000 /* a year */
#define BEFORE_START_NS 3600000000000

ORDER_BY(by_ticks, struct tick_anchor, UP(ticks))

static double header_rate(const struct tscope_file_header *header) {
  if (header->tick_source == TSCOPE_TICK_MONOTONIC || header->tick_hz == 0)
    return 1.0;
  return 1e9 / (double)header->tick_hz;
}

static double rate_between(const struct tick_anchor *a, const struct tick_anchor *b) {
  return (double)(i64)(b->monotonic_ns - a->monotonic_ns) / (double)(b->ticks - a->ticks);
}

static bool far_enough_apart(const struct tick_anchor *a, const struct tick_anchor *b) {
  return b->ticks > a->ticks && b->monotonic_ns >= a->monotonic_ns + LEAST_STRETCH_NS;
}

/* The median of the rates from each anchor to the next; the header's rate if there are too few
 * anchors to outvote a wrong one. The header's own rate is an estimate from half a millisecond. */
static double overall_rate(const struct tick_anchor *anchors, u32 n, double header,
                           double *scratch) {
  u32 rates = 0;
  for (u32 i = 0; i + 1 < n; i++)
    if (far_enough_apart(&anchors[i], &anchors[i + 1]))
      scratch[rates++] = rate_between(&anchors[i], &anchors[i + 1]);
  if (rates < 3)
    return header;
  return ranked_double(scratch, rates, rates / 2);
}

/* Keeps the anchors that advance at about `rate` from the one kept before, in place. */
static u32 drop_inconsistent(struct tick_anchor *anchors, u32 n, double rate, u32 *rejected) {
  u32 kept = 1;
  for (u32 i = 1; i < n; i++) {
    const struct tick_anchor *last = &anchors[kept - 1];
    if (!far_enough_apart(last, &anchors[i]))
      continue;
    if (fabs(rate_between(last, &anchors[i]) / rate - 1) > RATE_TOLERANCE) {
      ++*rejected;
      continue;
    }
    anchors[kept++] = anchors[i];
  }
  return kept;
}

void tick_map_build(struct tick_map *map, const struct tscope_file_header *header,
                    const struct tick_anchor *anchors, u32 n, struct arena *arena) {
  *map = (struct tick_map){.shift = header->tick_shift};
  struct tick_anchor *sorted = arena_array(arena, n, sizeof(*sorted));
  map->stretches = arena_array(arena, n, sizeof(*map->stretches));
  double *rates = arena_array(arena, n, sizeof(*rates));
  u64 start = header->start_monotonic_ns < SANEST_NS ? header->start_monotonic_ns : 0;
  map->earliest = (i64)start - BEFORE_START_NS;
  map->latest = (i64)start + LONGEST_RUN_NS;
  u32 usable = 0;
  FOR_EACH(anchors, n, anchor)
    if (anchor->monotonic_ns < (u64)map->latest)
      sorted[usable++] = *anchor;
  if (usable == 0)
    sorted[usable++] = (struct tick_anchor){header->start_ticks, start};
  SORT(sorted, usable, by_ticks);
  double rate = overall_rate(sorted, usable, header_rate(header), rates);
  u32 kept = drop_inconsistent(sorted, usable, rate, &map->rejected);
  for (u32 i = 0; i < kept; i++) {
    map->stretches[map->n++] =
        (struct tick_stretch){.ticks = sorted[i].ticks,
                              .monotonic_ns = (i64)sorted[i].monotonic_ns,
                              .ns_per_tick = i + 1 < kept ? rate_between(&sorted[i], &sorted[i + 1])
                                             : kept > 1   ? rate_between(&sorted[0], &sorted[i])
                                                          : rate};
  }
}

const struct tick_stretch *tick_map_find(const struct tick_map *map, u64 units) {
  u64 ticks = units << map->shift;
  u32 later = FIRST_NOT(1, map->n, i, map->stretches[i].ticks <= ticks);
  return &map->stretches[later - 1];
}

i64 tick_map_ns(const struct tick_map *map, u64 ticks) {
  u64 units = ticks >> map->shift;
  return tick_map_in(map, tick_map_find(map, units), units);
}
