/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/arena.h"

/* The name of a function of C or C++ for people, from its symbol: "c10d::Work::wait", without
 * arguments, and without "@@GLIBC_2.3.2". */
const char *function_name(struct arena *arena, const char *symbol);
