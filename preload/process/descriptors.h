/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

/* Closes all descriptors from number `first` on of the calling thread's table, which must be its
 * own. Only system calls; does not preserve errno. */
void tscope_descriptors_close_from(int first);

/* Gives the calling thread a table of its own, with no descriptor in it. False if the kernel does
 * not allow that. The same holds. */
bool tscope_descriptors_leave(void);
