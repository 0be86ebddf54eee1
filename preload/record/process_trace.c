/* SPDX-License-Identifier: MIT */
#include "record/process_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "inspect/disk_room.h"
#include "record/carry.h"
#include "record/hook.h"
#include "record/reserve.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct tscope_trace tscope_trace;

bool tscope_trace_is_ours(void) {
  return tscope_is_live() && tscope_trace.header && (u32)getpid() == tscope_trace.header->pid;
}

u64 tscope_trace_offset(u32 chunk) {
  return TSCOPE_HEADER_BYTES + (u64)chunk * TSCOPE_CHUNK_BYTES;
}

/* Whether a store into allocated blocks never needs space, a server or a quota again: true for
 * ext2 to ext4 and tmpfs. File systems that copy on write need space at each store after the page
 * was written to the disk; also xfs, if the file was copied by reference. */
static bool stores_cannot_fail(int fd, bool *is_tmpfs) {
  struct statfs system;
  const u32 ext4 = 0xef53, tmpfs = 0x01021994;
  bool known = fstatfs(fd, &system) == 0;
  *is_tmpfs = known && (u32)system.f_type == tmpfs;
  return *is_tmpfs || (known && (u32)system.f_type == ext4);
}

int tscope_trace_look(int fd, u64 *bytes) {
  const unsigned what = STATX_INO | STATX_SIZE | STATX_NLINK;
  struct statx info;
  int error = fd >= 0 ? statx(fd, "", AT_EMPTY_PATH, what, &info)
                      : statx(AT_FDCWD, tscope_trace.path, AT_SYMLINK_NOFOLLOW, what, &info);
  *bytes = 0;
  if (error) /* the name may lead elsewhere than it did, as after chroot() */
    return errno == ENOENT ? -EAGAIN : -errno;
  *bytes = info.stx_size;
  bool is_it = info.stx_ino == tscope_trace.inode && info.stx_nlink > 0 &&
               ((u64)info.stx_dev_major << 32 | info.stx_dev_minor) == tscope_trace.device;
  return is_it ? 0 : -ENOENT;
}

static bool is_trace(int fd) {
  u64 bytes;
  return tscope_trace_look(fd, &bytes) == 0;
}

static __thread struct {
  bool used, renewed;
  int fd; /* negative: none yet */
} kept __attribute__((tls_model("initial-exec")));

void tscope_trace_keep_open(void) {
  kept.used = true;
  kept.fd = -1;
}

void tscope_trace_renew(void) {
  kept.renewed = true;
}

/* In a table of descriptors that the job has, too, another thread may close them all, and get the
 * same number for a file of its own: so no number is used that the job would get next, and what may
 * be another's is not closed. */
static int move_up(int low) {
  const rlim_t above = 1000;
  struct rlimit most = {.rlim_cur = 0};
  getrlimit(RLIMIT_NOFILE, &most);
  int fd = fcntl(low, F_DUPFD_CLOEXEC,
                 (int)(most.rlim_cur > above ? above : most.rlim_cur - most.rlim_cur / 4));
  int error = errno;
  if (is_trace(low))
    close(low);
  return fd < 0 ? -error : fd;
}

static int open_by_name(void) {
  int fd = open(tscope_trace.path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0)
    return -errno;
  if (!kept.used && (fd = move_up(fd)) < 0)
    return fd;
  if (is_trace(fd))
    return fd;
  if (kept.used)
    close(fd);
  return -ENOENT;
}

int tscope_trace_open(void) {
  bool has_kept = kept.used && kept.fd >= 0;
  if (has_kept && !kept.renewed)
    return kept.fd;
  if (!kept.used && !tscope_trace.carried)
    return -EBADF;
  int fd = open_by_name();
  if (!kept.used || (fd < 0 && !has_kept) || fd == -ENOENT)
    return fd;
  kept.renewed = false;
  if (fd < 0)
    return kept.fd;
  if (has_kept)
    close(kept.fd);
  return kept.fd = fd;
}

void tscope_trace_close(int fd) {
  if (fd >= 0 && !kept.used && is_trace(fd))
    close(fd);
}

bool tscope_trace_may_reach(u64 bytes) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
      bytes <= (u64)limit.rlim_cur)
    return true;
  errno = EFBIG;
  return false;
}

bool tscope_trace_put(int fd, const void *from, size_t bytes, u64 at) {
  if (!tscope_trace_may_reach(at + bytes))
    return false;
  while (bytes) {
    ssize_t written = pwrite(fd, from, bytes, (off_t)at);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0) {
      errno = written ? errno : ENOSPC;
      return false;
    }
    from = (const u8 *)from + written;
    bytes -= (size_t)written;
    at += (u64)written;
  }
  return true;
}

/* Allocates disk blocks for [from, to) of the file, so that no later store can find the disk
 * full. */
