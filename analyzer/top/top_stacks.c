/* SPDX-License-Identifier: MIT
 *
 * The stacks of the ranks that stall, as one tree.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked_memory.h"
#include "report/text/stack_lines.h"
#include "top/top_page.h"

enum { LINES_MOST = 2000, DEEPEST = 40 };

static void write_tree(struct live_view *view, struct pen *pen) {
  u32 n = 0;
  struct stack_line *lines = stack_tree_lines(&view->arena, &view->stalls, LINES_MOST + 1, &n);
  for (u32 i = 0; i < n && i < LINES_MOST; i++) {
    unsigned indent = 2 * lines[i].depth;
    put_stack_line(pen, 2 + MIN(indent, DEEPEST), &lines[i]);
    pen_newline(pen);
  }
  if (n > LINES_MOST)
    pen_end_line(pen, STYLE_DIM, "  and more: --format json has them all");
}

static void write_head(const struct live_view *view, struct pen *pen) {
  if (!view->n_stalled) {
    pen_end_line(pen, STYLE_PLAIN, "  No rank has recorded a stall.");
    return;
  }
  pen_end_line(pen, STYLE_BOLD, "  %s %s: their Python stacks",
               plural(view->n_stalled, "rank").text, view->n_stalled == 1 ? "stalls" : "stall");
  if (!view->stalls.n) {
    pen_end_line(pen, STYLE_PLAIN, "  none could be read");
  }
}

/* The text from its line `*first` on, at most `lines`; moves *first so that the last line is not
 * above the foot of the window. Returns how many lines there are. */
static unsigned write_window(const char *text, unsigned lines, unsigned *first, FILE *out) {
  unsigned n = 0, at = 0;
  for (const char *c = text; *c; c++)
    n += *c == '\n';
  unsigned furthest = lines && n > lines ? n - lines : 0;
  *first = MIN(*first, furthest);
  for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1, at++)
    if (at >= *first && (!lines || at < *first + lines))
      fwrite(line, 1, (size_t)(end - line) + 1, out);
  return n;
}

void top_stacks(struct top_page *page, struct live_view *view, struct pen *pen, unsigned lines) {
  SCOPED char *text = NULL;
  size_t bytes = 0;
  FILE *out = memory_stream(&text, &bytes);
  struct pen own = pen_begin(&page->display, out);
  write_head(view, &own);
  write_tree(view, &own);
  memory_stream_close(out);
  unsigned window = page->watched && lines > 1 ? lines - 1 : lines;
  unsigned n = write_window(text, window, &page->first_line, pen->out);
  if (page->watched && lines > 1) {
    pen_end_line(pen, STYLE_DIM, "  line %u of %u  up down PageUp PageDown  t goes back",
                 n ? page->first_line + 1 : 0, n);
  }
}
