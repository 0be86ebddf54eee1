/* SPDX-License-Identifier: MIT
 *
 * tscope-reduce: on the node that has the traces, keeps what a report on all ranks needs of them
 * (docs/decisions/reduce.md).
 */
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyses/results/results.h"
#include "base/checked_memory.h"
#include "base/exit_status.h"
#include "base/hash.h"
#include "base/printable.h"
#include "base/quantity.h"
#include "base/sorting.h"
#include "import/import.h"
#include "import/summary/summary_source.h"
#include "kernels/kernels.h"
#include "model/building.h"
#include "model/rank_facts.h"
#include "programs/mpi_library.h"
#include "programs/reduce_options.h"
#include "symbols/native_places.h"

#define fail(...) print_problem("tscope-reduce", __VA_ARGS__)

struct reducing {
  const struct reduce_options *options;
  struct summary_made *made; /* [n] the node's own ranks, in order */
  u32 n;
  struct known_summary *others; /* summaries given by --with */
  u32 n_others;
  struct settled_ranks settled; /* all that take part */
  u64 stamp;
  struct arena arena;
  char why[512];
};

/* Facts: before ranks are joined. */

static u64 start_of(const struct model *model, u32 rank) {
  const struct rank_events *events = model_events(model, rank);
  return events->begin == NS_UNKNOWN ? 0 : (u64)(events->begin + events->realtime_minus_monotonic);
}

/* What the node knows beyond its ranks is kept with its first. */
static struct run_facts run_of(const struct model *model, bool first) {
  struct run_facts run = {
      .traces = model->timelines && model->timelines->flight,
      SAME(model, run, command, recorder, world_size, attempt, began_realtime_ns)};
  if (first) {
    run.n_attempts = model->attempts ? model->n_attempts : 0;
    COPY_EACH(&run, model, attempts, notes, n_notes);
  }
  return run;
}

static void write_facts(struct reducing *reducing, struct model *model, u32 r) {
  struct summary_made *made = &reducing->made[r];
  SCOPED_ARENA struct arena texts = {0};
  struct carrier c = carrier_to_write(&texts);
  struct run_facts run = run_of(model, r == 0);
  struct rank rank = model->ranks[r];
  char *path = realpath(rank.path, NULL); /* the report may be made in another folder */
  rank.path = path ? path : rank.path;
  carry_run_facts(&c, &run);
  carry_rank_facts(&c, &rank, model_events(model, r));
  free(path);
  made->entry = (struct summary_entry){.run = hash_text(HASH_SEED, model->run),
                                       .start = start_of(model, r),
                                       .passes = reducing->options->with ? 2 : 1,
                                       SAME(&model->ranks[r], rank, pid, records)};
  made->facts = summary_deflate(&c, &made->entry.facts);
  carrier_free(&c);
}

/* Of the node's own; NULL for others. */
static struct summary_made *made_of(const struct reducing *reducing, u32 rank) {
  return FIND_SORTED(reducing->made, reducing->n, &rank, by_u32);
}

/* --with: the ranks of other nodes, as their facts say. Own ranks are there already. */
static void add_others(struct reducing *reducing, struct model *model) {
  u32 kept =
      KEEP_WHERE(reducing->others, reducing->n_others, one, !made_of(reducing, one->entry.rank));
  reducing->n_others = kept;
  if (kept)
    summaries_add(model, reducing->others, kept, &reducing->options->model);
}

static const struct summary_entry *entry_of(const struct reducing *reducing, u32 rank) {
  const struct summary_made *made = made_of(reducing, rank);
  const struct known_summary *known =
      made ? NULL : FIND_SORTED(reducing->others, reducing->n_others, &rank, by_u32);
  return made ? &made->entry : &known->entry;
}

