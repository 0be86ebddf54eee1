/* SPDX-License-Identifier: MIT
 *
 * How much communication was not hidden, and how fast the collectives were.
 */
#include <math.h>

#include "base/texts.h"
#include "report/text/section.h"
#include "report/text/table.h"

enum { COLLECTIVES_SHOWN = 8 };

static void put_parts(struct pen *pen, const struct results *results) {
  bool split = !isnan(results->ov_exposed_wait_ms);
  const double ms[N_PARTS] = {
      [PART_compute] = results->ov_compute_ms,
      [PART_wait] = split ? results->ov_exposed_wait_ms : NAN,
      [PART_transfer] = split ? results->ov_exposed_transfer_ms : NAN,
      [PART_comm] = split ? NAN : results->ov_exposed_ms,
      [PART_copy] = results->ov_exposed_memcpy_ms,
      [PART_idle] = results->ov_idle_ms,
  };
  section_parts(pen, results->whole_run ? "the run" : "a step", ms, results->ov_step_ms);
}

struct op_row {
  struct overlap_by_op of;
  double exposed_share;
};

static void put_by_op(struct pen *pen, const struct results *results) {
  static const struct column columns[] = {
      {"by operation", COLUMN_TEXT, offsetof(struct op_row, of.op), 0, 12},
      {"took", COLUMN_MS, offsetof(struct op_row, of.comm_ms), 0, 0},
      {"exposed", COLUMN_MS, offsetof(struct op_row, of.exposed_ms), 0, 0},
      {"wait", COLUMN_MS, offsetof(struct op_row, of.exposed_wait_ms), 0, 0},
      {"transfer", COLUMN_MS, offsetof(struct op_row, of.exposed_transfer_ms), 0, 0},
      {"exposed share", COLUMN_BAR, offsetof(struct op_row, exposed_share), 1, 8},
  };
  struct op_row *rows = arena_array(&pen->scratch, results->n_by_op, sizeof(*rows));
  for (u32 i = 0; i < results->n_by_op; i++) {
    const struct overlap_by_op *one = &results->by_op[i];
    rows[i] = (struct op_row){*one, one->comm_ms > 0 ? one->exposed_ms / one->comm_ms : NAN};
  }
  table_print(pen, &TABLE(struct op_row, columns, .bars = STYLE_WAIT), rows, results->n_by_op);
  pen_line(pen, TEXT_INDENT);
  put_basis(pen, SECTION_overlap, results);
}

void body_overlap(struct pen *pen, const struct results *results) {
  put_parts(pen, results);
  put_facts(pen, SECTION_overlap, results);
  put_by_op(pen, results);
}

static void put_words(struct pen *pen, const struct collective_result *one, const char *what,
                      const char *first, const char *second) {
  if (first || second)
    pen_item(pen, STYLE_PLAIN, "%s of %s: %s %s%s%s", one->op, byte_size(one->bytes).text, what,
             text_or_empty(first), first && second ? " " : "", text_or_empty(second));
}

/* How many sizes are in a row, NCCL's algorithm and protocol, and what it was asked for. */
static void put_choices(struct pen *pen, const struct collective_result *rows, u32 n) {
  FOR_EACH(rows, n, row) {
    if (row->sizes > 1)
      pen_item(pen, STYLE_PLAIN, "%s of %s on %s: the median of %s sizes", row->op,
               byte_size(row->bytes).text, row->comm, count_of(row->sizes).text);
    put_words(pen, row, "NCCL chose", row->algorithm, row->protocol);
    put_words(pen, row, "the program asked for", row->asked, NULL);
    put_words(pen, row, "the program's tag", row->user_tags, NULL);
  }
}

void body_collectives(struct pen *pen, const struct results *results) {
  static const struct column columns[] = {
      {"operation", COLUMN_TEXT, offsetof(struct collective_result, op), 0, 0},
      {"communicator", COLUMN_TEXT, offsetof(struct collective_result, comm), 1, 22},
      {"count", COLUMN_COUNT, offsetof(struct collective_result, count), 2, 0},
      {"size", COLUMN_BYTES, offsetof(struct collective_result, bytes), 0, 0},
      {"wait", COLUMN_MS, offsetof(struct collective_result, wait_ms), 0, 0},
      {"transfer", COLUMN_MS, offsetof(struct collective_result, transfer_ms), 0, 0},
      {"algbw", COLUMN_BANDWIDTH, offsetof(struct collective_result, algbw_gbps), 3, 0},
      {"busbw", COLUMN_BANDWIDTH, offsetof(struct collective_result, busbw_gbps), 0, 0},
  };
  u32 n = results->n_collectives, shown = section_rows(pen, n, COLLECTIVES_SHOWN);
  table_print(pen, &TABLE(struct collective_result, columns), results->collectives, shown);
  pen_line(pen, TEXT_INDENT);
  put_choices(pen, results->collectives, shown);
  put_basis(pen, SECTION_collectives, results);
  section_in_all(pen, 0, shown, n, n, "kind");
}
