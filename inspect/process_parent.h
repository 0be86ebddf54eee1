/* SPDX-License-Identifier: MIT */
#ifndef TSCOPE_PROCESS_PARENT_H
#define TSCOPE_PROCESS_PARENT_H

#include <sys/types.h>

/* The process id of the parent of `pid`; 0 if there is none, or `pid` has ended. */
pid_t process_parent(pid_t pid);

#endif
