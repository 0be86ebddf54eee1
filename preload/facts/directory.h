/* SPDX-License-Identifier: MIT
 *
 * Opens the run's directory safely, also where other users may write, such as in /tmp.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Opens <directory>/<run>, making what is missing with mode 0700. `directory` is absolute. Folders
 * above `directory` may belong to anyone and be reached by symbolic links; `directory` and the run
 * must be real folders of this user. Those of the two that are made here may be read by their
 * group, if `for_group`. Returns a descriptor, or a negative errno, with a reason for the user in
 * `why`. */
int tscope_directory_open(const char *directory, const char *run, bool for_group, char *why,
                          size_t bytes);
