/* SPDX-License-Identifier: MIT */
#include "report/json/json_squeeze.h"

#include <stdlib.h>

#include "base/checked_memory.h"

static void buffer_character(struct json_squeeze *s, char c) {
  if (s->n == s->room) {
    size_t room = s->room ? 2 * s->room : 4096;
    char *buffered = memory_resized(s->buffered, room, 1);
    s->buffered = buffered;
    s->room = room;
  }
  s->buffered[s->n++] = c;
}

static void write_buffered(struct json_squeeze *s) {
  fwrite(s->buffered, 1, s->n, s->out);
  s->n = 0;
  s->buffering = false;
}

/* All other white space is left out, except one space after each comma. */
static void write_on_one_line(struct json_squeeze *s) {
  size_t kept = 0;
  for (size_t i = 0; i < s->n; i++) {
    char c = s->buffered[i];
    if (c != ' ' && c != '\n')
      s->buffered[kept++] = c;
  }
  for (size_t i = 0; i < kept; i++) {
    putc_unlocked(s->buffered[i], s->out);
    if (s->buffered[i] == ',')
      putc_unlocked(' ', s->out);
  }
  s->n = 0;
  s->buffering = false;
}

/* Numbers, null, and the characters between them. */
static const bool in_arrays_of_numbers[256] = {
    [' '] = true, ['\n'] = true, [','] = true, ['+'] = true, ['-'] = true, ['.'] = true,
    ['0'] = true, ['1'] = true,  ['2'] = true, ['3'] = true, ['4'] = true, ['5'] = true,
    ['6'] = true, ['7'] = true,  ['8'] = true, ['9'] = true, ['e'] = true, ['E'] = true,
    ['n'] = true, ['u'] = true,  ['l'] = true};

static void put_character(struct json_squeeze *s, char c) {
  if (s->in_string) {
    s->in_string = s->escaped || c != '"';
    s->escaped = !s->escaped && c == '\\';
    putc_unlocked(c, s->out);
    return;
  }
  if (c == '[') {
    if (s->buffering)
      write_buffered(s);
    s->buffering = true;
    buffer_character(s, c);
    return;
  }
  if (!s->buffering) {
    s->in_string = c == '"';
    putc_unlocked(c, s->out);
    return;
  }
  buffer_character(s, c);
  if (c == ']') {
    write_on_one_line(s);
  } else if (!in_arrays_of_numbers[(unsigned char)c]) {
    s->in_string = c == '"';
    write_buffered(s);
  }
}

int json_squeeze(const char *text, size_t bytes, void *data) {
  struct json_squeeze *s = data;
  for (size_t i = 0; i < bytes; i++)
    put_character(s, text[i]);
  return 0;
}

int json_squeeze_end(struct json_squeeze *s) {
  if (s->buffering)
    write_buffered(s);
  free(s->buffered);
  s->buffered = NULL;
  return ferror(s->out) ? -1 : 0;
}
