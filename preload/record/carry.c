/* SPDX-License-Identifier: MIT */
#include "record/carry.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/text_parts.h"
#include "record/cancellation.h"
#include "record/error_text.h"
#include "record/lock.h"
#include "record/process_trace.h"
#include "record/reserve.h"

#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#endif
#ifndef F_SEAL_SHRINK
#define F_SEAL_SHRINK 2
#endif

/* FILLED: the helper may take it to carry the rest, or a thread to fill it again. CARRYING: the
 * helper has it. CARRIED: it is in the file and has left the memory. */
enum state { UNUSED, FILLING, FILLED, CARRYING, CARRIED };

struct carried {
  u64 committed;  /* what the file has */
  u64 given_up;   /* in all uses of the chunk before that */
  u32 generation; /* ... of which use of the chunk */
  u32 settled;    /* bytes of records that are in the file and do not change any more */
  u32 open;       /* spans behind those that had not ended when they were carried */
  u32 state;
};
static struct carried *table;

static u32 extent; /* chunks that the file has room for */
static bool failed;
static u32 n_filled; /* chunks filled since the last time */

/* One thread at a time carries. */
static struct tscope_lock lock;

enum outcome { DONE, RETRY, CUT, REMOVED, BROKEN };

void *tscope_carry_map(size_t bytes, u32 chunks_max) {
  const unsigned close_on_exec = 1, may_be_sealed = 2;
  table = tscope_reserve_map(-1, chunks_max * sizeof(*table));
  if (table == MAP_FAILED)
    return MAP_FAILED;
  int fd = (int)syscall(SYS_memfd_create, "tscope", close_on_exec | may_be_sealed);
  if (fd < 0)
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                0);
  void *map = MAP_FAILED;
  if (ftruncate(fd, (off_t)bytes) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0)
    map = tscope_reserve_map(fd, bytes);
  int error = errno;
  close(fd);
  errno = error;
  return map;
}

static u32 state_of(u32 chunk) {
  return __atomic_load_n(&table[chunk].state, __ATOMIC_ACQUIRE);
}

static void set_state(u32 chunk, enum state state) {
  __atomic_store_n(&table[chunk].state, state, __ATOMIC_RELEASE);
}

