/* SPDX-License-Identifier: MIT
 *
 * Which files of Python are the user's own code, as both halves see it: the library keeps the last
 * own frame of a traceback, the analyzer names lines.
 */
#ifndef TSCOPE_OWN_CODE_H
#define TSCOPE_OWN_CODE_H

#include <stdbool.h>
#include <string.h>

/* Code that torch.compile has written into a cache folder of any name: the file's name is 'c' and a
 * hash, in a folder named by the first two characters of the hash. */
static inline bool tscope_is_generated(const char *file) {
  enum { NAME = 52 };
  const char *slash = strrchr(file, '/');
  return slash && slash - file >= 3 && slash[-3] == '/' && slash[1] == 'c' &&
         strncmp(slash + 2, slash - 2, 2) == 0 && strlen(slash + 1) == NAME + 3 &&
         strcmp(slash + 1 + NAME, ".py") == 0;
}

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
  return *file != '\0' && !tscope_is_generated(file);
}

#endif
