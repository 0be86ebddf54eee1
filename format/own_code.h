/* SPDX-License-Identifier: MIT
 *
 * Which files of Python are the user's own code, as both halves see it: the library keeps the last
 * own frame of a traceback, the analyzer names lines.
 */
#ifndef TSCOPE_OWN_CODE_H
#define TSCOPE_OWN_CODE_H

#include <stdbool.h>
#include <string.h>

/* PyTorch is often run from a folder of its own. */
static inline bool tscope_is_own_code(const char *file) {
  static const char *const others[] = {
      "/site-packages/",     "/dist-packages/", "/lib/python3",        "/lib64/python3",
      "/torchinductor_",     "/torch/_",        "/torch/nn/",          "/torch/autograd/",
      "/torch/distributed/", "/torch/optim/",   "/torch/utils/",       "/torch/cuda/",
      "/torch/amp/",         "/torch/fx/",      "/torch/functional.py"};
  if (*file == '<') /* code typed in, or from a notebook; not <frozen ...> or <string> */
    return strncmp(file, "<stdin>", 7) == 0 || strncmp(file, "<ipython-input", 14) == 0;
  for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
    if (strstr(file, others[i]))
      return false;
  return *file != '\0';
}

#endif
