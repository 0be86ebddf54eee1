/* SPDX-License-Identifier: MIT */
#include "programs/many_runs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/folders.h"
#include "base/output_file.h"
#include "base/printable.h"
#include "base/texts.h"
#include "hosts/host_report.h"
#include "import/tscope/files/trace_dir.h"

/* The largest report that is looked at. */
#define LARGEST_REPORT (256ll << 20)

struct reading_runs {
  struct run_records records;
  json_t *read; /* names of the runs that have a report */
};

static void add_report(struct reading_runs *reading, const json_t *report, const char *path) {
  if (!run_records_add(&reading->records, report, path))
    return;
  const struct run_record *run = &reading->records.runs.at[reading->records.runs.n - 1];
  json_object_set_new(reading->read, run->name, json_true());
}

/* Of a file; other documents are passed over. */
static void read_report(void *reading, const char *path) {
  json_error_t wrong;
  struct stat facts;
  if (stat(path, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size > LARGEST_REPORT)
    return;
  json_t *report = json_load_file(path, 0, &wrong);
  if (!report && !text_ends_with(path, TSCOPE_FILE_SUFFIX))
    print_problem("tscope-report", "%s is left out: %s", path, wrong.text);
  add_report(reading, report, path);
  json_decref(report);
}

static void read_report_in_folder(void *reading, const char *path) {
  if (text_ends_with(path, ".json"))
    read_report(reading, path);
}

/* Runs whose traces are there and that have no report yet. */
static void report_on_runs(struct reading_runs *reading, const struct options *options,
                           run_document *document_of) {
  SCOPED_ARENA struct arena arena = {0};
  struct trace_runs runs = {0};
  char why[512];
  if (trace_runs_find(options->paths, options->n_paths, 0, &arena, &runs, why, sizeof(why)) < 0)
    runs.n_runs = 0;
  FOR_EACH(runs.runs, runs.n_runs, one) {
    const char *run = one->id;
    if (json_object_get(reading->read, run))
      continue;
    json_t *report = document_of(options, run, why, sizeof(why));
    if (!report)
      print_problem("tscope-report", "run %s is left out: %s", run, why);
    add_report(reading, report, run);
    json_decref(report);
  }
}

static int write_metrics(const char *path, const struct host_report *report) {
  struct output_file file;
  int error = output_file_open(&file, path);
  if (error)
    return error;
  host_report_metrics(report, file.out);
  return output_file_close(&file, 0);
}

static int write_report(const struct options *options, const struct host_report *report) {
  const char *format = report_backend_name(options->backend);
  struct output_file file;
  int error = output_file_open(&file, options->output);
  if (error)
    return error;
  if (strcmp(format, "json") == 0)
    error = host_report_json(report, file.out);
  else if (strcmp(format, "sqlite") == 0)
    error =
        output_file_path(&file) ? host_report_sqlite(report, output_file_path(&file)) : -ENODATA;
  else
    host_report_print(report, file.out);
  return output_file_close(&file, error);
}

int compare_hosts(const struct options *options, run_document *document_of, char *why,
                  size_t why_bytes) {
  struct reading_runs reading = {.read = json_object()};
  struct host_report report = {0};
  int error = 0;
  FOR_EACH(options->paths, options->n_paths, path)
    if (folder_visit(*path, FOLDERS_DEEP, read_report_in_folder, &reading) < 0)
      read_report(&reading, *path);
  report_on_runs(&reading, options, document_of);
  if (!reading.records.runs.n) {
    snprintf(why, why_bytes,
             "%s holds no JSON report of tscope and no trace; make reports with "
             "tscope report --format json --output RUN.json",
             options->paths[0]);
    error = -ENOENT;
    goto out;
  }
  run_records_order(&reading.records);
  host_report_make(&reading.records, &report);
  error = write_report(options, &report);
  if (!error && options->prometheus)
    error = write_metrics(options->prometheus, &report);
  if (error)
    snprintf(why, why_bytes, "the hosts could not be written: %s",
             error == -ENODATA ? "--format sqlite wants a file with --output" : strerror(-error));
out:
  host_report_free(&report);
  run_records_free(&reading.records);
  json_decref(reading.read);
  return error;
}
