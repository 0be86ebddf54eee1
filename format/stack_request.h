/* SPDX-License-Identifier: MIT
 *
 * How a run is asked for its stacks. Whoever asks leaves one file in the run's folder. Once a
 * second, or more rarely in a large run, each process of the run looks for it, and writes its
 * answer into a file beside its trace. Files are what every host of a job can see, also over NFS,
 * and what needs no open port.
 *
 * A request is one line: TSCOPE_REQUEST_FORMAT with a number other than 0. A process answers each
 * number once. A request counts only if it belongs to the process's user or to root.
 *
 * An answer is lines of fields, separated by one space. In texts, bytes up to ' ', '%' and 0x7f are
 * "%XX"; an unknown text is "-", an empty one "%". The first line is TSCOPE_REQUEST_FORMAT with
 * the request's number. Then:
 *
 *   process THREADS WHY FOLDER               threads of the job; why no Python frames follow; the
 *                                            folder that it is in
 *
 *   thread TID STATE NAME WAIT CALL FILE WAITS_FOR
 *                                            what the kernel says; see inspect/thread_state.h
 *
 *   peer PID STATE WAIT CALL FILE            another child of the parent that cannot answer
 *
 *   stack TID GIL MOVED CUT                  a thread that Python knows. 0 or 1 each: it holds
 *                                            the GIL, it ran while it was read, it has more frames
 *
 *   frame LINE FIRST_LINE FILE FUNCTION      of that stack, the innermost first
 *
 *   end
 *
 * Without the line "end" the process still writes, or cannot read its own memory.
 */
#pragma once

#define TSCOPE_REQUEST_FILE ".stacks-request"
#define TSCOPE_REQUEST_START "tscope-stacks 1 "
#define TSCOPE_REQUEST_FORMAT TSCOPE_REQUEST_START "%016llx\n"

/* The answer of the process whose trace has this name. */
#define TSCOPE_ANSWER_FILE ".%s.stacks"

/* Every how many seconds each process of so many looks: one file server may have to answer them
 * all. It gets some 1,000 looks a second, from 16,384 processes on more. */
static inline unsigned tscope_seconds_between_looks(unsigned processes) {
  const unsigned a_second = 1024, most = 16;
  unsigned seconds = processes / a_second + (processes % a_second != 0);
  return seconds < 1 ? 1 : MIN(seconds, most);
}

enum { TSCOPE_ANSWER_MOST = 4 << 20 }; /* bytes; a longer one is cut and has no end */
