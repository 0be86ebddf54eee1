/* SPDX-License-Identifier: MIT
 *
 * What a gate says: lines on standard error, GitHub's annotations, JUnit's XML, and a first file of
 * expectations.
 */
#include <string.h>

#include "base/output_file.h"
#include "base/printable.h"
#include "report/gate/gate.h"
#include "report/json/json_fields.h"

static const char program[] = "tscope-report";

/* GitHub's form of a value: %25 and so on; `property`: also what ends one. */
static void put_github(FILE *out, const char *text, bool property) {
  for (; *text; text++)
    if (*text == '%' || *text == '\n' || *text == '\r' || (property && strchr(":,", *text)))
      fprintf(out, "%%%02X", (unsigned char)*text);
    else
      fputc(*text, out);
}

static void print_annotation(struct gate *gate, const struct gate_check *check) {
  fputs("::error ", stderr);
  if (check->rule->file) {
    fputs("file=", stderr);
    put_github(stderr, check->rule->file, true);
    fprintf(stderr, ",line=%u,", check->rule->line);
  }
  fprintf(stderr, "title=tscope %s ", gate_kind_words[check->rule->kind]);
  put_github(stderr, check->rule->text, true);
  fputs("::", stderr);
  put_github(stderr, arena_printable(&gate->arena, check->reason), false);
  fputc('\n', stderr);
}

void gate_print(struct gate *gate, bool github) {
  FOR_EACH(gate->checks.at, gate->checks.n, check) {
    print_problem(program, "gate: %s  %s  (%s)", check->passed ? "ok    " : "FAILED", check->reason,
                  gate_rule_place(check->rule));
    if (github && !check->passed)
      print_annotation(gate, check);
  }
  FOR_EACH(gate->ignored.at, gate->ignored.n, one)
    print_problem(program, "gate: ignored %s", *one);
  print_problem(program, "gate: %s, %u of %u checks failed", gate->n_failed ? "FAILED" : "passed",
                gate->n_failed, gate->checks.n);
}

static void put_xml(struct gate *gate, FILE *out, const char *text) {
  for (text = arena_printable(&gate->arena, text); *text; text++)
    if (markup_escape(*text) && *text != '\'')
      fputs(markup_escape(*text), out);
    else
      fputc(*text, out);
}

static void put_case(struct gate *gate, const struct gate_check *check, FILE *out) {
  fprintf(out, "    <testcase classname=\"tscope\" name=\"%s ", gate_kind_words[check->rule->kind]);
  put_xml(gate, out, check->rule->text);
  if (check->rule->file) {
    fputs("\" file=\"", out);
    put_xml(gate, out, check->rule->file);
    fprintf(out, "\" line=\"%u", check->rule->line);
  }
  fputs(check->passed ? "\">\n      <system-out>" : "\">\n      <failure message=\"", out);
  put_xml(gate, out, check->reason);
  fputs(check->passed ? "</system-out>\n    </testcase>\n" : "\"/>\n    </testcase>\n", out);
}

int gate_write_junit(struct gate *gate, const struct results *results, const char *path) {
  struct output_file file;
  int error = output_file_open(&file, path);
  if (error)
    return error;
  fprintf(file.out,
          "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite tests=\"%u\" "
          "failures=\"%u\" errors=\"0\" name=\"tscope ",
          gate->checks.n, gate->n_failed);
  put_xml(gate, file.out, results->model->run ? results->model->run : "run");
  fputs("\">\n", file.out);
  FOR_EACH(gate->checks.at, gate->checks.n, check)
    put_case(gate, check, file.out);
  if (gate->ignored.n)
    fputs("    <system-out>", file.out);
  for (u32 i = 0; i < gate->ignored.n; i++) {
    fputs("ignored ", file.out);
    put_xml(gate, file.out, gate->ignored.at[i]);
    fputc('\n', file.out);
  }
  fputs(gate->ignored.n ? "</system-out>\n" : "", file.out);
  fputs("  </testsuite>\n</testsuites>\n", file.out);
  return output_file_close(&file, 0);
}

/* Figures that a job is held to, and by how much they may be worse in its next run. */
static void put_figures(FILE *out, json_t *document) {
  static const struct {
    const char *path, *comparison;
    double times;
  } figures[] = {{"steps.median_ms", "<=", 1.1},
                 {"overlap.exposed_ms", "<=", 1.25},
                 {"budget.mfu", ">=", 0.9},
                 {"memory.peak_allocated_bytes", "<=", 1.05}};
  for (size_t i = 0; i < LENGTH_OF(figures); i++) {
    double value = json_number_value(json_report_figure(document, figures[i].path));
    if (value > 0)
      fprintf(out, "expect %s %s %.4g    # %.4g in that run\n", figures[i].path,
              figures[i].comparison, value * figures[i].times, value);
  }
}

int gate_write_expectations(const struct results *results, const char *path) {
  struct output_file file;
  SCOPED_ARENA struct arena arena = {0};
  int error = output_file_open(&file, path);
  if (error)
    return error;
  const char *run = results->model->run ? results->model->run : "unnamed";
  fprintf(file.out,
          "# What runs of this job must be like, from run %s. Change it by hand; then:\n"
          "# tscope report --expectations FILE\n\nfail-on warning\n",
          arena_printable(&arena, run));
  for (u32 i = 0; i < results->n_findings; i++) {
    const struct finding *finding = &results->findings[i];
    bool again = ANY(results->findings, i, one, one->id == finding->id);
    if (finding->severity >= SEVERITY_WARNING && !again)
      fprintf(file.out, "ignore %s    # %s: %s\n", finding_id_words[finding->id],
              severity_words[finding->severity], arena_printable(&arena, finding->title));
  }
  json_t *document = json_report_document(results);
  put_figures(file.out, document);
  json_decref(document);
  return output_file_close(&file, 0);
}
