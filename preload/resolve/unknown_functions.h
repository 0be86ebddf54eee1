/* SPDX-License-Identifier: MIT
 *
 * Functions of loaded libraries that may start work or communicate, and that no list of ours has:
 * they came with a newer version, and calls of them are not recorded. The trace says which
 * (UNKNOWN_FUNCTIONS facts).
 */
#pragma once

#include "record/hook.h"

/* For each tick of the poller: looks at what was loaded since, less and less often. */
void unknown_functions_tick(struct tscope_thread *poller);

/* Looks now, at libraries that were not looked at before. */
void unknown_functions_look(struct tscope_thread *poller);
