/* SPDX-License-Identifier: MIT
 *
 * The flight record as flat tables, for other programs: groups, memberships, collectives, calls.
 */
#ifndef TSCOPE_EXPORT_TABLES_H
#define TSCOPE_EXPORT_TABLES_H

#include "report/report.h"

/* Writes groups.csv, memberships.csv, collectives.csv, calls.csv and, with all of them,
 * tables.json into `folder`, which is made if need be. Only what `view` selects. 0, or negative
 * errno: -ENODATA where the input has none. */
int export_tables(const struct results *results, const struct report_view *view,
                  const char *folder);

#endif
