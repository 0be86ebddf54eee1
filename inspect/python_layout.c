/* SPDX-License-Identifier: MIT */
#include "inspect/python_layout.h"
#include "format/text_parts.h"

#define X(minor, lines, ...) {minor, lines, __VA_ARGS__, 2},
static const struct python_layout older[] = {PYTHON_OLDER(X)};
#undef X

enum { DEBUG_WORDS = 96, FIRST_WITH_DEBUG_OFFSETS = 13, NEWEST = 15 };

static const char unknown[] = "this version of Python is not known";

/* From 3.13 on. */
static const char *read_debug_offsets(struct python_layout *layout, u32 minor, python_read *read,
                                      const void *context, u64 runtime) {
  u64 words[DEBUG_WORDS];
  if (!runtime || !read(context, runtime, words, sizeof(words)) ||
      memcmp(words, "xdebugpy", 8) != 0)
    return "Python does not say where its frames are";
  if (words[1] >> 16 != (3u << 8 | minor))
    return unknown;
  if (words[2])
    return "Python without a GIL is not read";
  *layout = (struct python_layout){.minor = minor, .lines = PYTHON_LOCATIONS, .text_kind_bit = 2};
  bool sane = true;
#define X(member, ...)                                                                             \
  u64 at_##member = words[(const u8[]){__VA_ARGS__}[minor - FIRST_WITH_DEBUG_OFFSETS]];            \
  layout->member = (u32)at_##member;                                                               \
  sane = sane && at_##member < 1u << 20;
  PYTHON_DEBUG_WORDS(X)
#undef X
  layout->cframe_frame = PYTHON_NONE;
  layout->frame_state = PYTHON_NONE;
  layout->gil_thread = PYTHON_NONE;
  layout->collecting += (u32)words[minor == FIRST_WITH_DEBUG_OFFSETS ? 10 : 11]; /* .gc */
  layout->code_version -= sizeof(u32);                    /* right before co_localsplusnames */
  layout->code_first_traceable = layout->code_start - 16; /* an int, then a pointer */
  layout->text_compact = layout->text_ascii + 16;         /* a length and a pointer */
  return sane ? NULL : unknown;
}

const char *python_layout_find(struct python_layout *layout, const char *version, python_read *read,
                               const void *context, u64 runtime) {
  layout->minor = 0;
  if (sizeof(void *) != 8 || !tscope_begins_with(version, "3."))
    return unknown;
  u32 minor = (u32)leading_number(version + 2, UINT32_MAX, NULL);
  for (size_t i = 0; i < LENGTH_OF(older); i++)
    if (older[i].minor == minor) {
      *layout = older[i];
      return NULL;
    }
  if (minor < FIRST_WITH_DEBUG_OFFSETS || minor > NEWEST)
    return unknown;
  return read_debug_offsets(layout, minor, read, context, runtime);
}
