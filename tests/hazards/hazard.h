/* SPDX-License-Identifier: MIT
 *
 * What the files of the program hazard share.
 */
#pragma once

/* Ends the program with what went wrong. */
void fail(const char *what);

/* Launches so many kernels. */
void launch(unsigned long count);

/* Says how many launches the runtime has seen. */
void report(void);

/* hazard_ends.c */
void *launch_for_ever(void *unused); /* a thread's function */
void end_exit(char **arguments);
void end_abort(char **arguments);
void end_signal(char **arguments);
void end_busy(char **arguments);
void until_killed(char **arguments);
void first_thread_ends(char **arguments);
void look_at_threads(char **arguments);
void only_thread_ends(char **arguments);
void other_threads_end(char **arguments);
void allocation_is_interrupted(char **arguments);
void calls_are_trapped(char **arguments);
void calls_are_refused(char **arguments);

/* hazard_signals.c */
void signals_kept(char **arguments);
void handlers_that_wait(char **arguments);
void work_on_stack_of_handlers(char **arguments);
void signal_pending(char **arguments);
void bus_error_sent(char **arguments);
void bus_errors_of_children(char **arguments);
void handler_with_little_stack(char **arguments);

/* hazard_memory.c */
void lock_memory(char **arguments);
void lock_idle(char **arguments);
void end_with_a_look(char **arguments);
void core_dump(char **arguments);
void limit_address_space(char **arguments);
void lock_in_child(char **arguments);

/* hazard_waits.c */
void threads_wait(char **arguments);
void threads_asleep(char **arguments);

/* hazard_coroutines.c */
void run_coroutine(char **arguments);

/* hazard_namespaces.c */
void unshare_user(char **arguments);
void unshare_processes(char **arguments);
void join_namespaces(char **arguments);

/* hazard_places.c */
void change_root(char **arguments);
void first_thread_ends_without_proc(char **arguments);
void change_user(char **arguments);
void mask_all(char **arguments);
