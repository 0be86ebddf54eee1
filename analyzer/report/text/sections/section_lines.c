/* SPDX-License-Identifier: MIT
 *
 * The lines of the program that cost most.
 */
#include <math.h>

#include "report/text/section.h"
#include "report/text/table.h"

enum { LINES_SHOWN = 10 };

/* Of a step, for a line where only host time is known. Beside a GPU such lines are not shown: the
 * column has no room. */
#define LEAST_SHARE 0.01

/* The others only say where memory came from. */
static bool has_cost(const struct line_result *line, double step_ms) {
  double least = step_ms > 0 ? LEAST_SHARE * step_ms : 0;
  return line->wait_ms > 0 || line->idle_ms > 0 || line->input_ms > 0 || line->exposed_ms > 0 ||
         line->gpu_ms > 0 || line->worker_ms > least ||
         (isnan(line->gpu_ms) && line->host_ms > least);
}

void body_lines(struct pen *pen, const struct results *results) {
  const struct lines_result *lines = &results->lines;
  bool operators = lines->of_operators == ANSWER_YES;
  const struct column columns[] = {
      {operators ? "operator or range" : "line", COLUMN_TEXT, offsetof(struct line_result, place),
       0, 24},
      {"in", COLUMN_TEXT, offsetof(struct line_result, function), 4, 12},
      {"waits", COLUMN_DECIMAL, offsetof(struct line_result, waits), 6, 0},
      {"host waits", COLUMN_MS, offsetof(struct line_result, wait_ms), 0, 0},
      {"GPU idle after", COLUMN_MS, offsetof(struct line_result, idle_ms), 2, 0},
      {"input", COLUMN_MS, offsetof(struct line_result, input_ms), 5, 0},
      {"on the host", COLUMN_MS, offsetof(struct line_result, host_ms), 3, 0},
      {"exposed comm", COLUMN_MS, offsetof(struct line_result, exposed_ms), 1, 0},
      {"on the GPU", COLUMN_MS, offsetof(struct line_result, gpu_ms), 0, 0},
      {"of it backward", COLUMN_MS, offsetof(struct line_result, backward_gpu_ms), 7, 0},
  };
  u32 shown = 0, most = section_rows(pen, lines->n_at, LINES_SHOWN);
  struct line_result *rows = arena_array(&pen->scratch, most, sizeof(*rows));
  for (u32 i = 0; i < lines->n_at && shown < most; i++)
    if (has_cost(&lines->at[i], results->step_mean_ms))
      rows[shown++] = lines->at[i];
  if (shown == 0) {
    section_line(pen, STYLE_DIM, "no call in the analysed steps came from Python code");
    return;
  }
  table_print(pen, &TABLE(struct line_result, columns), rows, shown);
  pen_line(pen, TEXT_INDENT);
  put_basis(pen, SECTION_lines, results);
  section_in_all(pen, 0, shown,
                 NUMBER_OF(lines->at, lines->n_at, one, has_cost(one, results->step_mean_ms)),
                 lines->known, "line");
}
