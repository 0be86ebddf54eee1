/* SPDX-License-Identifier: MIT */
#ifndef TSCOPE_FORK_COUNT_H
#define TSCOPE_FORK_COUNT_H

/* From here on, tscope's threads are away while the program counts its threads after a fork. */
void tscope_fork_count_install(void);

#endif
