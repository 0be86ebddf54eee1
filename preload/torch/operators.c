/* SPDX-License-Identifier: MIT
 *
 * Which line of the model an operator of the backward pass belongs to. Each operator of the forward
 * pass that will have a backward gets a number, counted by thread; autograd keeps both numbers in
 * the torch::autograd::Node that it runs later. Where they are in it is checked on nodes whose
 * numbers are known: until enough of them are where they are expected, nothing is recorded, and if
 * they are not there, never.
 */
#include "callsites/call_sites.h"
#include "callsites/forward_stacks.h"
#include "torch/torch_family.h"
#include "torch/torch_version.h"

enum {
  MIN_MATCHING_NODES = 32,  /* that are as expected */
  MAX_OTHER_NODES = 1 << 14 /* that are not, until the layout counts as unknown */
};

enum { UNKNOWN, LOOKING, KNOWN, NOT_KNOWN };

static u8 layout; /* of nodes */

/* A thread of autograd's own runs operators. While none does, as on the CPU, nothing needs the
 * stacks of the forward pass. */
static u8 has_own_threads;

/* The beginning of torch::autograd::Node, in words: its table of virtual functions, its counts of
 * references (two words up to 2.11, one in 2.15), the number (UINT64_MAX of those without a
 * forward), its depth, whether it has a parent, and the thread. */
enum { MOST_COUNTS = 2 };
static u32 counts; /* once the layout is known */
static u32 matching[MOST_COUNTS + 1], others;

static u64 number_in(const u64 *node, u32 n_counts) {
  return node[1 + n_counts];
}

static u64 thread_in(const u64 *node, u32 n_counts) {
  return node[4 + n_counts];
}

static __thread u64 this_thread __attribute__((tls_model("initial-exec"))); /* PyTorch's number */

static u64 key_of(u64 thread, u64 number) {
  u64 mixed = (number ^ thread << 48) * 0x9e3779b97f4a7c15ull;
  mixed ^= mixed >> 29;
  mixed *= 0xbf58476d1ce4e5b9ull;
  return mixed ^ mixed >> 32;
}

static u8 current_layout(void) {
  return call_site_forward_is_wanted() ? __atomic_load_n(&layout, __ATOMIC_ACQUIRE) : NOT_KNOWN;
}

void operators_init(struct tscope_thread *thread) {
  bool can = torch_family.next_number && torch_family.thread_number;
  if (can && torch_has_nodes())
    __atomic_store_n(&layout, LOOKING, __ATOMIC_RELEASE);
  else if (can) /* else find_functions() has recorded it */
    tscope_info(thread, TSCOPE_INFO_FEATURE, "this version of PyTorch is not known",
                "lines of the backward pass");
}

/* Before at::sequence_number::get_and_increment(). */
void numbered_before(void) {
  tscope_count_quiet_call();
  u8 now = current_layout();
  if (now != LOOKING && (now != KNOWN || !__atomic_load_n(&has_own_threads, __ATOMIC_RELAXED)))
    return;
  if (TSCOPE_UNLIKELY(!this_thread))
    this_thread = torch_family.thread_number();
  u64 key = key_of(this_thread, torch_family.next_number());
  if (now == LOOKING)
    forward_stack_put(key, FORWARD_STACK_NONE);
  if (!call_site_forward_is_sampled(key))
    return;
  struct tscope_thread *thread = tscope_enter(TSCOPE_QUIET);
  if (!thread)
    return;
  call_site_forward_put(thread, key);
  tscope_leave(thread);
}

static bool set_layout(u8 then) {
  u8 looking = LOOKING;
  return __atomic_compare_exchange_n(&layout, &looking, then, false, __ATOMIC_RELEASE,
                                     __ATOMIC_RELAXED);
}

static void check_layout(struct tscope_thread *thread, const u64 *node) {
  bool found = false;
  for (u32 n = 1; n <= MOST_COUNTS; n++) {
    if (number_in(node, n) == UINT64_MAX ||
        !forward_stack_get(key_of(thread_in(node, n), number_in(node, n))))
      continue;
    found = true;
    if (__atomic_add_fetch(&matching[n], 1, __ATOMIC_RELAXED) < MIN_MATCHING_NODES)
      continue;
    __atomic_store_n(&counts, n, __ATOMIC_RELAXED);
    set_layout(KNOWN);
    return;
  }
  if (!found && __atomic_add_fetch(&others, 1, __ATOMIC_RELAXED) >= MAX_OTHER_NODES &&
      set_layout(NOT_KNOWN))
    tscope_info(thread, TSCOPE_INFO_FEATURE, "autograd's nodes are not laid out as expected",
                "lines of the backward pass");
}

/* A thread that called backward() itself has Python frames. */
static bool is_autograd_thread(void) {
  const struct torch_scope *scope = torch_scope_innermost(), *around = scope;
  while (around && (around = torch_scope_around(scope)))
    scope = around;
  return scope && scope->kind == SCOPE_OPERATOR;
}

/* Around Engine::evaluate_function(). */
void evaluated_begin(struct torch_scope *scope, const void *evaluated) {
  const u64 *node = evaluated;
  torch_scope_push(scope, SCOPE_OPERATOR);
  tscope_count_quiet_call();
  u8 now = current_layout();
  u32 n_counts = __atomic_load_n(&counts, __ATOMIC_RELAXED);
  if ((now != LOOKING && now != KNOWN) || (now == KNOWN && number_in(node, n_counts) == UINT64_MAX))
    return;
  bool own = is_autograd_thread();
  if (own && !__atomic_load_n(&has_own_threads, __ATOMIC_RELAXED))
    __atomic_store_n(&has_own_threads, 1, __ATOMIC_RELAXED);
  if (now == KNOWN && !own)
    return;
  struct tscope_thread *thread = tscope_enter(TSCOPE_QUIET);
  if (!thread)
    return;
  if (now == LOOKING) {
    check_layout(thread, node);
  } else {
    u64 key = key_of(thread_in(node, n_counts), number_in(node, n_counts));
    call_site_operator_begin(thread, key, &scope->operator);
    scope->thread = thread;
  }
  tscope_leave(thread);
}
