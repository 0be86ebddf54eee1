/* SPDX-License-Identifier: MIT
 *
 * The CPython interpreter of this process.
 */
#pragma once

#include "inspect/python_frames.h"

#pragma GCC visibility push(hidden)

/* Filled by python_here_find(); its layout's minor is 0 until then. Never changes afterwards. */
extern struct python python_here;

/* Address of _PyRuntime; 0 until the interpreter was found. */
extern u64 python_here_runtime;

/* On the first call, finds the interpreter and checks the known layout against its own type
 * objects. Returns NULL, or the reason why frames cannot be read: "" if the process has no Python
 * at all. Looks up symbols. */
const char *python_here_find(void);

/* Address of the state of the calling thread's interpreter. 0 if it has none, if Python is shutting
 * down, or if with several interpreters it is not clear in which one the thread is. Takes no
 * lock. */
u64 python_here_thread(void);

#pragma GCC visibility pop
