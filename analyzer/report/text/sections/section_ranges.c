/* SPDX-License-Identifier: MIT
 *
 * What the program itself calls its parts, from its NVTX ranges.
 */
#include "report/text/section.h"
#include "report/text/table.h"

enum { RANGES_SHOWN = 10 };

void body_ranges(struct pen *pen, const struct results *results) {
  static const struct column columns[] = {
      {"range", COLUMN_TEXT, offsetof(struct named_range_result, name), 0, 24},
      {"of", COLUMN_TEXT, offsetof(struct named_range_result, domain), 3, 10},
      {"count", COLUMN_COUNT, offsetof(struct named_range_result, count), 1, 0},
      {"mean", COLUMN_DURATION, offsetof(struct named_range_result, mean_ms), 0, 0},
      {"longest", COLUMN_DURATION, offsetof(struct named_range_result, max_ms), 2, 0},
      {"time", COLUMN_MS, offsetof(struct named_range_result, sum_ms), 0, 0},
      {"share", COLUMN_SHARE, offsetof(struct named_range_result, share), 0, 0},
  };
  u32 n = results->n_named_ranges, shown = section_rows(pen, n, RANGES_SHOWN);
  table_print(pen, &TABLE(struct named_range_result, columns), results->named_ranges, shown);
  pen_line(pen, TEXT_INDENT);
  put_basis(pen, SECTION_ranges, results);
  section_in_all(pen, 0, shown, n, n, "range");
}
