/* SPDX-License-Identifier: MIT
 *
 * The frames of C and C++ from which a call came, for processes without Python: return addresses,
 * which the analyzer gives names to. They are found by the unwinder that C++ exceptions and glibc's
 * backtrace() use (libgcc_s), from tables in the program: it takes no memory from the allocator,
 * opens nothing and makes no system call. See
 * docs/decisions/native-frames-by-libgcc.md for why not by libunwind.
 */
#pragma once

#include <stdbool.h>

#include "format/tscope_format.h"

/* On the first call, opens the unwinder. NULL, or why there are no native frames. */
const char *native_here_find(void);

/* Whether it need not load the unwinder first, for which it would wait for the linker's lock. */
bool native_here_is_loaded(void);

/* Return addresses of the calling thread's frames outside of tscope, innermost first, at most
 * `most`; how many. *more: there are further ones. */
u32 native_here_walk(u64 *addresses, u32 most, bool *more);

/* The file that has `address`, the address in it as it was linked, and its build id in hex, ""
 * where it has none. `file` is empty for code of no file; then `offset` is the address. */
struct native_address {
  u64 offset;
  char file[512];
  char build_id[2 * 32 + 1];
};
void native_here_name(u64 address, struct native_address *name);
