/* SPDX-License-Identifier: MIT
 *
 * tscope-report: read and align into a model, analyse it, write the report.
 */
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked_memory.h"
#include "base/exit_status.h"
#include "base/folders.h"
#include "base/output_file.h"
#include "base/printable.h"
#include "base/texts.h"
#include "diff/diff.h"
#include "import/import.h"
#include "kernels/kernels.h"
#include "programs/many_runs.h"
#include "report/gate/gate.h"
#include "report/json/json_fields.h"
#include "report/open_in_browser.h"
#include "report/options.h"
#include "report/progress.h"
#include "report/selection.h"
#include "report/text/terminal.h"
#include "symbols/native_places.h"

#define GIB 1073741824.0
#define MOST_ATTEMPTS_READ 8u
#define PATIENCE_S 120 /* for a browser to come and fetch what is opened */

/* What goes wrong is said in one line. */
#define fail(...) print_problem("tscope-report", __VA_ARGS__)

static int write_tables(const struct options *options, const struct results *results,
                        const struct report_view *view) {
  int error = options->export ? export_tables(results, view, options->export) : 0;
  return error ? fail("the tables could not be written to %s: %s", options->export,
                      error == -ENODATA ? report_entries.no_data : strerror(-error))
               : STATUS_OK;
}

/* What goes to the browser without --output gets a temporary place, which the caller need not know.
 */
static char *create_temporary_file(void) {
  const char *folder = folder_for_a_time();
  char *place = memory_printf("%s/tscope-XXXXXX", folder);
  int descriptor = mkstemp(place);
  if (descriptor < 0) {
    fail("no file could be created in %s: %s; give a file with --output", folder, strerror(errno));
    free(place);
    return NULL;
  }
  close(descriptor);
  return place;
}

static int open_report(const struct options *options, const char *path) {
  char why[2 * PATH_MAX];
  bool shown = options->backend->opens == OPENS_PERFETTO
                   ? open_in_perfetto(path, PATIENCE_S, why, sizeof(why))
                   : open_page(path, why, sizeof(why));
  return shown ? STATUS_OK : fail("%s", why);
}

static int write_to(const struct options *options, const struct results *results,
                    struct report_view *view, const char *path) {
  const struct report_backend *backend = options->backend;
  struct output_file file;
  int error = output_file_open(&file, path);
  if (error)
    return fail("cannot write %s: %s; give --output another file", path, strerror(-error));
  terminal_detect(&options->terminal, REPORT_MIN_WIDTH, REPORT_MAX_WIDTH, fileno(file.out), view);
  if (backend->binary && isatty(fileno(file.out)))
    return fail("--format %s is not text: give a file with --output", report_backend_name(backend));
  view->building = output_file_path(&file);
  error = (options->diff ? backend->write_diff : backend->write)(results, view, file.out);
  error = output_file_close(&file, error);
  return error ? fail("the report could not be written to %s: %s", path ? path : "standard output",
                      error == -ENODATA && backend->no_data ? backend->no_data : strerror(-error))
               : STATUS_OK;
}

/* A gate that had too little data to decide was not passed. */
static int judge_by_gate(const struct options *options, struct gate *gate,
                         const struct results *results) {
  const struct diff_result *diff = options->diff ? results->diff : NULL;
  char why[512];
  if (options->write_expectations) {
    int error = gate_write_expectations(results, options->write_expectations);
    if (error)
      return fail("cannot write %s: %s", options->write_expectations, strerror(-error));
  }
  if (!gate->rules.n)
    return STATUS_OK;
  if (gate_judge(gate, results, why, sizeof(why)) < 0)
    return fail("%s", why);
  bool has_fail_on = ANY(gate->rules.at, gate->rules.n, one, one->kind == GATE_FAIL_ON);
  if (!gate->n_failed && diff && has_fail_on &&
      (diff->runs_before < DIFF_LEAST_RUNS || diff->runs_after < DIFF_LEAST_RUNS))
    return fail("--fail-on needs %d runs on each side, not %.0f and %.0f: with fewer, a change "
                "cannot be distinguished from noise; tscope-report diff A1 A2 A3 -- B1 B2 B3",
                (int)DIFF_LEAST_RUNS, diff->runs_before, diff->runs_after);
  gate_print(gate, options->github);
  int error = options->junit ? gate_write_junit(gate, results, options->junit) : 0;
  if (error)
    return fail("cannot write %s: %s", options->junit, strerror(-error));
  return gate->n_failed ? STATUS_FINDINGS : STATUS_OK;
}

