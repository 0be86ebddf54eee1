/* SPDX-License-Identifier: MIT
 *
 * Ranks and groups that the command line selected (--ranks 0,4-7, --groups NAME,NAME) for entries
 * and tables.
 */
#pragma once

#include "model/flight_record.h"
#include "report/report.h"

/* Whether a list such as 0,4-7 makes sense. */
bool selection_is_ranks(const char *list);

/* All are, where nothing was selected: NULL. A group goes by its name or by what it is for. */
bool selection_has_rank(const char *ranks, u32 rank);
bool selection_has_group(const struct report_view *view, const struct flight_group *group);

/* What of the selection is in no record: "rank 7" or "group foo", in `text`. False where all is. */
bool selection_find_missing(const struct report_view *view, const struct flight_record *flight,
                            char *text, size_t bytes);
