/* SPDX-License-Identifier: MIT
 *
 * Device memory: how much, for what, and what prevents its use.
 */
#include <math.h>

#include "analyses/thresholds.h"
#include "report/text/meter.h"
#include "report/text/section.h"
#include "report/text/table.h"

#define MOST_ROWS 8u
enum { STACK_DEPTH = 12 };
#define LEAST_OF_STACK 0.02
#define LEAST_SHARE 0.01 /* rows below are summed up */

/* A size, with its share of another size. */
static void put_share(struct pen *pen, const char *what, double bytes, double whole) {
  bool of_whole = whole > 0;
  if (!isnan(bytes))
    pen_item(pen, STYLE_PLAIN, "%s %s%s%s%s", what, memory_size(bytes).text, of_whole ? " (" : "",
             of_whole ? percent(bytes / whole).text : "", of_whole ? ")" : "");
}

static void put_device(struct pen *pen, const struct memory_result *memory) {
  /* a job on GPUs has tensors on its hosts too; they are not compared with devices */
  u32 devices = NUMBER_OF(memory->devices, memory->n_devices, one,
                          isnan(one->device) == isnan(memory->device));
  section_value(pen, "from", STYLE_PLAIN, "%s", memory->origin);
  if (devices > 1)
    pen_item(pen, STYLE_PLAIN, "the highest peak of %u devices", devices);
  if (!isnan(memory->rank))
    pen_item(pen, STYLE_PLAIN, "rank %.0f", memory->rank);
  if (isnan(memory->device))
    pen_item(pen, STYLE_PLAIN, "CPU");
  else
    pen_item(pen, STYLE_PLAIN, "GPU %.0f", memory->device);
  pen_item(pen, STYLE_PLAIN, "%s", plural(memory->events, "event").text);
  if (memory->lost > 0)
    pen_item(pen, STYLE_WARNING, "%s more are lost", count_of(memory->lost).text);
  for (u32 i = 0; i < memory->n_notes; i++)
    section_value(pen, "", STYLE_DIM, "%s", memory->notes[i]);
}

static void put_peak(struct pen *pen, const struct memory_result *memory) {
  section_value(pen, "peak", STYLE_BOLD, "%s allocated",
                memory_size(memory->peak_allocated_bytes).text);
  pen_item(pen, STYLE_PLAIN, "%s reserved", memory_size(memory->peak_reserved_bytes).text);
  item_if_known(pen, STYLE_PLAIN, "%s into the recording", duration_s(memory->peak_time_s));
  if (!isnan(memory->peak_step))
    pen_item(pen, STYLE_PLAIN, "in step %.0f", memory->peak_step);
  section_value(pen, "at the end", STYLE_PLAIN, "reserved %s",
                memory_size(memory->reserved_bytes).text);
  put_share(pen, "allocated", memory->allocated_bytes, memory->reserved_bytes);
  put_share(pen, "inactive", memory->inactive_bytes, memory->reserved_bytes);
  put_share(pen, "slack", memory->slack_bytes, memory->allocated_bytes);
  if (memory->before_bytes > 0)
    section_value(pen, "before", STYLE_PLAIN, "%s were allocated when recording began",
                  memory_size(memory->before_bytes).text);
}

static void put_headroom(struct pen *pen, const struct memory_result *memory) {
  if (isnan(memory->device) && !(memory->out_of_memory > 0))
    return;
  section_label(pen, "headroom");
  if (memory->out_of_memory > 0) {
    pen_item(pen, STYLE_CRITICAL, "memory ran out %s", plural(memory->out_of_memory, "time").text);
    pen_item(pen, STYLE_PLAIN, "%s were requested", memory_size(memory->oom_requested_bytes).text);
    item_if_known(pen, STYLE_PLAIN, "%s were free on the device",
                  memory_size(memory->oom_free_bytes));
    pen_item(pen, STYLE_PLAIN, "%s reserved but inactive",
             memory_size(memory->oom_inactive_bytes).text);
  }
  if (isnan(memory->capacity_bytes)) {
    pen_item(pen, STYLE_PLAIN,
             "unknown: the input does not say how much memory the device has; give --gpu-gb");
    return;
  }
  double used = memory->peak_reserved_bytes / memory->capacity_bytes;
  if (pen->column > VALUE_INDENT)
    section_label(pen, "");
  meter_bar(pen, used >= OOM_RISK_HIGH ? STYLE_WARNING : STYLE_NOTE, used, 24);
  pen_blank(pen, 2);
  if (memory->headroom_bytes < 0)
    pen_format(pen, STYLE_CRITICAL, "the peak exceeds %s by %s",
               memory_size(memory->capacity_bytes).text, memory_size(-memory->headroom_bytes).text);
  else
    pen_format(pen, STYLE_PLAIN, "%s of %s left at the peak",
               memory_size(memory->headroom_bytes).text, memory_size(memory->capacity_bytes).text);
}

static void put_growth(struct pen *pen, const struct memory_result *memory) {
  section_label(pen, "growth");
  if (isnan(memory->growth_bytes_per_step)) {
    pen_item(pen, STYLE_PLAIN, "unknown: %s",
             memory->growth_reason ? memory->growth_reason : "no steps");
    return;
  }
  pen_item(pen, STYLE_PLAIN, "%s%s a step", memory->growth_bytes_per_step < 0 ? "-" : "",
           memory_size(fabs(memory->growth_bytes_per_step)).text);
  pen_item(pen, STYLE_PLAIN, "over %s", plural(memory->growth_steps, "step").text);
  if (memory->steps_method)
    pen_item(pen, STYLE_DIM, "steps: %s", memory->steps_method);
}

