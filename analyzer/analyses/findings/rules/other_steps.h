/* SPDX-License-Identifier: MIT
 *
 * What findings about steps that differ from the others have in common.
 */
#pragma once

#include "analyses/findings/findings.h"
#include "analyses/lines/lines.h"

/* find_other_work.c: of steps that contain something other than training. */
void add_other_work_findings(struct findings *f);

/* " Rank 0 is then at save.py:12 (write), called at ...: 180 ms in samples, in other steps 0 ms
 * ..." */
const char *describe_step_line(struct findings *f, const struct step_line *at);

/* For a title: where, and on which rank if there are others; nothing where only some of the steps
 * are at that line. */
const char *name_step_line(struct findings *f, const struct step_line *at);

/* What to do where so many ranks have more to compute in such steps than the others. */
const char *compare_work(struct findings *f, u32 n_ranks);