static int allocate(int fd, off_t from, off_t to) {
  if (!tscope_trace_may_reach((u64)to))
    return -EFBIG;
  if (fallocate(fd, 0, from, to - from) == 0)
    return 0;
  /* A signal makes tmpfs give back all that it has allocated: beside a fast timer of the job's, to
   * try again might never end. */
  if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINTR)
    return -errno;
  static const u8 zeros[16384];
  for (size_t bytes; from < to; from += (off_t)bytes) {
    bytes = MIN((size_t)(to - from), sizeof(zeros));
    if (!tscope_trace_put(fd, zeros, bytes, (u64)from))
      return -errno;
  }
  return 0;
}

/* Whether the disk, and the memory that the job may have, have room for `bytes` more and would keep
 * their margins. If the file system cannot say, only the allocation itself decides. */
static bool leaves_margin(int fd, u64 bytes) {
  struct statvfs disk;
  /* What is carried leaves the memory again. */
  u64 have = tscope_trace.carried ? 0 : tscope_trace_offset(tscope_trace.chunks);
  if (tscope_trace.in_memory && tscope_trace.memory_allows &&
      !tscope_trace.memory_allows(have + bytes, bytes))
    return false;
  if (fd < 0 && tscope_trace.carried) /* its server may not answer */
    return true;
  int unknown = fd >= 0 ? fstatvfs(fd, &disk) : statvfs(tscope_trace.path, &disk);
  return unknown || disk_has_room(&disk, tscope_trace.disk_free, bytes);
}

/* The reserve from the end of the chunks on. Valgrind reads all memory that a process can read,
 * when that has ended: each word there would be a SIGBUS. A forked child would have the reserve for
 * nothing, and if it locks its memory, all of it would be filled. */
static void close_reserve(size_t used) {
  u8 *from = (u8 *)tscope_trace.header + used;
  if (used >= tscope_trace.bytes)
    return;
  mprotect(from, tscope_trace.bytes - used, PROT_NONE);
  madvise(from, tscope_trace.bytes - used, MADV_DONTFORK);
}

/* Where the chunks end in memory, in whole pages. */
static size_t used_bytes(u32 chunks) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  return (tscope_trace_offset(chunks) + page - 1) & ~(page - 1);
}

/* Opens fresh chunks, and takes their page faults here instead of in the job's threads. False if a
 * store into them would fail. */
static bool prefault(u32 first, u32 count) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  u8 *from = (u8 *)tscope_trace_chunk(first);
  u8 *to = from + (size_t)count * TSCOPE_CHUNK_BYTES;
  u8 *aligned = (u8 *)((uintptr_t)from & ~(page - 1));
  if (mprotect(aligned, (size_t)(to - aligned), PROT_READ | PROT_WRITE) != 0)
    return false;
  madvise(aligned, (size_t)(to - aligned), MADV_DOFORK); /* a child may return into a hook */
  if (madvise(aligned, (size_t)(to - aligned), MADV_POPULATE_WRITE) == 0)
    return true;
  if (errno != EINVAL) /* which kernels before 5.14 say */
    return false;
  const size_t least_page = 4096;
  for (u8 *at = from; at < to; at += least_page) {
    /* The kernel stores it: where that fails, it says so, and sends no signal. */
    if (syscall(SYS_clock_gettime, CLOCK_MONOTONIC, at) != 0)
      return false;
    memset(at, 0, sizeof(struct timespec));
  }
  return true;
}

/* The file gets its blocks where prefault() stores into it. */
static bool extend_by_name(u64 from, u64 to) {
  u64 bytes;
  return tscope_trace_look(-1, &bytes) == 0 && bytes >= from && tscope_trace_may_reach(to) &&
         (bytes >= to || truncate(tscope_trace.path, (off_t)to) == 0);
}

/* Whether the file can hold the chunks [from, to). In memory they need no blocks yet; after a
 * failure to carry, there is no room until carrying succeeds. */
static bool has_room(int fd, u32 from, u32 to) {
  u64 begin = tscope_trace_offset(from), end = tscope_trace_offset(to), bytes;
  if (tscope_trace.carried)
    return tscope_carry_succeeds();
  if (fd < 0)
    return extend_by_name(begin, end);
  /* A file that was cut must not become long again: what was in it is gone. */
  bool is_cut = tscope_trace_look(fd, &bytes) == 0 && bytes < begin;
  return !is_cut && allocate(fd, (off_t)begin, (off_t)end) == 0;
}

u32 tscope_trace_grow(u32 wanted, u32 *first, bool for_job) {
  u32 got = 0;
  int fd = for_job ? -1 : tscope_trace_open();
  u32 have = tscope_trace.chunks;
  wanted = MIN(wanted, tscope_trace.chunks_max - have);
  if (!wanted || (fd < 0 && tscope_trace.carried && !for_job))
    goto out;
  for (; wanted; wanted /= 2)
    if (leaves_margin(fd, (u64)wanted * TSCOPE_CHUNK_BYTES) && has_room(fd, have, have + wanted))
      break;
  if (!wanted || !prefault(have, wanted))
    goto out;
  *first = have;
  got = wanted;
  __atomic_store_n(&tscope_trace.chunks, have + wanted, __ATOMIC_RELEASE);
  __atomic_store_n(&tscope_trace.header->chunks, have + wanted, __ATOMIC_RELAXED);
out:
  tscope_trace_close(fd);
  __atomic_store_n(&tscope_trace.full, got == 0, __ATOMIC_RELAXED);
  return got;
}

