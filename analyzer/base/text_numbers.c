/* SPDX-License-Identifier: MIT */
#include "base/text_numbers.h"

#include "base/hash.h"

u32 text_number(struct text_numbers *numbers, const char *text) {
  u64 hash = hash_text(HASH_SEED, text);
  HASH_INDEX_EACH(&numbers->index, hash, i)
    if (strcmp(numbers->texts.at[i], text) == 0)
      return i;
  hash_index_add(&numbers->index, hash, numbers->texts.n);
  VECTOR_PUSH(&numbers->texts, (const char *)arena_text(&numbers->arena, text));
  return numbers->texts.n - 1;
}

void text_numbers_free(struct text_numbers *numbers) {
  FREE_EACH(numbers, texts.at, index.slots);
  arena_release(&numbers->arena);
}
