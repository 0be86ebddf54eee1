/* SPDX-License-Identifier: MIT */
#include "report/text/place_link.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

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

/* The whole name of a file, of which the report shows the end. */
static const char *whole_name(const struct results *results, const char *name, size_t bytes) {
  for (u32 i = 0; i < results->lines.n_at; i++) {
    const char *file = results->lines.at[i].file;
    size_t length = file ? strlen(file) : 0;
    if (length >= bytes && *file == '/' && memcmp(file + length - bytes, name, bytes) == 0 &&
        (length == bytes || file[length - bytes - 1] == '/'))
      return file;
  }
  return NULL;
}

/* All but the characters that an address may have as they are become %XX. */
static size_t add_escaped(char *address, size_t room, size_t used, const char *file) {
  for (; *file && used + 4 < room; file++)
    if (isalnum((unsigned char)*file) || strchr("/-_.~", *file))
      address[used++] = *file;
    else
      used += (size_t)snprintf(address + used, 4, "%%%02X", (unsigned char)*file);
  return *file ? 0 : used;
}

size_t place_link(const struct results *results, const char *text, size_t bytes, char *address,
                  size_t room) {
  size_t name, place = place_bytes(text, bytes, &name);
  const char *file = place ? whole_name(results, text, name) : NULL;
  char host[256] = "";
  if (!file || access(file, R_OK) != 0 || gethostname(host, sizeof(host) - 1) != 0)
    return 0;
  size_t used = (size_t)snprintf(address, room, "file://");
  used = add_escaped(address, room, used, host);
  used = used ? add_escaped(address, room, used, file) : 0;
  if (!used || used + (place - name) + 1 >= room)
    return 0;
  snprintf(address + used, room - used, "#%.*s", (int)(place - name - 1), text + name + 1);
  return place;
}
