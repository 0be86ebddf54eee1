/* SPDX-License-Identifier: MIT
 *
 * Line tables: CPython's Objects/lnotab_notes.txt describes that of 3.9 and (below "3.10") the
 * pairs of 3.10; Objects/locations.md and InternalDocs/code_objects.md describe the table from 3.11
 * on.
 */
#include "inspect/python_code.h"

/* A bytes object, read a window at a time. */
struct table {
  python_read *read;
  const void *context;
  u64 address, size, at;
  u64 begin, end; /* what of it is in `window` */
  u8 window[64];
  bool failed;
};

static bool table_open(struct table *table, python_read *read, const void *context, u64 bytes) {
  const u64 most = 16 << 20;
  *table = (struct table){.read = read, .context = context, .address = bytes + PYTHON_BYTES_DATA};
  return read(context, bytes + PYTHON_VAR_SIZE, &table->size, 8) && table->size < most;
}

static bool table_more(const struct table *table) {
  return table->at < table->size && !table->failed;
}

static u8 table_byte(struct table *table) {
  if (!table_more(table)) {
    table->failed = true;
    return 0;
  }
  if (table->at < table->begin || table->at >= table->end) {
    u64 bytes = MIN(table->size - table->at, sizeof(table->window));
    if (!table->read(table->context, table->address + table->at, table->window, bytes)) {
      table->failed = true;
      return 0;
    }
    table->begin = table->at;
    table->end = table->at + bytes;
  }
  return table->window[table->at++ - table->begin];
}

/* 3.9: pairs of bytes, instructions and lines to go on by. */
static i32 line_by_lnotab(struct table *table, i32 instruction, i32 line) {
  i32 address = 0;
  while (table_more(table)) {
    address += table_byte(table);
    i32 step = (signed char)table_byte(table);
    if (address > instruction)
      break;
    line += step;
  }
  return line;
}

/* 3.10: the same, but the line is that of the instructions counted; -128: they are of none. */
static i32 line_by_pairs(struct table *table, i32 instruction, i32 line) {
  i32 end = 0;
  while (table_more(table)) {
    end += table_byte(table);
    i32 step = (signed char)table_byte(table);
    bool none = step == -128;
    line += none ? 0 : step;
    if (instruction < end)
      return none ? 0 : line;
  }
  return 0;
}

static i32 signed_varint(struct table *table) {
  u32 value = 0;
  u8 byte;
  u32 shift = 0;
  do {
    byte = table_byte(table);
    value |= (u32)(byte & 63) << shift;
    shift += 6;
  } while (byte & 64 && shift < 32);
  return value & 1 ? -(i32)(value >> 1) : (i32)(value >> 1);
}

/* From 3.11 on: an entry begins with a byte whose top bit is set: what follows it, and how many
 * instructions it is about. */
static i32 line_by_locations(struct table *table, i32 instruction, i32 line) {
  i32 end = 0;
  while (table_more(table)) {
    u8 head = table_byte(table);
    u32 kind = head >> 3 & 15;
    end += 2 * ((head & 7) + 1);
    if (kind == 13 || kind == 14)
      line += signed_varint(table);
    else if (kind >= 10 && kind <= 12)
      line += (i32)kind - 10;
    if (instruction < end)
      return kind == 15 ? 0 : line;
    while (table_more(table)) {
      if (table_byte(table) & 0x80) {
        table->at--;
        break;
      }
    }
  }
  return 0;
}

static bool find_line(const struct python *python, python_read *read, const void *context,
                      const struct python_frame *frame, struct python_location *place) {
  const struct python_layout *layout = &python->layout;
  u64 bytes;
  struct table table;
  if (!read(context, frame->code + layout->code_first_line, &place->first_line, 4) ||
      !read(context, frame->code + layout->code_lines, &bytes, 8))
    return false;
  place->line = place->first_line;
  if (frame->instruction < 0)
    return true;
  if (!table_open(&table, read, context, bytes))
    return false;
  i32 line = (i32)place->first_line;
  if (layout->lines == PYTHON_LNOTAB)
    line = line_by_lnotab(&table, frame->instruction, line);
  else if (layout->lines == PYTHON_LINE_PAIRS)
    line = line_by_pairs(&table, frame->instruction, line);
  else
    line = line_by_locations(&table, frame->instruction, line);
  place->line = line < 0 ? 0 : (u32)line;
  return !table.failed;
}

static size_t put_utf8(char *to, u32 point) {
  if (point < 0x80) {
    to[0] = (char)point;
    return 1;
  }
  size_t more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
  static const u8 heads[] = {0, 0xc0, 0xe0, 0xf0};
  to[0] = (char)(heads[more] | point >> (6 * more));
  for (size_t i = 1; i <= more; i++)
    to[i] = (char)(0x80 | (point >> (6 * (more - i)) & 0x3f));
  return more + 1;
}

/* Reads `points` code points of `kind` bytes each, the last that surely fit. */
static bool read_points(python_read *read, const void *context, u64 data, u32 kind, u64 points,
                        char *to, size_t bytes) {
  const size_t worst = kind == 1 ? 2 : kind == 2 ? 3 : 4;
  u64 fit = (bytes - 4) / worst, first = points > fit ? points - fit : 0;
  size_t length = 0;
  if (first) {
    memcpy(to, "...", 3);
    length = 3;
  }
  for (u64 i = first; i < points; i++) {
    u32 point = 0; /* little-endian */
    if (!read(context, data + i * kind, &point, kind))
      return false;
    length += put_utf8(to + length, point < 0x110000 ? point : '?');
  }
  to[length] = '\0';
  return true;
}

static bool read_ascii(python_read *read, const void *context, u64 data, u64 length, char *to,
                       size_t bytes) {
  size_t marks = length >= bytes ? 3 : 0;
  u64 first = marks ? length - (bytes - 1 - marks) : 0;
  memcpy(to, "...", marks);
  if (!read(context, data + first, to + marks, length - first + 1))
    return false;
  for (char *c = to + marks; *c; c++)
    if (*c & 0x80)
      return false;
  return strlen(to) == marks + (length - first);
}

bool python_text(const struct python *python, python_read *read, const void *context, u64 text,
                 char *to, size_t bytes) {
  const u64 most = 1 << 20;
  u64 type, length;
  u32 state;
  if (!read(context, text + PYTHON_OBJECT_TYPE, &type, 8) || type != python->text_type ||
      !read(context, text + PYTHON_TEXT_LENGTH, &length, 8) ||
      !read(context, text + PYTHON_TEXT_STATE, &state, 4) || length > most)
    return false;
  state >>= python->layout.text_kind_bit;
  u32 kind = state & 7;
  bool compact = state >> 3 & 1, ascii = state >> 4 & 1;
  if (!compact || (kind != 1 && kind != 2 && kind != 4) || (ascii && kind != 1))
    return false;
  return ascii ? read_ascii(read, context, text + python->layout.text_ascii, length, to, bytes)
               : read_points(read, context, text + python->layout.text_compact, kind, length, to,
                             bytes);
}

bool python_location_of(const struct python *python, python_read *read, const void *context,
                        const struct python_frame *frame, struct python_location *place) {
  u64 file, name;
  return read(context, frame->code + python->layout.code_file, &file, 8) &&
         read(context, frame->code + python->layout.code_name, &name, 8) &&
         python_text(python, read, context, file, place->file, sizeof(place->file)) &&
         python_text(python, read, context, name, place->function, sizeof(place->function)) &&
         find_line(python, read, context, frame, place);
}
