/* SPDX-License-Identifier: MIT
 *
 * Values of training (loss, gradient norm, learning rate) in a line that the job printed for
 * people, such as
 *
 *   step 10: train loss 2.31, lr=1e-4          {'loss': 2.31, 'grad_norm': 0.9, 'epoch': 0.1}
 *   iteration  100/ 5000 | lm loss: 6.1E+00 | grad norm: 2.3 |
 *   Epoch 0:  10%|#   | 10/100 [00:01<00:09, 9.50it/s, train_loss=2.31]
 *
 * Used by both halves: by the shim for the job's output, unless TSCOPE_SCALARS=off, and by the
 * analyzer for log files. Allocates nothing, and takes time in proportion to the length of the
 * line.
 */
#pragma once

#include "format/scalar_words.def"
#include "format/tscope_format.h"

#include <stddef.h>

#define SCALAR_LINE_VALUES 8u
#define SCALAR_LINE_BYTES 4096u /* of a line; the rest is ignored */
#define SCALAR_LINE_NAME 48u    /* bytes of a name, with the terminating zero */

#define SCALAR_STEP_UNKNOWN UINT64_MAX

enum scalar_role {
#define R(name, text) SCALAR_ROLE_##name,
  TSCOPE_SCALAR_ROLES(R)
#undef R
};

struct scalar_line {
  u64 step; /* SCALAR_STEP_UNKNOWN if it is not in the line */
  u32 n;
  struct scalar_line_value {
    char name[SCALAR_LINE_NAME]; /* one of scalar_words.def, or the loss's own, such as d_loss */
    double value;                /* may be NAN or infinite, which is kept */
    u8 role;                     /* enum scalar_role; never NONE or STEP */
  } values[SCALAR_LINE_VALUES];
};

/* Whether the line has any value other than its step. */
int scalar_line_read(const char *line, size_t n, struct scalar_line *out);

/* Removes the control sequences for colours on a terminal. The number of bytes left. */
size_t scalar_line_clean(char *line, size_t n);

/* The role of a name, in upper or lower case: from the whole name, else from its last words, else
 * from its parts, if one of them is "loss". */
enum scalar_role scalar_role_of(const char *name);

/* Whether its role is from words of scalar_words.def, not from its parts. */
int scalar_name_is_usual(const char *name);
