/* SPDX-License-Identifier: MIT
 *
 * Small files of text, such as those of /proc and of control groups, and the names in a folder.
 * Safe in signal handlers.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Reads the beginning of a file, at most `bytes` - 1 of it, and ends it with a 0. Returns how many;
 * -1, and an empty text, if the file cannot be read. Does not wait for the writer of a FIFO. */
ssize_t small_file_read(const char *path, char *text, size_t bytes);

/* Field `number` in the text of a /proc/PID/stat, as proc_pid_stat(5) counts them, from the state
 * on, which is the third; NULL if there is none. The name before that may hold anything. */
const char *stat_field(const char *text, int number);

/* The name in it, cut to what fits; it may hold anything, parentheses too. */
void stat_name(const char *text, char *name, size_t bytes);

/* What stands behind "NAME:" in its line of a /proc/PID/status or /proc/cpuinfo, up to the end of
 * the text; NULL if there is none. */
const char *line_value(const char *text, const char *name);

/* Calls `each` with the lines of a file of any size, without their ends, until it returns true:
 * whether it did. `room`, of `bytes`, holds a part of the file; a line of more than half of it is
 * cut or left out. Nothing is allocated. */
bool file_lines_visit(const char *path, char *room, size_t bytes,
                      bool (*each)(const char *line, void *with), void *with);

/* Calls `each` with the names in a folder, but those that begin with a dot, until it returns true:
 * whether it did. `room`, aligned for 8 bytes, holds some of the names. Nothing is allocated. */
bool folder_names_visit(int folder, char *room, size_t bytes,
                        bool (*each)(int folder, const char *name, void *with), void *with);

/* The same of a folder by its path; -1 if it cannot be opened. */
int folder_names_of(const char *path, bool (*each)(int folder, const char *name, void *with),
                    void *with);
