/* SPDX-License-Identifier: MIT
 *
 * The text report: lines that fit into a window, hostile names, colour, bars.
 */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <cmocka.h>

#include "example_results.h"
#include "report/facts/facts.h"
#include "report/report.h"
#include "report/text/meter.h"
#include "report/text/section.h"
#include "report/text/table.h"

/* A pen that writes into memory. */
struct sheet {
  struct pen pen;
  FILE *out;
  char *text;
  size_t bytes;
};

static void sheet_open(struct sheet *sheet, unsigned width, bool utf8, bool color) {
  sheet->out = open_memstream(&sheet->text, &sheet->bytes);
  const struct report_view view = {.width = width, .utf8 = utf8, .color = color};
  sheet->pen = pen_begin(&view, sheet->out);
}

static void sheet_expect(struct sheet *sheet, const char *text) {
  fclose(sheet->out);
  assert_string_equal(sheet->text, text);
  free(sheet->text);
}

static char *report_of(const char *example, const struct report_view *view) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  struct results *results = example_make(example);
  results->tokens_per_step = 1e6;
  assert_int_equal(report_text.write(results, view, out), 0);
  example_free(results);
  fclose(out);
  return text;
}

/* The columns of the line at `text`, as a terminal counts them; fails on control characters. */
static unsigned columns_of_line(const char *text, size_t bytes) {
  unsigned columns = 0;
  mbstate_t state = {0};
  while (bytes > 0) {
    wchar_t character;
    size_t n = mbrtowc(&character, text, bytes, &state);
    assert_true(n > 0 && n <= bytes); /* valid UTF-8 */
    int width = wcwidth(character);
    assert_true(width >= 0);
    columns += (unsigned)width;
    text += n;
    bytes -= n;
  }
  return columns;
}

static void every_line_fits(void **state) {
  (void)state;
  for (const struct example *example = examples; example->name; example++) {
    for (unsigned width = REPORT_MIN_WIDTH; width <= REPORT_MAX_WIDTH; width++) {
      const struct report_view view = {.width = width, .utf8 = true};
      char *text = report_of(example->name, &view);
      for (const char *line = text; *line;) {
        size_t bytes = strcspn(line, "\n");
        assert_in_range(columns_of_line(line, bytes), 0, width);
        assert_true(bytes == 0 || line[bytes - 1] != ' ');
        line += bytes + 1;
      }
      free(text);
    }
  }
}

/* Removes SGR escape sequences in place. */
static void strip(char *text) {
  char *to = text;
  for (const char *from = text; *from;) {
    if (*from == '\033') {
      from += strcspn(from, "m") + 1;
      continue;
    }
    *to++ = *from++;
  }
  *to = '\0';
}

static void colour_changes_no_character(void **state) {
  (void)state;
  for (const struct example *example = examples; example->name; example++) {
    struct report_view view = {.width = 80, .utf8 = true};
    char *plain = report_of(example->name, &view);
    view.color = true;
    char *coloured = report_of(example->name, &view);
    assert_null(strchr(plain, '\033'));
    assert_non_null(strchr(coloured, '\033'));
    strip(coloured);
    assert_string_equal(coloured, plain);
    free(plain);
    free(coloured);
  }
}

static void ascii_is_ascii(void **state) {
  (void)state;
  for (const struct example *example = examples; example->name; example++) {
    const struct report_view view = {.width = 60};
    char *text = report_of(example->name, &view);
    for (const char *c = text; *c; c++)
      assert_true(*c == '\n' || (*c >= ' ' && *c < 127));
    free(text);
  }
}

