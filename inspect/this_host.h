/* SPDX-License-Identifier: MIT
 *
 * Whose host a trace is of: by its name, as the host calls itself; behind "NODE@" if Slurm calls it
 * NODE. Machines can have equal names: then by when they were booted, or by their clocks.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "format/clock_ns.h"

enum { TSCOPE_HOST_BYTES = 64, TSCOPE_HOST_PART = 31 /* of each of two names */ };

/* Whether this host has written that name, which is not always ended by a 0. */
static inline bool tscope_is_this_host(const char name[TSCOPE_HOST_BYTES]) {
  char own[TSCOPE_HOST_BYTES] = "", its[TSCOPE_HOST_BYTES];
  gethostname(own, sizeof(own) - 1);
  snprintf(its, sizeof(its), "%.*s", TSCOPE_HOST_BYTES - 1, name);
  const char *behind_node = strchr(its, '@');
  return behind_node ? strncmp(own, behind_node + 1, TSCOPE_HOST_PART) == 0 : strcmp(own, its) == 0;
}

/* Two machines of one name, and one that was booted again, were booted at different times: when,
 * differs by more than this. Clocks of day may be set while a job runs. */
#define SAME_BOOT_NS 2000000000

/* Whether two such times may be of one boot: of a damaged file they may be any. */
static inline bool may_be_same_boot(i64 booted, i64 other) {
  i64 apart;
  return !__builtin_sub_overflow(booted, other, &apart) && apart > -SAME_BOOT_NS &&
         apart < SAME_BOOT_NS;
}

/* Whether CLOCK_REALTIME may have been ahead of CLOCK_MONOTONIC by so much since this machine was
 * booted: more after each time for which it was suspended. */
static inline bool may_be_this_boot(i64 realtime_minus_monotonic) {
  i64 first = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME);
  i64 last = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
  return may_be_same_boot(realtime_minus_monotonic, CLAMP(realtime_minus_monotonic, first, last));
}

/* Which CLOCK_MONOTONIC this process reads: that of this boot, plus the offset of the time
 * namespace in which it lives. "BOOT-ID SECONDS NANOSECONDS"; empty if it is not known. */
struct own_clock {
  char text[128];
};
struct own_clock own_clock_read(void);
