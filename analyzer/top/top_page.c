/* SPDX-License-Identifier: MIT */
#include "top/top_page.h"

#include <stdlib.h>

#include "base/checked_memory.h"

enum { MOST_ALERTS = 6 };

static void put_help(struct pen *pen) {
  static const char *const lines[] = {
      "q        quit",
      "space    freeze the page, or go on; the job is not affected",
      "s        sort by the next key: rank, trouble, late, step, gpu, memory, quiet",
      "up down  mark a rank; PageUp PageDown by the page, Home End to the ends",
      "Enter    only the marked rank, or back",
      "t        the stacks of ranks that stall, or back; up down PageUp PageDown move there",
      "?        this page, or back",
      "",
      "doing      its phase, the rank it waits for, or that it is silent, stopped or gone;",
      "           quiet: alive, but it recorded nothing of the job",
      "late       time behind the median rank at the collective of a step where it is latest;",
      "           by GPU times, or by the calls of the host if those are not known",
      "GPU        share of time in which kernels ran that do not communicate",
      "step       ~: counted by the period of collectives, since tscope found that period",
      "-          not known",
  };
  FOR_EACH(lines, LENGTH_OF(lines), line) {
    pen_end_line(pen, STYLE_PLAIN, "%s", *line);
  }
}

static unsigned alerts_at_most(const struct top_page *page) {
  if (page->height == 0)
    return MOST_ALERTS;
  return page->height < 14 ? 1 : page->height < 24 ? 3 : MOST_ALERTS;
}

/* What is above the table, and how many lines that takes: long texts are broken. */
static unsigned write_head(const struct top_page *page, struct live_view *view, FILE *out) {
  SCOPED char *text = NULL;
  size_t bytes = 0;
  FILE *head = memory_stream(&text, &bytes);
  struct pen pen = pen_begin(&page->display, head);
  top_head(page, view, &pen);
  top_alerts(view, &pen, alerts_at_most(page));
  memory_stream_close(head);
  unsigned lines = NUMBER_OF(text, bytes, one, *one == '\n');
  fwrite(text, 1, bytes, out);
  return lines;
}

void top_page_write(struct top_page *page, struct live_view *view, FILE *out) {
  struct pen pen = pen_begin(&page->display, out);
  if (page->waiting) {
    pen_end_line(&pen, STYLE_BOLD, "tscope top");
    pen_words(&pen, STYLE_PLAIN, page->waiting);
    pen_newline(&pen);
    return;
  }
  if (page->keys) {
    put_help(&pen);
    return;
  }
  unsigned used = write_head(page, view, out);
  unsigned left = page->height > used + 2 ? page->height - used - 1 : 3;
  if (page->stacks) {
    top_stacks(page, view, &pen, page->height ? left : 0);
    return;
  }
  if (page->one) {
    top_one(page, view, &pen);
    return;
  }
  top_ranks(page, view, &pen, page->height ? left : 0);
  if (page->watched && page->height > used + 4) {
    pen_put(&pen, STYLE_DIM, "  q quit  space freeze  s sort  Enter one rank  ? help");
    pen_put(&pen, STYLE_DIM, view->n_stalled ? "  t " : "");
    pen_end_line(&pen, STYLE_WARNING, "%s", view->n_stalled ? "stacks" : "");
  }
  if (!page->height && view->n_stalled)
    top_stacks(page, view, &pen, 0);
}
