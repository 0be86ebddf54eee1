/* SPDX-License-Identifier: MIT
 *
 * Functions of the stand-in GPU beyond the CUDA API. The simulator is part of the stand-in
 * libcuda.so.1; the stand-ins of the CUDA runtime, NCCL and CUPTI use it. See README.md for what is
 * simulated.
 *
 * Times are nanoseconds of CLOCK_MONOTONIC, read by system call and not through a preloaded
 * library, so that they are right even if a test changes the process's clocks.
 */
#pragma once

#include <stdint.h>

/* The next kernel that this thread launches runs for `ns`. Has priority over standin_kernel_ns().
 */
void standin_next_kernel_ns(int64_t ns);

/* Every kernel with the device name `name` runs for `ns`. The name is mangled, or plain for a
 * function outside of namespaces and classes. All other kernels run for STANDIN_KERNEL_US (10). */
void standin_kernel_ns(const char *name, int64_t ns);

/* The next collective that this thread calls is the communication of another library: it runs as a
 * kernel with the device name `name`, which is not copied, and NCCL's profiler hears nothing of it.
 * Of the stand-in NCCL; call the collective by its profiling name (pncclAllReduce), because the
 * other library does not call NCCL. */
void standin_next_collective_name(const char *name);

/* The value of all conditional nodes of graphs from now on (1 at first). A while node runs its body
 * `value` times, an if node once unless the value is 0, a switch node the body with that index. */
void standin_condition(unsigned value);

/* Logs the present time with a name and a value (see README.md, "The op log"). */
void standin_mark(const char *name, int64_t value);

/* The present time on the clock of the log. */
int64_t standin_now_ns(void);
