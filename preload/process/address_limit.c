/* SPDX-License-Identifier: MIT
 *
 * setrlimit() and prlimit(), by which a job may limit its address space. The reserve of the trace,
 * which is large and mostly never used, would count: it is given back. (A limit that another
 * process sets is not seen.)
 */
#include "process/address_limit.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/cancellation.h"
#include "record/chunk_pool.h"
#include "record/hook.h"
#include "record/process_trace.h"
#include "resolve/next_function.h"

typedef int set_limit(int, const struct rlimit *);
typedef int exchange_limit(pid_t, int, const struct rlimit *, struct rlimit *);

static int after(int result, int resource, const struct rlimit *limit) {
  TSCOPE_KEEP_ERRNO;
  TSCOPE_DEFER_CANCELLATION;
  if (result == 0 && resource == RLIMIT_AS && limit && limit->rlim_cur != RLIM_INFINITY &&
      tscope_trace_is_ours()) /* a child of vfork() shares this memory */
    tscope_chunk_pool_limit(limit->rlim_cur / TSCOPE_PART_OF_ADDRESS_SPACE);
  return result;
}

static int set(set_limit *real, int resource, const struct rlimit *limit) {
  return after(real ? real(resource, limit) : (int)syscall(SYS_prlimit64, 0, resource, limit, NULL),
               resource, limit);
}

static int exchange(exchange_limit *real, pid_t pid, int resource, const struct rlimit *limit,
                    struct rlimit *before) {
  int result = real ? real(pid, resource, limit, before)
                    : (int)syscall(SYS_prlimit64, pid, resource, limit, before);
  return pid == 0 || pid == getpid() ? after(result, resource, limit) : result;
}

/* The C library has each by two names, which are the same where a long has 64 bits. */
#define SET(name)                                                                                  \
  int tscope_hook_##name(int, const struct rlimit *) __asm__(#name);                               \
  TSCOPE_EXPORT int tscope_hook_##name(int resource, const struct rlimit *limit) {                 \
    return set(TSCOPE_NEXT_FUNCTION(#name), resource, limit);                                      \
  }
SET(setrlimit)
SET(setrlimit64)

#define EXCHANGE(name)                                                                             \
  int tscope_hook_##name(pid_t, int, const struct rlimit *, struct rlimit *) __asm__(#name);       \
  TSCOPE_EXPORT int tscope_hook_##name(pid_t pid, int resource, const struct rlimit *limit,        \
                                       struct rlimit *before) {                                    \
    return exchange(TSCOPE_NEXT_FUNCTION(#name), pid, resource, limit, before);                    \
  }
EXCHANGE(prlimit)
EXCHANGE(prlimit64)
