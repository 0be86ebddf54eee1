/* SPDX-License-Identifier: MIT
 *
 * Training phases. PyTorch opens ranges (at::RecordFunction) around the phases that its Python
 * code knows, profiler or not, and calls whoever has registered for them: for ranges of the user
 * scope alone, so that operators are as fast as ever. The backward pass is a call of the autograd
 * engine. A backward pass inside a backward pass (reentrant checkpointing) is part of it.
 */
#include <string.h>

#include "callsites/call_sites.h"
#include "format/range_names.h"
#include "format/text_parts.h"
#include "record/job_steps.h"
#include "resolve/search.h"
#include "torch/class_result.h"
#include "torch/torch_family.h"
#include "torch/torch_hooks.def"
#include "torch/torch_version.h"

u8 torch_op_type(const void *work) {
  return torch_family.op_type ? torch_family.op_type(work) : TORCH_OP_UNKNOWN;
}

static u64 *phase_open(struct tscope_thread *thread, u64 start, enum tscope_phase phase, u32 name) {
  struct tscope_phase_record record = {.name = name};
  return tscope_span_open(thread, start, TSCOPE_REC_PHASE, (u16)phase, &record, sizeof(record));
}

/* enum at::RecordScope */
#define RECORD_SCOPES 10
#define RECORD_SCOPE_USER 7

/* at::RecordFunctionCallback */
struct record_callback {
  void *(*start)(void *context, const void *range);
  void (*end)(const void *range, void *context);
  double sampling_probability;
  bool scopes[RECORD_SCOPES];
  bool needs_inputs, needs_outputs, needs_ids;
};
_Static_assert(sizeof(struct record_callback) == 40, "at::RecordFunctionCallback");

/* Around each node of a backward pass PyTorch copies the list of those who listen to ranges, twice,
 * unless it is empty: most of what tscope would cost a job of small operators. So tscope does not
 * listen during backward passes, if the first ones and one of so many after them had no range that
 * tscope records, on any thread. */
enum { LISTENED_PASSES = 32, LISTENED_ONE_IN = 16 };

static struct {
  u64 (*add)(struct record_callback); /* at::addGlobalCallback */
  void (*remove)(u64);                /* at::removeCallback; NULL: tscope always listens */
  struct record_callback callback;
  u64 handle;
  const struct torch_scope *owner; /* the backward pass that is counted; others beside it are not */
  u32 passes;
  bool pauses; /* the owner's */
  u8 heard;    /* a range inside a backward pass */
} listening;

static void listening_backward_begin(const struct torch_scope *scope) {
  const struct torch_scope *none = NULL;
  if (!listening.remove || __atomic_load_n(&listening.heard, __ATOMIC_RELAXED) ||
      !__atomic_compare_exchange_n(&listening.owner, &none, scope, false, __ATOMIC_ACQUIRE,
                                   __ATOMIC_RELAXED))
    return;
  u32 pass = listening.passes++;
  listening.pauses = pass >= LISTENED_PASSES && pass % LISTENED_ONE_IN != 0;
  if (listening.pauses)
    listening.remove(listening.handle);
}

void torch_listening_backward_end(const struct torch_scope *scope) {
  if (__atomic_load_n(&listening.owner, __ATOMIC_RELAXED) != scope)
    return;
  if (listening.pauses)
    listening.handle = listening.add(listening.callback);
  __atomic_store_n(&listening.owner, NULL, __ATOMIC_RELEASE);
}

/* After a fork during a backward pass, in a child that trains. */
void torch_listening_again(void) {
  if (listening.owner)
    torch_listening_backward_end(listening.owner);
}

static void listening_heard(void) {
  if (__atomic_load_n(&listening.owner, __ATOMIC_RELAXED))
    __atomic_store_n(&listening.heard, 1, __ATOMIC_RELAXED);
}

void backward_begin(struct torch_scope *scope) {
  bool inner = torch_scope_find(SCOPE_BACKWARD) != NULL;
  torch_scope_push(scope, SCOPE_BACKWARD);
  struct tscope_thread *thread = inner ? NULL : tscope_enter(TSCOPE_WAKES);
  if (!thread)
    return;
  torch_init(thread);
  listening_backward_begin(scope);
  scope->thread = thread;
  scope->start = tscope_ticks();
  call_site_backward_begin(thread, scope->start);
  scope->dur = phase_open(thread, scope->start, TSCOPE_PHASE_BACKWARD, torch_family.backward);
  torch_thread_of(thread)->forward.dur = NULL;
  tscope_leave(thread);
}

