/* SPDX-License-Identifier: MIT
 *
 * What the functions that read records share.
 */
#pragma once

#include "live/live_process.h"

/* A record as it was at one poll. */
struct live_record {
  const struct tscope_record *record; /* good until the function returns */
  struct chunk_clock *clock;          /* of its chunk */
  u64 time;                           /* absolute, in the chunk's clock units */
  i64 start;                          /* the same on the process's CLOCK_MONOTONIC */
  u64 place;                          /* of the record in the file: the same when it comes again */
  u32 thread;
  bool again; /* it came before, with its duration pending */
};

/* The end of a record whose first field is a u64 duration; NS_UNKNOWN while it is pending. */
i64 live_end_ns(const struct live_record *record);

/* Keeps the span in the list while it is open. */
void live_update_open(struct live_opens *opens, const struct live_record *record,
                      struct live_open open);

/* live_calls.c */
void live_add_comms(struct live_process *process); /* that are new in definitions.now */
void live_read_call(struct live_process *process, const struct live_record *record);
void live_read_graph_replay(struct live_process *process, const struct live_record *record);
void live_read_run(struct live_process *process, const struct live_record *record);
void live_read_comm_wait(struct live_process *process, const struct live_record *record);
