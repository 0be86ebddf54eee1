/* SPDX-License-Identifier: MIT
 *
 * Pipeline parallelism: stages, micro-batches, and the bubble compared with the least possible.
 */

#include "report/text/section.h"
#include "report/text/table.h"

struct stage_row {
  double stage, ranks, work_ms, bubble_ms, share;
};

static void put_stages(struct pen *pen, const struct results *results) {
  static const struct column columns[] = {
      {"stage", COLUMN_COUNT, offsetof(struct stage_row, stage), 0, 0},
      {"ranks", COLUMN_COUNT, offsetof(struct stage_row, ranks), 2, 0},
      {"work", COLUMN_MS, offsetof(struct stage_row, work_ms), 0, 0},
      {"bubble", COLUMN_MS, offsetof(struct stage_row, bubble_ms), 0, 0},
      {"share", COLUMN_SHARE, offsetof(struct stage_row, share), 0, 0},
      {"", COLUMN_BAR, offsetof(struct stage_row, share), 1, 8},
  };
  struct stage_row *rows = arena_array(&pen->scratch, results->n_pipeline_stage, sizeof(*rows));
  for (u32 i = 0; i < results->n_pipeline_stage; i++) {
    const struct pipeline_stage *stage = &results->pipeline_stage[i];
    rows[i] = (struct stage_row){i, stage->n_ranks, stage->work_ms, stage->bubble_ms,
                                 stage->bubble_ms / (stage->bubble_ms + stage->work_ms)};
  }
  table_print(pen, &TABLE(struct stage_row, columns, .bars = STYLE_NOTE), rows,
              results->n_pipeline_stage);
}

void body_pipeline(struct pen *pen, const struct results *results) {
  put_facts(pen, SECTION_pipeline, results);
  pen_newline(pen);
  put_stages(pen, results);
}
