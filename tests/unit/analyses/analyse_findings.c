/* SPDX-License-Identifier: MIT
 *
 * Findings about the whole run and about the report itself: when each is made, and when not. Also
 * compares docs/findings.md with findings.def.
 */
/* clang-format off */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
/* clang-format on */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/findings/diff_findings.def"
#include "analyses/findings/findings.h"
#include "scenario.h"

static void healthy_run_has_none(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  struct cluster *c = cluster_new(&o);
  struct results *r = cluster_analyse(c, NULL);
  assert_int_equal(r->n_findings, 0);
  cluster_end(r, c);
}

static void expect_one_more_rank(struct cluster *c) {
  c->model.world_size++;
}
static void kill_a_rank(struct cluster *c) {
  c->model.ranks[3].closed = false;
}
static void lose_records(struct cluster *c) {
  c->model.ranks[1].lost[TSCOPE_LOSS_DISK] = 10;
}

static void use_a_newer_nccl(struct cluster *c) {
  c->model.ranks[2].info[TSCOPE_INFO_NCCL] = "3.0.1";
}
static void use_a_newer_cuda(struct cluster *c) {
  c->model.ranks[0].info[TSCOPE_INFO_CUDA_RUNTIME] = "13.6";
}
static void use_libraries_that_are_known(struct cluster *c) {
  c->model.ranks[0].info[TSCOPE_INFO_CUDA_RUNTIME] = "13.5";
  c->model.ranks[2].info[TSCOPE_INFO_NCCL] = "2.32.99";
}

static void partial_data(void **state) {
  (void)state;
  void (*const spoils[])(struct cluster *) = {expect_one_more_rank, kill_a_rank, lose_records,
                                              use_a_newer_nccl, use_a_newer_cuda};
  for (size_t i = 0; i < LENGTH_OF(spoils); i++) {
    struct scenario s = healthy_scenario();
    s.spoil = spoils[i];
    assert_true(fires(&s, "DATA.PARTIAL"));
  }
  struct scenario s = healthy_scenario();
  s.spoil = use_libraries_that_are_known;
  assert_false(fires(&s, "DATA.PARTIAL"));
  s = healthy_scenario();
  s.options.unaligned = true;
  assert_true(fires(&s, "DATA.PARTIAL"));
  s = healthy_scenario();
  s.options.on_gpu = false; /* a CPU job has no GPU times, so none are missing */
  assert_false(fires(&s, "DATA.PARTIAL"));
}

static void missing_times_are_critical(void **state) {
  (void)state;
  struct cluster_options o = healthy_gpu();
  o.no_gpu_times = true;
  struct cluster *c = cluster_new(&o);
  struct results *r = cluster_analyse(c, NULL);
  bool loud = false;
  for (u32 i = 0; i < r->n_findings; i++)
    loud |= r->findings[i].id == FINDING_DATA_PARTIAL &&
            strstr(r->findings[i].title, "MISSING") != NULL &&
            r->findings[i].severity == SEVERITY_CRITICAL;
  assert_true(loud);
  loud = false;
  for (u32 i = 0; i < r->n_coverage; i++)
    loud |= r->coverage[i].note && strstr(r->coverage[i].note, "NOT KNOWN") != NULL;
  assert_true(loud);
  cluster_end(r, c);
}

/* The savings of two findings differ by less than their uncertainty: the first is marked as not
 * stable. */
static void a_close_second_is_noted(void **state) {
  (void)state;
  for (u32 close = 0; close < 2; close++) {
    struct cluster_options o = healthy_gpu();
    o.slow[3] = 0.4;
    o.exposed_memcpy = close ? 110 * MS : 30 * MS;
    struct cluster *c = cluster_new(&o);
    struct results *r = cluster_analyse(c, NULL);
    assert_true(r->n_findings >= 2);
    double ratio = r->findings[1].saving_s / r->findings[0].saving_s;
    assert_int_equal(r->findings[0].close_second != NULL, ratio >= 0.9);
    if (r->findings[0].close_second)
      assert_non_null(strstr(r->findings[0].close_second, finding_id_words[r->findings[1].id]));
    assert_null(r->findings[1].close_second);
    print_message("%s %.2f s, %s %.2f s\n", finding_id_words[r->findings[0].id],
                  r->findings[0].saving_s, finding_id_words[r->findings[1].id],
                  r->findings[1].saving_s);
    cluster_end(r, c);
  }
}

static void set_version(struct cluster *c) {
  for (u32 i = 0; i < c->model.n_ranks; i++)
    c->model.ranks[i].info[TSCOPE_INFO_TORCH] = "2.11.0";
}
static void set_versions(struct cluster *c) {
  set_version(c);
  c->model.ranks[4].info[TSCOPE_INFO_TORCH] = "2.10.1";
}

