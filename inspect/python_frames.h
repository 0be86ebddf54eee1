/* SPDX-License-Identifier: MIT
 *
 * The Python frames of a thread, read from the interpreter's memory: no Python runs, no lock is
 * taken, no reference is counted. A thread that is inside a call of C (every hooked call is one)
 * leaves its frames as they are until it returns, whoever holds the GIL meanwhile.
 *
 * All of it is inline: with python_read_directly a frame costs a handful of loads.
 */
#pragma once

#include "inspect/python_layout.h"

#define PYTHON_INLINE __attribute__((always_inline)) static inline

struct python_frame {
  u64 code;        /* address of its code object */
  u64 tag;         /* distinguishes it from another code object that has this address later */
  i32 instruction; /* byte offset of the one in progress, as f_lasti; negative: not begun */
};

enum python_walk { PYTHON_END, PYTHON_FRAME, PYTHON_UNREADABLE };

enum {
  PYTHON_OWNED_BY_GENERATOR = 1,
  PYTHON_OWNED_BY_C = 3, /* and above: an entry of the interpreter's own */
};

/* f_state of 3.10 while a frame runs or looks for what handles an exception. */
enum { PYTHON_FRAME_EXECUTING = 0, PYTHON_FRAME_UNWINDING = 2 };

PYTHON_INLINE u64 python_mix(u64 hash, u64 word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

PYTHON_INLINE bool python_hash_word(python_read *read, const void *context, u64 address,
                                    u64 *hash) {
  u64 word;
  if (!read(context, address, &word, 8))
    return false;
  *hash = python_mix(*hash, word);
  return true;
}

/* Hash of a bytes object: of all of it up to 96 bytes, of its length and 12 words beyond: with
 * more, these tables were half of what a stack costs before 3.12. Four sums, so that a processor
 * works on them at once. */
PYTHON_INLINE bool python_hash_bytes(python_read *read, const void *context, u64 bytes, u64 *hash) {
  const u64 most = 12;
  u64 size, a = 1, b = 2, c = 3, d = 4;
  if (!read(context, bytes + PYTHON_VAR_SIZE, &size, 8))
    return false;
  u64 words = size / 8, step = 8 * (words <= most ? 1 : (words + most - 1) / most);
  u64 at = bytes + PYTHON_BYTES_DATA, end = at + 8 * words;
  for (; at + 3 * step < end; at += 4 * step)
    if (!python_hash_word(read, context, at, &a) ||
        !python_hash_word(read, context, at + step, &b) ||
        !python_hash_word(read, context, at + 2 * step, &c) ||
        !python_hash_word(read, context, at + 3 * step, &d))
      return false;
  for (; at < end; at += step)
    if (!python_hash_word(read, context, at, &a))
      return false;
  /* The last bytes; a bytes object ends with one more, which is 0. */
  if (size >= 7 && !python_hash_word(read, context, bytes + PYTHON_BYTES_DATA + size - 7, &b))
    return false;
  *hash = python_mix(python_mix(a + 3 * b, c + 5 * d), size);
  return true;
}

/* What distinguishes this code object from another one that has its address later, if both have the
 * same file, name and first line: its number from 3.12 on, before that what its line table holds.
 */
PYTHON_INLINE bool python_tag(const struct python *python, python_read *read, const void *context,
                              u64 code, u64 *tag) {
  const struct python_layout *layout = &python->layout;
  u64 file, name, lines, table;
  u32 first_line, version = 0;
  if (!read(context, code + layout->code_file, &file, 8) ||
      !read(context, code + layout->code_name, &name, 8) ||
      !read(context, code + layout->code_lines, &lines, 8) ||
      !read(context, code + layout->code_first_line, &first_line, 4))
    return false;
  u64 hash = python_mix(python_mix(python_mix(file, name), lines), first_line);
  if (layout->code_version != PYTHON_NONE &&
      !read(context, code + layout->code_version, &version, 4))
    return false;
  if (version) {
    *tag = python_mix(hash, version);
    return true;
  }
  if (!python_hash_bytes(read, context, lines, &table))
    return false;
  *tag = python_mix(hash, table);
  return true;
}

/* Address of a thread's innermost frame, 0 if it has none; false when it cannot be read. */
PYTHON_INLINE bool python_first_frame(const struct python *python, python_read *read,
                                      const void *context, u64 thread_state, u64 *frame) {
  const struct python_layout *layout = &python->layout;
  if (!read(context, thread_state + layout->thread_frame, frame, 8))
    return false;
  return layout->cframe_frame == PYTHON_NONE || !*frame ||
         read(context, *frame + layout->cframe_frame, frame, 8);
}

/* Whether `at` is a frame that has begun, and what runs in it. */
PYTHON_INLINE enum python_walk python_read_frame(const struct python *python, python_read *read,
                                                 const void *context, u64 at,
                                                 struct python_frame *frame) {
  const struct python_layout *layout = &python->layout;
  u8 owner = 0;
  u64 type, instruction;
  i32 first;
  if (layout->frame_owner != PYTHON_NONE && !read(context, at + layout->frame_owner, &owner, 1))
    return PYTHON_UNREADABLE;
  if (owner >= PYTHON_OWNED_BY_C)
    return PYTHON_END;
  if (!read(context, at + layout->frame_code, &frame->code, 8))
    return PYTHON_UNREADABLE;
  frame->code &= ~(u64)3; /* 3.14 keeps marks of its own there */
  if (!read(context, frame->code + PYTHON_OBJECT_TYPE, &type, 8) || type != python->code_type)
    return PYTHON_UNREADABLE;
  if (layout->code_start == PYTHON_NONE) {
    if (!read(context, at + layout->frame_instruction, &frame->instruction, 4))
      return PYTHON_UNREADABLE;
    if (layout->lines == PYTHON_LINE_PAIRS)
      frame->instruction *= 2;
    return PYTHON_FRAME;
  }
  if (!read(context, at + layout->frame_instruction, &instruction, 8) ||
      !read(context, frame->code + layout->code_first_traceable, &first, 4))
    return PYTHON_UNREADABLE;
  frame->instruction = (i32)(instruction - (frame->code + layout->code_start));
  bool begun = owner == PYTHON_OWNED_BY_GENERATOR || frame->instruction >= 2 * first;
  return begun ? PYTHON_FRAME : PYTHON_END;
}

/* The next frame from `*at` outwards; moves `*at` on. Frames that have not begun and entries of the
 * interpreter's own are passed over, as sys._getframe() does. */
PYTHON_INLINE enum python_walk python_next_frame(const struct python *python, python_read *read,
                                                 const void *context, u64 *at,
                                                 struct python_frame *frame) {
  const u32 most =
      4096; /* of frames passed over: what is torn while it is read may go in circles */
  for (u32 i = 0; *at && i < most; i++) {
    enum python_walk seen = python_read_frame(python, read, context, *at, frame);
    if (seen == PYTHON_UNREADABLE || !read(context, *at + python->layout.frame_previous, at, 8))
      return PYTHON_UNREADABLE;
    if (seen == PYTHON_FRAME)
      return python_tag(python, read, context, frame->code, &frame->tag) ? PYTHON_FRAME
                                                                         : PYTHON_UNREADABLE;
  }
  return PYTHON_END;
}
