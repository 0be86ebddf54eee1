/* SPDX-License-Identifier: MIT
 *
 * Which summaries there are: a union by rank.
 */
#include "import/summary/summaries.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/sorting.h"

/* --- merging --- */

static int compare(u64 a, u64 b) {
  return a < b ? -1 : a > b;
}

static int by_saving(const struct summary_entry *a, const struct summary_entry *b) {
  int order = compare(a->passes, b->passes);
  if (!order)
    order = compare(a->settled, b->settled);
  if (!order)
    order = compare(a->records, b->records);
  if (!order)
    order = compare(a->facts.hash, b->facts.hash);
  return order ? order : compare(a->found.hash, b->found.hash);
}

const struct known_summary *summary_better(const struct known_summary *a,
                                           const struct known_summary *b) {
  return by_saving(&a->entry, &b->entry) >= 0 ? a : b;
}

static int by_rank(const void *left, const void *right) {
  const struct known_summary *a = left, *b = right;
  int order = compare(a->entry.rank, b->entry.rank);
  return order ? order : by_saving(&b->entry, &a->entry);
}

typedef VECTOR(struct known_summary) summary_list_of_files;

static int list_files(const char *const *paths, u32 n, struct model *model,
                      summary_list_of_files *all, char *why, size_t why_bytes) {
  int error = -ENODATA;
  for (u32 i = 0; i < n; i++) {
    struct summary_entry *entries;
    char problem[256];
    u32 n_entries;
    int result = summary_list(paths[i], &entries, &n_entries, problem, sizeof(problem));
    if (problem[0]) {
      snprintf(why, why_bytes, "%s %s", paths[i], problem);
      model_note(model, "%s", why);
    }
    error = result == 0 ? 0 : error;
    for (u32 k = 0; k < n_entries; k++)
      VECTOR_PUSH(all, (struct known_summary){entries[k], paths[i]});
    free(entries);
  }
  return error;
}

static bool is_summary_name(const char *name) {
  size_t length = strlen(name), suffix = sizeof(SUMMARY_SUFFIX) - 1;
  return length > suffix && strcmp(name + length - suffix, SUMMARY_SUFFIX) == 0;
}

u32 summary_files_in(const char *const *paths, u32 n_paths, struct arena *arena,
                     const char ***files) {
  VECTOR(const char *) found = {0};
  for (u32 i = 0; i < n_paths; i++) {
    DIR *folder = opendir(paths[i]);
    if (!folder)
      VECTOR_PUSH(&found, paths[i]);
    for (struct dirent *item; folder && (item = readdir(folder));)
      if (is_summary_name(item->d_name))
        VECTOR_PUSH(&found, (const char *)arena_printf(arena, "%s/%s", paths[i], item->d_name));
    if (folder)
      closedir(folder);
  }
  *files = arena_array(arena, size_sum(found.n, 1), sizeof(**files));
  if (found.n)
    memcpy(*files, found.at, found.n * sizeof(**files));
  free(found.at);
  return found.n;
}

/* The run that began last; of those that began together, any, but always the same. */
static u64 newest_run(const summary_list_of_files *all) {
  const struct summary_entry *newest = NULL;
  for (u32 i = 0; i < all->n; i++) {
    const struct summary_entry *entry = &all->at[i].entry;
    if (!newest || entry->start > newest->start ||
        (entry->start == newest->start && entry->run > newest->run))
      newest = entry;
  }
  return newest ? newest->run : 0;
}

int summaries_merge(const char *const *paths, u32 n_paths, const char *run, struct model *model,
                    struct known_summary **out, u32 *n, char *why, size_t why_bytes) {
  summary_list_of_files all = {0};
  int error = list_files(paths, n_paths, model, &all, why, why_bytes);
  u64 wanted = run ? hash_text(HASH_SEED, run) : newest_run(&all);
  u32 kept = 0;
  SORT(all.at, all.n, by_rank);
  for (u32 i = 0; i < all.n; i++)
    if (all.at[i].entry.run == wanted &&
        (kept == 0 || all.at[kept - 1].entry.rank != all.at[i].entry.rank))
      all.at[kept++] = all.at[i];
  if (!error && kept == 0) {
    snprintf(why, why_bytes, run ? "there is no summary of run %s here" : "no rank is in it",
             run ? run : "");
    error = -ENODATA;
  }
  *out = all.at;
  *n = kept;
  return error;
}

/* --- stamps --- */

u64 summary_stamp_begin(const struct model_options *options) {
  return hash_text(HASH_SEED ^ options->include_warmup, options->steps);
}

u64 summary_stamp_add(u64 stamp, const struct summary_entry *entry) {
  const u64 key[] = {entry->rank, entry->facts.hash};
  return hash_bytes(stamp, key, sizeof(key));
}

/* --- values --- */

void carry_run_facts(struct carrier *c, struct run_facts *facts) {
  CARRY(c, &facts->run);
  CARRY(c, &facts->command);
  CARRY(c, &facts->recorder);
  CARRY(c, &facts->marks_are);
  CARRY(c, &facts->world_size);
  CARRY(c, &facts->traces);
  CARRY(c, &facts->attempt);
  CARRY(c, &facts->began_realtime_ns);
  facts->n_attempts = carry_count(c, facts->n_attempts, 3);
  CARRY_ARRAY(c, facts->attempts, facts->n_attempts);
  for (u32 i = 0; i < facts->n_attempts; i++) {
    CARRY(c, &facts->attempts[i].processes);
    CARRY(c, &facts->attempts[i].hosts);
    CARRY(c, &facts->attempts[i].world_size);
  }
  facts->n_notes = carry_count(c, facts->n_notes, 1);
  CARRY_ARRAY(c, facts->notes, facts->n_notes);
  for (u32 i = 0; i < facts->n_notes; i++)
    CARRY(c, &facts->notes[i]);
}

void carry_settled(struct carrier *c, struct settled_ranks *settled) {
  settled->n = carry_count(c, settled->n, 2);
  CARRY_ARRAY(c, settled->at, settled->n);
  for (u32 i = 0; i < settled->n; i++) {
    CARRY(c, &settled->at[i].first);
    CARRY(c, &settled->at[i].n);
  }
}

bool settled_has(const struct settled_ranks *settled, u32 rank) {
  for (u32 i = 0; i < settled->n; i++)
    if (rank >= settled->at[i].first && rank - settled->at[i].first < settled->at[i].n)
      return true;
  return false;
}
