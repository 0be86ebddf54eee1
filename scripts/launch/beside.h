/* SPDX-License-Identifier: MIT
 *
 * The parts of one installation, found from each other: by where the program lies that asks, never
 * by a path fixed when it was built, so that a build folder, a prefix and a wheel work alike.
 */
#ifndef TSCOPE_BESIDE_H
#define TSCOPE_BESIDE_H

#include <limits.h>
#include <stdbool.h>

/* Fills `path` with the program `name` of the same installation; false when there is none. */
bool beside_program(const char *name, char path[PATH_MAX]);

/* Fills `path` with libtscope.so of the same installation; false when there is none. */
bool beside_library(char path[PATH_MAX]);

#endif
