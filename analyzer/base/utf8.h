/* SPDX-License-Identifier: MIT
 *
 * Text from traces is whatever the job had there: host names, commands and kernel names may contain
 * terminal escapes, or bytes that are not characters at all.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "format/tscope_format.h"

#define UTF8_REPLACEMENT 0xfffdu

/* Decodes one character at `text` (not at its end); returns its bytes. Where there is none, it is
 * UTF8_REPLACEMENT and one byte. */
size_t utf8_decode(const char *text, u32 *code);

/* Writes 1 to 4 bytes and returns how many. */
size_t utf8_write(u32 code, char bytes[4]);

/* True for what acts on a terminal or reorders a line instead of showing: C0, C1, bidirectional
 * controls, zero-width characters. */
bool utf8_is_control(u32 code);

/* What to write instead where only ASCII can be shown: "us" for a micro sign's "u", "?" for what
 * has none. */
const char *utf8_ascii_substitute(u32 code);

/* The bytes of those characters that are whole in the first `most` bytes; the text has more. */
size_t utf8_whole(const char *text, size_t most);

/* A copy in valid UTF-8 with every invalid byte replaced. The caller frees. */
char *utf8_valid_copy(const char *text);
