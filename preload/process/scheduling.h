/* SPDX-License-Identifier: MIT
 *
 * Whether the kernel lets the process run: CPU time that it got, and CPU time for which it waited.
 */
#ifndef TSCOPE_SCHEDULING_H
#define TSCOPE_SCHEDULING_H

/* Writes a SCHEDULING record. Only for the helper: it reads a file for each of the process's
 * threads, 1024 at most, into memory that is already there. */
void tscope_scheduling_write(void);

#endif
