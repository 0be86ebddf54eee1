/* SPDX-License-Identifier: MIT
 *
 * pg_config names a rank's process groups and their members. pg_status says how far the rank got in
 * each. Entries refer to groups by the numbers of pg_status.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/checked_memory.h"
#include "base/rank_list.h"
#include "base/sorting.h"
#include "base/texts.h"
#include "import/flight_recorder/flight_recorder.h"

/* Most memberships that one dump may list. */
#define MOST_MEMBERSHIPS (1u << 20)

/* "[0, 1, 2]", or a list. */
static u32 read_members(const struct value *value, struct arena *arena, u32 **members) {
  const char *text = value_text(value);
  u32 n = text ? ranks_listed(arena, text, MOST_MEMBERSHIPS, members) : 0;
  if (!text)
    *members = arena_array(arena, value_count(value), sizeof(u32));
  for (u32 i = 0; !text && i < value_count(value); i++) {
    u32 rank = value_rank(value_item(value, i));
    if (rank != INDEX_NONE)
      (*members)[n++] = rank;
  }
  SORT(*members, n, by_u32);
  return KEEP_FIRST(*members, n, last, one, *last == *one);
}

static u64 hash_of(const char *name, const u32 *members, u32 n) {
  return table_hash(table_hash_text(0, name), members, n * sizeof(u32));
}

void dump_groups_cut(struct draft *draft, u32 n) {
  if (draft->groups.n == n)
    return;
  draft->groups.n = n;
  hash_index_clear(&draft->groups.index);
  for (u32 i = 0; i < n; i++) {
    const struct flight_group *one = &draft->groups.at[i];
    hash_index_add(&draft->groups.index, hash_of(one->name, one->members, one->n_members), i);
  }
}

/* Groups of one name are distinguished by their members, because groups that were split keep the
 * name. */
static u32 group_of(struct draft *draft, const char *name, const char *desc, const u32 *members,
                    u32 n) {
  u64 hash = hash_of(name, members, n);
  u32 known = HASHED_INDEX(&draft->groups, hash, one,
                           strcmp(one->name, name) == 0 && one->n_members == n &&
                               (n == 0 || !memcmp(one->members, members, n * sizeof(u32))));
  if (known != INDEX_NONE)
    return known;
  struct flight_group fresh = {.name = name, .desc = desc, .n_members = n};
  if (n)
    fresh.members = arena_elements(draft->arena, members, n, sizeof(u32));
  return HASHED_ADD(&draft->groups, hash, fresh);
}

/* What a group is for; "undefined" means that the recorder does not say. */
static const char *read_desc(struct draft *draft, const struct value *value) {
  const char *text = value_text(value);
  bool says = text && text[0] && strcmp(text, "undefined") != 0;
  return says ? draft_keep_text(draft, text, strlen(text)) : NULL;
}

int dump_groups_read(struct draft *draft, const struct value *root, dump_groups *groups) {
  const struct value *config = value_get(root, "pg_config");
  SCOPED_ARENA struct arena all = {0};
  u64 memberships = 0;
  for (u32 i = 0; i < value_count(config) && memberships <= MOST_MEMBERSHIPS; i++) {
    const struct value *key = value_key(config, i), *one = value_item(config, i);
    const struct value *list = value_get(one, "ranks");
    u32 *members = NULL;
    if (!value_text(key))
      continue;
    const char *name = draft_keep_text(draft, key->text, key->n);
    u32 n = read_members(list, &all, &members);
    memberships += n + (value_text(list) ? list->n / 8 : 0);
    if (memberships <= MOST_MEMBERSHIPS) {
      u32 group = group_of(draft, name, read_desc(draft, value_get(one, "desc")), members, n);
      VECTOR_PUSH(groups, (struct dump_group){name, group, -1});
    }
  }
  return memberships > MOST_MEMBERSHIPS ? -E2BIG : 0;
}

u32 dump_group_find(struct draft *draft, dump_groups *groups, const char *name, const char *desc) {
  u32 known = INDEX_OF(groups->at, groups->n, one, strcmp(one->name, name) == 0);
  if (known != INDEX_NONE)
    return known;
  const char *kept = draft_keep_text(draft, name, strlen(name));
  const char *kept_desc = desc ? draft_keep_text(draft, desc, strlen(desc)) : NULL;
  VECTOR_PUSH(groups, (struct dump_group){kept, group_of(draft, kept, kept_desc, NULL, 0), -1});
  return groups->n - 1;
}

static bool number_of(const char *text, i64 *number) {
  const char *end;
  *number = (i64)leading_number(text, INT64_MAX, &end);
  return end > text && !*end && *number < INT64_MAX;
}

struct numbered {
  i64 number;
  u32 index;
};

ORDER_BY(by_numbered, struct numbered, UP(number))

/* Process groups get their numbers in the order in which they are made. pg_config has them by
 * name, pg_status by pg_id, and both are in that order. If an entry that has both the name and
 * the id contradicts this, the order is not used. */
static void number_groups(dump_groups *groups, const struct value *status, struct numbered *by_name,
                          struct numbered *by_id) {
  u32 n = groups->n;
  if (n == 0 || value_count(status) != n)
    return;
  for (u32 i = 0; i < n; i++) {
    const char *id = value_text(value_key(status, i));
    if (!id || !number_of(id, &by_id[i].number) ||
        !number_of(groups->at[i].name, &by_name[i].number))
      return;
    by_name[i].index = i;
  }
  SORT(by_name, n, by_numbered);
  SORT(by_id, n, by_numbered);
  for (u32 i = 0; i < n; i++) {
    i64 known = groups->at[by_name[i].index].number;
    if (known >= 0 && known != by_id[i].number)
      return;
  }
  for (u32 i = 0; i < n; i++)
    groups->at[by_name[i].index].number = by_id[i].number;
}

static i64 seq_of(const struct value *status, const char *key) {
  i64 seq = SEQ_UNKNOWN;
  value_integer(value_get(status, key), &seq);
  return seq < 0 ? SEQ_UNKNOWN : seq;
}

void dump_progress_read(struct draft *draft, const struct value *root, u32 rank,
                        dump_groups *groups) {
  const struct value *status = value_get(root, "pg_status");
  if (value_count(status) == 0)
    return;
  SCOPED struct numbered *work =
      memory_zeroed(size_sum(size_product(2, groups->n), 1), sizeof(*work));
  number_groups(groups, status, work, work + groups->n);
  for (u32 i = 0; i < groups->n; i++) {
    char id[24];
    snprintf(id, sizeof(id), "%lld", (long long)groups->at[i].number);
    const struct value *one = groups->at[i].number < 0 ? NULL : value_get(status, id);
    struct flight_progress progress = {.rank = rank,
                                       .group = groups->at[i].group,
                                       .called = seq_of(one, "last_enqueued_collective"),
                                       .completed = seq_of(one, "last_completed_collective")};
    if (one)
      VECTOR_PUSH(&draft->progress, progress);
  }
}
