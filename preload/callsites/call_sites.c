/* SPDX-License-Identifier: MIT
 *
 * Taking a call's stack: a walk over the frames computes a hash, which identifies the stack
 * (known_stacks.h).
 *
 * A budget limits the cost (sampling_budget.h). While it is empty, fewer calls are sampled. Each
 * record says how many calls it stands for.
 */
#include "callsites/call_sites.h"

#include <stdlib.h>
#include <unistd.h>

#include "callsites/forward_stacks.h"
#include "callsites/known_stacks.h"
#include "callsites/python_here.h"
#include "callsites/sampling_budget.h"
#include "record/atomics.h"
#include "record/random.h"
#include "record/self_cost.h"
#include "record/stack.h"
#include "record/tick_clock.h"
#include "resolve/linker_work.h"
#include "settings/env.h"

enum {
  MIN_ONE_IN = 16,
  START_ONE_IN = 64,
  START_OPERATOR_ONE_IN = 8,
  MAX_ONE_IN = 1 << 16,
  /* A walk takes microseconds, a new stack's names tens of them. What takes longer than this did
   * not run. */
  MAX_WALK_US = 500,
  MAX_NEW_STACK_US = 2000,
};

struct call_site_thread {
  struct call_site_countdown countdown;
  u64 random;
  struct call_site_operator operator; /* whose backward it runs */
  struct {
    u32 left, rate; /* countdown of calls in the backward of operators that are sampled */
  } in_operator;
  bool walked; /* once, through the kernel, which makes wrong addresses an error */
  struct stack_walk walk;
};

u8 call_sites_wanted;

static bool is_native; /* the process has no Python: stacks are those of C and C++ */

static u32 one_in[CALL_SITE_CLASSES] = {1, 1, START_ONE_IN, START_OPERATOR_ONE_IN};

/* Of this process, in ticks and calls. `waited`: by the clock, but not on the processor. */
static struct {
  u64 ticks[CALL_SITE_CLASSES], first_ticks, waited;
  u64 taken, without_python, lost;
} totals;

/* Backward passes in progress, and the stack of the only one; 0 where there are several. */
static struct {
  u32 passes;
  u64 stack;
} backward;

static void add_cost(u64 *count, u64 ticks, u32 most_us) {
  u64 cost = sampling_cost(tscope_clock.hz, ticks, most_us);
  tscope_atomic_add(count, cost);
  tscope_atomic_add(&tscope_slow_path_ticks, cost);
  if (TSCOPE_UNLIKELY(cost < ticks))
    tscope_atomic_add(&totals.waited, ticks - cost);
}

static void add_walk_cost(enum call_site_class class, u64 ticks) {
  add_cost(&totals.ticks[class], ticks, MAX_WALK_US);
}

