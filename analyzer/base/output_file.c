/* SPDX-License-Identifier: MIT */
#include "base/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked_memory.h"
#include "base/each.h"

/* A place that can be moved to: a plain file, or nothing yet. A link stays one: what it points to
 * is written in place. */
static bool can_be_replaced(const char *path) {
  struct stat facts;
  return lstat(path, &facts) < 0 ? errno == ENOENT : S_ISREG(facts.st_mode);
}

/* Makes an empty file beside the path, with the rights that a new file has. */
static char *make_temporary(const char *path) {
  char *temporary = memory_printf("%s.XXXXXX", path);
  int descriptor = mkstemp(temporary);
  if (descriptor < 0) {
    free(temporary);
    return NULL;
  }
  mode_t mask = umask(0);
  umask(mask);
  fchmod(descriptor, 0666 & ~mask);
  close(descriptor);
  return temporary;
}

int output_file_open(struct output_file *file, const char *path) {
  *file = (struct output_file){.path = path ? memory_text(path) : NULL};
  if (path && can_be_replaced(path))
    file->temporary = make_temporary(path); /* a folder that cannot be written to: in place */
  file->out = path ? fopen(output_file_path(file), "w") : stdout;
  int error = file->out ? 0 : -errno;
  return error ? output_file_close(file, error) : 0;
}

int output_file_close(struct output_file *file, int error) {
  bool wrote = file->out != NULL;
  if (wrote && ferror(file->out) && !error)
    error = errno ? -errno : -EIO;
  if (wrote && (file->path ? fclose(file->out) : fflush(file->out)) != 0 && !error)
    error = -errno;
  file->out = NULL;
  if (file->temporary && !error && rename(file->temporary, file->path) < 0)
    error = -errno;
  if (file->temporary && error)
    unlink(file->temporary);
  FREE_EACH(file, temporary, path);
  file->temporary = file->path = NULL;
  return error;
}
