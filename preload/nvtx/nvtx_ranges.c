/* SPDX-License-Identifier: MIT */
#include "nvtx/nvtx_ranges.h"

#include "nvtx/nvtx_abi.h"
#include "record/families.h"
#include "record/job_steps.h"

/* Deeper ones are counted, so that pops match their pushes, and as lost. */
enum { NESTED_MAX = 64, FREE_MAX = 1024 };

struct range {
  struct nvtx_domain *domain;
  u64 start;
  u64 *dur; /* the retained record of a step or phase */
  struct nvtx_name name;
};

/* In tscope_thread.family[TSCOPE_FAMILY_NVTX]. */
struct nvtx_thread {
  u32 open;
  struct range ranges[NESTED_MAX];
  struct nvtx_cache cache;
};

const struct tscope_family tscope_nvtx_family = {.thread_bytes = sizeof(struct nvtx_thread)};

static struct nvtx_thread *thread_of(const struct tscope_thread *thread) {
  return thread->family[TSCOPE_FAMILY_NVTX];
}

static u64 *open_step(struct tscope_thread *thread, const struct range *range) {
  struct tscope_step_range_record record = {.name = range->name.string,
                                            .number = range->name.number};
  return tscope_span_open(thread, range->start, TSCOPE_REC_STEP_RANGE, 0, &record, sizeof(record));
}

static u64 *open_phase(struct tscope_thread *thread, const struct range *range) {
  struct tscope_phase_record record = {.name = range->name.string};
  return tscope_span_open(thread, range->start, TSCOPE_REC_PHASE, range->name.meaning, &record,
                          sizeof(record));
}

/* Whether the thread is in a range of the same meaning: the "forward" ranges of modules inside the
 * model's "forward" are part of it. */
static bool is_inside_same_meaning(const struct nvtx_thread *mine, u8 meaning) {
  u32 open = MIN(mine->open, NESTED_MAX);
  for (u32 i = 0; i < open; i++)
    if (mine->ranges[i].dur && mine->ranges[i].name.meaning == meaning)
      return true;
  return false;
}

static u64 *open_retained_span(struct tscope_thread *thread, const struct range *range) {
  if (range->name.meaning == NVTX_PLAIN ||
      is_inside_same_meaning(thread_of(thread), range->name.meaning))
    return NULL;
  return range->name.meaning == NVTX_STEP ? open_step(thread, range) : open_phase(thread, range);
}

static void close_retained_span(struct tscope_thread *thread, const struct range *range) {
  tscope_span_close(thread, range->dur, range->start);
  if (range->name.meaning == NVTX_STEP)
    tscope_step_ended(thread, TSCOPE_STEP_RANGE);
  else
    tscope_phase_ended(thread, range->name.meaning, range->start);
}

static struct range range_of(struct tscope_thread *thread, struct nvtx_domain *domain,
                             struct nvtx_text text) {
  return (struct range){.domain = domain,
                        .start = tscope_ticks(),
                        .name = nvtx_name_of(thread, &thread_of(thread)->cache, text)};
}

static void record(struct tscope_thread *thread, const struct range *range,
                   enum tscope_range kind) {
  u32 domain = nvtx_domain_string(thread, range->domain);
  struct tscope_range_record *record = tscope_reserve(thread, &thread->ring, range->start,
                                                      TSCOPE_REC_RANGE, (u16)kind, sizeof(*record));
  if (!record)
    return;
  record->name = range->name.string;
  record->domain = domain;
  record->number = range->name.number;
  record->reserved = 0;
  if (kind == TSCOPE_RANGE_MARK) {
    record->dur = 0;
    tscope_commit(&thread->ring, sizeof(*record));
  } else {
    tscope_commit_dur(thread, &thread->ring, sizeof(*record), range->start);
  }
}

int nvtx_push(struct nvtx_domain *domain, struct nvtx_text text) {
  struct tscope_thread *thread = domain->ignored ? NULL : tscope_enter(TSCOPE_QUIET);
  if (!thread)
    return NVTX_UNTRACKED;
  struct nvtx_thread *mine = thread_of(thread);
  if (mine->open < NESTED_MAX) {
    struct range range = range_of(thread, domain, text);
    range.dur = open_retained_span(thread, &range);
    mine->ranges[mine->open] = range;
  } else {
    tscope_count_lost(TSCOPE_LOSS_RANGES, 1);
  }
  mine->open++;
  tscope_leave(thread);
  return NVTX_UNTRACKED;
}