/* The rules of the command line and of the file. */
static int read_gate(const struct options *options, struct gate *gate) {
  char why[512];
  struct gate_rule rule;
  FOR_EACH(options->rules, options->n_rules, one)
    if (!gate_rule_parse(one->kind, one->text, &rule))
      VECTOR_PUSH(&gate->rules, rule);
  if (options->expectations && gate_read_file(gate, options->expectations, why, sizeof(why)) < 0)
    return fail("%s", why);
  bool wanted = options->n_rules || options->expectations || options->junit || options->github;
  if (wanted && !gate_checks_something(gate))
    return fail("the gate has nothing to check: give --fail-on or --expect, or --expectations with "
                "a file that has such lines");
  return STATUS_OK;
}

static int write_report(const struct options *options, struct gate *gate,
                        const struct results *results) {
  struct report_view view = {.steps_requested = options->steps != NULL,
                             .limit_bytes = options->limit,
                             SAME(options, ranks, groups, stacks, threads, top, output)};
  char missing[96];
  if (results->check.flight &&
      selection_find_missing(&view, results->check.flight, missing, sizeof(missing)))
    return fail("%s is not in the input: use ranks and groups that the report without --ranks and "
                "--groups lists",
                missing);
  SCOPED char *place = options->open && !options->output ? create_temporary_file() : NULL;
  const char *path = place ? place : options->output;
  if (options->open && !path)
    return STATUS_BAD;
  int status = write_tables(options, results, &view);
  if (status == STATUS_OK)
    status = write_to(options, results, &view, path);
  if (status == STATUS_OK && options->open)
    status = open_report(options, path);
  if (place && (status != STATUS_OK || options->backend->opens == OPENS_PERFETTO))
    unlink(place); /* a page is read for as long as it is looked at */
  return status == STATUS_OK ? judge_by_gate(options, gate, results) : status;
}

/* Figures for the whole run would not be what --steps asked for. */
static bool selects_nothing(const struct options *options, const struct model *model) {
  return options->steps && model->timelines && model->steps.n == 0;
}

/* One input, or one attempt of it, read and analysed. */
struct analysed_input {
  struct model *model;
  struct results *results;
  struct kernel_names *own_names; /* that it rests on; NULL where others use them too */
};

static void free_reading(struct analysed_input *reading) {
  results_free(reading->results);
  model_free(reading->model);
  kernel_names_free(reading->own_names);
}

/* 0, or negative errno with a line in `why`. */
static int read_and_analyse(const struct options *options, const char *const *paths, u32 n_paths,
                            u32 attempt, struct kernel_names *names, struct progress *progress,
                            struct analysed_input *reading, char *why, size_t why_bytes) {
  const struct model_options wanted = {
      .attempt = attempt,
      .kernel_names = names,
      .progress = progress_report,
      .user = progress,
      SAME(options, run, steps, include_warmup, timed_steps, quick, threads)};
  int error = import_load(paths, n_paths, &wanted, &reading->model, why, why_bytes);
  if (error)
    return error;
  if (selects_nothing(options, reading->model)) {
    snprintf(why, why_bytes,
             "--steps %s selects no step of this run; steps are counted from 0, and the report "
             "without --steps says how many there are",
             options->steps);
    return -EINVAL;
  }
  const struct analyse_options analysing = {
      .kernel_names = names,
      .gpu_bytes = options->gpu_gib * GIB,
      .progress = progress_report,
      .user = progress,
      SAME(options, flops_per_step, params, tokens_per_step, peak_tflops, top, threads)};
  reading->results = analyse(reading->model, &analysing);
  return 0;
}

/* Ranks of other runs' folders belong to a start, too, once its communicators are known. */
static void count_ranks(const struct model *model, struct attempt_result *out) {
  if (model->n_ranks <= out->ranks)
    return;
  out->ranks = model->n_ranks;
  out->hosts = model->n_hosts;
}

