/* SPDX-License-Identifier: MIT */
#include "model/span_call_sites.h"

#include <stdio.h>
#include <string.h>

bool call_frame_is_user_code(const struct call_frame *frame) {
  /* PyTorch is often run from a folder of its own. */
  static const char *const others[] = {
      "/site-packages/",     "/dist-packages/", "/lib/python3",        "/lib64/python3",
      "/torchinductor_",     "/torch/_",        "/torch/nn/",          "/torch/autograd/",
      "/torch/distributed/", "/torch/optim/",   "/torch/utils/",       "/torch/cuda/",
      "/torch/amp/",         "/torch/fx/",      "/torch/functional.py"};
  const char *file = frame->file;
  if (frame->library)
    return frame->native_own;
  if (!file || !*file || frame->others)
    return false;
  if (*file == '<') /* code typed in, or from a notebook; not <frozen ...> or <string> */
    return strncmp(file, "<stdin>", 7) == 0 || strncmp(file, "<ipython-input", 14) == 0;
  for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
    if (strstr(file, others[i]))
      return false;
  return true;
}

void call_frame_write_place(const struct call_frame *frame, char *text, size_t bytes) {
  const char *file = frame->file ? frame->file : "?";
  if (frame->library && !frame->line && frame->function)
    snprintf(text, bytes, "%s %s", file, frame->function);
  else
    snprintf(text, bytes, "%s:%u", file, frame->line);
}

u32 call_stack_line(const struct call_sites *sites, const struct call_stack *stack) {
  u32 named = INDEX_NONE;
  for (u32 i = 0; i < stack->n; i++) {
    const struct call_frame *frame = &sites->frames[stack->frames[i]];
    if (call_frame_is_user_code(frame))
      return stack->frames[i];
    if (named == INDEX_NONE && frame->file)
      named = stack->frames[i];
  }
  return named;
}
