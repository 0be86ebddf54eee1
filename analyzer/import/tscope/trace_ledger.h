/* SPDX-License-Identifier: MIT
 *
 * The ledger of a run that libtscope.so recorded and that did not end in order, or in which ranks
 * called different things: what each rank's last calls were, and how far they got.
 */
#ifndef TSCOPE_TRACE_LEDGER_H
#define TSCOPE_TRACE_LEDGER_H

#include "base/arena.h"
#include "model/ledger.h"

/* Makes the ledger in `arena`; *ledger is NULL where there is nothing to ask: another kind of
 * input, or a run that ended in order and agrees. Calls count as pending only when one of them has
 * been for longer than the run has ever waited: a run that is looked at while it goes on has calls
 * in flight. 0, or -ENOMEM. */
int trace_ledger_make(const struct model *model, struct arena *arena, struct ledger **ledger);

#endif