/* What another start of the same job came to. One that cannot be read only has its numbers. */
static void describe_attempt(const struct options *options, struct kernel_names *names,
                             struct progress *progress, const struct results *results,
                             struct attempt_result *out) {
  char why[512];
  struct analysed_input other = {NULL, NULL};
  const struct results *its = results;
  bool own = out->attempt == results->model->attempt;
  if (!own && read_and_analyse(options, options->paths, options->n_paths, (u32)out->attempt, names,
                               progress, &other, why, sizeof(why)) == 0)
    its = other.results;
  if (own || its != results) {
    count_ranks(its->model, out);
    out->how = its->run_end.how;
    out->summary =
        its->run_end.summary ? arena_text(results->internal, its->run_end.summary) : NULL;
  }
  free_reading(&other);
}

/* Of many attempts, as of a job that fails again and again, the last ones. */
static void describe_attempts(const struct options *options, struct kernel_names *names,
                              struct progress *progress, struct results *results) {
  const struct model *model = results->model;
  if (!model->attempts)
    return;
  results->attempts = arena_array(results->internal, model->n_attempts, sizeof(*results->attempts));
  results->n_attempts = model->n_attempts;
  for (u32 i = 0; i < model->n_attempts; i++) {
    const struct attempt *attempt = &model->attempts[i];
    results->attempts[i] =
        (struct attempt_result){.attempt = i + 1,
                                .ranks = attempt->processes,
                                .hosts = attempt->hosts,
                                .world_size = attempt->world_size ? attempt->world_size : NAN};
    if (model->n_attempts - i <= MOST_ATTEMPTS_READ)
      describe_attempt(options, names, progress, results, &results->attempts[i]);
  }
}

static bool is_same_run(const struct options *options, const struct analysed_input *runs, u32 i,
                        u32 k) {
  struct stat one, other;
  if (stat(options->paths[i], &one) == 0 && stat(options->paths[k], &other) == 0 &&
      one.st_dev == other.st_dev && one.st_ino == other.st_ino)
    return true;
  const struct model *a = runs[i].model, *b = runs[k].model;
  return same_text(a->run, b->run) && a->began_realtime_ns != 0 &&
         a->began_realtime_ns == b->began_realtime_ns;
}

/* A run that counted twice would be a run without noise. Two runs may be one: that shows no change.
 */
static int refuse_repeated(const struct options *options, const struct analysed_input *runs,
                           char *why, size_t why_bytes) {
  for (u32 i = 0; options->n_paths > 2 && i < options->n_paths; i++)
    for (u32 k = 0; k < i; k++)
      if (is_same_run(options, runs, i, k)) {
        snprintf(why, why_bytes, "%s and %s are the same run, and a run counts once",
                 options->paths[k], options->paths[i]);
        return -EINVAL;
      }
  return 0;
}

/* Every run of both sides, each read and analysed by itself: `runs` holds those before, then those
 * after. *shown becomes what the report is of. */
static int read_and_compare(const struct options *options, struct kernel_names *names,
                            struct progress *progress, struct analysed_input *runs,
                            struct results **all, struct results **shown, char *why,
                            size_t why_bytes) {
  for (u32 i = 0; i < options->n_paths; i++) {
    int error = read_and_analyse(options, options->paths + i, 1, 0, names, progress, &runs[i], why,
                                 why_bytes);
    if (error)
      return error;
    all[i] = runs[i].results;
  }
  int error = refuse_repeated(options, runs, why, why_bytes);
  if (error)
    return error;
  u32 n = options->n_before;
  const struct diff_side before = {all, options->paths, n};
  const struct diff_side after = {all + n, options->paths + n, options->n_paths - n};
  diff_sides(&before, &after, shown);
  return 0;
}

/* What a report that is written was made of. The process ends with it: the kernel takes a gigabyte
 * back faster than it can be freed piece by piece. */
static struct analysed_input *read_runs;