static void range_open(struct tscope_thread *thread, const void *range, u32 phase,
                       const char *name) {
  struct torch_thread *mine = torch_thread_of(thread);
  if (mine->n_ranges == TORCH_RANGES) {
    tscope_count_lost(TSCOPE_LOSS_RANGES, 1);
    return;
  }
  struct torch_range open = {.range = range, .start = tscope_ticks(), .phase = (u8)phase};
  open.ends_forward = !phase;
  if (phase)
    call_site(thread, &thread->retained, open.start, CALL_SITE_ALWAYS);
  if (phase)
    open.dur = phase_open(thread, open.start, phase, tscope_string(thread, name));
  mine->ranges[mine->n_ranges++] = open;
}

/* What is recomputed inside a backward pass is part of that. */
static void forward_open(struct tscope_thread *thread) {
  struct torch_range *forward = &torch_thread_of(thread)->forward;
  if (torch_scope_find(SCOPE_BACKWARD))
    return;
  forward->start = tscope_ticks();
  forward->dur = phase_open(thread, forward->start, TSCOPE_PHASE_FORWARD,
                            tscope_string(thread, "fully_shard"));
}

/* Returns a class object, a unique_ptr, which is written to `context`. */
__attribute__((used)) static void *range_start(void *context, const void *range) {
  *(void **)context = NULL;
  const char *name = torch_family.range_name(range);
  u32 phase = name ? tscope_phase_of_range(name, strlen(name)) : 0;
  bool begins = !phase && name && tscope_begins_with(name, TSCOPE_TORCH_FORWARD_BEGINS);
  bool ends = !phase && name && tscope_begins_with(name, TSCOPE_TORCH_FORWARD_ENDS);
  struct tscope_thread *thread = phase || begins || ends ? tscope_enter(TSCOPE_QUIET) : NULL;
  if (!thread)
    return context;
  listening_heard();
  if (begins)
    forward_open(thread);
  else
    range_open(thread, range, phase, name);
  tscope_leave(thread);
  return context;
}

#if defined(__aarch64__)
CLASS_ENTRY("tscope_torch_range_start", "range_start");
extern void *tscope_torch_range_start(void *context, const void *range)
    __attribute__((visibility("hidden")));
#else
#define tscope_torch_range_start range_start
#endif

/* A range may end on another thread, and out of order: it is then none of this thread's. */
static void range_end(const void *range, void *context) {
  (void)context;
  struct tscope_thread *thread = tscope_self;
  if (!thread || !tscope_is_live())
    return;
  struct torch_thread *mine = torch_thread_of(thread);
  for (u32 i = mine->n_ranges; i-- > 0;)
    if (mine->ranges[i].range == range) {
      tscope_span_close(thread, mine->ranges[i].dur, mine->ranges[i].start);
      if (mine->ranges[i].ends_forward)
        tscope_span_close(thread, mine->forward.dur, mine->forward.start);
      tscope_phase_ended(thread, mine->ranges[i].phase, mine->ranges[i].start);
      mine->n_ranges--;
      memmove(&mine->ranges[i], &mine->ranges[i + 1], (mine->n_ranges - i) * sizeof(*mine->ranges));
      return;
    }
}

void torch_phases_install(struct tscope_thread *thread) {
  listening.add = (u64(*)(struct record_callback))tscope_first_definition(
      "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
  if (!listening.add || !torch_family.range_name || !torch_has_record_callback()) {
    tscope_info(thread, TSCOPE_INFO_FEATURE, "this version of PyTorch is not known", "phases");
    return;
  }
  listening.callback = (struct record_callback){
      .start = tscope_torch_range_start, .end = range_end, .sampling_probability = 1.0};
  listening.callback.scopes[RECORD_SCOPE_USER] = true;
  listening.handle = listening.add(listening.callback);
  listening.remove = (void (*)(u64))tscope_first_definition("_ZN2at14removeCallbackEm");
}
