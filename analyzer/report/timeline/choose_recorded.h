/* SPDX-License-Identifier: MIT
 *
 * For choose.c.
 */
#ifndef TSCOPE_CHOOSE_RECORDED_H
#define TSCOPE_CHOOSE_RECORDED_H

#include "report/timeline/shown.h"

/* Sets ranks, begin and end by scope->source; SHOWN_NOTHING where no time is known.
 */
void choose_recorded(struct shown_scope *scope);

#endif
