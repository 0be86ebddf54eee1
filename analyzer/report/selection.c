/* SPDX-License-Identifier: MIT */
#include "report/selection.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/texts.h"

/* Takes one number or range off the list; false where there is none. */
static bool next_range(const char **list, u64 *first, u64 *last) {
  const char *end;
  if (!isdigit((unsigned char)**list))
    return false;
  *first = *last = leading_number(*list, UINT32_MAX, &end);
  if (*end == '-') {
    if (!isdigit((unsigned char)end[1]))
      return false;
    *last = leading_number(end + 1, UINT32_MAX, &end);
  }
  if (*end && (*end != ',' || !end[1]))
    return false;
  *list = *end ? end + 1 : end;
  return *first <= *last;
}

bool selection_is_ranks(const char *list) {
  u64 first, last;
  if (!*list)
    return false;
  while (*list)
    if (!next_range(&list, &first, &last))
      return false;
  return true;
}

bool selection_has_rank(const char *ranks, u32 rank) {
  u64 first, last;
  bool has = !ranks;
  while (!has && *ranks && next_range(&ranks, &first, &last))
    has = rank >= first && rank <= last;
  return has;
}

bool selection_has_group(const struct report_view *view, const struct flight_group *group) {
  return !view->groups || is_in_words(group->name, view->groups, ',') ||
         is_in_words(group->desc, view->groups, ',');
}

bool selection_find_missing(const struct report_view *view, const struct flight_record *flight,
                            char *text, size_t bytes) {
  u64 first, last;
  for (const char *list = view->ranks; list && *list && next_range(&list, &first, &last);)
    for (unsigned long rank = first; rank <= last && rank <= first + flight->n_ranks; rank++)
      if (!ANY(flight->ranks, flight->n_ranks, one, one->rank == rank)) {
        snprintf(text, bytes, "rank %lu", rank);
        return true;
      }
  for (const char *at = view->groups; at;) {
    size_t n = strcspn(at, ",");
    if (!ANY(flight->groups, flight->n_groups, one,
             text_is_piece(one->name, at, n) || text_is_piece(one->desc, at, n))) {
      snprintf(text, bytes, "group %.*s", (int)(MIN(n, 60)), at);
      return true;
    }
    at = at[n] ? at + n + 1 : NULL;
  }
  return false;
}
