/* SPDX-License-Identifier: MIT
 *
 * Whether the kernel lets the process run: CPU time had, and CPU time waited for.
 */
#ifndef TSCOPE_SCHEDULING_H
#define TSCOPE_SCHEDULING_H

#pragma GCC visibility push(hidden)

/* Writes a SCHEDULING record. Of the helper alone: it reads a file for each of the process's
 * threads, 1024 at most, into memory that is there. */
void tscope_scheduling_write(void);

#pragma GCC visibility pop

#endif
