/* SPDX-License-Identifier: MIT
 *
 * The CPU time that control groups let a process have, whatever cores it may run on: containers and
 * batch systems limit it so.
 */
#ifndef TSCOPE_CPU_QUOTA_H
#define TSCOPE_CPU_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct tscope_cpu_quota {
  uint32_t thousandths; /* of a core */
  char group[256];      /* the path of the control group that has no more, from its mount; cut */
};

/* The least that the process's own group or one above it allows, of version 2 (cpu.max) or 1
 * (cpu.cfs_quota_us, cpu.cfs_period_us), see admin-guide/cgroup-v2.rst and scheduler/sched-bwc.rst
 * of Linux. False where none is set, or none can be read. `root` stands before the paths of /proc
 * and /sys; "" but in tests. Reads some small files. */
bool tscope_cpu_quota(const char *root, struct tscope_cpu_quota *quota);

#pragma GCC visibility pop

#endif