/* Steps of training are made as often as the clock shows, not as if nothing else took time. */
static void throughput_has_what_is_besides(void **state) {
  (void)state;
  struct other_work work = {.name = "1 step of evaluation", .sum_s = 20};
  SCOPED_ARENA struct arena arena = {0};
  struct results *results = example_make("healthy");
  results->step_mean_ms = 100;
  results->training_steps = 100;
  for (u32 besides = 0; besides < 2; besides++) {
    results->other_work = &work;
    results->n_other_work = besides;
    results->analysed_s = besides ? 30 : 10;
    const struct facts facts = section_facts(SECTION_steps, results, &arena);
    assert_true(ANY(facts.at, facts.n, one, !strcmp(one->text, "10.0 steps/s")));
    assert_int_equal(ANY(facts.at, facts.n, one, strstr(one->text, "besides 3.33 steps/s")),
                     besides);
  }
  example_free(results);
}

/* --top: as many rows of each list, and how many there are besides. */
static void lists_have_as_many_rows_as_asked_for(void **state) {
  enum { MOST = 30 };
  struct rank_ending endings[MOST];
  struct stalled_rank stalled[MOST];
  struct past_stall past[MOST];
  struct named_range_result ranges[MOST];
  struct line_result lines[MOST];
  char places[MOST][24];
  (void)state;
  struct results *results = example_make("healthy");
  for (u32 i = 0; i < MOST; i++) {
    snprintf(places[i], sizeof(places[i]), "one.py:%u", i + 100);
    endings[i] = (struct rank_ending){.rank = i, .at_s = NAN, .step = NAN, .why = places[i]};
    stalled[i] = (struct stalled_rank){.rank = i, .for_s = NAN, .words = places[i]};
    past[i] = (struct past_stall){.rank = i, .since_s = 1, .for_s = 1, .place = places[i]};
    ranges[i] = (struct named_range_result){.name = places[i], .count = 1, .sum_ms = 1};
    lines[i] = (struct line_result){.place = places[i], .wait_ms = 1, .line = i};
  }
  results->run_end = (struct run_end){.ranks = endings, .n_ranks = MOST};
  results->stalls = (struct stalls_result){
      .ranks = stalled, .n_ranks = MOST, .past = past, .n_past = MOST, .past_known = MOST};
  results->named_ranges = ranges;
  results->n_named_ranges = MOST;
  results->lines = (struct lines_result){.at = lines, .n_at = MOST, .known = MOST};
  void (*const bodies[])(struct pen *, const struct results *) = {body_run_end, body_stalls,
                                                                  body_ranges, body_lines};
  static const u32 lists[] = {1, 2, 1, 1};
  for (u32 i = 0; i < LENGTH_OF(bodies); i++)
    for (u32 top = 2; top < MOST; top += 20) {
      struct sheet sheet;
      const struct report_view view = {.width = 100, .top = top};
      sheet.out = open_memstream(&sheet.text, &sheet.bytes);
      sheet.pen = pen_begin(&view, sheet.out);
      bodies[i](&sheet.pen, results);
      pen_finish(&sheet.pen);
      arena_release(&sheet.pen.scratch);
      fclose(sheet.out);
      u32 rows = 0;
      for (const char *at = sheet.text; (at = strstr(at, "one.py:")); at++)
        rows++;
      if (rows != lists[i] * top)
        fail_msg("%u: %u rows of %u: %s", i, rows, lists[i] * top, sheet.text);
      free(sheet.text);
    }
  example_free(results);
}

static void many_ranks_stay_compact(void **state) {
  (void)state;
  const struct report_view view = {.width = 80, .utf8 = true};
  char *text = report_of("thousand", &view);
  unsigned lines = 0;
  for (const char *c = text; *c; c++)
    lines += *c == '\n';
  assert_in_range(lines, 0, 150);
  assert_non_null(strstr(text, "ranks 2, 402, 802"));
  assert_non_null(strstr(text, "the other 995 ranks"));
  free(text);
}

static void unknown_says_why(void **state) {
  (void)state;
  const struct report_view view = {.width = 160, .utf8 = true};
  char *text = report_of("unknown", &view);
  assert_non_null(strstr(text, "not aligned, refused: ranks 0 and 1 have no collective in common"));
  assert_non_null(strstr(text, "unknown: collectives were called but when they ran was not"));
  assert_non_null(strstr(text, "rank 1: cut at byte 73,216"));
  assert_non_null(strstr(text, "MFU         unknown: no steps were found"));
  assert_null(strstr(text, "nan"));
  free(text);
}

