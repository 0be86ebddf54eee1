/* SPDX-License-Identifier: MIT
 *
 * The patterns that give a kernel's category by its name: those of a user's file, then those of
 * categories.def. The file has a line for each pattern,
 *
 *   CATEGORY: PATTERN
 *
 * where PATTERN is as in categories.def and CATEGORY is one of its names or a new one. Empty lines
 * and lines that begin with '#' say nothing. Matching does not change the patterns, but glibc takes
 * a lock per regex_t, so threads that match at the same time wait for each other.
 */
#ifndef TSCOPE_KERNEL_PATTERNS_H
#define TSCOPE_KERNEL_PATTERNS_H

#include <stddef.h>

#include "kernels/communication.h"

struct kernel_patterns;

/* NULL with a reason and a remedy in `why`. `file` may be NULL. */
struct kernel_patterns *kernel_patterns_new(const char *file, char *why, size_t why_bytes);
void kernel_patterns_free(struct kernel_patterns *patterns);

/* The category of a kernel by its names (kernel_text.h), and what it communicates: both as
 * communication.def and categories.def say, or as the file does. */
unsigned kernel_patterns_match(const struct kernel_patterns *patterns, const char *demangled,
                               const char *stripped, struct communication *communication);

unsigned kernel_patterns_categories(const struct kernel_patterns *patterns);
const char *kernel_patterns_category_name(const struct kernel_patterns *patterns,
                                          unsigned category);

#endif
