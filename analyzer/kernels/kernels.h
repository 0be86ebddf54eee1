/* SPDX-License-Identifier: MIT
 *
 * What a kernel is: its name as people read it, and what kind of work it does. The kinds and the
 * patterns for them are in categories.def; users can add to them with a file.
 *
 * A struct kernel_names remembers each distinct name, so asking again costs only a look-up. Several
 * threads may use it at once.
 */
#pragma once

#include <stddef.h>

#include "kernels/categories.def"
#include "kernels/communication.h"

/* A file may add categories: their numbers follow these. */
enum kernel_category {
#define C(ID, name, what) KERNEL_##ID,
  TSCOPE_KERNEL_CATEGORIES(C)
#undef C
      KERNEL_CATEGORIES
};

enum { KERNEL_SHORT = 80 }; /* bytes of a shortened name, at most */

struct kernel {
  const char *raw;       /* as the trace has it */
  const char *demangled; /* whole; raw itself if it is not mangled */
  const char *shortened; /* for people: what distinguishes it from others */
  unsigned category;     /* enum kernel_category, or one that a file added */
  struct communication communication;
  unsigned number; /* from 0, in the order in which names were found */
  u64 hash;        /* of `raw` */
};

struct kernel_names;

/* `file` adds patterns, which come before those of categories.def, NULL for none. A line for each,
 *
 *   CATEGORY: PATTERN
 *
 * where PATTERN is as in categories.def and CATEGORY is one of its names or a new one. Empty lines
 * and lines that begin with '#' say nothing. NULL, with a line that says what to do in `why`, if it
 * cannot be read, or a line of it is bad. */
struct kernel_names *kernel_names_new(const char *file, char *why, size_t why_bytes);
void kernel_names_free(struct kernel_names *names);

/* What is known of a kernel of this name, mangled or not; lives as long as `names`. */
const struct kernel *kernel_lookup(struct kernel_names *names, const char *name);

/* The category alone; KERNEL_OTHER where nothing is known. */
unsigned kernel_category(struct kernel_names *names, const char *name);

/* What a kernel of this name communicates. `names` may be NULL: then as the table says. */
struct communication kernel_communication(struct kernel_names *names, const char *name);

/* How many categories there are, those of the file included, and what a report calls each. */
unsigned kernel_category_count(const struct kernel_names *names);
const char *kernel_category_name(const struct kernel_names *names, unsigned category);
