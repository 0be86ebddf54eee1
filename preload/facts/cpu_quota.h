/* SPDX-License-Identifier: MIT
 *
 * The CPU time that control groups allow a process, on whatever cores it may run. Containers and
 * batch systems set such limits.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tscope_cpu_quota {
  uint32_t thousandths; /* of a core */
  char group[256];      /* the path of the limiting control group, from its mount point; cut */
};

/* The lowest limit of the process's own group and the groups above it, of version 2 (cpu.max) or 1
 * (cpu.cfs_quota_us, cpu.cfs_period_us), see admin-guide/cgroup-v2.rst and scheduler/sched-bwc.rst
 * of Linux. False if no limit is set, or none can be read. `root` is put before the paths of /proc
 * and /sys; it is "" except in tests. Reads some small files. */
bool tscope_cpu_quota(const char *root, struct tscope_cpu_quota *quota);
