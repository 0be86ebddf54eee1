/* SPDX-License-Identifier: MIT
 *
 * tscope's two threads in an awake process. The helper keeps chunks ready and writes totals. The
 * poller runs the families' ticks, which may take long (flushing the GPU's records) and must not
 * delay the helper. The poller uses the job's descriptors, the helper its own. Both have all
 * signals blocked but SIGBUS (bus_errors.h). If all threads of the job end, the poller ends the
 * process, which the C library does only when no thread is left.
 */
#pragma once

#include "record/hook.h"

/* Starts both. The helper wakes the process on its own stack, because the job's threads may have
 * small stacks. Waits until that is done, at most ten seconds. False if it was not done, with the
 * reason in `why`; an empty reason means that no message is needed. */
bool tscope_workers_start(const char **why);

/* Wakes the helper early, because few chunks are left. Makes a system call only if it sleeps. */
void tscope_helper_wake(void);

/* Asks the poller to stop and waits for that, at most a second. False if it has not stopped. */
bool tscope_poller_stop(void);

/* From here on nothing is recorded. The helper closes the trace and stops. Where it has not done so
 * within a second, the calling thread carries what it can. */
void tscope_recording_end(void);

/* Ends both for a moment, if they are the process's only threads beside the caller's, and waits
 * until the kernel does not count them any more, at most a second. True if they are gone: then
 * tscope_workers_resume() starts them again, and they go on with what they did. False changes
 * nothing. errno is preserved. */
bool tscope_workers_pause(void);
void tscope_workers_resume(void);

/* Whether the kernel's number is that of one of them: no thread of the job's. */
bool tscope_is_worker(u32 tid);

/* CPU time of both so far. */
u64 tscope_workers_cpu_ns(void);
