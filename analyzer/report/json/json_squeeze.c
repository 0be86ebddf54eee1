/* SPDX-License-Identifier: MIT */
#include "report/json/json_squeeze.h"

#include <stdlib.h>

static int hold_character(struct json_squeeze *s, char c) {
  if (s->n == s->room) {
    size_t room = s->room ? 2 * s->room : 4096;
    char *held = realloc(s->held, room);
    if (!held)
      return -1;
    s->held = held;
    s->room = room;
  }
  s->held[s->n++] = c;
  return 0;
}

static void write_held(struct json_squeeze *s) {
  fwrite(s->held, 1, s->n, s->out);
  s->n = 0;
  s->holding = false;
}

/* All other white space is left out, except one space after each comma. */
static void write_held_on_one_line(struct json_squeeze *s) {
  size_t kept = 0;
  for (size_t i = 0; i < s->n; i++) {
    char c = s->held[i];
    if (c != ' ' && c != '\n')
      s->held[kept++] = c;
  }
  for (size_t i = 0; i < kept; i++) {
    putc_unlocked(s->held[i], s->out);
    if (s->held[i] == ',')
      putc_unlocked(' ', s->out);
  }
  s->n = 0;
  s->holding = false;
}

/* Numbers, null, and the characters between them. */
static const bool in_arrays_of_numbers[256] = {
    [' '] = true, ['\n'] = true, [','] = true, ['+'] = true, ['-'] = true, ['.'] = true,
    ['0'] = true, ['1'] = true,  ['2'] = true, ['3'] = true, ['4'] = true, ['5'] = true,
    ['6'] = true, ['7'] = true,  ['8'] = true, ['9'] = true, ['e'] = true, ['E'] = true,
    ['n'] = true, ['u'] = true,  ['l'] = true};

static int put_character(struct json_squeeze *s, char c) {
  if (s->in_string) {
    s->in_string = s->escaped || c != '"';
    s->escaped = !s->escaped && c == '\\';
    putc_unlocked(c, s->out);
    return 0;
  }
  if (c == '[') {
    if (s->holding)
      write_held(s);
    s->holding = true;
    return hold_character(s, c);
  }
  if (!s->holding) {
    s->in_string = c == '"';
    putc_unlocked(c, s->out);
    return 0;
  }
  if (hold_character(s, c) < 0)
    return -1;
  if (c == ']') {
    write_held_on_one_line(s);
  } else if (!in_arrays_of_numbers[(unsigned char)c]) {
    s->in_string = c == '"';
    write_held(s);
  }
  return 0;
}

int json_squeeze(const char *text, size_t bytes, void *data) {
  struct json_squeeze *s = data;
  for (size_t i = 0; i < bytes; i++)
    if (put_character(s, text[i]) < 0)
      return -1;
  return 0;
}

int json_squeeze_end(struct json_squeeze *s) {
  if (s->holding)
    write_held(s);
  free(s->held);
  s->held = NULL;
  return ferror(s->out) ? -1 : 0;
}
