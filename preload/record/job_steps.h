/* SPDX-License-Identifier: MIT
 *
 * When a step of the job has ended, as far as the process can see it while it runs. Who closes the
 * span of a step or a phase says so here, and families learn of it (families.h).
 */
#pragma once

#include "record/hook.h"

/* What shows steps, the strongest last: once there is one of a kind, weaker kinds no longer count.
 */
enum tscope_step_sign { TSCOPE_STEP_OPTIMIZER, TSCOPE_STEP_RANGE, TSCOPE_STEP_MARK };

/* A range of a step has ended, or a mark begins another step. */
void tscope_step_ended(struct tscope_thread *thread, enum tscope_step_sign sign);

/* The span of a phase (enum tscope_phase) that began at `start`, ticks, has ended. An optimizer's
 * end is that of a step, unless another one has ended within it: a user's range around PyTorch's
 * own. */
void tscope_phase_ended(struct tscope_thread *thread, u32 phase, u64 start);
