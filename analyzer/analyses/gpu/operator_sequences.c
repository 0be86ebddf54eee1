/* SPDX-License-Identifier: MIT */
#include "analyses/gpu/operator_sequences.h"

#include <stdlib.h>

static u64 mix_hash(u64 hash, u64 value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
  return hash ^ hash >> 29;
}

void operator_sequences_free(struct operator_sequences *sequences) {
  FREE_EACH(&sequences->list, at, index.slots);
  *sequences = (struct operator_sequences){0};
}

struct operator_sequence *operator_sequence_at(struct operator_sequences *sequences, u64 key) {
  u32 i = HASHED_INDEX(&sequences->list, key, one, one->key == key);
  if (i == INDEX_NONE && sequences->list.n >= SEQUENCES_MOST)
    return NULL;
  if (i == INDEX_NONE)
    i = HASHED_ADD(&sequences->list, key, (struct operator_sequence){.key = key});
  return &sequences->list.at[i];
}

void operator_call_add(struct operator_call *call, const struct kernel *kernel, i64 ns) {
  call->hash = mix_hash(call->hash, kernel->hash);
  call->n++;
  call->ns += ns;
}

u64 operator_call_key(const struct operator_call *call, u32 operator) {
  return mix_hash(mix_hash(call->hash, call->n), operator+ 1u);
}