static bool change_state(u32 chunk, u32 from, enum state to) {
  return __atomic_compare_exchange_n(&table[chunk].state, &from, to, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}

void tscope_carry_begun(u32 chunk) {
  if (tscope_trace.carried)
    set_state(chunk, FILLING);
}

void tscope_carry_filled(u32 chunk) {
  if (!tscope_trace.carried)
    return;
  set_state(chunk, FILLED);
  __atomic_fetch_add(&n_filled, 1, __ATOMIC_RELAXED);
}

bool tscope_carry_take_back(u32 chunk) {
  if (!tscope_trace.carried || change_state(chunk, FILLED, FILLING))
    return true;
  if (!change_state(chunk, CARRIED, FILLING))
    return false;
  struct tscope_chunk_header *header = tscope_trace_chunk(chunk);
  header->generation = table[chunk].generation;
  header->committed = table[chunk].committed;
  header->given_up = table[chunk].given_up;
  return true;
}

u64 tscope_carry_committed(u32 chunk) {
  if (tscope_trace.carried && state_of(chunk) == CARRIED)
    return table[chunk].committed;
  return __atomic_load_n(&tscope_trace_chunk(chunk)->committed, __ATOMIC_ACQUIRE);
}

bool tscope_carry_succeeds(void) {
  return !__atomic_load_n(&failed, __ATOMIC_RELAXED);
}

/* By record type: whether the record is a span, whose duration is set when it ends. */
static const bool *spans(void) {
  static bool is_span[256], known;
#define FIELD(type, field, doc) "," #field ":" #type
#define X(NAME, name, id, retention, doc)                                                          \
  is_span[id] = tscope_begins_with("" TSCOPE_FIELDS_##NAME(FIELD), ",dur:u64");
  if (!known) {
    TSCOPE_RECORDS(X)
  }
  known = true;
#undef X
#undef FIELD
  return is_span;
}

/* Counts the open spans in [from, to) of a chunk's records; *first gets the place of the first one,
 * or `to`. */
static u32 count_open(const struct tscope_chunk_header *chunk, u32 from, u32 to, u32 *first) {
  u32 open = 0;
  *first = to;
  if (chunk->retention != TSCOPE_RETAINED)
    return 0;
  const bool *is_span = spans();
  for (u32 at = from; at < to;) {
    const struct tscope_record *record = (const void *)((const u8 *)(chunk + 1) + at);
    const u64 *dur = (const u64 *)(const void *)(record + 1);
    if (!record->words)
      break;
    if (is_span[record->type] && __atomic_load_n(dur, __ATOMIC_ACQUIRE) == TSCOPE_DUR_PENDING &&
        !open++)
      *first = at;
    at += record->words * 8u;
  }
  return open;
}

/* Before records of the chunk's next use are written, a reader must see that the chunk is empty and
 * has another generation. */
static bool put_empty(int fd, u32 number, const struct tscope_chunk_header *chunk, u64 generation) {
  struct tscope_chunk_header header = *chunk;
  header.committed = 0;
  header.generation = generation;
  if (number >= extent) {
    u64 end = tscope_trace_offset(number + 1);
    if (!tscope_trace_may_reach(end) || ftruncate(fd, (off_t)end) != 0)
      return false;
    extent = number + 1;
  }
  if (!tscope_trace_put(fd, &header, sizeof(header), tscope_trace_offset(number)))
    return false;
  struct carried *known = &table[number];
  known->generation = (u32)generation;
  known->given_up = header.given_up;
  known->committed = 0;
  known->settled = known->open = 0;
  return true;
}

/* Carries what is new in one chunk. A thread may take a ring chunk and fill it again meanwhile:
 * then its generation has changed, and the next time begins anew. */
static bool carry_records(int fd, u32 number) {
  struct carried *known = &table[number];
  struct tscope_chunk_header *chunk = tscope_trace_chunk(number);
  u64 at = tscope_trace_offset(number);
  u64 committed = __atomic_load_n(&chunk->committed, __ATOMIC_ACQUIRE);
  u64 generation = __atomic_load_n(&chunk->generation, __ATOMIC_RELAXED);
  u32 bytes = (u32)committed, first, still_open;
  if (__atomic_load_n(&chunk->magic, __ATOMIC_ACQUIRE) != TSCOPE_CHUNK_MAGIC || !committed)
    return true;
  if ((!known->committed || (u32)generation != known->generation) &&
      !put_empty(fd, number, chunk, generation))
    return false;
  still_open = count_open(chunk, known->settled, (u32)known->committed, &first);
  u32 from = still_open == known->open ? (u32)known->committed : known->settled;
  if (from == bytes)
    return true;
  still_open = count_open(chunk, known->settled, bytes, &first);
  if (!tscope_trace_put(fd, (const u8 *)(chunk + 1) + from, bytes - from,
                        at + sizeof(*chunk) + from))
    return false;
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  if (__atomic_load_n(&chunk->generation, __ATOMIC_RELAXED) != generation)
    return true;
  if (!tscope_trace_put(fd, &committed, sizeof(committed),
                        at + offsetof(struct tscope_chunk_header, committed)))
    return false;
  known->committed = committed;
  known->settled = first;
  known->open = still_open;
  return true;
}

/* Gives the memory of a chunk back. Its first bytes may share a page with another chunk. */
static void forget(u32 number) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)tscope_trace_chunk(number);
  uintptr_t to = (from + TSCOPE_CHUNK_BYTES) & ~(page - 1);
  from = (from + page - 1) & ~(page - 1);
  if (from < to)
    madvise((void *)from, to - from, MADV_REMOVE);
}

/* Nobody stores into a chunk any more that is filled and has no open span. */
static bool carry_chunk(int fd, u32 number) {
  u32 state = state_of(number);
  if (state == FILLING)
    return carry_records(fd, number);
  if (state != FILLED || !change_state(number, FILLED, CARRYING))
    return true;
  bool carried = carry_records(fd, number);
  bool settled = carried && !table[number].open;
  if (settled)
    forget(number);
  set_state(number, settled ? CARRIED : FILLED);
  return carried;
}