static void drift(void **state) {
  (void)state;
  struct scenario s = healthy_scenario();
  s.spoil = set_versions;
  assert_true(fires(&s, "REPRO.DRIFT"));
  s.spoil = set_version; /* the same everywhere; the other versions are unknown */
  assert_false(fires(&s, "REPRO.DRIFT"));
}

/* Each id has a section that gives its cause, evidence and fix, in the words of the table. */
static void document_agrees_with_table(void **state) {
  (void)state;
  static const char *const rows[][3] = {
#define F(group, name, rule, sections, traits, cause, fix) {#group "." #name, cause, fix},
      TSCOPE_FINDINGS(F)
#undef F
#define F(group, name, rule, sections, cause, fix) {#group "." #name, cause, fix},
          TSCOPE_DIFF_FINDINGS(F)
#undef F
  };
  const char *path = getenv("FINDINGS_MD");
  assert_non_null(path);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  static char text[1 << 16];
  size_t length = fread(text, 1, sizeof(text) - 1, file);
  fclose(file);
  text[length] = 0;
  for (char *at = text; *at; at++) /* words may be wrapped; headings are between empty lines */
    if (*at == '\n' && at[1] != '\n' && at[1] != '#' && at > text && at[-1] != '\n')
      *at = ' ';
  u32 sections = 0;
  for (const char *at = text; (at = strstr(at, "\n## ")); at++)
    sections++;
  for (size_t i = 0; i < LENGTH_OF(rows); i++) {
    char heading[64];
    snprintf(heading, sizeof(heading), "\n## %s\n", rows[i][0]);
    char *section = strstr(text, heading);
    if (!section)
      fail_msg("docs/findings.md has no section '## %s': write one with **Cause.**, **Evidence.** "
               "and **Fix.**, in the words of findings.def",
               rows[i][0]);
    char *next = strstr(section + 1, "\n## ");
    char end = 0;
    if (next) {
      end = *next;
      *next = 0;
    }
    for (u32 k = 1; k < 3; k++)
      if (!strstr(section, rows[i][k]))
        fail_msg("section %s lacks the table's words: %s", rows[i][0], rows[i][k]);
    static const char *const parts[] = {"**Cause.**", "**Evidence.**", "**Fix.**"};
    for (u32 k = 0; k < LENGTH_OF(parts); k++)
      if (!strstr(section, parts[k]))
        fail_msg("section %s of docs/findings.md has no %s", rows[i][0], parts[k]);
    if (next)
      *next = end;
  }
  if (sections != LENGTH_OF(rows))
    fail_msg("docs/findings.md has %u sections, findings.def and diff_findings.def %zu findings",
             sections, LENGTH_OF(rows));
}

static void ends(struct cluster *c, i32 status_of_2, u32 signal_of_others) {
  i64 over = 0;
  for (u32 i = 0; i < c->model.n_ranks; i++)
    over = MAX(c->model.ranks[i].end, over);
  for (u32 i = 0; i < c->model.n_ranks; i++) {
    struct rank_end *end = &c->model.ranks[i].ending;
    *end = (struct rank_end){.known = true,
                             .alive = over,
                             .end = over,
                             .reaped = NS_UNKNOWN,
                             .exception_at = NS_UNKNOWN,
                             .failed_at = NS_UNKNOWN,
                             .kind = TSCOPE_END_EXIT};
    if (i == 2)
      end->status = status_of_2;
    if (i == 2 || !signal_of_others)
      continue;
    end->kind = TSCOPE_END_UNSEEN;
    end->end = NS_UNKNOWN;
    end->signal = signal_of_others;
    end->reaped = over + 200 * MS;
    end->alive = over + 190 * MS;
  }
}
static void end_early(struct cluster *c) {
  ends(c, 3, 15);
}
static void end_in_order(struct cluster *c) {
  ends(c, 0, 0);
}
static void end_alike(struct cluster *c) {
  ends(c, 0, 0);
  for (u32 i = 0; i < c->model.n_ranks; i++) { /* nobody saw its end: it may still be running */
    c->model.ranks[i].ending.kind = TSCOPE_END_UNSEEN;
    c->model.ranks[i].ending.end = NS_UNKNOWN;
  }
}

static void run_ended_early(void **state) {
  (void)state;
  struct scenario s = healthy_scenario();
  s.spoil = end_early;
  assert_true(fires(&s, "RUN.ENDED_EARLY"));
  s.spoil = end_in_order;
  assert_false(fires(&s, "RUN.ENDED_EARLY"));
  s.spoil = end_alike;
  assert_false(fires(&s, "RUN.ENDED_EARLY"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(healthy_run_has_none),
                                     cmocka_unit_test(partial_data),
                                     cmocka_unit_test(missing_times_are_critical),
                                     cmocka_unit_test(a_close_second_is_noted),
                                     cmocka_unit_test(drift),
                                     cmocka_unit_test(document_agrees_with_table),
                                     cmocka_unit_test(run_ended_early)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
