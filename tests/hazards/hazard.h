/* SPDX-License-Identifier: MIT
 *
 * What the files of the program hazard share.
 */
#ifndef TSCOPE_HAZARD_H
#define TSCOPE_HAZARD_H

/* Ends the program with what went wrong. */
void fail(const char *what);

/* Launches so many kernels. */
void launch(unsigned long count);

/* hazard_signals.c */
void signals_kept(char **arguments);
void signal_pending(char **arguments);
void bus_error_sent(char **arguments);

/* hazard_memory.c */
void lock_memory(char **arguments);
void lock_idle(char **arguments);
void end_with_a_look(char **arguments);
void core_dump(char **arguments);

/* hazard_coroutines.c */
void run_coroutine(char **arguments);

/* hazard_namespaces.c */
void unshare_user(char **arguments);
void unshare_processes(char **arguments);
void join_namespaces(char **arguments);

/* hazard_places.c */
void change_root(char **arguments);
void change_user(char **arguments);
void mask_all(char **arguments);

#endif
