/* SPDX-License-Identifier: MIT
 *
 * What attached_read_stacks() saw, as JSON and back.
 */
#ifndef TSCOPE_LOOK_JSON_H
#define TSCOPE_LOOK_JSON_H

#include "attach/native_stacks.h"
#include "base/arena.h"
#include "model/stalls.h"

/* One line; NULL without memory. The caller frees it. Bytes that are no UTF-8 are replaced. */
char *look_json_write(const struct rank_stall *look, const struct native_outcome *native);

/* Texts live in the arena. 0; -EPROTO when it is not such a text; -ENOMEM. */
int look_json_read(struct arena *arena, const char *text, size_t bytes, struct rank_stall *look,
                   struct native_outcome *native);

#endif