static enum outcome check_file(int fd) {
  u64 bytes;
  u32 expected =
      tscope_trace.carried ? extent : __atomic_load_n(&tscope_trace.chunks, __ATOMIC_ACQUIRE);
  int error = tscope_trace_look(fd, &bytes);
  if (error)
    return error == -ENOENT ? REMOVED : RETRY;
  return bytes < tscope_trace_offset(expected) ? CUT : DONE;
}

static enum outcome carry_all(int fd) {
  enum outcome outcome = check_file(fd);
  if (outcome != DONE)
    return outcome;
  u32 chunks = __atomic_load_n(&tscope_trace.chunks, __ATOMIC_ACQUIRE);
  for (u32 number = 0; number < chunks; number++)
    if (!carry_chunk(fd, number))
      return RETRY;
  return tscope_trace_put(fd, tscope_trace.header, sizeof(*tscope_trace.header), 0) ? DONE : RETRY;
}

static u32 worst; /* outcome */
static int why_failed;

static void note(enum outcome outcome, int error) {
  __atomic_store_n(&failed, outcome != DONE, __ATOMIC_RELAXED);
  if (outcome == DONE || outcome <= worst)
    return;
  why_failed = error;
  __atomic_store_n(&worst, outcome, __ATOMIC_RELEASE);
}

void tscope_carry_tell(void) {
  static u32 told;
  u32 outcome = __atomic_load_n(&worst, __ATOMIC_ACQUIRE);
  if (outcome == told)
    return;
  if (outcome == RETRY) {
    tscope_log(0, "the trace cannot be written (%s); it is tried again, and losses are counted",
               tscope_error_text(why_failed));
    tscope_trace.told = true;
  } else {
    tscope_turn_off(outcome == CUT       ? "the trace was cut by another program"
                    : outcome == REMOVED ? "the trace was removed by another program"
                                         : "the trace's file system has failed");
  }
  told = outcome;
}

/* A mapped file only has to be there, as long as it was, and with its beginning. */
static enum outcome check_mapped(int fd) {
  enum outcome outcome = check_file(fd);
  if (outcome == DONE && tscope_trace.header->magic[0] != TSCOPE_MAGIC[0])
    outcome = CUT;
  bool broken = __atomic_load_n(&tscope_trace.broken, __ATOMIC_ACQUIRE);
  return outcome == CUT || outcome == REMOVED ? outcome : broken ? BROKEN : DONE;
}

void tscope_carry(void) {
  if (!tscope_lock_within(&lock, 0))
    return;
  int fd = tscope_trace_open();
  bool removed = fd == -ENOENT;
  enum outcome outcome = !tscope_trace.carried ? check_mapped(fd)
                         : fd >= 0             ? carry_all(fd)
                         : removed             ? REMOVED
                                               : RETRY;
  int error = fd < 0 ? -fd : errno;
  if (outcome != DONE)
    tscope_trace_renew();
  tscope_trace_close(fd);
  __atomic_store_n(&n_filled, 0, __ATOMIC_RELAXED);
  note(outcome, error);
  tscope_unlock(&lock);
}

void tscope_carry_early(void) {
  const u32 chunks = 64;
  if (__atomic_load_n(&n_filled, __ATOMIC_RELAXED) >= chunks && tscope_carry_succeeds())
    tscope_carry();
}

static void count_rest(void) {
  u64 lost = 0;
  for (u32 number = 0; number < tscope_trace.chunks; number++)
    if (state_of(number) != CARRIED)
      lost += (tscope_carry_committed(number) >> 32) - (table[number].committed >> 32);
  tscope_count_lost(TSCOPE_LOSS_DISK, lost);
}

void tscope_carry_last(void) {
  const u64 patience_ns = 1000000000;
  if (!tscope_trace.carried || !tscope_lock_within(&lock, patience_ns))
    return;
  TSCOPE_KEEP_ERRNO;
  TSCOPE_DEFER_CANCELLATION;
  int fd = tscope_trace_open();
  if (fd >= 0 && carry_all(fd) == RETRY) {
    note(RETRY, errno);
    count_rest();
    (void)tscope_trace_put(fd, tscope_trace.header, sizeof(*tscope_trace.header), 0);
  }
  tscope_trace_close(fd);
  tscope_unlock(&lock);
}
