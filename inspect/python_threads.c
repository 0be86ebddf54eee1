/* SPDX-License-Identifier: MIT */
#include "inspect/python_threads.h"

/* Where glibc's struct pthread has the thread's number: after a header of 704 bytes on x86-64 and
 * of 192 on aarch64, and a list's two pointers. For Python before 3.11, which does not keep it. */
#if defined(__aarch64__)
enum { PTHREAD_TID = 208 };
#else
enum { PTHREAD_TID = 720 };
#endif

static u32 tid_of(const struct python *python, python_read *read, const void *context, u64 state) {
  u64 word;
  u32 tid;
  if (python->layout.thread_tid != PYTHON_NONE)
    return read(context, state + python->layout.thread_tid, &word, 8) && word <= INT32_MAX
               ? (u32)word
               : 0;
  return read(context, state + python->layout.thread_id, &word, 8) &&
                 read(context, word + PTHREAD_TID, &tid, 4) && tid <= INT32_MAX
             ? tid
             : 0;
}

/* State of the thread that holds the GIL of an interpreter; 0 if none does. */
static u64 holder_of(const struct python *python, python_read *read, const void *context,
                     u64 runtime, u64 interpreter) {
  const struct python_layout *layout = &python->layout;
  u64 gil, holder;
  i32 locked;
  if (layout->gil_thread != PYTHON_NONE)
    return read(context, runtime + layout->gil_thread, &holder, 8) ? holder : 0;
  return layout->gil != PYTHON_NONE && read(context, interpreter + layout->gil, &gil, 8) &&
                 read(context, gil + PYTHON_GIL_LOCKED, &locked, 4) && locked == 1 &&
                 read(context, gil + PYTHON_GIL_HOLDER, &holder, 8)
             ? holder
             : 0;
}

static u64 next_of(const struct python *python, python_read *read, const void *context, u64 state) {
  u64 next;
  return read(context, state + python->layout.thread_next, &next, 8) ? next : 0;
}

/* From *state on, which then is the first that found no room. */
static u32 list_from(const struct python *python, python_read *read, const void *context,
                     u64 *state, u64 holder, struct python_thread *threads, u32 most) {
  u32 n = 0;
  for (; *state && n < most; *state = next_of(python, read, context, *state))
    threads[n++] =
        (struct python_thread){*state, tid_of(python, read, context, *state), *state == holder};
  return n;
}

/* Of one interpreter, whose list begins with the newest. Returns how many there are. */
static u32 list_of(const struct python *python, python_read *read, const void *context, u64 first,
                   u64 holder, struct python_thread *threads, u32 most) {
  const u32 limit = 1 << 16; /* a list that changes may lead in a circle */
  u64 rest = first;
  u32 n = list_from(python, read, context, &rest, holder, threads, most), more = 0;
  for (; rest && more < limit; more++)
    rest = next_of(python, read, context, rest);
  for (u32 newest = 0; newest < more; newest++)
    first = next_of(python, read, context, first);
  return more ? more + list_from(python, read, context, &first, holder, threads, most) : n;
}

u32 python_threads(const struct python *python, python_read *read, const void *context, u64 runtime,
                   struct python_thread *threads, u32 most) {
  const struct python_layout *layout = &python->layout;
  const u32 most_interpreters = 64;
  u64 interpreter, first;
  u32 n = 0;
  if (!read(context, runtime + layout->interpreters_head, &interpreter, 8))
    return 0;
  for (u32 i = 0; interpreter && i < most_interpreters; i++) {
    u64 holder = holder_of(python, read, context, runtime, interpreter);
    if (!read(context, interpreter + layout->interpreter_threads, &first, 8))
      break;
    u32 listed = MIN(n, most);
    n += list_of(python, read, context, first, holder, threads + listed, most - listed);
    if (!read(context, interpreter + layout->interpreter_next, &interpreter, 8))
      break;
  }
  return n;
}
