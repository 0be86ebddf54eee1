/* SPDX-License-Identifier: MIT */
#pragma once

/* From here on, tscope's threads are away while the program counts its threads after a fork. */
void tscope_fork_count_install(void);
