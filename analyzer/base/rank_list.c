/* SPDX-License-Identifier: MIT */
#include "base/rank_list.h"

#include <stdio.h>
#include <string.h>

#include "base/checked_memory.h"
#include "base/sorting.h"
#include "base/texts.h"

char *rank_list(const u32 *ranks, u32 n, size_t limit) {
  SCOPED u32 *sorted = memory_array(size_sum(n, 1), sizeof(*sorted));
  char *text = NULL;
  size_t size = 0;
  FILE *out = memory_stream(&text, &size);
  if (n) /* memcpy() takes no NULL, not even for nothing */
    memcpy(sorted, ranks, n * sizeof(*sorted));
  SORT(sorted, n, by_u32);
  u32 i = 0;
  while (i < n) {
    u32 last = i;
    while (last + 1 < n && sorted[last + 1] == sorted[last] + 1)
      last++;
    fflush(out);
    if (size + 8 > limit && i > 0) {
      fprintf(out, " and %u more", n - i);
      break;
    }
    const char *separator = i > 0 ? ", " : "";
    if (last > i + 1) {
      fprintf(out, "%s%u-%u", separator, sorted[i], sorted[last]);
      i = last + 1;
    } else {
      fprintf(out, "%s%u", separator, sorted[i++]);
    }
  }
  memory_stream_close(out);
  return text;
}

char *ranks_by_name(struct arena *arena, const u32 *ranks, u32 n, size_t limit) {
  SCOPED char *list = rank_list(ranks, n, limit);
  return arena_printf(arena, "%s %s", n == 1 ? "rank" : "ranks", list);
}

char *rank_list_in(struct arena *arena, const u32 *ranks, u32 n) {
  SCOPED char *list = rank_list(ranks, n, LIST_READS_WELL);
  return arena_text(arena, list);
}

char *ranks_in(struct arena *arena, const u32 *ranks, u32 n) {
  return ranks_by_name(arena, ranks, n, LIST_READS_WELL);
}

char *ranks_first_in(struct arena *arena, const u32 *ranks, u32 n) {
  char *text = ranks_in(arena, ranks, n);
  *text = 'R';
  return text;
}

u32 ranks_listed(struct arena *arena, const char *text, u32 most, u32 **ranks) {
  size_t commas = 0;
  u32 n = 0;
  for (const char *at = text; *at; at++)
    commas += *at == ',';
  if (commas >= most)
    return 0;
  u32 *listed = arena_array(arena, size_sum(commas, 1), sizeof(*listed));
  for (text += strspn(text, "[ "); *text && *text != ']'; text += strspn(text, ", ")) {
    const char *end;
    u64 rank = leading_number(text, most, &end);
    if (end == text || rank >= most || n > commas)
      return 0;
    listed[n++] = (u32)rank;
    text = end;
  }
  if (!*text || n == 0)
    return 0;
  *ranks = listed;
  return n;
}
