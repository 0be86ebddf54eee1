/* SPDX-License-Identifier: MIT
 *
 * The name of a range, and its meaning.
 */
#pragma once

#include "record/hook.h"

enum { NVTX_TEXT_BYTES = 128 }; /* longer names are cut */

/* enum tscope_phase, or one of these */
enum nvtx_meaning { NVTX_PLAIN = 0, NVTX_STEP = 0x80 };

/* A name without the number at its end. */
struct nvtx_text {
  const char *text; /* not terminated */
  u32 bytes;
  u32 number; /* TSCOPE_UNKNOWN if it has none */
};

struct nvtx_name {
  u32 string; /* 0 beyond the table */
  u32 number;
  u8 meaning; /* enum nvtx_meaning */
};

#define NVTX_CACHED 128u /* a power of two */

/* Names seen by a thread, by the hash of their text. */
struct nvtx_cache {
  struct nvtx_cached {
    u64 hash;
    u32 string;
    u8 meaning, meaning_numbered;
    bool known;
  } names[NVTX_CACHED];
};

/* Takes the number off the end of a name: "iteration 12", "step_3", "Batch (7)"; not "fp16". What
 * autograd adds to an operator's name (", op_id = 24, seq = 7") is taken off too. */
struct nvtx_text nvtx_text_of(const char *name);

u8 nvtx_meaning_of(const char *text, u32 bytes, bool numbered);

/* The name as it is recorded. */
struct nvtx_name nvtx_name_of(struct tscope_thread *thread, struct nvtx_cache *cache,
                              struct nvtx_text text);

/* As much of a wide text as fits, with '?' for what is not ASCII. */
const char *nvtx_narrow(const wchar_t *wide, char narrow[NVTX_TEXT_BYTES]);