static void names_cannot_control_the_terminal(void **state) {
  struct sheet sheet;
  (void)state;
  sheet_open(&sheet, 80, true, false);
  pen_put(&sheet.pen, STYLE_PLAIN,
          "a\033[2Jb\xff"
          "c\xe2\x80\xae"
          "d\n\xe8\xa8\x93");
  assert_int_equal(sheet.pen.column, 13);
  sheet_expect(&sheet, "a\xef\xbf\xbd[2Jb\xef\xbf\xbd"
                       "c\xef\xbf\xbd"
                       "d \xe8\xa8\x93");
  sheet_open(&sheet, 80, false, false);
  pen_put(&sheet.pen, STYLE_PLAIN,
          "a\033[2Jb\xff"
          "c 1 µs ± 2 → \xe8\xa8\x93");
  sheet_expect(&sheet, "a?[2Jb?c 1 us +/- 2 -> ?");
}

static void words_wrap_and_long_ones_are_cut(void **state) {
  struct sheet sheet;
  (void)state;
  sheet_open(&sheet, 20, true, false);
  pen_to(&sheet.pen, 2);
  pen_hang(&sheet.pen, 4);
  pen_words(&sheet.pen, STYLE_PLAIN, "some  words and an_extraordinarily_long_one end");
  sheet_expect(&sheet, "  some words and\n    an_extraordinari\n    ly_long_one end");
}

static void items_break_between_not_within(void **state) {
  struct sheet sheet;
  (void)state;
  sheet_open(&sheet, 24, true, false);
  pen_line(&sheet.pen, 2);
  pen_item(&sheet.pen, STYLE_PLAIN, "one thing");
  pen_item(&sheet.pen, STYLE_PLAIN, "other");
  pen_item(&sheet.pen, STYLE_PLAIN, "a third one");
  sheet_expect(&sheet, "  one thing · other\n  a third one");
}

static void bars_show_everything_above_zero(void **state) {
  static const struct {
    double fraction;
    const char *utf8, *ascii;
  } cases[] = {
      {0, "········|", "........|"},   {1e-9, "▏·······|", "-.......|"},
      {0.5, "████····|", "####....|"}, {0.5625, "████▌···|", "#####...|"},
      {1, "████████|", "########|"},   {7, "████████|", "########|"},
      {NAN, "        |", "        |"},
  };
  struct sheet sheet;
  (void)state;
  for (size_t i = 0; i < LENGTH_OF(cases); i++) {
    for (int utf8 = 0; utf8 < 2; utf8++) {
      sheet_open(&sheet, 80, utf8, false);
      meter_bar(&sheet.pen, STYLE_PLAIN, cases[i].fraction, 8);
      pen_put(&sheet.pen, STYLE_PLAIN, "|");
      sheet_expect(&sheet, utf8 ? cases[i].utf8 : cases[i].ascii);
    }
  }
}

static void a_stack_fills_its_width(void **state) {
  const struct meter_part parts[] = {
      {"compute", 1, STYLE_PLAIN, "█", "C"},
      {"wait", NAN, STYLE_PLAIN, "▓", "W"},
      {"transfer", 1, STYLE_PLAIN, "▒", "T"},
      {"idle", 1, STYLE_PLAIN, "░", "."},
  };
  struct sheet sheet;
  (void)state;
  sheet_open(&sheet, 80, false, false);
  meter_stack(&sheet.pen, parts, 4, 3, 10);
  sheet_expect(&sheet, "CCCTTTT...");
}

static void sparkline(const double *values, unsigned n, unsigned warmup, unsigned columns,
                      const char *text, unsigned each) {
  struct sheet sheet;
  sheet_open(&sheet, 80, true, false);
  unsigned got = meter_sparkline(&sheet.pen, STYLE_PLAIN, values, n, warmup, columns);
  sheet_expect(&sheet, text);
  assert_int_equal(got, each);
}

