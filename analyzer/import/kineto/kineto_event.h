/* SPDX-License-Identifier: MIT
 *
 * One event of a Kineto (Chrome) trace, as it is written in the text.
 */
#pragma once

#include "import/kineto/json_scan.h"
#include "model/model.h"

/* Numbers among an event's args that are kept: A(id, "key"). */
#define KINETO_NUMBERS(A)                                                                          \
  A(correlation, "correlation")                                                                    \
  A(stream, "stream")                                                                              \
  A(device, "device")                                                                              \
  A(bytes, "bytes")                                                                                \
  A(size, "size")                                                                                  \
  A(wait_stream, "wait_on_stream")                                                                 \
  A(wait_record, "wait_on_cuda_event_record_corr_id")                                              \
  A(in_count, "In msg nelems")                                                                     \
  A(out_count, "Out msg nelems")                                                                   \
  A(group_size, "Group size")                                                                      \
  A(seq, "Seq")                                                                                    \
  A(rank, "Rank")                                                                                  \
  A(sequence, "Sequence number")                                                                   \
  A(forward_thread, "Fwd thread id")                                                               \
  A(source, "Src Rank")                                                                            \
  A(target, "Dst Rank")

/* The same for texts; arrays as they are written. */
#define KINETO_TEXTS(A)                                                                            \
  A(collective, "Collective name")                                                                 \
  A(dtype, "dtype")                                                                                \
  A(group, "Process Group Name")                                                                   \
  A(group_what, "Process Group Description")                                                       \
  A(group_ranks, "Process Group Ranks")                                                            \
  A(shapes, "Input Dims")                                                                          \
  A(types, "Input type")

enum kineto_category {
  KINETO_NONE,       /* the event says none */
  KINETO_OTHER,      /* of no use here */
  KINETO_OP,         /* an operator on the host */
  KINETO_ANNOTATION, /* a range that the program or the framework named */
  KINETO_CALL,       /* of the GPU runtime or driver */
  KINETO_KERNEL,
  KINETO_MEMCPY,
  KINETO_MEMSET,
  KINETO_SYNC,   /* what a call waited for */
  KINETO_PYTHON, /* a function of Python, or one that Python calls */
};

struct kineto_event {
  char phase; /* "ph": 'X' has a duration; 0 if there was none */
  enum kineto_category category;
  bool malformed; /* it is not proper JSON, but its meaning is clear */
  struct json_text name, pid, tid;
  i64 start, length; /* thousandths of the trace's unit; NS_UNKNOWN */
  bool far;          /* start is in whole units: too large for thousandths */
#define A(id, key) i64 id;
  KINETO_NUMBERS(A) /* NS_UNKNOWN */
#undef A
#define A(id, key) struct json_text id;
  KINETO_TEXTS(A) /* n is 0 if there is none */
#undef A
};

enum kineto_scan { KINETO_EVENT, KINETO_CUT, KINETO_BAD };

/* Scans the object that begins at *p, which moves to its end; CUT if the text ends before. */
enum kineto_scan kineto_event_scan(const char **p, const char *end, struct kineto_event *event);
