/* SPDX-License-Identifier: MIT
 *
 * Opens files and folders of this user only, also where others may write: what another user put
 * there, or a symbolic link or a device in its place, is left alone.
 */
#pragma once

/* Opens `name` in the folder `parent` with `flags`, if it is a regular file of this user, or with
 * O_DIRECTORY a folder of this user. Never waits for a pipe. A descriptor, or a negative errno:
 * -EPERM if it belongs to another user, -EINVAL if it is no regular file. Only system calls. */
int tscope_open_own(int parent, const char *name, int flags);

/* The same, of a file or folder of this user or of root. */
int tscope_open_own_or_roots(int parent, const char *name, int flags);
