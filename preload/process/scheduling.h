/* SPDX-License-Identifier: MIT
 *
 * Whether the kernel lets the process run: CPU time that it got, and CPU time for which it waited.
 */
#pragma once

/* Writes a SCHEDULING record. Only for the helper: it reads a file for each of the process's
 * threads, as many as there is room for, into memory that is already there. */
void tscope_scheduling_write(void);
