/* SPDX-License-Identifier: MIT
 *
 * Finds the other parts of an installation from the place of the running program, and never by a
 * path fixed at build time, so that a build folder, a prefix and a wheel all work.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

/* Fills `path` with the program `name` of the same installation; false if there is none. */
bool installed_program(const char *name, char path[PATH_MAX]);

/* Fills `path` with libtscope.so of the same installation; false if there is none. */
bool installed_library(char path[PATH_MAX]);
