/* SPDX-License-Identifier: MIT
 *
 * From records of stalls in a trace file to the model's description of them.
 */
#pragma once

#include "import/tscope/events/definitions.h"
#include "model/stalls.h"

/* R(TYPE, list, record's name) */
#define STALL_RECORDS(R)                                                                           \
  R(STALL, stalls, stall)                                                                          \
  R(STALL_END, ends, stall_end)                                                                    \
  R(THREAD_STATE, states, thread_state)                                                            \
  R(THREAD_STACK, stacks, thread_stack)                                                            \
  R(PEER_STATE, peers, peer_state)                                                                 \
  R(COMM_STATE, comms, comm_state)

/* In file order. */
struct stall_records {
#define R(TYPE, list, name) VECTOR(struct tscope_##name##_record) list;
  STALL_RECORDS(R)
#undef R
};

/* Keeps the record if it is one of a stall. */
void stall_records_add(struct stall_records *records, const struct tscope_record *record);

/* Makes definitions.stalls in `arena`, when everything else is complete; `pid` is the process's. */
void stall_records_finish(const struct stall_records *records, u32 pid,
                          struct definitions *definitions, struct arena *arena);

void stall_records_release(struct stall_records *records);