static void sparklines_scale_on_steady_steps(void **state) {
  const double ramp[] = {100, 120, 140, 160, 180, 200, 220, 240, 260};
  const double noise[] = {100, 101, 99, 100, 102, 100, 101, 100};
  const double warm[] = {5000, 4000, 100, 100, 200, 100, 100, 100};
  const double gap[] = {100, NAN, 200, 100, 100, 100, 100, 100};
  const double none[] = {NAN, NAN, NAN};
  double spike[100];
  (void)state;
  sparkline(ramp, 9, 0, 9, "▁▂▃▄▅▆▇██", 1);
  sparkline(noise, 8, 0, 8, "▁▁▁▁▂▁▁▁", 1); /* 3 % of noise looks small */
  sparkline(warm, 8, 2, 9, "██│▁▁█▁▁▁", 1); /* warm-up does not change the scale of the rest */
  sparkline(gap, 8, 0, 8, "▁ █▁▁▁▁▁", 1);   /* an unknown step is a gap, not a zero */
  sparkline(none, 3, 0, 8, "", 0);
  for (unsigned i = 0; i < 100; i++)
    spike[i] = i == 57 ? 900 : 100;
  sparkline(spike, 100, 0, 10, "▁▁▁▁▁█▁▁▁▁", 10); /* one slow step stays visible */
}

struct row {
  const char *name;
  double ms, share;
};

static void tables_share_a_unit_and_drop_columns(void **state) {
  static const struct column columns[] = {
      {"name", COLUMN_TEXT, offsetof(struct row, name), 0, 6},
      {"time", COLUMN_MS, offsetof(struct row, ms), 0, 0},
      {"share", COLUMN_SHARE, offsetof(struct row, share), 1, 0},
  };
  const struct table table = TABLE(struct row, columns);
  const struct row rows[] = {{"communication", 120, 0.5}, {"copy", 0.0001, NAN}, {NULL, NAN, 0}};
  struct sheet sheet;
  (void)state;
  sheet_open(&sheet, 62, true, false);
  table_print(&sheet.pen, &table, rows, 3);
  sheet_expect(&sheet, "  name           time ms    share\n"
                       "  communication    120.0     50 %\n"
                       "  copy              <0.1  unknown\n"
                       "                 unknown      0 %\n");
  sheet_open(&sheet, 22, true, false);
  table_print(&sheet.pen, &table, rows, 2);
  sheet_expect(&sheet, "  name         time ms\n"
                       "  communicat…    120.0\n"
                       "  copy            <0.1\n");
}

/* If a probability is shown with "none", the text explains why. */
static void an_unlikely_rank_that_is_no_straggler_is_explained(void **state) {
  (void)state;
  static const struct {
    double p;
    const char *words;
  } cases[] = {{1e-4, "its peers wait for something else"}, {0.5, NULL}};
  for (size_t i = 0; i < LENGTH_OF(cases); i++) {
    struct results *results = example_make("straggler");
    for (u32 r = 0; r < results->n_ranks; r++) {
      results->ranks[r].straggler = false;
      results->ranks[r].p_value = r == 2 ? cases[i].p : 1;
      results->ranks[r].no_straggler = r == 2 ? cases[i].words : NULL;
    }
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    const struct report_view view = {.width = 160};
    assert_int_equal(report_text.write(results, &view, out), 0);
    example_free(results);
    fclose(out);
    assert_int_equal(strstr(text, "rank 2 is slower than its peers by more than chance") != NULL,
                     cases[i].words != NULL);
    if (cases[i].words)
      assert_non_null(strstr(text, cases[i].words));
    free(text);
  }
}

/* A job whose tensors are on a GPU has a few bytes on the CPU, which are not worth a line. */
static void a_few_bytes_on_the_cpu_are_not_shown(void **state) {
  (void)state;
  for (unsigned mib = 0; mib < 2; mib++) {
    struct results *results = example_make("healthy");
    results->memory.reason = NULL;
    results->memory.origin = "tscope's records of tensors";
    results->memory.device = NAN;
    results->memory.peak_allocated_bytes = mib ? 3 << 20 : 1;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    const struct report_view view = {.width = 80};
    assert_int_equal(report_text.write(results, &view, out), 0);
    example_free(results);
    fclose(out);
    assert_int_equal(strstr(text, "tscope's records of tensors") != NULL, mib);
    assert_null(strstr(text, " 1 B "));
    free(text);
  }
}