static void put_segments(struct pen *pen, const struct memory_result *memory) {
  const struct memory_segments *segments = &memory->segments;
  if (isnan(segments->count))
    return;
  section_value(pen, "segments", STYLE_PLAIN, "%s", plural(segments->count, "segment").text);
  put_share(pen, "unused", segments->unused_bytes, memory->reserved_bytes);
  put_share(pen, "stranded between blocks", segments->stranded_bytes, memory->reserved_bytes);
  if (segments->gaps > 0)
    pen_item(pen, STYLE_PLAIN, "largest gap %s", memory_size(segments->largest_gap_bytes).text);
  if (segments->pinned_blocks > 0)
    pen_item(pen, STYLE_PLAIN, "%s keep gaps apart",
             plural(segments->pinned_blocks, "small block").text);
}

static void put_uses(struct pen *pen, const struct memory_result *memory) {
  static const struct column columns[] = {
      {"live at the peak", COLUMN_TEXT, offsetof(struct memory_use, category), 0, 0},
      {"size", COLUMN_MEMORY, offsetof(struct memory_use, bytes), 0, 0},
      {"share", COLUMN_SHARE, offsetof(struct memory_use, share), 0, 0},
      {"", COLUMN_BAR, offsetof(struct memory_use, share), 2, 8},
      {"from", COLUMN_TEXT, offsetof(struct memory_use, source), 1, 16},
  };
  u32 n = 0, most = section_rows(pen, memory->n_live_at_peak, MOST_ROWS);
  struct memory_use *rows = arena_array(&pen->scratch, most, sizeof(*rows));
  double rest = 0;
  for (u32 i = 0; i < memory->n_live_at_peak; i++) {
    struct memory_use use = memory->live_at_peak[i];
    use.category = use.category ? use.category : "other";
    if (n == most || (!pen->view->top && use.share < LEAST_SHARE))
      rest += use.bytes;
    else
      rows[n++] = use;
  }
  if (rest > 0)
    rows[n++] = (struct memory_use){
        .category = "the rest", .bytes = rest, .share = rest / memory->peak_allocated_bytes};
  table_print(pen, &TABLE(struct memory_use, columns, .bars = STYLE_COMPUTE), rows, n);
}

/* The stacks of the user's own code with most live memory, callers above what they call. */
static void put_stacks(struct pen *pen, const struct memory_result *memory) {
  static const struct column columns[] = {
      {"by stack, with what it calls", COLUMN_TEXT, offsetof(struct memory_stack, frame), 0, 24},
      {"size", COLUMN_MEMORY, offsetof(struct memory_stack, bytes), 0, 0},
      {"share", COLUMN_SHARE, offsetof(struct memory_stack, share), 0, 0},
  };
  u32 n = 0, most = section_rows(pen, memory->n_stacks_at_peak, MOST_ROWS);
  struct memory_stack *rows = arena_array(&pen->scratch, most, sizeof(*rows));
  u32 own[STACK_DEPTH], n_own = 0; /* rows that are open */
  for (u32 i = 0; i < memory->n_stacks_at_peak && n < most; i++) {
    const struct memory_stack *stack = &memory->stacks_at_peak[i];
    while (n_own && memory->stacks_at_peak[own[n_own - 1]].depth >= stack->depth)
      n_own--;
    if (stack->own != ANSWER_YES || stack->share < LEAST_OF_STACK || n_own == STACK_DEPTH)
      continue;
    rows[n] = *stack;
    rows[n++].frame = arena_printf(&pen->scratch, "%*s%s", (int)(2 * n_own), "", stack->frame);
    own[n_own++] = i;
  }
  if (n > 1) {
    pen_newline(pen);
    table_print(pen, &TABLE(struct memory_stack, columns), rows, n);
  }
}

static void put_churn(struct pen *pen, const struct memory_result *memory) {
  static const struct column columns[] = {
      {"allocated most", COLUMN_TEXT, offsetof(struct memory_churn, category), 0, 0},
      {"times", COLUMN_COUNT, offsetof(struct memory_churn, count), 0, 0},
      {"of", COLUMN_MEMORY, offsetof(struct memory_churn, size_bytes), 0, 0},
      {"in all", COLUMN_MEMORY, offsetof(struct memory_churn, bytes), 0, 0},
      {"from", COLUMN_TEXT, offsetof(struct memory_churn, source), 1, 16},
  };
  u32 n = 0, most = section_rows(pen, memory->n_churn, MOST_ROWS);
  struct memory_churn *rows = arena_array(&pen->scratch, most, sizeof(*rows));
  for (u32 i = 0; i < memory->n_churn && n < most; i++) {
    struct memory_churn churn = memory->churn[i];
    churn.category = churn.category ? churn.category : "other";
    if (churn.count > 1)
      rows[n++] = churn;
  }
  table_print(pen, &TABLE(struct memory_churn, columns), rows, n);
}

void body_memory(struct pen *pen, const struct results *results) {
  const struct memory_result *memory = &results->memory;
  put_device(pen, memory);
  put_peak(pen, memory);
  put_headroom(pen, memory);
  put_growth(pen, memory);
  put_segments(pen, memory);
  pen_newline(pen);
  put_uses(pen, memory);
  put_stacks(pen, memory);
  put_churn(pen, memory);
}
