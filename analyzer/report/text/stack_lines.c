/* SPDX-License-Identifier: MIT */
#include "report/text/stack_lines.h"

void put_stack_line(struct pen *pen, unsigned indent, const struct stack_line *line) {
  pen_to(pen, indent);
  pen_format(pen, STYLE_BOLD, "%s %s", line->n_ranks == 1 ? "rank" : "ranks", line->ranks);
  pen_put(pen, STYLE_PLAIN, "  ");
  pen_hang(pen, indent + 2);
  pen_words(pen, STYLE_PLAIN, line->text);
}
