/* SPDX-License-Identifier: MIT */
#include "base/host_list.h"

#include <ctype.h>
#include <string.h>

#include "base/rank_list.h"
#include "base/sorting.h"
#include "base/texts.h"

enum { MOST_DIGITS = 9 };

/* A name around the last number of its first part. */
struct host_name {
  const char *name;
  int before, digits; /* characters */
  u32 number;
};

static struct host_name take_apart(const char *name) {
  int end = (int)strcspn(name, ".");
  while (end > 0 && !isdigit((unsigned char)name[end - 1]))
    end--;
  int begin = end;
  while (begin > 0 && end - begin < MOST_DIGITS && isdigit((unsigned char)name[begin - 1]))
    begin--;
  return (struct host_name){name, begin, end - begin,
                            (u32)leading_number(name + begin, UINT32_MAX, NULL)};
}

static int compare_starts(const struct host_name *a, const struct host_name *b) {
  int shorter = MIN(a->before, b->before);
  int order = strncmp(a->name, b->name, (size_t)shorter);
  return order ? order : a->before - b->before;
}

static const char *rest_of(const struct host_name *host) {
  return host->name + host->before + host->digits;
}

ORDER_BY(next_to_next, struct host_name,
         THEN(compare_starts(a, b)) UP(digits) UP(number) THEN(strcmp(rest_of(a), rest_of(b))))

static bool follows(const struct host_name *a, const struct host_name *b) {
  return a->digits && a->digits == b->digits && b->number == a->number + 1 &&
         compare_starts(a, b) == 0 && strcmp(rest_of(a), rest_of(b)) == 0;
}

/* In order, each once. */
static u32 sort_hosts(const char *const *names, u32 n, struct host_name *hosts) {
  u32 known = LIST_WHERE(hosts, 0, n, i, names[i], take_apart(names[i])), different = 0;
  SORT(hosts, known, next_to_next);
  for (u32 i = 0; i < known; i++)
    if (i == 0 || strcmp(hosts[i].name, hosts[different - 1].name) != 0)
      hosts[different++] = hosts[i];
  return different;
}

char *host_list_in(struct arena *arena, const char *const *names, u32 n, u32 *different) {
  struct host_name *hosts = arena_array(arena, n, sizeof(*hosts));
  char *text = arena_text(arena, "");
  u32 last;
  *different = sort_hosts(names, n, hosts);
  for (u32 i = 0; i < *different; i = last + 1) {
    const struct host_name *host = &hosts[i];
    if (strlen(text) > LIST_READS_WELL)
      return arena_printf(arena, "%s and %u more", text, *different - i);
    for (last = i; last + 1 < *different && follows(&hosts[last], &hosts[last + 1]);)
      last++;
    const char *separator = i ? ", " : "";
    text = last > i ? arena_printf(arena, "%s%s%.*s[%.*s-%.*s]%s", text, separator, host->before,
                                   host->name, host->digits, host->name + host->before,
                                   host->digits, hosts[last].name + host->before, rest_of(host))
                    : arena_printf(arena, "%s%s%s", text, separator, host->name);
  }
  return text;
}
