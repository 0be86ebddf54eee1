/* SPDX-License-Identifier: MIT
 *
 * The list of loaded objects, read so that a fork never copies its lock while it is taken.
 *
 * dl_iterate_phdr() takes a lock of the dynamic linker that fork() does not reset in the child. If
 * a thread of the parent has it at that moment, the child waits for ever in its next
 * dl_iterate_phdr(): its own, or that of a C++ exception where the unwinder is old. Without tscope
 * these threads would not be there. So a fork waits until they have left, and they wait until the
 * fork is over; both only for a limited time.
 *
 * No signal is handled meanwhile: a handler may leave by siglongjmp(), and a thread may be
 * cancelled at any instruction, by a signal too. The lock would be held for ever.
 */
#pragma once

#include <link.h>
#include <stddef.h>

/* dl_iterate_phdr(). The only caller of it in the library. */
int tscope_each_object(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data);

/* Around calls that take the lock themselves, such as an unwinder's; and around those that take
 * others that fork() does not reset: on_exit(). May be nested. */
void tscope_objects_enter(void);
void tscope_objects_leave(void);

/* dlopen() where it may load a file. Signals go on: threads that the library starts inherit what is
 * blocked. NULL also where there is no dlopen(). */
void *tscope_library_open(const char *path, int flags);
