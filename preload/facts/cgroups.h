/* SPDX-License-Identifier: MIT
 *
 * The control groups of this process: its own and those above it, which containers and batch
 * systems use to limit what it may have. See admin-guide/cgroup-v2.rst and admin-guide/cgroup-v1 of
 * Linux.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TSCOPE_CGROUP_BYTES = 288 }; /* of a folder's path; longer ones are left out */

/* A group: its folder, and in it the group's path from the mount point. */
struct tscope_cgroup {
  char folder[TSCOPE_CGROUP_BYTES];
  const char *path;
  bool version_2;
};

/* Calls `visit` for each group of this process that may have files of `controller` ("cpu",
 * "memory"), from its own up to the mount point. In a container, the path of the process's group
 * may be one of the host that does not exist here: then the mount point is the container's own
 * group. `root` is put before the paths of /proc and /sys; it is "" except in tests. */
void tscope_cgroups_visit(const char *root, const char *controller,
                          void (*visit)(const struct tscope_cgroup *group, void *with), void *with);

/* The content of a group's file as text, cut to what fits; false if there is none. */
bool tscope_cgroup_read(const struct tscope_cgroup *group, const char *file, char *text,
                        size_t bytes);

/* Sets `value` to that of a line "NAME VALUE" of such a text; false if there is none. */
bool tscope_cgroup_value(const char *text, const char *name, uint64_t *value);
