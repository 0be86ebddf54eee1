/* SPDX-License-Identifier: MIT */
#include "callsites/forward_stacks.h"

#include <sys/mman.h>

#include "record/reserve.h"

enum { SLOTS = 1 << 15 };

/* `check` is the key xor the stack: if two threads write at once, it does not match. */
static struct forward_stack { u64 check, stack; } * slots;

bool forward_stacks_init(void) {
  void *made = tscope_reserve_map(-1, SLOTS * sizeof(*slots));
  if (made == MAP_FAILED)
    return false;
  __atomic_store_n(&slots, made, __ATOMIC_RELEASE);
  return true;
}

static struct forward_stack *slot_of(u64 key) {
  struct forward_stack *all = __atomic_load_n(&slots, __ATOMIC_ACQUIRE);
  return all ? &all[key & (SLOTS - 1)] : NULL;
}

void forward_stack_put(u64 key, u64 stack) {
  struct forward_stack *slot = slot_of(key);
  if (!slot)
    return;
  __atomic_store_n(&slot->stack, stack, __ATOMIC_RELAXED);
  __atomic_store_n(&slot->check, key ^ stack, __ATOMIC_RELAXED);
}

u64 forward_stack_get(u64 key) {
  struct forward_stack *slot = slot_of(key);
  u64 stack = slot ? __atomic_load_n(&slot->stack, __ATOMIC_RELAXED) : 0;
  return stack && (__atomic_load_n(&slot->check, __ATOMIC_RELAXED) ^ stack) == key ? stack : 0;
}
