/* SPDX-License-Identifier: MIT
 *
 * Which ranks share cores, and how long their threads waited for one.
 */
#pragma once

#include "analyses/analysis.h"

/* Ranks of one host that may run on the same cores, or that share the limit of one control
 * group. */
struct core_sharing {
  const struct rank *first;      /* of them, in model.ranks */
  const char *host, *cores_list; /* "0-3,8"; NULL not known */
  const char *quota;             /* "1500 of /slice/job", where that is less than the cores; NULL */
  double cores; /* cores that they may use together; with a quota this may be a fraction */
  u32 n, threads;
  double seconds, cpu_s, wait_s, stolen_s; /* summed over all; stolen: of the host, the mean */
  double training_wait_s;
};

/* Groups of ranks that share cores: `groups` has room for all ranks. Returns how many. */
u32 core_sharing_list(const struct model *model, struct core_sharing *groups);

/* NULL if none of the groups is the rank's. */
struct core_sharing *core_sharing_of(const struct model *model, struct core_sharing *groups, u32 n,
                                     const struct rank *rank);

/* Of the time in which their threads could run. */
double core_waiting_share(const struct core_sharing *s);
bool cores_are_short(const struct core_sharing *s);

/* Whether these ranks used only part of the cores. The rest was used by something else, or by
 * nobody: threads that become runnable at the same moments wait for each other. */
bool cores_shared_with_others(const struct core_sharing *s);

/* Whether these ranks alone need more than the cores that they may use, and had them: without
 * them, threads that would sleep again at once are runnable for long. */
bool cores_short_by_themselves(const struct core_sharing *s);
