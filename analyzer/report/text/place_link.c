/* SPDX-License-Identifier: MIT
 *
 * OSC 8: https://gist.github.com/egmontkob/eb114294efbcd5adb1944c9f3cb5feda.
 */
#include "report/text/pen.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"

/* The bytes of "FILE:LINE" at the beginning of the text, and of FILE alone; 0: there is none. */
static size_t place_bytes(const char *text, size_t bytes, size_t *file) {
  size_t end = 0;
  while (end < bytes && !strchr(" \t\n(),;", text[end]))
    end++;
  while (end && (text[end - 1] == '.' || text[end - 1] == ':'))
    end--;
  for (*file = end; *file && isdigit((unsigned char)text[*file - 1]);)
    (*file)--;
  bool place = *file > 1 && *file < end && text[*file - 1] == ':';
  *file -= place;
  return place ? end : 0;
}

static bool is_whole(const char *file, const char *name, size_t bytes) {
  size_t length = file && *file == '/' ? strlen(file) : 0;
  return length >= bytes && memcmp(file + length - bytes, name, bytes) == 0 &&
         (length == bytes || file[length - bytes - 1] == '/');
}

/* The whole name of a file, of which the report shows the end. */
static const char *whole_name(const struct results *r, const char *name, size_t bytes) {
  const struct line_result *line =
      FIND(r->lines.at, r->lines.n_at, one, is_whole(one->file, name, bytes));
  const struct stack_node *frame =
      line ? NULL : FIND(r->stalls.tree, r->stalls.n_tree, one, is_whole(one->file, name, bytes));
  return line ? line->file : frame ? frame->file : NULL;
}

size_t place_link(const struct results *results, const char *text, size_t bytes, char *address,
                  size_t room) {
  size_t name, place = place_bytes(text, bytes, &name);
  const char *file = place ? whole_name(results, text, name) : NULL;
  char host[256] = "";
  if (!file || access(file, R_OK) != 0 || gethostname(host, sizeof(host) - 1) != 0)
    return 0;
  SCOPED_ARENA struct arena arena = {0};
  int used = snprintf(address, room, "file://%s%s#%.*s", arena_url(&arena, host),
                      arena_url(&arena, file), (int)(place - name - 1), text + name + 1);
  return (size_t)used < room ? place : 0;
}
