/* SPDX-License-Identifier: MIT
 *
 * Ranks from summaries.
 */
#include <errno.h>
#include <string.h>

#include "base/parallel.h"
#include "base/rank_list.h"
#include "import/file_budget.h"
#include "import/import.h"
#include "import/summary/summary_source.h"
#include "join/join_ranks.h"
#include "model/building.h"
#include "model/rank_facts.h"

/* One rank while it is read. */
struct read_rank {
  const struct known_summary *summary;
  struct rank rank;
  struct rank_events events;
  struct run_facts run;
  bool whole, good; /* as it was written; and understood */
};

struct adding {
  struct model *model;
  struct read_rank *ranks;
  u32 n;
  const struct model_options *options;
};

/* Where nodes have read the facts of others, the ranks that the most recent of them knew; no
 * stretch at all where none has. */
static struct settled_ranks find_settled(const struct known_summary *all, u32 n,
                                         struct arena *arena) {
  struct settled_ranks settled = {0};
  const struct known_summary *best = NULL;
  FOR_EACH(all, n, one)
    if (one->entry.passes == 2 && (!best || summary_better(one, best) == one))
      best = one;
  SCOPED_ARENA struct arena scratch = {0};
  const u8 *bytes = best ? summary_read(best->path, &best->entry.found, &scratch) : NULL;
  if (bytes) {
    struct carrier c = carrier_to_read(bytes, best->entry.found.whole, arena);
    CARRY_PART(&c, carry_settled(&c, &settled));
    if (carrier_is_bad(&c))
      settled.n = 0;
    carrier_free(&c);
  }
  return settled;
}

static void note_ranks(struct model *model, const u32 *ranks, u32 n, const char *what) {
  if (n)
    model_note(model, "%s %s", ranks_in(model_arena(model), ranks, n), what);
}

static void choose_ranks(struct adding *adding, const struct known_summary *all, u32 n) {
  struct settled_ranks settled = find_settled(all, n, model_arena(adding->model));
  SCOPED u32 *late = memory_array(size_sum(n, 1), sizeof(*late));
  u32 n_late = 0;
  adding->ranks = memory_zeroed(size_sum(n, 1), sizeof(*adding->ranks));
  FOR_EACH(all, n, one)
    if (!settled.n || settled_has(&settled, one->entry.rank))
      adding->ranks[adding->n++].summary = one;
    else
      late[n_late++] = one->entry.rank;
  note_ranks(adding->model, late, n_late,
             "came after the others were compared and left out of this report: run tscope reduce "
             "--with on every node again");
}

static void read_rank(void *user, u32 index, unsigned worker) {
  struct read_rank *to = &((struct adding *)user)->ranks[index];
  const struct summary_part *part = &to->summary->entry.facts;
  SCOPED_ARENA struct arena scratch = {0};
  struct budget budget;
  char why[256];
  (void)worker;
  budget_begin(&budget, BUDGET_MEMORY, part->bytes);
  const u8 *bytes = summary_read(to->summary->path, part, &scratch);
  to->whole = bytes != NULL;
  if (bytes) {
    struct carrier c = carrier_to_read(bytes, part->whole, &to->events.arena);
    carry_run_facts(&c, &to->run);
    carry_rank_facts(&c, &to->rank, &to->events);
    to->good = !carrier_is_bad(&c) && to->rank.rank == to->summary->entry.rank && to->run.run &&
               to->rank.host && to->rank.path;
    carrier_free(&c);
  }
  to->good &= budget_end(&budget, 0, why, sizeof(why)) == 0;
}

static void note_bad(const struct adding *adding, bool whole, const char *what) {
  const struct read_rank *ranks = adding->ranks;
  SCOPED u32 *bad = memory_array(size_sum(adding->n, 1), sizeof(*bad));
  u32 n = LIST_WHERE(bad, 0, adding->n, i, !ranks[i].good && ranks[i].whole == whole,
                     ranks[i].summary->entry.rank);
  note_ranks(adding->model, bad, n, what);
}

