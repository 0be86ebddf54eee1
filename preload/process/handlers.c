/* SPDX-License-Identifier: MIT
 *
 * To a handler it looks as if it was called by a function that gives the interrupted thread its
 * state back: as long as it has not returned, that function's address is on the stack.
 */
#include "process/handlers.h"

#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "format/tscope_format.h"
#include "inspect/kept_errno.h"
#include "inspect/memory_read.h"

/* An action as the kernel has it. */
struct action {
  u64 handler, flags, returns_to, mask;
};

/* A handler that may be in progress: the signals that it blocks are blocked. */
struct handler {
  u64 returns_to, blocks;
};

static u32 find_handlers(u64 blocked, struct handler handlers[NSIG]) {
  u32 n = 0;
  for (int number = 1; number < NSIG; number++) {
    struct action action = {0};
    syscall(SYS_rt_sigaction, number, NULL, &action, sizeof(action.mask));
    u64 own = action.flags & SA_NODEFER ? 0 : 1ull << (number - 1), blocks = action.mask | own;
    bool was_reset = action.flags & (unsigned)SA_RESETHAND;
    if ((action.handler > (uintptr_t)SIG_IGN || was_reset) && (blocked & blocks) == blocks)
      handlers[n++] = (struct handler){action.returns_to, blocks};
  }
  return n;
}

static bool read_here(u64 address, void *to, size_t bytes) {
  return tscope_read_memory(getpid(), address, to, bytes) == 0;
}

#if defined(__x86_64__)

enum { STACK_LOOKED_AT = 256 << 10 };

/* Behind the address is a ucontext: the registers, and the signals that were blocked before. The
 * address alone may be left from a handler that has returned, or from a question about it. */
static bool is_in_progress(const struct handler *handler, u64 place, u64 blocked) {
  const u64 context = place + sizeof(u64), user_code = 0x33;
  u64 link, before;
  struct {
    u64 sp, ip, status, segments;
  } registers;
  return read_here(context + offsetof(ucontext_t, uc_link), &link, sizeof(link)) && !link &&
         read_here(context + offsetof(ucontext_t, uc_mcontext.gregs[REG_RSP]), &registers,
                   sizeof(registers)) &&
         (registers.segments & 0xffff) == user_code && registers.sp > place &&
         registers.sp - place < STACK_LOOKED_AT &&
         read_here(context + offsetof(ucontext_t, uc_sigmask), &before, sizeof(before)) &&
         (before | handler->blocks) == blocked;
}

static bool stack_has_one(u64 begin, const struct handler *handlers, u32 n, u64 blocked) {
  enum { WORDS = 32, BYTES = WORDS * 8 };
  u64 words[WORDS], end = begin + STACK_LOOKED_AT;
  begin &= ~(u64)(BYTES - 1);
  for (u64 at = begin; at < end && read_here(at, words, BYTES); at += BYTES)
    for (u32 i = 0; i < WORDS; i++)
      for (u32 k = 0; k < n; k++)
        if (words[i] == handlers[k].returns_to && is_in_progress(&handlers[k], at + i * 8, blocked))
          return true;
  return false;
}

#else

/* Each frame begins with the address of its caller's frame, and that to which it returns. */
static bool stack_has_one(u64 begin, const struct handler *handlers, u32 n, u64 blocked) {
  enum { MOST_FRAMES = 512 };
  const u64 code_address = (1ull << 48) - 1, rt_sigreturn = 0xd4000001d2801168; /* x8 = 139; svc */
  u64 frame[2] = {begin}, code;
  (void)handlers, (void)n, (void)blocked;
  for (u32 i = 0; i < MOST_FRAMES && read_here(frame[0], frame, sizeof(frame)); i++)
    if (read_here(frame[1] & code_address, &code, sizeof(code)) && code == rt_sigreturn)
      return true;
  return false;
}

#endif

bool tscope_in_handler(void) {
  TSCOPE_KEEP_ERRNO;
  struct handler handlers[NSIG];
  stack_t of_handlers = {.ss_flags = 0};
  u64 blocked = 0;
  sigaltstack(NULL, &of_handlers);
  if (of_handlers.ss_flags & SS_ONSTACK)
    return true;
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &blocked, sizeof(blocked));
  u32 n = find_handlers(blocked, handlers);
  return n && stack_has_one((uintptr_t)__builtin_frame_address(0), handlers, n, blocked);
}
