/* SPDX-License-Identifier: MIT */
#include "nvtx/nvtx_names.h"

#include <ctype.h>
#include <string.h>
#include <wchar.h>

#include "format/range_names.h"
#include "nvtx/nvtx_names.def"
#include "record/fnv.h"

/* Most different names that are distinguished: a program that always invents new names must not use
 * up the trace's strings. */
enum { NAMES_MAX = 8192 };

static bool is_separator(char c) {
  return strchr(" _-:=#/.[(", c) != NULL;
}

static u32 length_without_attributes(const char *name) {
  u32 bytes = (u32)strnlen(name, NVTX_TEXT_BYTES - 1);
  const char *comma = memchr(name, ',', bytes);
  if (comma && comma > name && comma[1] == ' ' && strchr(comma, '='))
    return (u32)(comma - name);
  return bytes;
}

struct nvtx_text nvtx_text_of(const char *name) {
  struct nvtx_text text = {
      .text = name, .bytes = length_without_attributes(name), .number = TSCOPE_UNKNOWN};
  u32 end = text.bytes;
  if (end && (name[end - 1] == ')' || name[end - 1] == ']'))
    end--;
  u32 first = end;
  u64 number = 0, weight = 1;
  while (first > 0 && isdigit((unsigned char)name[first - 1]) && end - first < 10) {
    number += weight * (u64)(name[--first] - '0');
    weight *= 10;
  }
  u32 bare = first;
  while (bare > 0 && is_separator(name[bare - 1]))
    bare--;
  if (first == end || bare == first || bare == 0 || number >= TSCOPE_UNKNOWN)
    return text;
  text.bytes = bare;
  text.number = (u32)number;
  return text;
}

u8 nvtx_meaning_of(const char *text, u32 bytes, bool numbered) {
#define N(name)                                                                                    \
  if (tscope_is_range_name(text, bytes, numbered, name, sizeof(name) - 1))                         \
    return NVTX_STEP;
  TSCOPE_NVTX_STEPS(N)
#undef N
  return tscope_phase_of_range(text, bytes);
}

static u32 intern(struct tscope_thread *thread, struct nvtx_text text) {
  static u32 names;
  if (__atomic_load_n(&names, __ATOMIC_RELAXED) >= NAMES_MAX) {
    tscope_count_lost(TSCOPE_LOSS_STRINGS, 1);
    return 0;
  }
  __atomic_fetch_add(&names, 1, __ATOMIC_RELAXED);
  return tscope_string_n(thread, text.text, text.bytes);
}

struct nvtx_name nvtx_name_of(struct tscope_thread *thread, struct nvtx_cache *cache,
                              struct nvtx_text text) {
  u64 hash = tscope_fnv(TSCOPE_FNV_SEED, text.text, text.bytes);
  struct nvtx_cached *cached = &cache->names[(hash ^ hash >> 32) & (NVTX_CACHED - 1)];
  if (TSCOPE_UNLIKELY(!cached->known || cached->hash != hash)) {
    *cached = (struct nvtx_cached){
        .hash = hash,
        .string = intern(thread, text),
        .meaning = nvtx_meaning_of(text.text, text.bytes, false),
        .meaning_numbered = nvtx_meaning_of(text.text, text.bytes, true),
        .known = true,
    };
  }
  bool numbered = text.number != TSCOPE_UNKNOWN;
  return (struct nvtx_name){.string = cached->string,
                            .number = text.number,
                            .meaning = numbered ? cached->meaning_numbered : cached->meaning};
}

const char *nvtx_narrow(const wchar_t *wide, char narrow[NVTX_TEXT_BYTES]) {
  u32 bytes = 0;
  for (; wide[bytes] && bytes < NVTX_TEXT_BYTES - 1; bytes++)
    narrow[bytes] = wide[bytes] > 0 && wide[bytes] < 0x80 ? (char)wide[bytes] : '?';
  narrow[bytes] = '\0';
  return narrow;
}