static u64 load(const u64 *word) {
  return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static void disable_call_sites(const char *why) {
  if (__atomic_exchange_n(&call_sites_wanted, 0, __ATOMIC_RELAXED))
    tscope_info(NULL, TSCOPE_INFO_FEATURE, why, "lines");
}

/* Whether the state belongs to this thread, in an interpreter of this process. */
static bool is_state_of_thread(python_read *read, const void *context, u64 state) {
  u64 id;
  return read(context, state + python_here.layout.thread_id, &id, 8) && id == (u64)pthread_self();
}

static TSCOPE_NOINLINE bool walk_checked(struct call_site_thread *mine, u64 state) {
  const struct python_process self = {.pid = getpid()};
  bool walked = is_state_of_thread(python_read_process, &self, state) &&
                stack_walk(&mine->walk, python_read_process, &self, state);
  mine->walked = walked && mine->walk.n;
  return walked;
}

/* Puts the thread's frames into its walk; false if it has none, or they cannot be read. */
static bool walk_python(struct call_site_thread *mine) {
  u64 state = python_here_thread();
  if (!state)
    return false;
  bool walked = TSCOPE_LIKELY(mine->walked)
                    ? stack_walk(&mine->walk, python_read_directly, NULL, state)
                    : walk_checked(mine, state);
  if (!walked)
    disable_call_sites("Python's frames are not where its version has them");
  return walked && mine->walk.n;
}

/* The end of a coroutine's stack may be anything, and an unwinder reads what it takes for code. */
static bool walk_current_stack(struct call_site_thread *mine) {
  if (TSCOPE_LIKELY(!is_native))
    return walk_python(mine);
  if (!tscope_stack_has(tscope_self, TSCOPE_FRAME()))
    return false;
  stack_walk_native(&mine->walk);
  return mine->walk.n != 0;
}

/* The hash of the stack in the thread's walk; 0 if it cannot be kept. */
static u64 known_stack(struct call_site_thread *mine, u64 *first_ticks) {
  u64 hash = stack_hash(&mine->walk);
  if (TSCOPE_LIKELY(stack_is_known(hash))) {
    __atomic_store_n(&mine->countdown.last_stack, hash, __ATOMIC_RELAXED);
    return hash;
  }
  u64 start = tscope_ticks();
  const struct python_process self = {.pid = getpid()};
  TSCOPE_KEEP_ERRNO;
  bool kept = stack_define(&mine->walk, hash, is_native ? NULL : &self);
  *first_ticks = tscope_ticks() - start;
  add_cost(&totals.first_ticks, *first_ticks, MAX_NEW_STACK_US);
  if (!kept)
    tscope_atomic_add(&totals.lost, 1);
  return kept ? hash : 0;
}

/* The hash of the thread's stack; 0 if there is none, or it cannot be kept. */
static u64 current_stack(struct call_site_thread *mine, u64 *first_ticks) {
  __atomic_store_n(&mine->countdown.calls, mine->countdown.calls + 1, __ATOMIC_RELAXED);
  return walk_current_stack(mine) ? known_stack(mine, first_ticks) : 0;
}

/* Calls until the next one that is sampled: from 1 to 2n - 1, n on average. */
static u32 calls_until_sample(struct call_site_thread *mine, u32 n) {
  return 1 + tscope_random_below(&mine->random, 2 * n - 1);
}

/* How many calls this one stands for, from the sampling rate; 0: it is not sampled. */
static u32 sample_weight(struct call_site_thread *mine, enum call_site_class class) {
  struct call_site_countdown *countdown = &mine->countdown;
  u32 n = __atomic_load_n(&one_in[class], __ATOMIC_RELAXED), rate = countdown->rate[class];
  if (class == CALL_SITE_ALWAYS) {
    if (TSCOPE_LIKELY(n == 1 && rate <= 1))
      return 1;
    if (rate > 1 && --countdown->left[class])
      return 0;
  }
  countdown->rate[class] = n;
  countdown->left[class] = n > 1 ? calls_until_sample(mine, n) : 1;
  return rate || n == 1 ? rate + !rate : 0;
}

/* The same for a call in the backward of an operator that is sampled. */
static u32 sample_weight_in_operator(struct call_site_thread *mine) {
  u32 sampled = __atomic_load_n(&one_in[CALL_SITE_SAMPLED], __ATOMIC_RELAXED);
  u32 operators = mine->operator.weight, rate = mine->in_operator.rate;
  u32 n = sampled > operators ? sampled / operators : 1;
  mine->in_operator.rate = n;
  mine->countdown.left[CALL_SITE_SAMPLED] = calls_until_sample(mine, n);
  return operators * rate;
}

static u16 log2_of(u32 power) {
  return (u16)__builtin_ctz(power);
}

void call_site_record(struct tscope_thread *thread, struct tscope_writer *writer, u64 start,
                      enum call_site_class class) {
  struct call_site_thread *mine = thread->family[TSCOPE_FAMILY_CALL_SITES];
  bool in_operator = class == CALL_SITE_SAMPLED && mine->operator.weight;
  u32 calls = in_operator ? sample_weight_in_operator(mine) : sample_weight(mine, class);
  if (!calls)
    return;
  u64 began = tscope_ticks(), first_ticks = 0;
  u64 stack = current_stack(mine, &first_ticks);
  u16 tag = log2_of(calls);
  if (!stack) {
    tscope_atomic_add(&totals.without_python, 1);
    bool forward = in_operator && mine->operator.stack;
    stack = forward ? mine->operator.stack : load(&backward.stack);
    tag |= forward ? TSCOPE_CALL_SITE_OF_BACKWARD | TSCOPE_CALL_SITE_OF_FORWARD
                   : TSCOPE_CALL_SITE_OF_BACKWARD;
  }
  if (stack) {
    u8 type = writer->retention == TSCOPE_RING ? TSCOPE_REC_CALL_SITE_RING : TSCOPE_REC_CALL_SITE;
    struct tscope_call_site_record *record =
        tscope_reserve(thread, writer, start, type, tag, sizeof(*record));
    if (record) {
      record->stack = stack;
      tscope_commit(writer, sizeof(*record));
    }
    tscope_atomic_add(&totals.taken, 1);
  }
  add_walk_cost(class, tscope_ticks() - began - first_ticks);
}

void call_site_of_end(struct tscope_thread *thread) {
  u64 state = __atomic_load_n(&call_sites_wanted, __ATOMIC_RELAXED) && !is_native
                  ? python_here_thread()
                  : 0,
      first_ticks;
  struct call_site_thread *mine = thread->family[TSCOPE_FAMILY_CALL_SITES];
  if (!state || !walk_checked(mine, state) || !mine->walk.n)
    return;
  struct tscope_line_sample_record record = {
      .at = tscope_ticks(), .stack = known_stack(mine, &first_ticks), .tid = thread->tid};
  if (record.stack)
    tscope_retain(thread, record.at, TSCOPE_REC_LINE_SAMPLE,
                  TSCOPE_ACTIVITY_RUNNING | TSCOPE_SAMPLE_OF_THREAD | TSCOPE_SAMPLE_ENDS, &record,
                  sizeof(record));
}

void call_site_backward_begin(struct tscope_thread *thread, u64 start) {
  if (!__atomic_load_n(&call_sites_wanted, __ATOMIC_RELAXED))
    return;
  struct call_site_thread *mine = thread->family[TSCOPE_FAMILY_CALL_SITES];
  u64 began = tscope_ticks(), first_ticks = 0;
  u64 stack = current_stack(mine, &first_ticks);
  bool only = __atomic_fetch_add(&backward.passes, 1, __ATOMIC_RELAXED) == 0;
  __atomic_store_n(&backward.stack, only ? stack : 0, __ATOMIC_RELAXED);
  if (stack) {
    struct tscope_call_site_record record = {.stack = stack};
    tscope_retain(thread, start, TSCOPE_REC_CALL_SITE, 0, &record, sizeof(record));
    tscope_atomic_add(&totals.taken, 1);
  }
  add_walk_cost(CALL_SITE_ALWAYS, tscope_ticks() - began - first_ticks);
}

void call_site_backward_end(void) {
  tscope_atomic_less_one(&backward.passes);
  __atomic_store_n(&backward.stack, 0, __ATOMIC_RELAXED);
}

bool call_site_forward_is_sampled(u64 key) {
  return forward_is_sampled(key, __atomic_load_n(&one_in[CALL_SITE_FORWARD], __ATOMIC_RELAXED));
}

void call_site_forward_put(struct tscope_thread *thread, u64 key) {
  struct call_site_thread *mine = thread->family[TSCOPE_FAMILY_CALL_SITES];
  u64 began = tscope_ticks(), first_ticks = 0;
  u64 stack = current_stack(mine, &first_ticks);
  if (stack)
    forward_stack_put(key, stack);
  add_walk_cost(CALL_SITE_FORWARD, tscope_ticks() - began - first_ticks);
}

void call_site_operator_begin(struct tscope_thread *thread, u64 key,
                              struct call_site_operator *outer) {
  struct call_site_thread *mine = thread->family[TSCOPE_FAMILY_CALL_SITES];
  u32 *left = &mine->countdown.left[CALL_SITE_SAMPLED];
  u32 n = __atomic_load_n(&one_in[CALL_SITE_FORWARD], __ATOMIC_RELAXED);
  *outer = mine->operator;
  outer->left = *left;
  if (!forward_is_sampled(key, n)) {
    mine->operator=(struct call_site_operator){0};
    *left = UINT32_MAX;
    return;
  }
  u64 stack = forward_stack_get(key);
  mine->operator=(struct call_site_operator){.stack = stack == FORWARD_STACK_NONE ? 0 : stack,
                                             .weight = n};
  if (!mine->in_operator.rate)
    mine->in_operator.rate = mine->in_operator.left = 1;
  *left = mine->in_operator.left;
}

void call_site_operator_end(const struct tscope_thread *thread,
                            const struct call_site_operator *outer) {
  struct call_site_thread *mine = thread->family[TSCOPE_FAMILY_CALL_SITES];
  u32 *left = &mine->countdown.left[CALL_SITE_SAMPLED];
  if (mine->operator.weight)
    mine->in_operator.left = *left;
  *left = outer->left;
  mine->operator= * outer;
}

static u8 wanted_classes(void) {
  if (strcmp(tscope_env.lines, "off") == 0)
    return 0;
  bool only = strcmp(tscope_env.lines, "collectives") == 0;
  return only ? 1 << CALL_SITE_ALWAYS : (1 << CALL_SITE_CLASSES) - 1;
}

/* `why` not; NULL if stacks can be read. */
static void begin(struct tscope_thread *thread, const char *why) {
  if (!why && (!known_stacks_init() || !forward_stacks_init()))
    why = "no memory";
  if (!why)
    __atomic_store_n(&call_sites_wanted, wanted_classes(), __ATOMIC_RELEASE);
  else if (*why)
    tscope_info(thread, TSCOPE_INFO_FEATURE, why, "lines");
}

static void begin_native(struct tscope_thread *thread) {
  begin(thread, native_here_find());
}

void call_sites_init(struct tscope_thread *thread) {
  static struct tscope_linker_work load_unwinder = {.run = begin_native};
  static u8 taken;
  if (!wanted_classes() || __atomic_exchange_n(&taken, 1, __ATOMIC_RELAXED))
    return;
  const char *why = python_here_find();
  is_native = why && !*why;
  if (!is_native)
    begin(thread, why);
  else if (native_here_is_loaded())
    begin_native(thread);
  else
    tscope_linker_work(thread, &load_unwinder);
}

/* Time spent by all classes, and on stacks and frames that were new. */
static u64 total_ticks(void) {
  u64 all = load(&totals.first_ticks);
  for (int class = 0; class < CALL_SITE_CLASSES; class ++)
    all += load(&totals.ticks[class]);
  return all;
}

static void report_totals(struct tscope_thread *thread) {
  static u64 reported;
  u64 taken = load(&totals.taken) + load(&totals.without_python);
  if (taken == reported)
    return;
  reported = taken;
  u64 first = load(&totals.first_ticks), all = total_ticks() + load(&totals.waited) - first;
  struct tscope_call_sites_record record = {
      .taken = load(&totals.taken),
      .without_python = load(&totals.without_python),
      .lost = load(&totals.lost),
      .ns = tscope_ns_of_ticks(all),
      .first_ns = tscope_ns_of_ticks(first),
      .frames = __atomic_load_n(&known_stacks.frames.n, __ATOMIC_RELAXED),
      .stacks = __atomic_load_n(&known_stacks.stacks.n, __ATOMIC_RELAXED),
      .one_in_always = __atomic_load_n(&one_in[CALL_SITE_ALWAYS], __ATOMIC_RELAXED),
      .one_in_large = __atomic_load_n(&one_in[CALL_SITE_LARGE], __ATOMIC_RELAXED),
      .one_in_sampled = __atomic_load_n(&one_in[CALL_SITE_SAMPLED], __ATOMIC_RELAXED),
  };
  tscope_retain(thread, tscope_ticks(), TSCOPE_REC_CALL_SITES, 0, &record, sizeof(record));
}

static void sample_less(enum call_site_class class) {
  if (one_in[class] < MAX_ONE_IN)
    __atomic_store_n(&one_in[class], one_in[class] * 2, __ATOMIC_RELAXED);
}

/* False where that is not available. */
static bool sample_more(enum call_site_class class, u32 least) {
  if (one_in[class] <= least)
    return false;
  __atomic_store_n(&one_in[class], one_in[class] / 2, __ATOMIC_RELAXED);
  return true;
}

static void adjust_sampling(void) {
  static struct sampling_budget budget;
  budget.hz = tscope_clock.hz;
  switch (sampling_budget_update(&budget, tscope_ticks(), total_ticks(),
                                 load(&totals.ticks[CALL_SITE_ALWAYS]))) {
  case SAMPLING_LESS_OF_ALL:
    sample_less(CALL_SITE_ALWAYS);
    /* fall through */
  case SAMPLING_LESS:
    sample_less(CALL_SITE_SAMPLED);
    sample_less(CALL_SITE_LARGE);
    sample_less(CALL_SITE_FORWARD);
    break;
  case SAMPLING_MORE:
    if (sample_more(CALL_SITE_ALWAYS, 1))
      break;
    sample_more(CALL_SITE_LARGE, 1);
    sample_more(CALL_SITE_SAMPLED, MIN_ONE_IN);
    sample_more(CALL_SITE_FORWARD, 1);
    break;
  case SAMPLING_UNCHANGED:
    break;
  }
}

static void tick(struct tscope_thread *thread) {
  static u32 ticks;
  const u32 every = 50;
  if (!__atomic_load_n(&call_sites_wanted, __ATOMIC_RELAXED))
    return;
  adjust_sampling();
  if (++ticks % every == 0)
    report_totals(thread);
}

const struct tscope_family tscope_call_sites_family = {
    .thread_bytes = sizeof(struct call_site_thread),
    .wake = call_sites_init,
    .tick = tick,
    .end = report_totals,
};
