/* SPDX-License-Identifier: MIT
 *
 * DistributedDataParallel waits for its buckets through futures, whose wait() is inlined. Its
 * reducer shows it all the same: buckets_waited is the loop over the buckets, and between the start
 * of the loop, or the end of one bucket's bucket_arrived, and the start of the next bucket_arrived
 * it does nothing but wait for that bucket's collective. Buckets come in the order they were
 * queued. A backward pass may go through several models, each with its reducer.
 */
#include "callsites/call_sites.h"
#include "record/tick_clock.h"
#include "torch/torch_family.h"

/* Between two waits the thread computes, or it sleeps in something that is not hooked: its CPU
 * clock shows which. This costs a system call, next to a wait that is one itself. */
void torch_record_cpu_time(struct tscope_thread *thread, u64 now) {
  u64 cpu_ns = tscope_clock_ns(CLOCK_THREAD_CPUTIME_ID);
  if (!cpu_ns)
    return;
  struct tscope_thread_cpu_record *record =
      tscope_reserve(thread, &thread->retained, now, TSCOPE_REC_THREAD_CPU, 0, sizeof(*record));
  if (!record)
    return;
  record->cpu_ns = cpu_ns;
  tscope_commit(&thread->retained, sizeof(*record));
}

u64 *torch_wait_record(struct tscope_thread *thread, u64 start, u32 comm, u32 seq) {
  struct tscope_comm_wait_record record = {.comm = comm, .seq = seq};
  torch_record_cpu_time(thread, start);
  call_site(thread, &thread->retained, start, CALL_SITE_ALWAYS);
  return tscope_span_open(thread, start, TSCOPE_REC_COMM_WAIT, 0, &record, sizeof(record));
}

void torch_wait_open(struct tscope_thread *thread, struct torch_scope *scope, u32 comm, u32 seq) {
  scope->thread = thread;
  scope->start = tscope_ticks();
  scope->dur = torch_wait_record(thread, scope->start, comm, seq);
}

void bucket_queued_begin(struct torch_scope *scope, const void *reducer) {
  torch_scope_push(scope, SCOPE_BUCKET);
  scope->reducer = reducer;
}

/* Returns how many there were. */
static u32 forget_buckets(struct torch_thread *mine, const void *reducer) {
  u32 kept = 0, all = mine->n_buckets;
  for (u32 i = 0; i < all; i++)
    if (mine->buckets[i].reducer != reducer)
      mine->buckets[kept++] = mine->buckets[i];
  mine->n_buckets = kept;
  return all - kept;
}

/* Nothing was queued in it if the gradients go by another backend than gloo. */
void bucket_queued_end(struct torch_scope *scope) {
  torch_scope_pop(scope);
  struct tscope_thread *thread = scope->comm ? tscope_self : NULL;
  if (!thread || !tscope_is_live())
    return;
  struct torch_thread *mine = torch_thread_of(thread);
  const void *oldest = mine->buckets[0].reducer;
  /* Room is made by forgetting the oldest reducer's: its backward pass has most likely failed. */
  if (mine->n_buckets == TORCH_BUCKETS && oldest != scope->reducer)
    tscope_count_lost(TSCOPE_LOSS_GROUPS, forget_buckets(mine, oldest));
  if (mine->n_buckets < TORCH_BUCKETS)
    mine->buckets[mine->n_buckets++] =
        (struct torch_bucket){scope->reducer, scope->comm, scope->seq};
  else
    tscope_count_lost(TSCOPE_LOSS_GROUPS, 1);
}

static void open_next_wait(struct tscope_thread *thread, struct torch_scope *waits) {
  struct torch_thread *mine = torch_thread_of(thread);
  while (mine->next_bucket < mine->n_buckets &&
         mine->buckets[mine->next_bucket].reducer != waits->reducer)
    mine->next_bucket++;
  if (mine->next_bucket >= mine->n_buckets)
    return;
  const struct torch_bucket *bucket = &mine->buckets[mine->next_bucket++];
  torch_wait_open(thread, waits, bucket->comm, bucket->seq);
}

void buckets_waited_begin(struct torch_scope *scope, const void *reducer) {
  torch_scope_push(scope, SCOPE_WAITS);
  scope->reducer = reducer;
  struct tscope_thread *thread = tscope_enter(TSCOPE_QUIET);
  if (!thread)
    return;
  torch_thread_of(thread)->next_bucket = 0;
  open_next_wait(thread, scope);
  tscope_leave(thread);
}

void buckets_waited_end(struct torch_scope *scope) {
  torch_scope_pop(scope);
  struct tscope_thread *thread = tscope_self;
  if (!thread || !tscope_is_live())
    return;
  forget_buckets(torch_thread_of(thread), scope->reducer);
}

void bucket_arrived_begin(struct torch_scope *scope) {
  struct torch_scope *waits = torch_scope_find(SCOPE_WAITS);
  if (waits)
    torch_scope_close(waits);
  torch_scope_push(scope, SCOPE_PLAIN);
}

void bucket_arrived_end(struct torch_scope *scope) {
  torch_scope_pop(scope);
  struct torch_scope *waits = torch_scope_find(SCOPE_WAITS);
  struct tscope_thread *thread = waits ? tscope_enter(TSCOPE_QUIET) : NULL;
  if (!thread)
    return;
  open_next_wait(thread, waits);
  tscope_leave(thread);
}
