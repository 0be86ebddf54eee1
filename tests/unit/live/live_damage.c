/* SPDX-License-Identifier: MIT
 *
 * Looks at traces with damaged bytes: nothing crashes, and a page can be made from the rest.
 * Sanitizers find what this test cannot see.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scratch.h"
#include "top/top_outputs.h"
#include "top/top_page.h"
#include "tracegen.h"

static char folder[] = "/tmp/tscope-damage-XXXXXX";
static u64 seed = 88172645463325252u;

static u64 some(u64 below) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed % below;
}

/* Flips, zeroes or fills a few bytes of the file, about half the time near the beginning of a
 * chunk. */
static void damage(const char *path) {
  struct stat status;
  int fd = open(path, O_RDWR);
  assert_true(fd >= 0 && fstat(fd, &status) == 0);
  for (u64 n = 1 + some(6); n > 0; n--) {
    u8 bytes[8];
    u64 at = some((u64)status.st_size);
    if (some(2))
      at = at / TSCOPE_CHUNK_BYTES * TSCOPE_CHUNK_BYTES + some(160) + some(2) * TSCOPE_HEADER_BYTES;
    size_t size = 1 + some(8);
    for (size_t i = 0; i < size; i++)
      bytes[i] = some(3) ? (u8)some(256) : some(2) ? 0 : 0xff;
    if (at < sizeof(struct tscope_file_header) && some(8)) /* else hardly any file would be read */
      continue;
    assert_int_equal(pwrite(fd, bytes, size, (off_t)at), size);
  }
  if (some(20) == 0)
    assert_int_equal(ftruncate(fd, (off_t)some((u64)status.st_size)), 0);
  close(fd);
}

static void damage_one(const char *place) {
  char path[512], names[16][256];
  u32 n = 0;
  DIR *directory = opendir(place);
  for (struct dirent *item; directory && (item = readdir(directory));)
    if (item->d_name[0] != '.' && n < 16)
      snprintf(names[n++], sizeof(*names), "%s", item->d_name);
  closedir(directory);
  snprintf(path, sizeof(path), "%s/%s", place, names[some(n)]);
  damage(path);
}

static void write_all(struct live_view *view) {
  FILE *nowhere = fopen("/dev/null", "w");
  for (u32 one = 0; one < 2; one++) {
    struct top_page page = {.display = {.width = (unsigned)(40 + some(160)), .utf8 = some(2)},
                            .height = (unsigned)some(40),
                            .sort = (enum top_sort)some(TOP_SORTS),
                            .chosen = (u32)some(6),
                            .one = one,
                            .watched = true};
    top_page_write(&page, view, nowhere);
  }
  assert_int_equal(top_json_write(view, nowhere), 0);
  top_metrics_write(view, nowhere);
  fclose(nowhere);
}

static void damaged_traces_are_looked_at(void **state) {
  char why[256], place[128];
  u32 looked = 0;
  (void)state;
  for (u32 round = 0; round < 12; round++) {
    struct tracegen_options options = tracegen_defaults();
    struct tracegen_truth truth;
    options.directory = folder;
    options.steps = 12;
    options.flavour = round % 2 ? TRACEGEN_GLOO : TRACEGEN_NCCL;
    options.phases = round % 2;
    options.ranks_per_host = 1 + round % 4;
    assert_int_equal(tracegen_write(&options, &truth), 0);
    tracegen_truth_free(&truth);
    snprintf(place, sizeof(place), "%s/%s", folder, options.run);
    struct live_run run = {.directory = folder};
    for (u32 i = 0; i < 60; i++) {
      struct live_view view;
      damage_one(place);
      if (i % 3 == 0) { /* reopens, because bytes that were read once are not read again */
        live_run_close(&run);
        run = (struct live_run){.directory = folder};
      }
      if (live_run_poll(&run, why, sizeof(why)) != 0)
        continue;
      live_view_make(&view, &run);
      write_all(&view);
      looked++;
      live_view_release(&view);
    }
    live_run_close(&run);
    scratch_remove(place);
  }
  assert_true(looked > 12 * 30); /* most are still traces */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_traces_are_looked_at)};
  scratch_make(folder);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  scratch_remove(folder);
  return failed;
}
