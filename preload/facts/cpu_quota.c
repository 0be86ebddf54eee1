/* SPDX-License-Identifier: MIT */
#include "facts/cpu_quota.h"

#include <stdio.h>
#include <string.h>

#include "facts/cgroups.h"
#include "format/text_parts.h"

#define NO_QUOTA UINT32_MAX

static uint32_t thousandths(const char *quota, const char *period) {
  u64 most = leading_number(quota, UINT64_MAX / 1000, NULL); /* not of "max" and -1: no limit */
  u64 of = leading_number(period, UINT64_MAX, NULL);
  if (!most || !of || most * 1000 / of >= NO_QUOTA)
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