static void drop_bad(struct adding *adding) {
  u32 kept = 0;
  note_bad(adding, false, "cannot be read: the summary is damaged, and left out");
  note_bad(adding, true,
           "cannot be read: what is in the summary is not what this tscope writes; run tscope "
           "reduce again with the one that makes the report");
  FOR_EACH_CHANGED(adding->ranks, adding->n, rank)
    if (rank->good)
      adding->ranks[kept++] = *rank;
    else
      rank_events_release(&rank->events);
  adding->n = kept;
}

static bool has_note(const struct model *model, const char *note) {
  return ANY(model->notes, model->n_notes, one, strcmp(*one, note) == 0);
}

static void add_run(struct model *model, const struct run_facts *run) {
  struct arena *arena = model_arena(model);
  if (!model->run)
    model->run = arena_text(arena, run->run);
  if (!model->command && run->command)
    model->command = arena_text(arena, run->command);
  if (!model->recorder && run->recorder)
    model->recorder = arena_text(arena, run->recorder);
  if (run->marks_are)
    model_name_marks(model, arena_text(arena, run->marks_are));
  model->world_size = MAX(run->world_size, model->world_size);
  FOR_EACH(run->notes, run->n_notes, note)
    if (*note && !has_note(model, *note))
      model_note(model, "%s", *note);
  if (run->began_realtime_ns &&
      (!model->began_realtime_ns || run->began_realtime_ns < model->began_realtime_ns))
    model->began_realtime_ns = run->began_realtime_ns;
  model->attempt = MAX(run->attempt, model->attempt);
  model->n_attempts = MAX(run->n_attempts, model->n_attempts);
}

/* Each node counts the processes that it has. */
static void add_attempts(struct model *model, const struct adding *adding) {
  FOR_EACH(adding->ranks, adding->n, rank) {
    const struct run_facts *run = &rank->run;
    if (run->n_attempts && !model->attempts)
      model->attempts =
          arena_array(model_arena(model), model->n_attempts, sizeof(*model->attempts));
    for (u32 k = 0; k < run->n_attempts; k++) {
      struct attempt *sum = &model->attempts[k];
      sum->processes += run->attempts[k].processes;
      sum->hosts += run->attempts[k].hosts;
      sum->world_size = MAX(run->attempts[k].world_size, sum->world_size);
    }
  }
}

static void add_to_model(struct adding *adding) {
  struct model *model = adding->model;
  u32 before = model->n_ranks;
  model_add_ranks(model, adding->n);
  for (u32 i = 0; i < adding->n; i++) {
    model->ranks[before + i] = adding->ranks[i].rank;
    *model_events(model, before + i) = adding->ranks[i].events;
    add_run(model, &adding->ranks[i].run);
  }
  add_attempts(model, adding);
  model_sort_ranks(model);
}

static u64 stamp_of(const struct adding *adding) {
  u64 stamp = summary_stamp_begin(adding->options);
  FOR_EACH(adding->ranks, adding->n, rank)
    stamp = summary_stamp_add(stamp, &rank->summary->entry);
  return stamp;
}

/* Why, once for all ranks that it is true of. */
static void note_unsettled(const struct adding *adding) {
  SCOPED u32 *other = memory_array(size_sum(adding->n, 1), sizeof(*other));
  SCOPED u32 *ranks = memory_array(size_sum(adding->n, 1), sizeof(*ranks));
  u32 n_other = 0, n = 0, passes = 1, options = (u32)summary_stamp_begin(adding->options);
  u64 stamp = stamp_of(adding);
  FOR_EACH(adding->ranks, adding->n, rank) {
    const struct summary_entry *entry = &rank->summary->entry;
    passes = MAX(entry->passes, passes);
    if (entry->options != options)
      other[n_other++] = entry->rank;
    else if (entry->stamp != stamp)
      ranks[n++] = entry->rank;
  }
  note_ranks(adding->model, other, n_other,
             "TAKE PART WITHOUT WHAT RAN ON THEM: give --steps and --include-warmup to the report "
             "as they were given to tscope reduce, or reduce again");
  if (n == adding->n && passes == 1)
    model_note(
        adding->model,
        "WHAT RAN ON EACH RANK IS NOT IN THIS REPORT: nodes were reduced each by itself; run "
        "tscope reduce --with SUMMARIES on every node, once all have been reduced");
  else
    note_ranks(adding->model, ranks, n,
               "TAKE PART WITHOUT WHAT RAN ON THEM: it was found beside other ranks; run tscope "
               "reduce --with on every node again");
}