/* Which ranks take part, and the stamp of their facts. */
static void settle(struct reducing *reducing, const struct model *model) {
  struct settled_ranks *settled = &reducing->settled;
  u64 stamp = summary_stamp_begin(&reducing->options->model);
  settled->at = arena_array(&reducing->arena, model->n_ranks, sizeof(*settled->at));
  FOR_EACH(model->ranks, model->n_ranks, each) {
    u32 rank = each->rank;
    struct rank_stretch *last = settled->n ? &settled->at[settled->n - 1] : NULL;
    if (last && last->first + last->n == rank)
      last->n++;
    else
      settled->at[settled->n++] = (struct rank_stretch){rank, 1};
    stamp = summary_stamp_add(stamp, entry_of(reducing, rank));
  }
  reducing->stamp = stamp;
  FOR_EACH_CHANGED(reducing->made, reducing->n, one) {
    one->entry.settled = model->n_ranks;
    one->entry.options = (u32)summary_stamp_begin(&reducing->options->model);
  }
}

static void keep_facts(void *user, struct model *model) {
  struct reducing *reducing = user;
  reducing->n = model->n_ranks;
  reducing->made = arena_array(&reducing->arena, model->n_ranks, sizeof(*reducing->made));
  for (u32 r = 0; r < model->n_ranks; r++)
    write_facts(reducing, model, r);
  add_others(reducing, model);
  settle(reducing, model);
}

static bool begin_rank(void *keeping, const struct model *model, u32 rank, struct carrier *found) {
  struct reducing *reducing = keeping;
  if (!made_of(reducing, model->ranks[rank].rank))
    return false;
  summary_keep_rank(model, rank, &reducing->settled, found);
  return true;
}

static void end_rank(void *keeping, const struct model *model, u32 rank,
                     const struct carrier *found) {
  struct reducing *reducing = keeping;
  struct summary_made *made = made_of(reducing, model->ranks[rank].rank);
  made->found = summary_deflate(found, &made->entry.found);
  made->entry.stamp = reducing->stamp;
}

/* "OUTPUT/RUN-rank8.tscope-summary": nodes have different first ranks. */
static int write_summaries(struct reducing *reducing, const char *run) {
  const char *folder = reducing->options->output;
  if (mkdir(folder, 0777) != 0 && errno != EEXIST)
    return fail("the folder %s cannot be made: %s", folder, strerror(errno));
  const char *path = arena_printf(&reducing->arena, "%s/%s-rank%u" SUMMARY_SUFFIX, folder, run,
                                  reducing->made[0].entry.rank);
  int error = summary_write(path, reducing->made, reducing->n);
  if (error)
    return fail("%s cannot be written: %s", path, strerror(-error));
  u64 bytes = 0;
  FOR_EACH(reducing->made, reducing->n, one)
    bytes += one->entry.facts.bytes + one->entry.found.bytes;
  printf("%s: %s, %s each\n", path, plural(reducing->n, "rank").text,
         byte_size((double)bytes / reducing->n).text);
  return STATUS_OK;
}

static void free_made(struct reducing *reducing) {
  FOR_EACH(reducing->made, reducing->n, one) {
    free(one->facts);
    free(one->found);
  }
}

/* The summaries of other nodes. */
static int find_summaries(struct reducing *reducing, struct model *notes_to) {
  const char *folder = reducing->options->with;
  const char **paths;
  if (!folder)
    return 0;
  u32 n = summary_files_in(&folder, 1, &reducing->arena, &paths);
  if (n == 0) {
    snprintf(reducing->why, sizeof(reducing->why),
             "there are no summaries in %s: run tscope reduce DIR --output %s on every node first",
             folder, folder);
    return -ENOENT;
  }
  return summaries_merge(paths, n, reducing->options->run, notes_to, &reducing->others,
                         &reducing->n_others, reducing->why, sizeof(reducing->why));
}

