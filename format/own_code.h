/* SPDX-License-Identifier: MIT
 *
 * Which files of Python are the user's own code, as both halves see it: the library keeps the last
 * own frame of a traceback, the analyzer names lines.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "format/text_parts.h"
#include "format/values.h"

/* How the folder begins in which torch.compile keeps what it has generated, unless it is named. */
#define TSCOPE_GENERATED_FOLDER "/torchinductor_"

/* Code that torch.compile has written into its own cache folder, or one of any name: the file's
 * name is 'c' and a hash, in a folder named by the first two characters of the hash. */
static inline bool tscope_is_generated(const char *file) {
  enum { NAME = 52 };
  if (strstr(file, TSCOPE_GENERATED_FOLDER))
    return true;
  const char *slash = strrchr(file, '/');
  return slash && slash - file >= 3 && slash[-3] == '/' && slash[1] == 'c' &&
         strncmp(slash + 2, slash - 2, 2) == 0 && strlen(slash + 1) == NAME + 3 &&
         strcmp(slash + 1 + NAME, ".py") == 0;
}

/* PyTorch is often run from a folder of its own. A folder of the user's may be called torch, too:
 * so these are the names that the packages from 2.3 to 2.15 have there. */
static inline bool tscope_is_in_torch(const char *file) {
  static const char folder[] = "/torch/";
  static const char names[] =
      " accelerator amp ao autograd backends compiler contrib cpu cuda distributed distributions "
      "export fft foreach func functional futures fx hub jit library linalg masked monitor mps "
      "mtia multiprocessing nativert nested nn numa onnx optim overrides package profiler "
      "quantization quasirandom random return_types serialization signal sparse special storage "
      "testing torch_version types utils xpu ";
  for (const char *at = strstr(file, folder); at; at = strstr(at, folder)) {
    at += sizeof(folder) - 1;
    char name[24];
    int length = snprintf(name, sizeof(name), " %.*s ", (int)strcspn(at, "./"), at);
    if (*at == '_' || (length < (int)sizeof(name) && strstr(names, name)))
      return true;
    at--;
  }
  return false;
}

/* The part of a file's path that begins with the name of an installed package; NULL for others. */
static inline const char *tscope_installed_package(const char *file) {
  static const char site[] = "/site-packages/", debian[] = "/dist-packages/";
  const char *at = strstr(file, site);
  if (at)
    return at + sizeof(site) - 1;
  at = strstr(file, debian);
  return at ? at + sizeof(debian) - 1 : NULL;
}

static inline bool tscope_is_own_code(const char *file) {
  static const char *const others[] = {"/lib/python3", "/lib64/python3"};
  if (*file == '<') /* code typed in, or from a notebook; not <frozen ...> or <string> */
    return tscope_begins_with(file, "<stdin>") || tscope_begins_with(file, "<ipython-input");
  for (size_t i = 0; i < LENGTH_OF(others); i++)
    if (strstr(file, others[i]))
      return false;
  return *file != '\0' && !tscope_installed_package(file) && !tscope_is_generated(file) &&
         !tscope_is_in_torch(file);
}
