/* SPDX-License-Identifier: MIT
 *
 * Files that are read as a whole: as bytes, or as values (value.h). All functions return 0, or
 * negative errno; those with a `why` put there what is wrong, to follow the file's name.
 */
#pragma once

#include "base/arena.h"
#include "import/file_budget.h"
#include "import/import.h"
#include "import/value.h"

/* All bytes of a file, decompressed where it is gzip, with a zero behind them that `n` does not
 * count; for formats that cannot be read as they come. free() them. -EBADMSG where compressed data
 * is damaged; nothing to free then. */
int whole_file_read(const char *path, u8 **bytes, size_t *n);

/* Reads one JSON text into `arena`; the bytes are not needed afterwards. */
int value_read_json(const char *text, size_t n, struct arena *arena, struct value *root, char *why,
                    size_t why_bytes);

/* What is done with all bytes of an input, and with its values: 0, or negative errno with what is
 * wrong in `why`, to follow the file's name. Bytes may be changed, and have a zero behind them. */
typedef int use_bytes(void *user, char *bytes, size_t n, char *why, size_t why_bytes);
typedef int use_values(void *user, const struct value *root, char *why, size_t why_bytes);

/* Reads an input as a whole, and uses it within the file's budget; `memory` is the kind of what it
 * may allocate. A file that cannot be used is left out: import_leave_out(). */
int input_use_bytes(struct import *import, const struct input *input, enum budget_kind memory,
                    use_bytes *use, void *user);

/* The same of a file that holds a pickle or one JSON text: its first bytes say which. */
int input_use_values(struct import *import, const struct input *input, enum budget_kind memory,
                     use_values *use, void *user);

/* Reads each input by an expression that is 0 or negative errno: 0, or the last failure if none
 * could be read. */
#define READ_EACH(inputs, n, input, read)                                                          \
  ({                                                                                               \
    bool any_ = false;                                                                             \
    int failure_ = 0;                                                                              \
    FOR_EACH(inputs, n, input) {                                                                   \
      int error_ = (read);                                                                         \
      any_ |= !error_;                                                                             \
      failure_ = error_ ? error_ : failure_;                                                       \
    }                                                                                              \
    any_ ? 0 : failure_;                                                                           \
  })
