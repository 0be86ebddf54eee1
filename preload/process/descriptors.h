/* SPDX-License-Identifier: MIT */
#pragma once

/* Closes all descriptors from number `first` on of the calling thread's table, which must be its
 * own. Only system calls; does not preserve errno. */
void tscope_descriptors_close_from(int first);
