/* SPDX-License-Identifier: MIT */
#include "inspect/memory_gather.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inspect/kept_errno.h"
#include "inspect/memory_read.h"

#ifndef MFD_CLOEXEC
#define MFD_CLOEXEC 1u
#endif

enum { ALL_BYTES = GATHER_BYTES + 4096 };

static void *map(int file) {
  void *bytes = mmap(NULL, ALL_BYTES, PROT_READ | PROT_WRITE,
                     file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, file, 0);
  return bytes == MAP_FAILED ? NULL : bytes;
}

bool memory_gather_open(struct memory_gather *gather, bool may_open) {
  gather->file = may_open ? (int)syscall(SYS_memfd_create, "tscope", MFD_CLOEXEC) : -1;
  if (gather->file >= 0 && ftruncate(gather->file, ALL_BYTES) != 0) {
    close(gather->file);
    gather->file = -1;
  }
  gather->bytes = map(gather->file);
  return gather->bytes;
}

void memory_gather_lost(struct memory_gather *gather) {
  if (gather->bytes)
    munmap(gather->bytes, ALL_BYTES);
  gather->bytes = NULL;
  gather->file = -1;
}

void memory_gather_begin(struct memory_gather *gather) {
  gather->n = 0;
  gather->used = 0;
}

/* A piece ends where the next one begins: the kernel puts them one behind the other. */
const u8 *memory_gather_add(struct memory_gather *gather, u64 address, size_t bytes) {
  bytes = (bytes + 7) & ~(size_t)7;
  if (gather->n == GATHER_PIECES || gather->used + bytes > GATHER_BYTES)
    return NULL;
  gather->pieces[gather->n++] = (struct iovec){(void *)(uintptr_t)address, bytes};
  gather->used += bytes;
  return gather->bytes + gather->used - bytes;
}

static bool read_pieces(const struct memory_gather *gather, pid_t pid, const struct iovec *pieces,
                        u32 n, size_t at, size_t bytes) {
  TSCOPE_KEEP_ERRNO;
  bool own = gather->file >= 0 && pid == getpid();
  struct iovec local = {gather->bytes + at, bytes};
  ssize_t got = own ? pwritev(gather->file, pieces, (int)n, (off_t)at)
                    : process_vm_readv(pid, &local, 1, pieces, n, 0);
  bool refused = got < 0 && errno != EFAULT && errno != ESRCH;
  for (u32 i = 0; refused && i < n; i++) {
    refused = tscope_read_memory(pid, (u64)(uintptr_t)pieces[i].iov_base, gather->bytes + at,
                                 pieces[i].iov_len) == 0;
    at += pieces[i].iov_len;
  }
  return refused || got == (ssize_t)bytes;
}

bool memory_gather_read(struct memory_gather *gather, pid_t pid) {
  return read_pieces(gather, pid, gather->pieces, gather->n, 0, gather->used);
}

const u8 *memory_gather_one(struct memory_gather *gather, pid_t pid, u64 address, size_t bytes) {
  struct iovec piece = {(void *)(uintptr_t)address, bytes};
  return bytes <= ALL_BYTES - GATHER_BYTES &&
                 read_pieces(gather, pid, &piece, 1, GATHER_BYTES, bytes)
             ? gather->bytes + GATHER_BYTES
             : NULL;
}
