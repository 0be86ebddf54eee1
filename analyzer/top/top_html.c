/* SPDX-License-Identifier: MIT */
#include "top/top_outputs.h"

#include <math.h>

#include "base/checked_memory.h"
#include "base/now.h"
#include "report/text/meter.h"
#include "top/top_options.h"

enum { COLUMNS_OF_TEXT = 160, MOST_ALERTS = 50, MOST_ROWS = 2000, SVG_HEIGHT = 60 };

#define HIGH 1.5 /* times the usual: a step that is shown in another colour */

static struct pen begin_text(FILE *out) {
  struct report_view display = {
      .width = COLUMNS_OF_TEXT, .utf8 = true, .color = true, .html = true};
  return pen_begin(&display, out);
}

/* Escaped, in one line. */
static void put_escaped(FILE *out, const char *text) {
  struct report_view display = {.width = COLUMNS_OF_TEXT, .utf8 = true, .html = true};
  struct pen pen = pen_begin(&display, out);
  pen_put(&pen, STYLE_PLAIN, text);
}

static void put_steps(const struct live_view *view, FILE *out) {
  const struct live_steps *steps = view->reference ? &view->reference->steps : NULL;
  if (!steps || !steps->n)
    return;
  double usual = view->step_s, longest = range_of(steps->lengths, 0, steps->n).most;
  fprintf(out,
          "<section><h2>Steps</h2>\n<svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" "
          "role=\"img\" aria-label=\"length of the last %s\">",
          10 * LIVE_STEP_ENDS, SVG_HEIGHT, plural(steps->n, "step").text);
  for (u32 i = 0; i < steps->n && usual > 0; i++) {
    double high = fmin(1, steps->lengths[i] / (SPARK_HEIGHT * usual)) * SVG_HEIGHT;
    fprintf(out, "<rect%s x=\"%u\" y=\"%.1f\" width=\"8\" height=\"%.1f\"></rect>",
            steps->lengths[i] > HIGH * usual ? " class=\"high\"" : "", 10 * i, SVG_HEIGHT - high,
            high);
  }
  fprintf(out, "</svg>\n<p class=\"small\">the last %s: usually %s", plural(steps->n, "step").text,
          duration_s(usual).text);
  fprintf(out, ", the longest %s</p></section>\n", duration_s(longest).text);
}

static void put_alerts(struct live_view *view, FILE *out) {
  SCOPED char *text = NULL;
  size_t bytes = 0;
  FILE *lines = memory_stream(&text, &bytes);
  struct pen pen = begin_text(lines);
  top_alerts(view, &pen, MOST_ALERTS);
  memory_stream_close(lines);
  if (bytes)
    fprintf(out, "<section><h2>What is wrong</h2>\n<pre>%s</pre></section>\n", text);
}

static void put_cell(const struct live_view *view, const struct live_rank *rank, unsigned column,
                     FILE *out) {
  char room[TOP_CELL_BYTES];
  struct top_cell cell = top_find_cell(view, rank, column, room);
  fprintf(out, "<td%s", top_column_is_number(column) ? " class=\"number\"" : "");
  if (isfinite(cell.value))
    fprintf(out, " data-value=\"%.9g\"", cell.value);
  fputc('>', out);
  struct pen pen = begin_text(out);
  pen_put(&pen, cell.style, cell.text);
  pen_plain(&pen);
  fputs("</td>", out);
}

static void put_ranks(struct live_view *view, enum top_sort sort, FILE *out) {
  u32 rows = MIN(view->n_ranks, MOST_ROWS);
  sort = top_sort_for(view, sort, rows);
  u32 *order = top_order(view, sort);
  fputs("<section><h2>Ranks</h2>\n<table><thead><tr>", out);
  for (unsigned c = 0; c < top_columns(); c++) {
    bool number = top_column_is_number(c);
    fprintf(out, number ? "<th class=\"number\"><button>%s</button></th>" : "<th>%s</th>",
            top_column_heading(c));
  }
  fputs("</tr></thead>\n<tbody>\n", out);
  for (u32 i = 0; i < rows; i++) {
    fputs("<tr>", out);
    for (unsigned c = 0; c < top_columns(); c++)
      put_cell(view, &view->ranks[order[i]], c, out);
    fputs("</tr>\n", out);
  }
  fputs("</tbody></table>\n", out);
  if (rows < view->n_ranks)
    fprintf(out, "<p class=\"small\">the first %u of %u ranks, by %s</p>\n", rows, view->n_ranks,
            top_sort_name(sort));
  fputs("</section>\n", out);
}

static void put_stacks(struct live_view *view, FILE *out) {
  if (!view->n_stalled)
    return;
  struct top_page page = {
      .display = {.width = TOP_MAX_WIDTH, .utf8 = true, .color = true, .html = true}};
  struct pen pen = pen_begin(&page.display, out);
  fputs("<section><h2>Where it stalls</h2>\n<pre class=\"tree\">", out);
  top_stacks(&page, view, &pen, 0);
  fputs("</pre></section>\n", out);
}

static void put_head(struct live_view *view, FILE *out) {
  struct top_page page = {.display = {.width = COLUMNS_OF_TEXT}};
  struct pen pen = begin_text(out);
  fputs("<section><h1>", out);
  put_escaped(out, view->run->name);
  fputs("</h1>\n<pre>", out);
  top_head(&page, view, &pen);
  fputs("</pre></section>\n", out);
}

/* A job that has ended is no longer read, and its page does not become old. */
static bool has_ended(const struct live_view *view) {
  return view && view->n_ranks && !view->n_running && !view->n_trouble;
}

void top_html_write(struct live_view *view, const char *why, enum top_sort sort, double interval_s,
                    FILE *out) {
  i64 now_ns = clock_ns(CLOCK_REALTIME);
  fputs(live_page_before_data, out);
  fprintf(out, "<noscript><meta http-equiv=\"refresh\" content=\"%.0f\"></noscript>\n<title>",
          fmax(1, interval_s));
  if (view && view->reference) {
    char room[TOP_CELL_BYTES];
    fprintf(out, "step %s · ", top_step_text(&view->reference->steps, room));
  }
  put_escaped(out, view ? view->run->name : "waiting");
  fprintf(
      out,
      " · tscope top</title>\n</head>\n<body data-interval=\"%.3g\" data-written=\"%lld.%09ld\" "
      "data-over=\"%s\">\n<p id=\"old\" role=\"status\" hidden></p>\n<main>\n",
      interval_s, (long long)(now_ns / 1000000000), (long)(now_ns % 1000000000),
      has_ended(view) ? "yes" : "no");
  if (view) {
    put_head(view, out);
    put_alerts(view, out);
    put_steps(view, out);
    put_ranks(view, sort, out);
    put_stacks(view, out);
  } else {
    fputs("<section><h1>tscope top</h1>\n<p>", out);
    put_escaped(out, why);
    fputs("</p></section>\n", out);
  }
  fputs("</main>\n", out);
  fputs(live_page_after_data, out);
}