/* Removes the innermost open range of a domain. False if it was too deep to be kept. */
static bool pop_range(struct nvtx_thread *mine, const struct nvtx_domain *domain,
                      struct range *range) {
  u32 i = mine->open;
  while (i > 0 && mine->ranges[i - 1].domain != domain)
    i--;
  if (i == 0)
    return false;
  *range = mine->ranges[i - 1];
  mine->open--;
  for (; i <= mine->open; i++)
    mine->ranges[i - 1] = mine->ranges[i];
  return true;
}

int nvtx_pop(struct nvtx_domain *domain) {
  struct tscope_thread *thread = domain->ignored ? NULL : tscope_enter(TSCOPE_QUIET);
  if (!thread)
    return NVTX_UNTRACKED;
  struct nvtx_thread *mine = thread_of(thread);
  struct range range;
  if (mine->open > NESTED_MAX) {
    mine->open--;
  } else if (pop_range(mine, domain, &range)) {
    if (range.dur) {
      close_retained_span(thread, &range);
    } else {
      record(thread, &range, TSCOPE_RANGE_NESTED);
    }
  }
  tscope_leave(thread);
  return NVTX_UNTRACKED;
}

/* Ranges that begin on one thread and may end on another. A range's number consists of a slot and
 * how often the slot was used. So a number that is used a second time ends nothing. */
static struct free_range {
  u32 turn; /* odd while taken */
  bool ready;
  struct range range;
} free_ranges[FREE_MAX];
static u32 next_free;

static struct free_range *acquire_slot(u32 *turn) {
  for (u32 probe = 0; probe < FREE_MAX; probe++) {
    u32 slot = __atomic_fetch_add(&next_free, 1, __ATOMIC_RELAXED) % FREE_MAX;
    *turn = __atomic_load_n(&free_ranges[slot].turn, __ATOMIC_RELAXED);
    if (!(*turn & 1) && __atomic_compare_exchange_n(&free_ranges[slot].turn, turn, *turn + 1, false,
                                                    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
      *turn += 1;
      return &free_ranges[slot];
    }
  }
  return NULL;
}

u64 nvtx_start(struct nvtx_domain *domain, struct nvtx_text text) {
  struct tscope_thread *thread = domain->ignored ? NULL : tscope_enter(TSCOPE_QUIET);
  if (!thread)
    return 0;
  u32 turn;
  struct free_range *slot = acquire_slot(&turn);
  u64 number = 0;
  if (slot) {
    slot->range = range_of(thread, domain, text);
    slot->range.dur = open_retained_span(thread, &slot->range);
    number = (u64)turn << 32 | (u64)(slot - free_ranges + 1);
    __atomic_store_n(&slot->ready, true, __ATOMIC_RELEASE);
  } else {
    tscope_count_lost(TSCOPE_LOSS_RANGES, 1);
  }
  tscope_leave(thread);
  return number;
}

void nvtx_end(u64 number) {
  u32 slot = (u32)number - 1, turn = (u32)(number >> 32);
  struct free_range *ended = slot < FREE_MAX ? &free_ranges[slot] : NULL;
  if (!ended || __atomic_load_n(&ended->turn, __ATOMIC_ACQUIRE) != turn ||
      !__atomic_exchange_n(&ended->ready, false, __ATOMIC_ACQ_REL))
    return;
  struct range range = ended->range;
  __atomic_store_n(&ended->turn, turn + 1, __ATOMIC_RELEASE);
  struct tscope_thread *thread = tscope_enter(TSCOPE_QUIET);
  if (!thread)
    return;
  if (range.dur)
    close_retained_span(thread, &range);
  else
    record(thread, &range, TSCOPE_RANGE_FREE);
  tscope_leave(thread);
}

void nvtx_mark(struct nvtx_domain *domain, struct nvtx_text text) {
  struct tscope_thread *thread = domain->ignored ? NULL : tscope_enter(TSCOPE_QUIET);
  if (!thread)
    return;
  struct range range = range_of(thread, domain, text);
  record(thread, &range, TSCOPE_RANGE_MARK);
  tscope_leave(thread);
}
