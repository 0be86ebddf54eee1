/* SPDX-License-Identifier: MIT */
#include "analyses/gpu/operator_sequences.h"

#include <stdlib.h>

#include "base/checked_memory.h"

static u64 mix_hash(u64 hash, u64 value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
  return hash ^ hash >> 29;
}

void operator_sequences_free(struct operator_sequences *sequences) {
  free(sequences->slots);
  *sequences = (struct operator_sequences){0};
}

static struct operator_sequence *slot_of(const struct operator_sequences *sequences, u64 key) {
  u32 slot = (u32)key & (sequences->room - 1);
  while (sequences->slots[slot].key && sequences->slots[slot].key != key)
    slot = (slot + 1) & (sequences->room - 1);
  return &sequences->slots[slot];
}

static void grow(struct operator_sequences *sequences) {
  struct operator_sequences more = {.room = sequences->room ? sequences->room * 2 : 64,
                                    .n = sequences->n};
  more.slots = memory_zeroed(more.room, sizeof(*more.slots));
  for (u32 i = 0; i < sequences->room; i++)
    if (sequences->slots[i].key)
      *slot_of(&more, sequences->slots[i].key) = sequences->slots[i];
  free(sequences->slots);
  *sequences = more;
}

struct operator_sequence *operator_sequence_at(struct operator_sequences *sequences, u64 key) {
  if (sequences->n >= sequences->room / 2)
    grow(sequences);
  struct operator_sequence *found = slot_of(sequences, key);
  if (!found->key && sequences->n >= SEQUENCES_MOST)
    return NULL;
  sequences->n += !found->key;
  found->key = key;
  return found;
}

void operator_call_add(struct operator_call *call, const struct kernel *kernel, i64 ns) {
  call->hash = mix_hash(call->hash, kernel->hash);
  call->n++;
  call->ns += ns;
}

u64 operator_call_key(const struct operator_call *call, u32 operator) {
  u64 key = mix_hash(mix_hash(call->hash, call->n), operator+ 1u);
  return key ? key : 1;
}
