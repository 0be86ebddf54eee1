/* SPDX-License-Identifier: MIT
 *
 * Where no line takes half of some time of the host, the innermost function that does, with all
 * that it calls.
 */
#include "analyses/lines/line_sums.h"
#include "analyses/thresholds.h"
#include "base/checked_memory.h"
#include "base/hash.h"
#include "base/hash_index.h"
#include "base/texts.h"
#include "model/training_calls.h"

/* Of a function's time. One that trains for longer is the loop itself, or calls it. */
#define TRAINS_SHARE 0.1

struct function_time {
  u64 key;
  u32 frame, last_stack;
  struct host_times times;
};

typedef HASHED(struct function_time) function_times;

static void host_times_add(struct host_times *to, const struct host_times *more) {
  ADD_EACH(to, more, all, training);
  for (u32 kind = 0; kind < HOST_TIMES; kind++)
    to->of[kind] += more->of[kind];
}

/* No comprehension or lambda: that is part of the function around it. */
static bool has_name(const struct call_frame *frame) {
  return frame->function && *last_name(frame->function) != '<';
}

static void add_stack(const struct call_sites *sites, u32 stack, const struct host_times *times,
                      function_times *all) {
  FOR_EACH(sites->stacks[stack].frames, sites->stacks[stack].n, one) {
    const struct call_frame *frame = &sites->frames[*one];
    if (call_frame_starts_worker(frame))
      return;
    if (!frame->line || !call_frame_is_user_code(frame) || !has_name(frame))
      continue;
    u64 key = hash_text(hash_text(HASH_SEED, frame->file), frame->function);
    struct function_time new = {.key = key, .frame = *one, .last_stack = INDEX_NONE};
    u32 index = HASHED_OR_ADD(all, key, known, known->key == key, new);
    struct function_time *function = &all->at[index];
    if (function->last_stack != stack)
      host_times_add(&function->times, times);
    function->last_stack = stack;
  }
}

/* Of functions that are always seen together the innermost was found first. */
static const struct function_time *innermost_of_half(const function_times *all, u32 kind,
                                                     double total) {
  return LARGEST(all->at, all->n, one,
                 (double)one->times.of[kind] >= REASON_SHARE * total &&
                     (double)one->times.training <= TRAINS_SHARE * (double)one->times.all,
                 -(double)one->times.of[kind]);
}

void busiest_functions(const struct call_sites *sites, const struct host_times *of_stack,
                       struct line_sums *out) {
  function_times all = {0};
  struct host_times total = {0};
  for (u32 s = 0; s < sites->n_stacks; s++)
    if (of_stack[s].all) {
      host_times_add(&total, &of_stack[s]);
      add_stack(sites, s, &of_stack[s], &all);
    }
  for (u32 kind = 0; kind < HOST_TIMES; kind++) {
    const struct function_time *found =
        total.of[kind] ? innermost_of_half(&all, kind, (double)total.of[kind]) : NULL;
    if (found)
      out->functions[kind] = (struct host_function){
          call_frame_kept(&sites->frames[found->frame], &out->arena), found->times.of[kind]};
  }
  FREE_EACH(&all, at, index.slots);
}
