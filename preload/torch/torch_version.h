/* SPDX-License-Identifier: MIT
 *
 * Which PyTorch this process has, and what may be assumed of it. Functions are called by their
 * mangled names, which contain the types of their parameters, but not the layout of classes.
 * Layouts were compared in the headers of 2.0, 2.3, 2.6, 2.11 and 2.15; outside these, layouts
 * count as unknown, and what needs them is left out, which a FEATURE fact records.
 */
#pragma once

#include "record/hook.h"

#define TORCH_VERSION_CODE(major, minor) ((major)*100u + (minor))
#define TORCH_OLDEST TORCH_VERSION_CODE(2, 0)
#define TORCH_NEWEST TORCH_VERSION_CODE(2, 15)

/* As by TORCH_VERSION_CODE, 0 while unknown. */
extern u32 torch_version;

/* at::RecordFunctionCallback is the struct in torch_phases.c; enum at::RecordScope has USER_SCOPE
 * at 7.
 */
static inline bool torch_has_record_callback(void) {
  return torch_version >= TORCH_OLDEST && torch_version <= TORCH_NEWEST;
}

/* c10d::…Options start as torch_options in torch_record.h says, c10d::ReduceOp has its kind at 16
 * and is 32 bytes long (in 2.0 its reference counts were longer). */
static inline bool torch_has_call_options(void) {
  return torch_version >= TORCH_VERSION_CODE(2, 3) && torch_version <= TORCH_NEWEST;
}

/* torch::autograd::Node has the numbers of its forward operator; where, operators.c finds out. */
static inline bool torch_has_nodes(void) {
  return torch_version >= TORCH_OLDEST && torch_version <= TORCH_NEWEST;
}

bool torch_loaded(void);

/* Sets torch_version and writes the TORCH fact, where it is to be found. */
void torch_version_find(struct tscope_thread *thread);
