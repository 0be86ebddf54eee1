/* SPDX-License-Identifier: MIT */
#include "facts/memory_limit.h"

#include "facts/cgroups.h"
#include "format/text_parts.h"

#define NO_LIMIT UINT64_MAX

static struct {
  uint64_t limit;
  struct tscope_cgroup group; /* whose limit it is */
} lowest = {.limit = NO_LIMIT};

static bool read_bytes(const struct tscope_cgroup *group, const char *file, uint64_t *bytes) {
  char text[32];
  const char *end;
  if (!tscope_cgroup_read(group, file, text, sizeof(text)))
    return false;
  *bytes = leading_number(text, UINT64_MAX, &end);
  return end != text; /* "max": no limit */
}

static void keep_lower(const struct tscope_cgroup *group, void *nothing) {
  uint64_t limit;
  (void)nothing;
  if (read_bytes(group, group->version_2 ? "memory.max" : "memory.limit_in_bytes", &limit) &&
      limit < lowest.limit) {
    lowest.limit = limit;
    lowest.group = *group;
  }
}

void tscope_memory_limit_find(const char *root) {
  lowest.limit = NO_LIMIT;
  tscope_cgroups_visit(root, "memory", keep_lower, NULL);
}

static uint64_t value_of(const char *text, const char *name) {
  uint64_t value;
  return tscope_cgroup_value(text, name, &value) ? value : 0;
}

/* Pages of files, which the kernel takes away before it kills anybody. (Pages of tmpfs are not on
 * these lists.) */
static uint64_t page_cache(const struct tscope_cgroup *group) {
  static char text[8192];
  if (!tscope_cgroup_read(group, "memory.stat", text, sizeof(text)))
    return 0;
  return group->version_2
             ? value_of(text, "inactive_file") + value_of(text, "active_file")
             : value_of(text, "total_inactive_file") + value_of(text, "total_active_file");
}

bool tscope_memory_limit_allows(uint64_t bytes, uint64_t more) {
  const uint64_t part = 64, stays_free = 4;
  const struct tscope_cgroup *group = &lowest.group;
  uint64_t used;
  if (lowest.limit == NO_LIMIT ||
      !read_bytes(group, group->version_2 ? "memory.current" : "memory.usage_in_bytes", &used))
    return true;
  uint64_t cache = page_cache(group);
  used -= MIN(cache, used);
  return bytes <= lowest.limit / part && used <= lowest.limit &&
         lowest.limit - used >= more + lowest.limit / stays_free;
}
