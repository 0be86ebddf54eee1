/* SPDX-License-Identifier: MIT
 *
 * How a rank's process ended, as far as its trace shows it: what it recorded itself, what its
 * launcher saw, and when it was last alive.
 */
#pragma once

#include <stdbool.h>

#include "format/tscope_format.h"

/* A process may have lived so much longer than its last sign of life: on a busy machine signs come
 * later than every 100 ms (TSCOPE_TICKS_PER_S). */
#define LONGER_ALIVE_NS (150 * 1000 * 1000ll)

/* Without a sign for longer, a process of a running job is silent: a busy machine or disk may delay
 * one. A shared file system may show what another host wrote half a minute late. */
#define SILENT_NS (3 * 1000 * 1000 * 1000ll)
#define SILENT_ELSEWHERE_NS (60 * 1000 * 1000 * 1000ll)

/* All instants are on the model's axis, NS_UNKNOWN where not known. */
struct rank_end {
  bool known;              /* the version of the trace contains these facts */
  u8 kind;                 /* enum tscope_end */
  u8 failed_whose;         /* enum tscope_failed_call of `failed` */
  i32 status;              /* as given to exit() or _exit() */
  u32 signal;              /* that ended it; 0: none, or not known */
  i64 end;                 /* it began to end */
  i64 alive;               /* last sign of life */
  i64 reaped;              /* its launcher learned of its end */
  u32 out_of_memory_kills; /* in its cgroup, since it woke */
  const char *exception;   /* the last one that Python wrote, "Type: message"; NULL */
  i64 exception_at;
  const char *last_line; /* on standard error, if it is no traceback; NULL */
  i64 last_line_at;
  /* The last frame of its traceback in the user's own code, else the last; NULL. */
  const char *exception_file, *exception_function;
  u32 exception_line;
  const char *failed; /* what the last call that failed was for; NULL */
  i32 failed_result;
  i64 failed_at;
};

struct rank_events;
struct rank_clock;
struct arena;

/* Fills in what the header and the retained records say, with instants on the process's own clock.
 */
void rank_end_read(struct rank_end *end, const struct tscope_file_header *header,
                   const struct rank_events *events, struct arena *arena);
void rank_end_place(struct rank_end *end, const struct rank_clock *clock);
