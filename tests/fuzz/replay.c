/* SPDX-License-Identifier: MIT
 *
 * Runs a fuzz target on files without libFuzzer, so that inputs that failed once stay tests.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked_memory.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t bytes);

/* What one input may cost, in all reports of it together: the time is generous, for sanitizers and
 * busy machines; what has no bound passes any. */
enum { MOST_SECONDS = 20, MOST_US_PER_BYTE = 1000, MOST_MIB = 256, MOST_BYTES_PER_BYTE = 2000 };

static int run_input(const char *path, const u8 *data, size_t bytes) {
  struct memory_account account = {0};
  clock_t began = clock();
  memory_account_set(&account);
  LLVMFuzzerTestOneInput(data, bytes);
  memory_account_set(NULL);
  double seconds = (double)(clock() - began) / CLOCKS_PER_SEC;
  bool slow = seconds > MOST_SECONDS + (double)bytes * MOST_US_PER_BYTE / 1e6;
  bool large = account.taken > ((u64)MOST_MIB << 20) + (u64)bytes * MOST_BYTES_PER_BYTE;
  if (slow || large)
    printf("%s: its first %zu bytes took %.1f s and %llu bytes of memory\n", path, bytes, seconds,
           (unsigned long long)account.taken);
  return slow || large;
}

static int run_file(const char *path) {
  FILE *file = fopen(path, "rb");
  u8 *data = malloc(1 << 20);
  if (!file || !data) {
    perror(path);
    return 1;
  }
  size_t bytes = fread(data, 1, 1 << 20, file);
  fclose(file);
  int failures = run_input(path, data, bytes);
  /* also truncated, as after a crash of the writer */
  for (size_t cut = 0; cut < bytes; cut += 1 + bytes / 64)
    failures += run_input(path, data, cut);
  free(data);
  return failures;
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
