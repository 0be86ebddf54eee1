/* SPDX-License-Identifier: MIT */
#include "process/bus_errors.h"

#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "process/workers.h"
#include "record/hook.h"
#include "record/kernel_threads.h"
#include "record/process_trace.h"
#include "resolve/next_function.h"

/* The process whose trace is guarded, 0: none. A child made by vfork() has the same memory, but
 * actions of its own. */
static pid_t guarded;

/* The job's action for SIGBUS. A handler of a signal may set it at any moment, so each one has a
 * place of its own, which is used again long after. */
static struct sigaction actions[64];
static u32 n_actions, latest;

static struct sigaction *job_action(void) {
  return &actions[__atomic_load_n(&latest, __ATOMIC_ACQUIRE)];
}

static void set_job_action(const struct sigaction *action) {
  u32 place = __atomic_add_fetch(&n_actions, 1, __ATOMIC_RELAXED) % LENGTH_OF(actions);
  actions[place] = *action;
  __atomic_store_n(&latest, place, __ATOMIC_RELEASE);
}

/* glibc's other names for sigaction() and signal(). */
extern int __sigaction(int number, const struct sigaction *action, struct sigaction *old)
    __attribute__((weak));
typedef void (*handler)(int);
extern handler ssignal(int number, handler action) __attribute__((weak));

static int next_sigaction(int number, const struct sigaction *action, struct sigaction *old) {
  int (*real)(int, const struct sigaction *, struct sigaction *) =
      TSCOPE_NEXT_FUNCTION("sigaction");
  return real ? real(number, action, old) : __sigaction(number, action, old);
}

/* Does what the kernel does by default. The store that failed is tried again, and fails again. */
static void end_process(int number, siginfo_t *info) {
  next_sigaction(number, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
  if (info->si_code <= 0) /* another process or this one has sent it */
    syscall(SYS_rt_tgsigqueueinfo, getpid(), tscope_tid(), number, info);
}

/* Not only the page that is missing: whoever uses the trace from here on sees one and the same. */
static bool put_memory(void) {
  TSCOPE_KEEP_ERRNO;
  void *memory = mmap(tscope_trace.header, tscope_trace.bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (memory == MAP_FAILED)
    return false;
  __atomic_store_n(&tscope_trace.broken, true, __ATOMIC_RELEASE);
  return true;
}

/* A signal that was sent to the process came to a thread of tscope's. It is for one of the job's,
 * or has to wait until the job takes it. From here on, this thread lets no other one come. */
static void send_on(int number, siginfo_t *info, ucontext_t *context) {
  sigset_t blocked;
  TSCOPE_KEEP_ERRNO;
  sigemptyset(&blocked);
  sigaddset(&blocked, number);
  sigprocmask(SIG_BLOCK, &blocked, NULL);
  sigaddset(&context->uc_sigmask, number);
  if (syscall(SYS_rt_sigqueueinfo, getpid(), number, info) != 0)
    kill(getpid(), number); /* only the first thread may say itself that it was kill() */
}

static void handle(int number, siginfo_t *info, void *context) {
  uintptr_t at = (uintptr_t)info->si_addr - (uintptr_t)tscope_trace.header;
  if (info->si_code > 0 && at < tscope_trace.bytes && put_memory())
    return;
  if (info->si_code <= 0 && tscope_is_worker(tscope_tid())) {
    send_on(number, info, context);
    return;
  }
  const struct sigaction job = *job_action();
  if (job.sa_handler == SIG_IGN)
    return;
  if (job.sa_handler == SIG_DFL) {
    end_process(number, info);
    return;
  }
  if (job.sa_flags & (int)SA_RESETHAND) {
    struct sigaction after = job;
    after.sa_handler = SIG_DFL;
    set_job_action(&after);
  }
  if (job.sa_flags & SA_SIGINFO)
    job.sa_sigaction(number, info, context);
  else
    job.sa_handler(number);
}

/* The kernel's action while the job's is `job`: its flags and mask are the job's. */
static struct sigaction action_for(const struct sigaction *job) {
  if (job->sa_handler == SIG_IGN) /* a program that is started next inherits that */
    return *job;
  struct sigaction action = *job;
  if (job->sa_handler == SIG_DFL)
    action.sa_flags = SA_ONSTACK | SA_RESTART;
  action.sa_flags = (action.sa_flags & ~(int)SA_RESETHAND) | SA_SIGINFO;
  action.sa_sigaction = handle;
  return action;
}

/* A child that was made past the C library, or shares the memory of its parent, has the kernel's
 * action still, and sets its own without us: what it is told is the job's. */
static void hide_ours(struct sigaction *old) {
  if (old && old->sa_sigaction == handle)
    *old = *job_action();
}

static bool is_guarded(void) {
  pid_t process = __atomic_load_n(&guarded, __ATOMIC_ACQUIRE);
  return process && process == getpid();
}

static int set_action(const struct sigaction *action, struct sigaction *old) {
  const struct sigaction before = *job_action();
  if (action) {
    /* What a function that is not hooked has returned, such as sysv_signal(), is the job's. */
    const struct sigaction wanted = action->sa_sigaction == handle ? before : *action;
    const struct sigaction ours = action_for(&wanted);
    set_job_action(&wanted);
    if (next_sigaction(SIGBUS, &ours, NULL) != 0)
      return -1;
  }
  if (old)
    *old = before;
  return 0;
}

int tscope_hook_sigaction(int number, const struct sigaction *action,
                          struct sigaction *old) __asm__("sigaction");
TSCOPE_EXPORT int tscope_hook_sigaction(int number, const struct sigaction *action,
                                        struct sigaction *old) {
  if (TSCOPE_LIKELY(number != SIGBUS))
    return next_sigaction(number, action, old);
  if (is_guarded())
    return set_action(action, old);
  int result = next_sigaction(number, action, old);
  if (result == 0)
    hide_ours(old);
  return result;
}

handler tscope_hook_signal(int number, handler action) __asm__("signal");
TSCOPE_EXPORT handler tscope_hook_signal(int number, handler action) {
  if (TSCOPE_LIKELY(number != SIGBUS) || action == SIG_ERR || !is_guarded()) {
    handler (*real)(int, handler) = TSCOPE_NEXT_FUNCTION("signal");
    handler before = real ? real(number, action) : ssignal(number, action);
    return before == (handler)(void *)handle ? job_action()->sa_handler : before;
  }
  struct sigaction wanted = {.sa_handler = action, .sa_flags = SA_RESTART}, before;
  sigaddset(&wanted.sa_mask, number);
  return set_action(&wanted, &before) == 0 ? before.sa_handler : SIG_ERR;
}

void tscope_bus_errors_guard(void) {
  struct sigaction job;
  if (next_sigaction(SIGBUS, NULL, &job) != 0)
    return;
  set_job_action(&job);
  __atomic_store_n(&guarded, getpid(), __ATOMIC_RELEASE);
  const struct sigaction ours = action_for(&job);
  next_sigaction(SIGBUS, &ours, NULL);
}

void tscope_bus_errors_in_child(void) {
  if (guarded)
    guarded = getpid();
}
