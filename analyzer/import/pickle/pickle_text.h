/* SPDX-License-Identifier: MIT
 *
 * The numbers and texts of pickle's oldest protocols, which write them as Python source.
 * `line` is without its newline. Functions return 0 or negative errno; -EBADMSG for what is not
 * such a number or text.
 */
#ifndef TSCOPE_PICKLE_TEXT_H
#define TSCOPE_PICKLE_TEXT_H

#include "import/value_build.h"

/* The two's complement of an integer, least significant byte first, of up to 64 bits or more. */
void pickle_integer(struct value_builder *b, const u8 *bytes, u32 n, struct value *out);

/* 12, -7, 01 and 00 (true and false), 123456789012345678901234567890L */
int pickle_decimal(struct value_builder *b, const char *line, size_t n, struct value *out);

int pickle_float(struct value_builder *b, const char *line, size_t n, struct value *out);

/* 'a\n\x00', in either kind of quotes */
int pickle_quoted(struct value_builder *b, const char *line, size_t n, struct value *out);

/* Latin-1 with \u1234 and \U00012345 */
int pickle_raw_unicode(struct value_builder *b, const char *line, size_t n, struct value *out);

#endif
