/* SPDX-License-Identifier: MIT
 *
 * Runs a fuzz target on files without libFuzzer, so that inputs that failed once stay tests.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/tscope_format.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t bytes);

static int run_file(const char *path) {
  FILE *file = fopen(path, "rb");
  u8 *data = malloc(1 << 20);
  if (!file || !data) {
    perror(path);
    return 1;
  }
  size_t bytes = fread(data, 1, 1 << 20, file);
  fclose(file);
  LLVMFuzzerTestOneInput(data, bytes);
  /* also truncated, as after a crash of the writer */
  for (size_t cut = 0; cut < bytes; cut += 1 + bytes / 64)
    LLVMFuzzerTestOneInput(data, cut);
  free(data);
  return 0;
}

int main(int argc, char **argv) {
  int failures = argc < 2, files = 0;
  for (int i = 1; i < argc; i++) {
    DIR *directory = opendir(argv[i]);
    for (struct dirent *item; directory && (item = readdir(directory));) {
      char path[4096];
      if (item->d_name[0] == '.')
        continue;
      snprintf(path, sizeof(path), "%s/%s", argv[i], item->d_name);
      failures += run_file(path);
      files++;
    }
    if (directory)
      closedir(directory);
  }
  printf("%d inputs\n", files);
  return failures || files == 0;
}
