/* SPDX-License-Identifier: MIT
 *
 * Which summaries there are: a union by rank.
 */
#include "import/summary/summaries.h"

#include <errno.h>
#include <stdio.h>

#include "base/folders.h"
#include "base/hash.h"
#include "base/sorting.h"

ORDER_BY(by_saving, struct summary_entry,
         UP(passes) UP(settled) UP(records) UP(facts.hash) UP(found.hash))

const struct known_summary *summary_better(const struct known_summary *a,
                                           const struct known_summary *b) {
  return by_saving(&a->entry, &b->entry) >= 0 ? a : b;
}

ORDER_BY(by_rank, struct known_summary, UP(entry.rank) THEN(by_saving(&b->entry, &a->entry)))

typedef VECTOR(struct known_summary) summary_list_of_files;

static int list_files(const char *const *paths, u32 n, struct model *model,
                      summary_list_of_files *all, char *why, size_t why_bytes) {
  int error = -ENODATA;
  FOR_EACH(paths, n, path) {
    SCOPED struct summary_entry *entries = NULL;
    char problem[256];
    u32 n_entries;
    int result = summary_list(*path, &entries, &n_entries, problem, sizeof(problem));
    if (problem[0]) {
      snprintf(why, why_bytes, "%s %s", *path, problem);
      model_note(model, "%s", why);
    }
    error = result == 0 ? 0 : error;
    FOR_EACH(entries, n_entries, one)
      VECTOR_PUSH(all, (struct known_summary){*one, *path});
  }
  return error;
}

struct summary_files {
  struct arena *arena;
  VECTOR(const char *) all;
};

static void add_summary_file(void *user, const char *path) {
  struct summary_files *files = user;
  if (text_ends_with(path, SUMMARY_SUFFIX))
    VECTOR_PUSH(&files->all, (const char *)arena_text(files->arena, path));
}

u32 summary_files_in(const char *const *paths, u32 n_paths, struct arena *arena,
                     const char ***files) {
  struct summary_files found = {.arena = arena};
  FOR_EACH(paths, n_paths, one)
    if (folder_visit(*one, 0, add_summary_file, &found) < 0)
      VECTOR_PUSH(&found.all, *one);
  *files = VECTOR_KEPT(&found.all, arena);
  free(found.all.at);
  return found.all.n;
}

/* The run that began last; of those that began together, any, but always the same. */
static u64 newest_run(const summary_list_of_files *all) {
  const struct summary_entry *newest = NULL;
  FOR_EACH(all->at, all->n, one) {
    const struct summary_entry *entry = &one->entry;
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
  SORT(all.at, all.n, by_rank);
  u32 kept = KEEP_WHERE(all.at, all.n, one, one->entry.run == wanted);
  kept = KEEP_FIRST(all.at, kept, last, one, last->entry.rank == one->entry.rank);
  if (!error && kept == 0) {
    snprintf(why, why_bytes,
             run ? "no summary here is of a run called \"%s\": give its whole name"
                 : "no rank is in it",
             text_or_empty(run));
    error = -ENODATA;
  }
  *out = all.at;
  *n = kept;
  return error;
}

u64 summary_stamp_begin(const struct model_options *options) {
  return hash_text(HASH_SEED ^ options->include_warmup, options->steps);
}

u64 summary_stamp_add(u64 stamp, const struct summary_entry *entry) {
  const u64 key[] = {entry->rank, entry->facts.hash};
  return hash_bytes(stamp, key, sizeof(key));
}

static void carry_attempt(struct carrier *c, struct attempt *attempt) {
  CARRY(c, &attempt->processes);
  CARRY(c, &attempt->hosts);
  CARRY(c, &attempt->world_size);
}

static void carry_stretch(struct carrier *c, struct rank_stretch *stretch) {
  CARRY(c, &stretch->first);
  CARRY(c, &stretch->n);
}

void carry_run_facts(struct carrier *c, struct run_facts *facts) {
  CARRY(c, &facts->run);
  CARRY(c, &facts->command);
  CARRY(c, &facts->recorder);
  CARRY(c, &facts->marks_are);
  CARRY(c, &facts->world_size);
  CARRY(c, &facts->traces);
  CARRY(c, &facts->attempt);
  CARRY(c, &facts->began_realtime_ns);
  CARRY_LIST(c, facts->attempts, facts->n_attempts, 3, carry_attempt);
  CARRY_LIST(c, facts->notes, facts->n_notes, 1, carry_text);
}

void carry_settled(struct carrier *c, struct settled_ranks *settled) {
  CARRY_LIST(c, settled->at, settled->n, 2, carry_stretch);
}

bool settled_has(const struct settled_ranks *settled, u32 rank) {
  return ANY(settled->at, settled->n, one, rank >= one->first && rank - one->first < one->n);
}
