/* SPDX-License-Identifier: MIT
 *
 * Folders as a whole: the files in them, and their end.
 */
#pragma once

/* Folders in folders in a folder that is named. */
#define FOLDERS_DEEP 3u

typedef void on_path(void *user, const char *path);

/* Calls `each` with the path of everything but folders in a folder, and in the folders in it down
 * to `depth`. Links to folders are not followed, but are passed on, and names that begin with a dot
 * are left out. 0, or negative errno; a folder below that cannot be read hides only itself. */
int folder_visit(const char *path, unsigned depth, on_path *each, void *user);

/* That a file is in: "." of a bare name. */
struct arena;
char *folder_of(struct arena *arena, const char *path);

/* For files that go again: TMPDIR, else /tmp. */
const char *folder_for_a_time(void);

/* Removes the plain files and sockets in a folder, hidden ones too, and the folder, if nothing else
 * is in it. */
void folder_remove(const char *path);
