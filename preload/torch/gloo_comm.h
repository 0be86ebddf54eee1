/* SPDX-License-Identifier: MIT
 *
 * The process groups of this process: those on gloo, which are communicators themselves, and the
 * labels of those on NCCL.
 */
#pragma once

#include "record/hook.h"

struct gloo_comm {
  const void *group;   /* the ProcessGroupGloo; NULL while the entry is free */
  const void *creator; /* thread that created it */
  u64 start, dur;      /* of the constructor */
  u64 identity;
  u32 rank, size;
  u32 number;      /* as in COMM records, 0 until recorded */
  u32 collectives; /* calls so far */
  u32 transfers;   /* sends and receives so far */
  char name[64];   /* of the process group, "" if it has none */
  char text[64];   /* its description, "" if it has none */
};

/* The communicator of a process group; writes its COMM record the first time. NULL if the creation
 * of the group was not seen, or the table was full: then a loss is counted. */
struct gloo_comm *gloo_comm_of(struct tscope_thread *thread, const void *group);
