/* SPDX-License-Identifier: MIT */
#include "base/text_numbers.h"

#include "base/hash.h"

u32 text_number(struct text_numbers *numbers, const char *text) {
  return HASHED_OR_ADD(&numbers->texts, table_hash_text(0, text), one, strcmp(*one, text) == 0,
                       (const char *)arena_text(&numbers->arena, text));
}

void text_numbers_free(struct text_numbers *numbers) {
  FREE_EACH(&numbers->texts, at, index.slots);
  arena_release(&numbers->arena);
}
