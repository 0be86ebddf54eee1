/* SPDX-License-Identifier: MIT
 *
 * The job's last CUDA error must not be ours. A runtime function that may fail is called only when
 * no error is pending, and what it leaves behind is cleared:
 *
 *   if (last_error_is_clear()) { ...; last_error_clear(); }
 */
#pragma once

#include <stdbool.h>

/* False also if the runtime cannot be queried. */
bool last_error_is_clear(void);
void last_error_clear(void);
