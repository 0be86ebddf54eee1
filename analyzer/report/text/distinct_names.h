/* SPDX-License-Identifier: MIT
 *
 * Names of a table's rows that can be told apart, although a column shows only their beginning.
 */
#ifndef TSCOPE_DISTINCT_NAMES_H
#define TSCOPE_DISTINCT_NAMES_H

#include "format/tscope_format.h"
#include "report/text/pen.h"

enum { DISTINCT_NAME_BYTES = 256 };

struct row_name {
  const char *shortened, *whole;
  char text[DISTINCT_NAME_BYTES]; /* set: what to show */
};

/* If another short name begins in the same way, the part in which the two differ comes first; if
 * they are equal, the part in which the whole names do. Rows that still look alike are numbered. */
void make_names_distinct(const struct pen *pen, struct row_name *names, u32 n);

#endif
