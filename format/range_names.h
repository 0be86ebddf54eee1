/* SPDX-License-Identifier: MIT
 *
 * What the name of a range means. A job asks for each range that it opens: most names are told
 * apart by their length or their first letter.
 */
#pragma once

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "format/range_names.def"
#include "format/tscope_format.h"

/* Whether a text of so many bytes, which is `numbered` if a number came after it, is what a line of
 * the tables says, of so many bytes. */
static inline bool tscope_is_range_name(const char *text, size_t bytes, bool numbered,
                                        const char *line, size_t length) {
  char last = line[length - 1];
  bool whole = last == '$' || last == '#';
  length -= whole;
  return (whole ? bytes == length : bytes >= length) && (last != '#' || numbered) &&
         ((text[0] ^ line[0]) & ~0x20) == 0 && strncasecmp(text, line, length) == 0;
}

/* The phase of a range whose name has so many bytes; 0 if it is none. */
static inline u8 tscope_phase_of_range(const char *text, size_t bytes) {
  for (; bytes && (*text == '#' || *text == ' '); bytes--)
    text++;
  while (bytes && (text[bytes - 1] == '#' || text[bytes - 1] == ' '))
    bytes--;
#define N(name, phase)                                                                             \
  if (tscope_is_range_name(text, bytes, false, name, sizeof(name) - 1))                            \
    return TSCOPE_PHASE_##phase;
  TSCOPE_RANGE_NAMES(N)
#undef N
  return 0;
}
