/* SPDX-License-Identifier: MIT
 *
 * Lines of a tree of stacks as text.
 */
#pragma once

#include "analyses/stalls/stack_tree.h"
#include "report/text/pen.h"

/* "ranks 0-3  train.py:12 main > ...", broken at spaces, from column `indent` on. */
void put_stack_line(struct pen *pen, unsigned indent, const struct stack_line *line);
