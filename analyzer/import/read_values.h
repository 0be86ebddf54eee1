/* SPDX-License-Identifier: MIT
 *
 * Files that are read as a whole: as bytes, or as values (value.h). All functions return 0, or
 * negative errno; those with a `why` put the reason there.
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

/* Reads one JSON text into `arena`; the bytes are not needed afterwards. `why` has the place, too.
 */
int value_read_json(const char *text, size_t n, struct arena *arena, struct value *root, char *why,
                    size_t why_bytes);

/* Reads a file, with or without gzip, that holds a pickle or one JSON text: its first bytes say
 * which. The values live in `arena`. */
int read_values(const char *path, struct arena *arena, struct value *root, char *why,
                size_t why_bytes);

/* What is done with the values of an input: 0, or negative errno and the reason in `why`. */
typedef int use_values(void *user, const struct value *root, char *why, size_t why_bytes);

/* Reads an input so, and uses its values, within the file's budget; `memory` is the kind of what it
 * may allocate. A file that cannot be used gets a note in the model, and `import->why`. */
int input_use_values(struct import *import, const struct input *input, enum budget_kind memory,
                     use_values *use, void *user);
