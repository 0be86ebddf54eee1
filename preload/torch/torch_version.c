/* SPDX-License-Identifier: MIT */
#include "torch/torch_version.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "format/text_parts.h"
#include "inspect/small_file.h"
#include "resolve/search.h"

u32 torch_version;

/* A function that every PyTorch 2 has. */
static void *torch_landmark(void) {
  return tscope_first_definition("_ZNK2at14RecordFunction4nameEv");
}

bool torch_loaded(void) {
  return torch_landmark() != NULL;
}

/* Copies what `quote` encloses after `assignment` in `content`. */
static bool read_quoted(const char *content, const char *assignment, char quote, char *text,
                        size_t bytes) {
  const char *at = strstr(content, assignment);
  const char *begin = at ? strchr(at, quote) : NULL;
  const char *end = begin ? strchr(begin + 1, quote) : NULL;
  if (!end || (size_t)(end - begin) > bytes)
    return false;
  memcpy(text, begin + 1, (size_t)(end - begin - 1));
  text[end - begin - 1] = '\0';
  return true;
}

/* In a wheel, torch/version.py is next to torch/lib/. */
static bool version_from_wheel(char *text, size_t bytes) {
  struct tscope_object library;
  if (!tscope_object_of(torch_landmark(), &library))
    return false;
  const char *lib = strstr(library.path, "/lib/libtorch_cpu.so");
  static char path[PATH_MAX]; /* found once, on a thread that may have little stack */
  if (!lib || lib - library.path > (ptrdiff_t)sizeof(path) - 16)
    return false;
  snprintf(path, sizeof(path), "%.*s/version.py", (int)(lib - library.path), library.path);
  char content[1024];
  return small_file_read(path, content, sizeof(content)) > 0 &&
         read_quoted(content, "__version__ = ", '\'', text, bytes);
}

/* Newer libraries have it: major, minor and patch in the three top bytes. */
static bool version_from_library(char *text, size_t bytes) {
  u64 (*abi_version)(void) = (u64(*)(void))tscope_first_definition("aoti_torch_abi_version");
  if (!abi_version)
    return false;
  u64 version = abi_version();
  snprintf(text, bytes, "%u.%u.%u", (unsigned)(version >> 56), (unsigned)(version >> 48 & 0xff),
           (unsigned)(version >> 40 & 0xff));
  return true;
}

/* "2.11.0+cu130" is 211; 0 for what does not look like a version. */
static u32 version_code(const char *text) {
  const char *dot, *end = "";
  u32 major = (u32)leading_number(text, 100, &dot), minor = 0;
  if (dot > text && *dot == '.')
    minor = (u32)leading_number(dot + 1, 100, &end);
  return *end == '.' && end > dot + 1 && major < 100 && minor < 100
             ? TORCH_VERSION_CODE(major, minor)
             : 0;
}

void torch_version_find(struct tscope_thread *thread) {
  char text[64];
  if (version_from_wheel(text, sizeof(text)) || version_from_library(text, sizeof(text))) {
    torch_version = version_code(text);
    tscope_info(thread, TSCOPE_INFO_TORCH, text, NULL);
  }
}
