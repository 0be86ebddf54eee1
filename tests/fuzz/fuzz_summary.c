/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: summaries of tscope reduce. Any change of a file's bytes is found by its
 * checks, so the input is what is checked: for each rank a byte, its number, the lengths of its
 * facts and of what was found on it (u32 each), and these. The file around them is right.
 * summary_seeds.py makes such inputs from real summaries.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz_report.h"
#include "import/summary/summaries.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t bytes);

enum { MOST_RANKS = 8 };

struct input {
  const u8 *at;
  size_t left;
};

static const u8 *take(struct input *in, size_t n) {
  const u8 *taken = in->at;
  in->at += n;
  in->left -= n;
  return taken;
}

static u32 take_length(struct input *in) {
  u32 n;
  memcpy(&n, take(in, sizeof(n)), sizeof(n));
  return n;
}

/* Of what is left, if that is less. */
static u8 *take_part(struct input *in, u32 wanted, struct summary_part *part) {
  size_t n = MIN(wanted, in->left);
  struct carrier c = {.written = {.at = (u8 *)(uintptr_t)take(in, n), .n = (u32)n}};
  return summary_deflate(&c, part);
}

static void take_rank(struct input *in, struct summary_made *made) {
  made->entry = (struct summary_entry){.rank = *take(in, 1), .run = 1, .start = 1, .passes = 1};
  u32 facts = take_length(in), found = take_length(in);
  made->facts = take_part(in, facts, &made->entry.facts);
  made->found = take_part(in, found, &made->entry.found);
}

/* What was found counts only beside the facts of all ranks, which are read by number. */
static void stamp(struct summary_made *made, u32 n) {
  const struct model_options none = {0};
  u64 of_all = summary_stamp_begin(&none);
  for (u32 rank = 0; rank <= UINT8_MAX; rank++)
    for (u32 i = 0; i < n; i++)
      if (made[i].entry.rank == rank)
        of_all = summary_stamp_add(of_all, &made[i].entry);
  for (u32 i = 0; i < n; i++) {
    made[i].entry.stamp = of_all;
    made[i].entry.options = (u32)summary_stamp_begin(&none);
  }
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t bytes) {
  struct input in = {data, bytes};
  struct summary_made made[MOST_RANKS];
  u32 n = 0;
  while (n < MOST_RANKS && in.left >= 1 + 2 * sizeof(u32))
    take_rank(&in, &made[n++]);
  stamp(made, n);
  if (summary_write(fuzz_report_path(), made, n) != 0)
    abort();
  for (u32 i = 0; i < n; i++) {
    free(made[i].facts);
    free(made[i].found);
  }
  fuzz_report_file();
  return 0;
}