static int reduce(struct reduce_options *options) {
  struct reducing reducing = {.options = options};
  struct model *notes = model_new(), *model = NULL;
  struct kernel_names *names =
      kernel_names_new(options->kernel_categories, reducing.why, sizeof(reducing.why));
  int error = names ? find_summaries(&reducing, notes) : -EINVAL;
  options->model.run = options->run;
  options->model.kernel_names = names;
  options->model.before_join = keep_facts;
  options->model.joiner = &reducing;
  if (!error)
    error = import_load(options->paths, options->n_paths, &options->model, &model, reducing.why,
                        sizeof(reducing.why));
  if (!error && reducing.n && !(model->timelines && model->timelines->flight)) {
    snprintf(
        reducing.why, sizeof(reducing.why),
        "%s has no traces of tscope: recordings of other profilers cannot be reduced, read them "
        "with tscope report",
        options->paths[0]);
    error = -ENOTSUP;
  }
  if (!error && reducing.n == 0) {
    snprintf(reducing.why, sizeof(reducing.why), "%s has no ranks to reduce", options->paths[0]);
    error = -ENODATA;
  }
  const struct rank_keeper keeper = {begin_rank, end_rank, &reducing};
  const struct analyse_options analysing = {
      .kernel_names = names, .threads = options->model.threads, .keeper = &keeper};
  struct results *results = error ? NULL : analyse(model, &analysing);
  if (results)
    import_tell_times_kept(model, options->model.timed_steps, "tscope-reduce");
  int status = error ? fail("%s", reducing.why) : write_summaries(&reducing, model->run);
  free_made(&reducing);
  results_free(results);
  model_free(model);
  model_free(notes);
  kernel_names_free(names);
  free(reducing.others);
  arena_release(&reducing.arena);
  return status;
}

/* The better of each rank, as it is: nothing is read into a model. */
static int copy_kept(struct reducing *reducing, const struct known_summary *all, u32 n) {
  reducing->made = arena_array(&reducing->arena, n, sizeof(*reducing->made));
  FOR_EACH(all, n, one) {
    struct summary_made *made = &reducing->made[reducing->n++];
    made->entry = one->entry;
    made->facts = summary_copy(one->path, &one->entry.facts);
    made->found = summary_copy(one->path, &one->entry.found);
    if (!made->facts || !made->found)
      return fail("%s cannot be read", one->path);
  }
  return STATUS_OK;
}

static int merge(struct reduce_options *options) {
  struct reducing reducing = {.options = options};
  struct model *notes = model_new();
  SCOPED struct known_summary *all = NULL;
  const char **paths;
  u32 n_all = 0, n = summary_files_in(options->paths, options->n_paths, &reducing.arena, &paths);
  int error = n ? summaries_merge(paths, n, options->run, notes, &all, &n_all, reducing.why,
                                  sizeof(reducing.why))
                : -ENOENT;
  if (n == 0)
    snprintf(reducing.why, sizeof(reducing.why), "there are no summaries in %s", options->paths[0]);
  int status = error ? fail("%s", reducing.why) : copy_kept(&reducing, all, n_all);
  if (status == STATUS_OK)
    status = write_summaries(&reducing, "merged");
  FOR_EACH(notes->notes, notes->n_notes, note)
    fail("%s", *note);
  free_made(&reducing);
  model_free(notes);
  arena_release(&reducing.arena);
  return status;
}

/* Under mpirun, tscope-reduce-mpi runs this program on all nodes. Returns if it cannot. */
static void reduce_over_mpi(char **argv) {
  char path[PATH_MAX + 32];
  ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
  if (length <= 0)
    return;
  memcpy(path + length, "-mpi", sizeof("-mpi"));
  execv(path, argv);
  fail("%s cannot be run: %s; each node is reduced by itself", path, strerror(errno));
}

int main(int argc, char **argv) {
  native_places_ready();
  mallopt(M_MMAP_THRESHOLD, 1 << 30); /* as tscope-report */
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  struct reduce_options options;
  char why[512];
  char **given =
      memory_array(size_sum((size_t)argc, 1), sizeof(*given)); /* the parser moves arguments */
  memcpy(given, argv, ((size_t)argc + 1) * sizeof(*given));
  if (!reduce_options_parse(argc, argv, &options, why, sizeof(why)))
    return fail("%s", why);
  if (options.help) {
    reduce_options_help(stdout);
    return STATUS_OK;
  }
  if (options.version) {
    puts("tscope-reduce " TSCOPE_VERSION);
    return STATUS_OK;
  }
  if (mpi_launched() && !options.merge && !options.with)
    reduce_over_mpi(given);
  free(given);
  return options.merge ? merge(&options) : reduce(&options);
}
