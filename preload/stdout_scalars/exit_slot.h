/* SPDX-License-Identifier: MIT
 *
 * _exit() as Python calls it (os._exit): such an end runs no exit handlers.
 */
#pragma once

/* Follows it from here on, in a process that records. */
void exit_slot_install(void);
