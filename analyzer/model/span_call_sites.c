/* SPDX-License-Identifier: MIT */
#include "model/span_call_sites.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/texts.h"
#include "format/own_code.h"

#include <stdio.h>
#include <string.h>

bool call_is_named(u32 line, const char *function) {
  return !line && function &&
         (strcmp(function, CALLED_OPERATOR) == 0 || strcmp(function, CALLED_RANGE) == 0);
}

bool call_frame_is_same(const struct call_frame *a, const struct call_frame *b) {
  return a->line == b->line && same_text(a->file, b->file) && same_text(a->function, b->function);
}

u64 call_frame_hash(u64 before, const struct call_frame *frame) {
  return table_hash_text(table_hash_text(before + frame->line, frame->file), frame->function);
}

bool call_frame_is_user_code(const struct call_frame *frame) {
  if (call_is_named(frame->line, frame->function))
    return true;
  if (frame->library)
    return frame->native_own;
  return frame->file && !frame->others && (frame->runs_training || tscope_is_own_code(frame->file));
}

bool call_frame_starts_worker(const struct call_frame *frame) {
  static const char *const starts[] = {"_bootstrap", "_worker_loop"};
  return MATCHES_ANY(last_name(text_or_empty(frame->function)), starts, same_text);
}

struct call_frame *call_frame_kept(const struct call_frame *from, struct arena *arena) {
  struct call_frame *copy = arena_alloc(arena, sizeof(*copy));
  *copy = (struct call_frame){.file = arena_text(arena, from->file),
                              .function = arena_text(arena, from->function),
                              .line = from->line,
                              .first_line = from->first_line};
  return copy;
}

static const char *file_or_unknown(const struct call_frame *frame) {
  return frame->file ? frame->file : "unknown file";
}

void call_frame_write_place(const struct call_frame *frame, char *text, size_t bytes) {
  const char *file = file_or_unknown(frame);
  if (call_is_named(frame->line, frame->function))
    snprintf(text, bytes, "%s", file);
  else if (frame->library && !frame->line && frame->function)
    snprintf(text, bytes, "%s %s", file, frame->function);
  else
    snprintf(text, bytes, "%s:%u", file, frame->line);
}

static const char *shown_file(const char *file, const char *folder) {
  size_t length = folder ? strlen(folder) : 0;
  bool inside = length && strncmp(file, folder, length) == 0 && file[length] == '/';
  return inside && !tscope_installed_package(file) ? file + length + 1 : last_two_parts(file);
}

char *call_frame_place(struct arena *arena, const struct call_frame *frame, const char *folder) {
  bool named = !frame->file || call_is_named(frame->line, frame->function);
  const char *file = named ? file_or_unknown(frame) : shown_file(frame->file, folder);
  return frame->line ? arena_printf(arena, "%s:%u", file, frame->line) : arena_text(arena, file);
}

char *place_with_function(struct arena *arena, const char *place, const char *function) {
  return function && *function ? arena_printf(arena, "%s (%s)", place, function)
                               : arena_text(arena, place);
}

char *call_frame_in_stack(struct arena *arena, const struct call_frame *frame) {
  return arena_printf(arena, "%s:%u %s", file_or_unknown(frame), frame->line,
                      frame->function ? frame->function : "?");
}

u32 call_stack_line(const struct call_sites *sites, const struct call_stack *stack) {
  u32 named = INDEX_NONE;
  FOR_EACH(stack->frames, stack->n, one) {
    const struct call_frame *frame = &sites->frames[*one];
    if (call_frame_is_user_code(frame))
      return *one;
    if (named == INDEX_NONE && frame->file)
      named = *one;
  }
  return named;
}

u32 call_span_line(const struct call_sites *sites, u32 span) {
  u32 site = sites && span != INDEX_NONE ? sites->of_span[span] : INDEX_NONE;
  return site == INDEX_NONE ? INDEX_NONE
                            : call_stack_line(sites, &sites->stacks[sites->sites[site].stack]);
}
