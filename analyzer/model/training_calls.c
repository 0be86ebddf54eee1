/* SPDX-License-Identifier: MIT */
#include "model/training_calls.h"

#include <stdlib.h>

#include "base/checked_memory.h"
#include "base/texts.h"
#include "format/own_code.h"
#include "model/training_functions.def"

/* From Python 3.11 on a method's name begins with its class's. */
static bool is_method(const char *function, const char *name) {
  size_t length = function ? strlen(function) : 0, of_name = strlen(name);
  return text_ends_with(function, name) &&
         (length == of_name || function[length - of_name - 1] == '.');
}

enum training_part frame_training_part(const struct call_frame *frame) {
  static const struct {
    const char *function, *file;
    enum training_part part;
  } functions[] = {
#define X(function, file, part) {function, file, TRAINING_##part},
      TSCOPE_TRAINING_FUNCTIONS(X)
#undef X
  };
  FOR_EACH(functions, LENGTH_OF(functions), one)
    if (is_method(frame->function, one->function) && text_ends_with(frame->file, one->file))
      return one->part;
  return TRAINING_NONE;
}

/* What is known of a frame by itself. */
struct frame_kind {
  const char *package; /* begins with the name of an installed package; NULL: none, or PyTorch's */
  u8 part;             /* enum training_part */
  bool own;
  u8 parts_below; /* of an own frame: the parts that a package called there does, a bit each */
};

struct finding_library {
  struct call_sites *sites;
  struct frame_kind *kinds; /* [n_frames] */
  u8 parts_without_own;     /* the parts in stacks without own code */
  bool any_own;
};

static const char *package_of(const struct call_frame *frame) {
  bool python = frame->file && !frame->library && !frame->others;
  return python && !tscope_is_in_torch(frame->file) ? tscope_installed_package(frame->file) : NULL;
}

static bool same_package(const char *a, const char *b) {
  size_t length = strcspn(a, "/.");
  return length == strcspn(b, "/.") && memcmp(a, b, length) == 0;
}

/* The part of training that is outermost among the frames inside of `at`. */
static enum training_part part_inside(const struct finding_library *f,
                                      const struct call_stack *stack, u32 at) {
  while (at-- > 0)
    if (f->kinds[stack->frames[at]].part)
      return f->kinds[stack->frames[at]].part;
  return TRAINING_NONE;
}

/* The innermost own frame: stack->n for none. */
static u32 own_frame_of(const struct finding_library *f, const struct call_stack *stack) {
  u32 at = 0;
  while (at < stack->n && !f->kinds[stack->frames[at]].own)
    at++;
  return at;
}

static void note_parts(struct finding_library *f) {
  FOR_EACH(f->sites->stacks, f->sites->n_stacks, stack) {
    u32 own = own_frame_of(f, stack);
    u8 part = (u8)(1u << part_inside(f, stack, own) & ~1u);
    f->any_own |= own < stack->n;
    if (own == stack->n)
      f->parts_without_own |= part;
    else if (own > 0 && f->kinds[stack->frames[own - 1]].package)
      f->kinds[stack->frames[own]].parts_below |= part;
  }
}

static bool are_several(u8 parts) {
  return (parts & (parts - 1)) != 0;
}

/* Whether a library runs the loop in a stack whose innermost own frame is `own`. */
static bool is_in_loop(const struct finding_library *f, const struct call_stack *stack, u32 own) {
  return own < stack->n ? are_several(f->kinds[stack->frames[own]].parts_below)
                        : !f->any_own && are_several(f->parts_without_own);
}

/* Packages of which a frame calls a part of training in the loop. */
static u32 list_packages(struct finding_library *f, const char **packages) {
  u32 n = 0;
  FOR_EACH(f->sites->stacks, f->sites->n_stacks, stack) {
    u32 own = own_frame_of(f, stack), inside = 0;
    while (inside < own && !f->kinds[stack->frames[inside]].part)
      inside++;
    if (!is_in_loop(f, stack, own))
      continue;
    if (own < stack->n && !f->sites->loop)
      f->sites->loop = &f->sites->frames[stack->frames[own]];
    for (u32 k = inside + 1; k < own; k++) {
      const char *package = f->kinds[stack->frames[k]].package;
      u32 known = 0;
      while (package && known < n && !same_package(packages[known], package))
        known++;
      if (package && known == n)
        packages[n++] = package;
    }
  }
  return n;
}

void call_sites_find_library(struct call_sites *sites) {
  struct finding_library f = {.sites = sites};
  f.kinds = memory_zeroed(size_sum(sites->n_frames, 1), sizeof(*f.kinds));
  bool any = false;
  for (u32 i = 0; i < sites->n_frames; i++) {
    const struct call_frame *frame = &sites->frames[i];
    f.kinds[i] = (struct frame_kind){.package = package_of(frame),
                                     .part = (u8)frame_training_part(frame),
                                     .own = call_frame_is_user_code(frame)};
    any |= f.kinds[i].package != NULL;
  }
  if (any) {
    SCOPED const char **packages = memory_array(sites->n_frames, sizeof(*packages));
    note_parts(&f);
    u32 n = list_packages(&f, packages);
    for (u32 i = 0; i < sites->n_frames; i++)
      for (u32 k = 0; k < n && f.kinds[i].package; k++)
        sites->frames[i].runs_training |= same_package(packages[k], f.kinds[i].package);
  }
  free(f.kinds);
}