static int report(const struct options *options, struct gate *gate) {
  char why[512] = "";
  u32 n_runs = options->diff ? options->n_paths : 1;
  struct kernel_names *names = kernel_names_new(options->kernel_categories, why, sizeof(why));
  if (!names)
    return fail("%s", why);
  struct analysed_input *runs = read_runs = memory_zeroed(n_runs, sizeof(*runs));
  SCOPED struct results **all = memory_zeroed(n_runs, sizeof(struct results *));
  struct results *shown = NULL;
  struct progress progress = progress_begin(stderr);
  int error = 0;
  if (options->diff)
    error = read_and_compare(options, names, &progress, runs, all, &shown, why, sizeof(why));
  else
    error = read_and_analyse(options, options->paths, options->n_paths, options->attempt, names,
                             &progress, runs, why, sizeof(why));
  if (!error && !options->diff)
    describe_attempts(options, names, &progress, runs->results);
  progress_end(&progress);
  if (!error && !options->diff)
    import_tell_times_kept(runs->model, options->timed_steps, "tscope-report");
  int status = error ? fail("%s", why) : write_report(options, gate, shown ? shown : runs->results);
  if (error) {
    FOR_EACH_CHANGED(runs, n_runs, run)
      free_reading(run);
    kernel_names_free(names);
  }
  return status;
}

/* One run of a directory, read and analysed; 0, or negative errno with a line in `why`. */
static int read_one_run(const struct options *options, const char *run,
                        struct analysed_input *reading, char *why, size_t why_bytes) {
  struct options one = *options;
  struct progress progress = progress_begin(stderr);
  one.run = run;
  reading->own_names = kernel_names_new(options->kernel_categories, why, why_bytes);
  int error = reading->own_names
                  ? read_and_analyse(&one, one.paths, one.n_paths, 0, reading->own_names, &progress,
                                     reading, why, why_bytes)
                  : -EINVAL;
  progress_end(&progress);
  return error;
}

/* "warning: DIST.STRAGGLER Rank 2 ...": what the report on a run says first. */
static const char *worst_finding(const struct options *options, const char *run,
                                 struct arena *arena) {
  struct analysed_input reading = {0};
  char why[512] = "";
  int error = read_one_run(options, run, &reading, why, sizeof(why));
  const struct results *r = reading.results;
  const struct finding *worst =
      error ? NULL : LARGEST(r->findings, r->n_findings, one, true, one->severity);
  const char *text =
      error   ? arena_text(arena, why)
      : worst ? arena_printf(arena, "%s: %s", severity_words[worst->severity], worst->title)
              : report_verdict_words[reading.results->verdict];
  free_reading(&reading);
  return text;
}

static json_t *document_of_run(const struct options *options, const char *run, char *why,
                               size_t why_bytes) {
  struct analysed_input reading = {0};
  int error = read_one_run(options, run, &reading, why, why_bytes);
  json_t *document = error ? NULL : json_report_document(reading.results);
  free_reading(&reading);
  return document;
}

/* `tscope list`, `tscope prune` and `tscope hosts`: what is about many runs. */
static int look_at_runs(const struct options *options) {
  char why[512] = "";
  int error = options->hosts   ? compare_hosts(options, document_of_run, why, sizeof(why))
              : options->prune ? prune_runs(options, why, sizeof(why))
                               : list_runs(options, worst_finding, why, sizeof(why));
  if (error < 0)
    return fail("%s", why);
  if (fflush(stdout) != 0)
    return fail("the list could not be written: %s", strerror(errno));
  return STATUS_OK;
}

int main(int argc, char **argv) {
  native_places_ready();
  /* Timelines are allocated and freed by the megabyte: returning each to the kernel costs more than
   * decoding it. */
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  /* Characters only: numbers look the same everywhere. */
  setlocale(LC_CTYPE, "");
  struct options options;
  char why[512];
  if (!options_parse(argc, argv, &options, why, sizeof(why)))
    return fail("%s", why);
  if (options.help) {
    options_print_help(stdout);
    return STATUS_OK;
  }
  if (options.version) {
    puts("tscope-report " TSCOPE_VERSION);
    return STATUS_OK;
  }
  if (options.list || options.prune || options.hosts)
    return look_at_runs(&options);
  struct gate gate = {0};
  int status = read_gate(&options, &gate);
  if (status == STATUS_OK)
    status = report(&options, &gate);
  gate_free(&gate);
  return status;
}
