/* SPDX-License-Identifier: MIT
 *
 * _exit() as Python calls it (os._exit): such an end runs no exit handlers.
 */
#ifndef TSCOPE_EXIT_SLOT_H
#define TSCOPE_EXIT_SLOT_H

/* Follows it from here on, in a process that records. */
void exit_slot_install(void);

#endif
