/* SPDX-License-Identifier: MIT */
#include "facts/cpu_quota.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts/cgroups.h"

#define NO_QUOTA UINT32_MAX

static uint32_t thousandths(const char *quota, const char *period) {
  char *end;
  long long most = strtoll(quota, &end, 10); /* "max", or -1: as much as there is */
  if (end == quota || most <= 0)
    return NO_QUOTA;
  long long of = strtoll(period, &end, 10);
  if (end == period || of <= 0 || most > LLONG_MAX / 1000 || most * 1000 / of >= NO_QUOTA)
    return NO_QUOTA;
  uint32_t cores = (uint32_t)(most * 1000 / of);
  return cores ? cores : 1;
}

/* In version 2, cpu.max has "QUOTA PERIOD" or "max PERIOD". */
static uint32_t quota_of(const struct tscope_cgroup *group) {
  char quota[64], period[32];
  if (group->version_2) {
    const char *space = NULL;
    if (tscope_cgroup_read(group, "cpu.max", quota, sizeof(quota)))
      space = strchr(quota, ' ');
    return space ? thousandths(quota, space + 1) : NO_QUOTA;
  }
  return tscope_cgroup_read(group, "cpu.cfs_quota_us", quota, sizeof(quota)) &&
                 tscope_cgroup_read(group, "cpu.cfs_period_us", period, sizeof(period))
             ? thousandths(quota, period)
             : NO_QUOTA;
}

static void keep_lower(const struct tscope_cgroup *group, void *with) {
  struct tscope_cpu_quota *least = with;
  uint32_t here = quota_of(group);
  if (here < least->thousandths) {
    least->thousandths = here;
    snprintf(least->group, sizeof(least->group), "%s", group->path);
  }
}

bool tscope_cpu_quota(const char *root, struct tscope_cpu_quota *quota) {
  *quota = (struct tscope_cpu_quota){.thousandths = NO_QUOTA};
  tscope_cgroups_visit(root, "cpu", keep_lower, quota);
  return quota->thousandths != NO_QUOTA;
}
