/* SPDX-License-Identifier: MIT
 *
 * Whose host's name a trace has: as the host calls itself; behind "NODE@" if Slurm calls it NODE.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TSCOPE_HOST_BYTES = 64, TSCOPE_HOST_PART = 31 /* of each of two names */ };

/* Whether this host has written that name, which is not always ended by a 0. */
static inline bool tscope_is_this_host(const char name[TSCOPE_HOST_BYTES]) {
  char own[TSCOPE_HOST_BYTES] = "", its[TSCOPE_HOST_BYTES];
  gethostname(own, sizeof(own) - 1);
  snprintf(its, sizeof(its), "%.*s", TSCOPE_HOST_BYTES - 1, name);
  const char *behind_node = strchr(its, '@');
  return behind_node ? strncmp(own, behind_node + 1, TSCOPE_HOST_PART) == 0 : strcmp(own, its) == 0;
}
