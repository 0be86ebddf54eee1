/* SPDX-License-Identifier: MIT
 *
 * Records that could not be kept, counted by reason in the trace's header; see tscope_count_lost().
 */
#ifndef TSCOPE_LOSSES_H
#define TSCOPE_LOSSES_H

#include "record/hook.h"

/* Moves the losses from before there was a trace into the trace. */
void tscope_count_lost_early(void);

#endif
