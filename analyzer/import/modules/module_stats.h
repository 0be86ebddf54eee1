/* SPDX-License-Identifier: MIT
 *
 * Module statistics as JSON: {"mod_order": {"fw_pre_order": [...]}, "mod_stats": [{...}]}, the
 * ModuleInfo of torch.distributed._tools.ilp_utils, or the list of its mod_stats alone.
 */
#ifndef TSCOPE_MODULE_STATS_H
#define TSCOPE_MODULE_STATS_H

#include "base/arena.h"
#include "import/value.h"
#include "model/module_tree.h"

/* Extracts the modules from what was read; they live in `arena`. 0; -EINVAL if this is no such
 * document, with the reason in `why`. */
int modules_read(const struct value *root, struct arena *arena, struct module_tree *stats,
                 char *why, size_t why_bytes);

#endif
