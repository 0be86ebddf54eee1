/* SPDX-License-Identifier: MIT */
#include "import/whole_file.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/checked_memory.h"
#include "import/byte_source.h"
#include "import/file_budget.h"

#define LEAST_ROOM 65536u

int whole_file_read(const char *path, u8 **bytes, size_t *n) {
  struct byte_source *source;
  struct stat status;
  int error = byte_source_open(&source, path);
  if (error)
    return error;
  /* Right at once where nothing is compressed. */
  size_t room = stat(path, &status) == 0 && status.st_size > 0 ? (size_t)status.st_size + 2 : 0;
  if (room > BUDGET_WHOLE_FILE) {
    byte_source_close(source);
    return -EFBIG;
  }
  room = room < LEAST_ROOM ? LEAST_ROOM : room;
  u8 *all = memory_array(room, 1);
  size_t used = 0;
  i64 got = 0;
  error = 0;
  while (!error) {
    got = byte_source_read(source, all + used, room - 1 - used);
    if (got < 0)
      error = (int)got;
    else
      used += (size_t)got;
    if (error || used < room - 1)
      break;
    u8 *more = memory_resized(all, size_product(room, 2), 1);
    error = 0;
    all = more;
    room *= 2;
  }
  byte_source_close(source);
  if (error) {
    free(all);
    return error;
  }
  all[used] = 0;
  *bytes = all;
  *n = used;
  return 0;
}
