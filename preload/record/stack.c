/* SPDX-License-Identifier: MIT */
#include "record/stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>

#include "format/text_parts.h"
#include "inspect/memory_read.h"
#include "inspect/small_file.h"
#include "record/kernel_threads.h"
#include "record/thread.h"

static u32 stacks_unknown; /* there are stacks whose extent is not known */

void tscope_stack_begin(struct tscope_stack *stack) {
  /* What is at the top of the stack: glibc's own data, or in the first thread random bytes from the
   * kernel. The first hook may be called on a coroutine's stack. */
  const void *self = (const void *)pthread_self();
  const char *at = tscope_tid() == (u32)getpid() ? (const char *)getauxval(AT_RANDOM) : self;
  const char *high = __atomic_load_n(&stack->high, __ATOMIC_ACQUIRE);
  bool known = high && __atomic_load_n(&stack->top, __ATOMIC_RELAXED) == self &&
               at >= __atomic_load_n(&stack->low, __ATOMIC_RELAXED) && at <= high;
  if (known)
    return;
  __atomic_store_n(&stack->high, NULL, __ATOMIC_RELAXED);
  __atomic_store_n(&stack->top, self, __ATOMIC_RELAXED);
  __atomic_store_n(&stack->at, at, __ATOMIC_RELEASE);
  __atomic_store_n(&stacks_unknown, 1, __ATOMIC_RELEASE);
}

static bool is_on_stack(const struct tscope_stack *stack, const void *address) {
  const char *high = __atomic_load_n(&stack->high, __ATOMIC_ACQUIRE);
  return high && (const char *)address <= high &&
         (const char *)address > __atomic_load_n(&stack->low, __ATOMIC_RELAXED);
}

bool tscope_stack_has(const struct tscope_thread *thread, const char *frame) {
  const ptrdiff_t surely = 64 << 10; /* before the extent is known: no stack of a job is smaller */
  if (__atomic_load_n(&thread->stack.high, __ATOMIC_ACQUIRE))
    return is_on_stack(&thread->stack, frame);
  const char *top = __atomic_load_n(&thread->stack.at, __ATOMIC_ACQUIRE);
  return frame < top && top - frame < surely;
}

/* For a guard that is not on the thread's own stack. If this check is forbidden, as in some
 * sandboxes, the hook is assumed to be in progress. */
static bool is_intact_elsewhere(const struct tscope_guard *guard) {
  struct tscope_guard copy;
  const void *returns_to;
  int error = tscope_read_memory(getpid(), (u64)(uintptr_t)guard, &copy, sizeof(copy));
  if (error)
    return error != -EFAULT;
  u64 moved = (u64)(uintptr_t)guard ^ (u64)(uintptr_t)&copy;
  if (copy.check != (tscope_guard_check(&copy) ^ moved))
    return false;
  error = tscope_read_memory(getpid(), (u64)(uintptr_t)copy.place, &returns_to, sizeof(returns_to));
  return error == 0 && returns_to == copy.returns_to;
}

TSCOPE_NOT_SANITIZED static bool is_intact(const struct tscope_guard *guard) {
  return guard->check == tscope_guard_check(guard) && *guard->place == guard->returns_to;
}

/* A frame above a guard on the same stack proves that the hook of the guard has ended. A frame
 * below it was called either from inside the hook, or from the function that had called the hook.
 * In the second case the call has overwritten the guard, or the place of the hook's return address.
 * A frame that begins exactly at the guard is below it: the real function made the call with a
 * jump, as its last.
 *
 * On another stack, a signal handler or a coroutine may run while the hook waits on the thread's
 * own stack. If the hook is on another stack and the thread has come back from there, the hook was
 * left. As long as the extent of the thread's own stack is not known, a frame above the guard is
 * taken to be on the same stack, unless the stack's top is between them. */
bool tscope_guard_is_active(const struct tscope_thread *thread, const struct tscope_guard *guard,
                            const char *frame) {
  const ptrdiff_t deepest = 32 << 10; /* what a library puts on the stack of a coroutine */
  if (guard == TSCOPE_GUARD_ALWAYS || !thread)
    return thread != NULL;
  const char *at = (const char *)guard;
  bool here = is_on_stack(&thread->stack, frame);
  if (is_on_stack(&thread->stack, at))
    return (!here || frame <= at) && is_intact(guard);
  bool known = __atomic_load_n(&thread->stack.high, __ATOMIC_ACQUIRE) != NULL;
  const char *top = __atomic_load_n(&thread->stack.top, __ATOMIC_RELAXED);
  bool top_between = !known && at < top && top <= frame;
  if (here || (frame > at && !top_between) || (known && at - frame > deepest))
    return false;
  return is_intact_elsewhere(guard);
}

bool tscope_hook_in_progress(const struct tscope_thread *thread, const char *frame) {
  if (tscope_guard_is_active(thread, thread->guard, frame))
    return true;
  tscope_locks_left(thread, frame);
  return false;
}

/* The stack that begins at `low`; for the first thread's stack, which grows, its greatest
 * extent. */
static void set_extent(struct tscope_stack *stack, uintptr_t low, uintptr_t high, bool grows) {
  const char *at = __atomic_load_n(&stack->at, __ATOMIC_RELAXED);
  uintptr_t top = (uintptr_t)__atomic_load_n(&stack->top, __ATOMIC_RELAXED);
  struct rlimit limit;
  if (grows && getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < high - low + (1u << 30) &&
      limit.rlim_cur > high - low)
    low = high - limit.rlim_cur;
  if (top > low && top < high)
    high = top;
  __atomic_store_n(&stack->low, (const char *)low, __ATOMIC_RELAXED);
  __atomic_store_n(&stack->high, (const char *)high, __ATOMIC_RELEASE);
  if (__atomic_load_n(&stack->at, __ATOMIC_ACQUIRE) != at) /* another thread's by now */
    __atomic_store_n(&stack->high, NULL, __ATOMIC_RELEASE);
}

/* One line of the list of memory: "low-high rw-p ... [stack]". */
static bool read_map_line(const char *line, void *nothing) {
  char *end;
  (void)nothing;
  uintptr_t low = (uintptr_t)strtoull(line, &end, 16);
  if (*end != '-')
    return false;
  uintptr_t high = (uintptr_t)strtoull(end + 1, &end, 16);
  if (!tscope_begins_with(end, " rw"))
    return false;
  bool grows = strstr(end, "[stack]") != NULL;
  for (struct tscope_thread *thread = tscope_thread_newest(); thread; thread = thread->before) {
    uintptr_t at = (uintptr_t)__atomic_load_n(&thread->stack.at, __ATOMIC_ACQUIRE);
    if (!__atomic_load_n(&thread->stack.high, __ATOMIC_RELAXED) && at >= low && at < high)
      set_extent(&thread->stack, low, high, grows);
  }
  return false;
}

void tscope_stacks_find(void) {
  static char room[8192];
  if (__atomic_exchange_n(&stacks_unknown, 0, __ATOMIC_ACQ_REL))
    file_lines_visit("/proc/self/maps", room, sizeof(room), read_map_line, NULL);
}
