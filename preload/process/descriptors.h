/* SPDX-License-Identifier: MIT */
#pragma once

/* Closes all descriptors of the calling thread's table, which must be its own. Only system calls;
 * does not preserve errno. */
void tscope_descriptors_close(void);
