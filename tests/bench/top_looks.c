/* SPDX-License-Identifier: MIT
 *
 * Measures the time of one update of tscope-top: top_looks [RANKS [EVENTS [LOOKS]]], 1000, 5000 and
 * 8 by default. A generated run is committed in parts, EVENTS more of each rank per update, as many
 * as a job may have in a second. After each part the traces are read and a page is written.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/clock_ns.h"
#include "live/live_view.h"
#include "scratch.h"
#include "top/top_page.h"
#include "tracegen.h"

struct growing {
  u8 *map;
  size_t bytes;
  u64 *whole; /* [chunks] value of `committed` in the complete file */
};

static double now_s(clockid_t clock) {
  return (double)clock_ns(clock) / 1e9;
}

static struct tscope_chunk_header *chunk_of(const struct growing *file, u32 index) {
  const struct tscope_file_header *header = (const void *)file->map;
  return (void *)(file->map + header->header_bytes + (size_t)index * header->chunk_bytes);
}

static u32 chunks_of(const struct growing *file) {
  const struct tscope_file_header *header = (const void *)file->map;
  return (u32)((file->bytes - header->header_bytes + header->chunk_bytes - 1) /
               header->chunk_bytes);
}

static void open_growing(struct growing *file, const char *path) {
  struct stat status;
  int fd = open(path, O_RDWR);
  if (fd < 0 || fstat(fd, &status) < 0)
    exit(2);
  file->bytes = (size_t)status.st_size;
  file->map = mmap(NULL, file->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (file->map == MAP_FAILED)
    exit(2);
  file->whole = calloc(chunks_of(file) + 1, sizeof(*file->whole));
  ((struct tscope_file_header *)(void *)file->map)->closed_realtime_ns = 0;
  for (u32 c = 0; c < chunks_of(file); c++) {
    file->whole[c] = chunk_of(file, c)->committed;
    chunk_of(file, c)->committed = 0;
  }
}

/* Commits the given part of what each thread wrote with each retention and clock: whole chunks, and
 * then records. */
static void commit_part(struct growing *file, double part) {
  for (u32 c = 0; c < chunks_of(file); c++) {
    struct tscope_chunk_header *chunk = chunk_of(file, c);
    u64 before = 0, all = 0;
    for (u32 o = 0; o < chunks_of(file); o++) {
      const struct tscope_chunk_header *other = chunk_of(file, o);
      bool same = other->thread == chunk->thread && other->retention == chunk->retention &&
                  other->clock == chunk->clock;
      all += same ? (u32)file->whole[o] : 0;
      before += same && other->sequence < chunk->sequence ? (u32)file->whole[o] : 0;
    }
    /* Thread 0 has the definitions, which must be there before they are used. */
    u64 out = chunk->thread == 0 ? all : (u64)(part * (double)all);
    u32 wanted = out <= before ? 0 : (u32)(out - before), bytes = 0, n = 0;
    if (wanted >= (u32)file->whole[c]) {
      chunk->committed = file->whole[c];
      continue;
    }
    while (bytes < wanted) {
      bytes +=
          8u * ((const struct tscope_record *)(const void *)((u8 *)(chunk + 1) + bytes))->words;
      n++;
    }
    chunk->committed = (u64)n << 32 | bytes;
  }
}

static struct growing *open_all(const char *folder, u32 *n) {
  struct growing *files = NULL;
  DIR *directory = opendir(folder);
  *n = 0;
  for (struct dirent *item; directory && (item = readdir(directory));) {
    char path[1024];
    if (item->d_name[0] == '.')
      continue;
    files = realloc(files, (*n + 1) * sizeof(*files));
    snprintf(path, sizeof(path), "%s/%s", folder, item->d_name);
    open_growing(&files[(*n)++], path);
  }
  if (directory)
    closedir(directory);
  return files;
}

static void look(struct live_run *run, u32 number) {
  char why[256], *text = NULL;
  size_t bytes = 0;
  struct live_view view;
  double cpu = now_s(CLOCK_PROCESS_CPUTIME_ID), begin = now_s(CLOCK_MONOTONIC);
  if (live_run_poll(run, why, sizeof(why)) != 0) {
    fprintf(stderr, "%s\n", why);
    exit(2);
  }
  double looked = now_s(CLOCK_MONOTONIC);
  live_view_make(&view, run);
  struct top_page page = {.display = {.width = 120, .utf8 = true, .color = true},
                          .height = 40,
                          .chosen = TSCOPE_UNKNOWN_RANK};
  FILE *out = open_memstream(&text, &bytes);
  top_page_write(&page, &view, out);
  fclose(out);
  double end = now_s(CLOCK_MONOTONIC);
  printf("look %u: %6.1f ms in all, %5.1f of CPU; reading %6.1f ms, %.1f MB\n", number,
         (end - begin) * 1e3, (now_s(CLOCK_PROCESS_CPUTIME_ID) - cpu) * 1e3, (looked - begin) * 1e3,
         (double)run->read_bytes / 1e6);
  fflush(stdout);
  free(text);
  live_view_release(&view);
}

int main(int argc, char **argv) {
  char folder[] = "/tmp/tscope-looks-XXXXXX", runs[64];
  u32 ranks = argc > 1 ? (u32)atoi(argv[1]) : 1000, events = argc > 2 ? (u32)atoi(argv[2]) : 5000;
  u32 looks = argc > 3 ? (u32)atoi(argv[3]) : 8, n;
  struct tracegen_options options = tracegen_defaults();
  struct tracegen_truth truth;
  scratch_make(folder);
  options.directory = folder;
  options.ranks = ranks;
  options.kernels = 12;
  options.steps = looks * events / 215 + 1;
  if (tracegen_write(&options, &truth) != 0)
    return 2;
  snprintf(runs, sizeof(runs), "%s/%s", folder, options.run);
  struct growing *files = open_all(runs, &n);
  struct live_run run = {.directory = folder};
  printf("%u ranks, %u events each from look to look\n", ranks, events);
  for (u32 i = 1; i <= looks; i++) {
    for (u32 f = 0; f < n; f++)
      commit_part(&files[f], (double)i / looks);
    look(&run, i);
  }
  live_run_close(&run);
  tracegen_truth_free(&truth);
  scratch_remove(folder);
  return 0;
}
