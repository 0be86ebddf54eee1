/* SPDX-License-Identifier: MIT
 *
 * Reading many small pieces of memory in one system call.
 *
 * Of one's own process by pwritev() into a file in memory (memfd) that is mapped: the kernel copies
 * from the caller's memory as in any write, and a bad address is an error. That costs some 30 ns a
 * piece; process_vm_readv(), which looks up the pages of each piece first, costs some 400 ns. It
 * reads other processes, and one's own where there is no such file.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "format/tscope_format.h"

enum { GATHER_PIECES = 960, GATHER_BYTES = 256 << 10 };

struct memory_gather {
  int file;  /* -1: none */
  u8 *bytes; /* GATHER_BYTES and a page, where the pieces are put; NULL: not open */
  u32 n;
  size_t used;
  struct iovec pieces[GATHER_PIECES];
};

/* With `may_open`, may use a number of the calling thread's table of descriptors. False without
 * memory. */
bool memory_gather_open(struct memory_gather *gather, bool may_open);

/* The table of descriptors is gone, and with it the file. */
void memory_gather_lost(struct memory_gather *gather);

void memory_gather_begin(struct memory_gather *gather);

/* One more piece. Returns where its bytes will be until the next memory_gather_begin(); NULL: there
 * is no room. Places are aligned to 8 bytes. */
const u8 *memory_gather_add(struct memory_gather *gather, u64 address, size_t bytes);

/* Reads all pieces from the process `pid`. False if one of them is not there. Preserves errno. */
bool memory_gather_read(struct memory_gather *gather, pid_t pid);

/* Reads one piece of at most a page, apart from the others. NULL if it is not there. */
const u8 *memory_gather_one(struct memory_gather *gather, pid_t pid, u64 address, size_t bytes);