static void settle(struct adding *adding, struct summary_source *source) {
  struct model *model = adding->model;
  u64 stamp = stamp_of(adding);
  u32 next = 0;
  bool stale = false;
  source->of_rank = arena_array(model_arena(model), model->n_ranks, sizeof(*source->of_rank));
  source->settled = arena_array(model_arena(model), model->n_ranks, sizeof(bool));
  source->trace_of = arena_array(model_arena(model), model->n_ranks, sizeof(*source->trace_of));
  source->n_ranks = model->n_ranks;
  source->kernel_names = adding->options->kernel_names;
  for (u32 r = 0; r < model->n_ranks && next < adding->n; r++) {
    const struct known_summary *summary = adding->ranks[next].summary;
    if (model->ranks[r].rank != summary->entry.rank)
      continue;
    source->of_rank[r] = summary;
    source->settled[r] = !source->inner && summary->entry.stamp == stamp;
    stale |= !source->settled[r];
    next++;
  }
  if (stale && !source->inner)
    note_unsettled(adding);
}

void summaries_add(struct model *model, const struct known_summary *all, u32 n,
                   const struct model_options *options) {
  struct adding adding = {.model = model, .options = options};
  struct summary_source *source = arena_alloc(model_arena(model), sizeof(*source));
  source->inner = model->timelines;
  choose_ranks(&adding, all, n);
  parallel_for(adding.n, options->threads, read_rank, &adding);
  drop_bad(&adding);
  add_to_model(&adding);
  settle(&adding, source);
  source->traces = !source->inner || source->inner->flight;
  FOR_EACH(adding.ranks, adding.n, rank)
    source->traces &= rank->run.traces;
  model_set_imported(model, source, summary_source_release);
  model->timelines = &summary_timelines;
  free(adding.ranks);
}

bool probe_summary(const struct input *input) {
  return input->head_bytes >= sizeof(SUMMARY_MAGIC) - 1 &&
         memcmp(input->head, SUMMARY_MAGIC, sizeof(SUMMARY_MAGIC) - 1) == 0;
}

int load_summary(struct import *import, const struct input *inputs, u32 n) {
  struct model *model = import->model;
  SCOPED struct known_summary *all = NULL;
  const char **paths = arena_array(import->arena, n, sizeof(*paths));
  u32 n_ranks = 0;
  for (u32 i = 0; i < n; i++)
    paths[i] = inputs[i].path;
  if (model->timelines) {
    snprintf(import->why, import->why_bytes,
             "summaries and traces of one run are not read together: %s was left out", paths[0]);
    return -EINVAL;
  }
  int error = summaries_merge(paths, n, import->options->run, model, &all, &n_ranks, import->why,
                              import->why_bytes);
  if (!error) {
    const struct known_summary *kept = arena_elements(import->arena, all, n_ranks, sizeof(*kept));
    summaries_add(model, kept, n_ranks, import->options);
  }
  if (!error && model->n_ranks == 0) {
    snprintf(import->why, import->why_bytes, "no summary in %s can be read: %s", paths[0],
             model->n_notes ? model->notes[model->n_notes - 1] : "none has a rank");
    error = -ENODATA;
  }
  u32 attempt = import->options->attempt;
  if (!error && attempt && model->attempt != attempt) {
    snprintf(import->why, import->why_bytes,
             "%s holds start %u of the job: tscope reduce --attempt %u makes summaries of another",
             paths[0], model->attempt, attempt);
    error = -EINVAL;
  }
  if (!error) {
    join_ranks(model, import->options);
  } else {
    model->n_ranks = 0;
    model->timelines = NULL;
  }
  return error;
}
