/* SPDX-License-Identifier: MIT
 *
 * Asks the processes of a run what they are doing now, through the run's folder, and reads what
 * they answer: format/stack_request.h.
 */
#pragma once

#include "base/arena.h"
#include "model/stalls.h"

struct question {
  const char *folder; /* the caller's */
  u64 number;         /* 0: not asked */
  u32 owner;          /* the user whose processes answer */
};

enum answer {
  ANSWER_NONE,
  ANSWER_PART, /* it still writes, or cannot read its own memory */
  ANSWER_WHOLE,
};

/* Leaves a request in the folder of a run. If somebody else is asking, waits until that is done. 0,
 * or a negative errno with the reason in `why`. */
int question_ask(struct question *question, const char *folder, char *why, size_t why_bytes);

/* Reads the answer of the process whose trace has the name `trace`; texts live in the arena. Of a
 * part, gives what there is if `part`. */
enum answer question_read(const struct question *question, const char *trace, bool part,
                          struct arena *arena, struct rank_stall *stacks);

/* Every how many seconds each process of so many looks for a request. */
u32 question_seconds(u32 processes);

/* Takes the request out again, and the answer of one process. */
void question_withdraw(struct question *question);
void question_forget(const struct question *question, const char *trace);
