/* SPDX-License-Identifier: MIT */
#include "import/tscope/events/stacks_of_calls.h"

#include <string.h>

#include "base/checked_memory.h"
#include "base/sorting.h"
#include "model/training_calls.h"
#include "symbols/native_places.h"

/* Not the user's own: what systems, CUDA and Python packages install. */
static bool is_installed(const char *library) {
  static const char *const folders[] = {"/usr/", "/lib/", "/lib64/", "/opt/"};
  static const char *const parts[] = {"/site-packages/", "/dist-packages/", "/cuda"};
  static const char *const names[] = {"libnccl", "libcu", "libnv", "libtorch", "libc10"};
  return MATCHES_ANY(library, folders, text_starts_with) ||
         MATCHES_ANY(library, parts, text_contains) ||
         MATCHES_ANY(last_part(library), names, text_starts_with);
}

/* All frames here are callers: the address is where the call returns to, behind it. */
static void copy_native(const struct definitions *definitions, const struct frame_definition *frame,
                        struct arena *arena, struct call_frame *to) {
  const char *library = definition_string(definitions, frame->library);
  const char *build_id = definition_string(definitions, frame->build_id);
  struct native_place place = {0};
  if (library && build_id && native_place_find)
    native_place_find(arena, library, build_id, frame->offset - 1, &place);
  *to = (struct call_frame){.file = place.file ? place.file : library,
                            .function = place.function,
                            .line = place.line,
                            .library = library ? library : "no file",
                            .native_own = library && !is_installed(library)};
  if (same_text(place.function, "_start")) /* the linker put it there */
    to->native_own = false;
  if (!to->function)
    to->function = arena_printf(arena, "+0x%llx", (unsigned long long)frame->offset);
}

static struct call_frame python_frame(const struct definitions *definitions,
                                      const struct frame_definition *frame) {
  return (struct call_frame){.file = definition_string(definitions, frame->file),
                             .function = definition_string(definitions, frame->function),
                             SAME(frame, line, first_line, runs_training)};
}

static void copy_frame(const struct definitions *definitions, u32 number, struct arena *arena,
                       struct call_frame *to) {
  const struct frame_definition *frame = &definitions->frames[number];
  if (frame->native)
    copy_native(definitions, frame, arena, to);
  else
    *to = python_frame(definitions, frame);
}

static void copy_frames(const struct definitions *definitions, struct arena *arena,
                        struct call_sites *sites) {
  sites->n_frames = definitions->n_frames;
  sites->frames = arena_array(arena, sites->n_frames, sizeof(*sites->frames));
  for (u32 i = 0; i < sites->n_frames; i++)
    copy_frame(definitions, i, arena, &sites->frames[i]);
}

/* Frames that are not announced, as in a trace that was cut, are left out. */
static void copy_stacks(const struct definitions *definitions, struct arena *arena,
                        struct call_sites *sites) {
  u32 *frames = arena_array(arena, definitions->n_stack_frames, sizeof(*frames));
  sites->n_stacks = definitions->n_stacks;
  sites->stacks = arena_array(arena, sites->n_stacks, sizeof(*sites->stacks));
  for (u32 i = 0; i < sites->n_stacks; i++) {
    const struct stack_definition *stack = &definitions->stacks[i];
    u32 n = 0;
    sites->stacks[i] = (struct call_stack){.frames = frames, .cut = stack->cut};
    for (u32 k = 0; k < stack->n; k++) {
      u64 hash = definitions->stack_frames[stack->first + k];
      u32 frame = frame_number(definitions, hash);
      if (frame != INDEX_NONE)
        frames[n++] = frame;
    }
    sites->stacks[i].n = n;
    frames += n;
  }
}

void stacks_copy(const struct definitions *definitions, struct arena *arena,
                 struct call_sites *sites) {
  copy_frames(definitions, arena, sites);
  copy_stacks(definitions, arena, sites);
  call_sites_find_library(sites);
}

void definitions_find_library(struct definitions *definitions) {
  SCOPED_ARENA struct arena scratch = {0};
  struct call_sites sites = {.n_frames = definitions->n_frames};
  sites.frames = arena_array(&scratch, sites.n_frames, sizeof(*sites.frames));
  for (u32 i = 0; i < sites.n_frames; i++)
    if (!definitions->frames[i].native)
      sites.frames[i] = python_frame(definitions, &definitions->frames[i]);
  copy_stacks(definitions, &scratch, &sites);
  call_sites_find_library(&sites);
  for (u32 i = 0; i < sites.n_frames; i++)
    definitions->frames[i].runs_training = sites.frames[i].runs_training;
}

u32 stack_number(const struct definitions *definitions, u64 hash) {
  return SORTED_INDEX(definitions->n_stacks, i, definitions->stacks[i].id, hash);
}

u32 frame_number(const struct definitions *definitions, u64 hash) {
  return SORTED_INDEX(definitions->n_frames, i, definitions->frames[i].id, hash);
}

bool stack_line(const struct definitions *definitions, u64 hash, struct arena *arena,
                struct call_frame *frame) {
  u32 number = stack_number(definitions, hash);
  const struct stack_definition *stack = number == INDEX_NONE ? NULL : &definitions->stacks[number];
  bool named = false;
  for (u32 i = 0; stack && i < stack->n; i++) {
    struct call_frame one;
    u32 found = frame_number(definitions, definitions->stack_frames[stack->first + i]);
    if (found == INDEX_NONE)
      continue;
    copy_frame(definitions, found, arena, &one);
    bool own = call_frame_is_user_code(&one);
    if (own || (!named && one.file))
      *frame = one;
    named |= one.file != NULL;
    if (own)
      return true;
  }
  return named;
}
