/* SPDX-License-Identifier: MIT
 *
 * A store into a mapped file that does not hold the page any more (another program has cut the
 * file, or its disk has failed) is answered with SIGBUS, which would end the job. So SIGBUS is
 * handled once the trace is mapped. If it is about the trace, memory takes the trace's place, and
 * the store goes on. Everything else goes on to the job's own action, as if tscope were not there:
 * the job sets and sees its action through sigaction() and signal(), which are hooked for that.
 * What is sent to the process is never handled on a thread of tscope's.
 *
 * Not guarded: a thread that blocks SIGBUS, which the kernel ends with its process, and a job that
 * sets its action in other ways (sigset(), sysv_signal(), a system call of its own).
 */
#pragma once

/* Guards the stores into the trace, once it is mapped. */
void tscope_bus_errors_guard(void);

/* In a fork child: the job's action stays what it is, and is still the one that the job sees. */
void tscope_bus_errors_in_child(void);
