/* SPDX-License-Identifier: MIT
 *
 * From records of stalls in a trace file to the model's description of them.
 */
#ifndef TSCOPE_IMPORT_STALL_RECORDS_H
#define TSCOPE_IMPORT_STALL_RECORDS_H

#include "import/tscope/events/definitions.h"
#include "model/stalls.h"

/* In file order. */
struct stall_records {
  VECTOR(struct tscope_stall_record) stalls;
  VECTOR(struct tscope_stall_end_record) ends;
  VECTOR(struct tscope_thread_state_record) states;
  VECTOR(struct tscope_thread_stack_record) stacks;
  VECTOR(struct tscope_peer_state_record) peers;
  VECTOR(struct tscope_comm_state_record) comms;
};

/* Keeps the record if it is one of a stall. */
void stall_records_add(struct stall_records *records, const struct tscope_record *record);

/* Makes definitions.stalls in `arena`, when everything else is complete; `pid` is the process's. */
void stall_records_finish(const struct stall_records *records, u32 pid,
                          struct definitions *definitions, struct arena *arena);

void stall_records_release(struct stall_records *records);

#endif
