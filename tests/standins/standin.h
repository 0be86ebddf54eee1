/* SPDX-License-Identifier: MIT
 *
 * What a program may say to the stand-in GPU beyond the CUDA API. The simulator lives in the
 * stand-in libcuda.so.1, as the real one's work does in the driver; cudart, NCCL and CUPTI
 * stand-ins all speak to it. See README.md for what is simulated.
 *
 * Times are nanoseconds of the kernel's CLOCK_MONOTONIC, read by system call or vDSO beneath any
 * preloaded library, so that they are the truth even where a test bends the process's clocks.
 */
#ifndef STANDIN_H
#define STANDIN_H

#include <stdint.h>

/* The next kernel that this thread launches runs for `ns`. Wins over the two below. */
void standin_next_kernel_ns(int64_t ns);

/* Every kernel whose device name is `name`, mangled or (where it is no member of anything) plain,
 * runs for `ns`. Kernels that nobody spoke for run STANDIN_KERNEL_US (10). */
void standin_kernel_ns(const char *name, int64_t ns);

/* What every conditional node of a graph finds from now on (1 at first): a while runs its body so
 * often, an if once unless it is 0, a switch the body of that number. */
void standin_condition(unsigned value);

/* Notes an instant of the host in the op log (see README.md, "The op log"). */
void standin_mark(const char *name, int64_t value);

/* The clock of the log. */
int64_t standin_now_ns(void);

#endif