/* Kernels of one template, whose names differ only near the end or not at all: their rows differ
 * anyway, and --top shows all of them. */
static void no_two_kernels_are_called_alike(void **state) {
  (void)state;
  enum { KERNELS = 30 };
  static char names[KERNELS][256];
  struct kernel_result kernels[KERNELS];
  for (u32 i = 0; i < KERNELS; i++) {
    snprintf(names[i], sizeof(names[i]),
             "void at::native::vectorized_elementwise_kernel_with_a_long_name<4, at::native::"
             "Functor_of_a_name_that_is_long_too_%u>(int)",
             i);
    kernels[i] = (struct kernel_result){.name = names[i],
                                        .shortened = names[i] + 5,
                                        .category = "elementwise",
                                        .count = 100,
                                        .sum_ms = KERNELS - i,
                                        .mean_ms = 0.01,
                                        .max_ms = 0.5,
                                        .share = 0.01};
  }
  for (unsigned width = 80; width <= 160; width += 40)
    for (unsigned top = 0; top <= KERNELS; top += KERNELS) {
      struct results *results = example_make("straggler");
      results->kernels = kernels;
      results->n_kernels = results->kernel_names = KERNELS;
      char *text = NULL, *shown[KERNELS];
      size_t bytes = 0;
      FILE *out = open_memstream(&text, &bytes);
      const struct report_view view = {.width = width, .top = top};
      assert_int_equal(report_text.write(results, &view, out), 0);
      example_free(results);
      fclose(out);
      char *at = strstr(text, "\n  kernel  "), *line = NULL;
      u32 n = 0;
      assert_non_null(at++);
      assert_true(strstr(at, "longest") < strchr(at, '\n') &&
                  strstr(at, "a step") < strchr(at, '\n'));
      strtok_r(at, "\n", &line);
      for (char *row; (row = strtok_r(NULL, "\n", &line)) && !strstr(row, "whole input");) {
        assert_true(n < KERNELS);
        row[2 + (width < 110 ? 24 : width - 86)] = 0; /* the part of its name that fits */
        shown[n++] = row;
      }
      assert_int_equal(n, top ? KERNELS : 6);
      for (u32 i = 0; i < n; i++)
        for (u32 k = i + 1; k < n; k++)
          assert_string_not_equal(shown[i], shown[k]);
      free(text);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_two_kernels_are_called_alike),
      cmocka_unit_test(a_few_bytes_on_the_cpu_are_not_shown),
      cmocka_unit_test(an_unlikely_rank_that_is_no_straggler_is_explained),
      cmocka_unit_test(every_line_fits),
      cmocka_unit_test(colour_changes_no_character),
      cmocka_unit_test(ascii_is_ascii),
      cmocka_unit_test(lists_have_as_many_rows_as_asked_for),
      cmocka_unit_test(many_ranks_stay_compact),
      cmocka_unit_test(unknown_says_why),
      cmocka_unit_test(names_cannot_control_the_terminal),
      cmocka_unit_test(words_wrap_and_long_ones_are_cut),
      cmocka_unit_test(items_break_between_not_within),
      cmocka_unit_test(bars_show_everything_above_zero),
      cmocka_unit_test(a_stack_fills_its_width),
      cmocka_unit_test(throughput_has_what_is_besides),
      cmocka_unit_test(sparklines_scale_on_steady_steps),
      cmocka_unit_test(tables_share_a_unit_and_drop_columns),
  };
  if (!setlocale(LC_CTYPE, "C.UTF-8")) {
    puts("skipped: this system has no C.UTF-8 locale");
    return 77;
  }
  return cmocka_run_group_tests(tests, NULL, NULL);
}
