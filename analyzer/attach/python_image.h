/* SPDX-License-Identifier: MIT
 *
 * The CPython in another process: which version, and where its own objects lie.
 */
#pragma once

#include "inspect/python_layout.h"

/* NULL, or why frames cannot be read: "" if the process has no Python. `runtime` is the address of
 * its _PyRuntime. */
const char *python_image_find(pid_t pid, struct python *python, u64 *runtime);