/* Kernels before 5.14 cannot: there, the job's threads take the faults. */
void tscope_trace_touch(u32 chunk, u32 from, u32 to) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), base = (uintptr_t)tscope_trace_chunk(chunk);
  uintptr_t begin = (base + from) & ~(page - 1), end = base + to;
  if (begin < end)
    madvise((void *)begin, end - begin, MADV_POPULATE_WRITE);
}

static bool cut_mapped(off_t bytes) {
  int fd = tscope_trace_open();
  return fd >= 0 ? ftruncate(fd, bytes) == 0
                 : is_trace(-1) && truncate(tscope_trace.path, bytes) == 0;
}

void tscope_trace_cut(u32 chunks) {
  if (chunks < tscope_trace.chunks) {
    __atomic_store_n(&tscope_trace.header->chunks, chunks, __ATOMIC_RELAXED);
    if (tscope_trace.carried || cut_mapped((off_t)tscope_trace_offset(chunks)))
      tscope_trace.chunks = chunks;
  }
  tscope_trace.chunks_max = tscope_trace.chunks;
}

/* Returns how many bytes less are mapped. */
static size_t shrink_to(size_t bytes) {
  size_t whole = tscope_trace.bytes;
  if (bytes >= whole)
    return 0;
  tscope_trace.bytes = bytes; /* first: what is not mapped may soon be another's */
  if (mremap(tscope_trace.header, whole, bytes, 0) == MAP_FAILED)
    tscope_trace.bytes = whole;
  return whole - tscope_trace.bytes;
}

static size_t reserve; /* bytes behind the last chunk that are not mapped for now */

void tscope_trace_leave_reserve(void) {
  reserve = shrink_to(used_bytes(tscope_trace.chunks));
}

void tscope_trace_limit(u32 chunks_max) {
  if (chunks_max >= tscope_trace.chunks_max || chunks_max < tscope_trace.chunks)
    return;
  tscope_trace.chunks_max = chunks_max;
  shrink_to(used_bytes(chunks_max));
}

/* Another thread may have mapped something there meanwhile: then the trace stays as large as it is.
 */
void tscope_trace_take_reserve(void) {
  size_t used = tscope_trace.bytes;
  munlock(tscope_trace.header, used);
  if (reserve && mremap(tscope_trace.header, used, used + reserve, 0) != MAP_FAILED) {
    tscope_trace.bytes = used + reserve;
    close_reserve(used);
  } else if (reserve) {
    tscope_trace.chunks_max = tscope_trace.chunks;
  }
  reserve = 0;
}

int tscope_trace_create(int directory_fd, const char *directory, const char *name,
                        const struct tscope_file_header *header, u32 chunks_max) {
  char unfinished[256];
  struct tscope_trace *store = &tscope_trace;
  if ((size_t)snprintf(unfinished, sizeof(unfinished), ".%s.new", name) >= sizeof(unfinished) ||
      (size_t)snprintf(store->path, sizeof(store->path), "%s/%s", directory, name) >=
          sizeof(store->path))
    return -ENAMETOOLONG;
  int fd =
      openat(directory_fd, unfinished, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0)
    return -errno;
  int error = 0;
  void *map = MAP_FAILED;
  size_t bytes = TSCOPE_HEADER_BYTES + (size_t)chunks_max * TSCOPE_CHUNK_BYTES;
  struct statx info;
  if (statx(fd, "", AT_EMPTY_PATH, STATX_INO, &info) != 0) {
    error = -errno;
    goto out;
  }
  store->inode = info.stx_ino;
  store->device = (u64)info.stx_dev_major << 32 | info.stx_dev_minor;
  store->carried = !stores_cannot_fail(fd, &store->in_memory);
  store->in_memory |= store->carried;
  error = leaves_margin(fd, TSCOPE_HEADER_BYTES) ? allocate(fd, 0, TSCOPE_HEADER_BYTES) : -ENOSPC;
  if (error)
    goto out;
  map = store->carried ? tscope_carry_map(bytes, chunks_max) : tscope_reserve_map(fd, bytes);
  if (map == MAP_FAILED) {
    error = -errno;
    goto out;
  }
  store->header = map;
  store->bytes = bytes;
  store->chunks_max = chunks_max;
  close_reserve(used_bytes(0));
  memcpy(map, header, sizeof(*header));
  store->header->carried = store->carried;
  if (store->carried && !tscope_trace_put(fd, map, sizeof(*header), 0)) {
    error = -errno;
    store->header = NULL;
    goto out;
  }
  if (renameat(directory_fd, unfinished, directory_fd, name) != 0) {
    error = -errno;
    store->header = NULL;
  }
out:
  if (error) {
    if (map != MAP_FAILED)
      munmap(map, bytes);
    unlinkat(directory_fd, unfinished, 0);
  }
  close(fd);
  return error;
}
