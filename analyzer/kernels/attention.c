/* SPDX-License-Identifier: MIT */
#include "kernels/attention.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/checked_memory.h"
#include "base/texts.h"
#include "kernels/kernel_text.h"

/* A kind of kernel of FlashAttention 2, which says its shape. */
static const struct {
  const char *kernel;  /* ends its name */
  const char *traits;  /* template whose arguments are: head size, rows, columns of a block */
  unsigned along_grid; /* which of these the first dimension of the grid counts in */
  double gemms;        /* of sequence x sequence x head size */
} known[] = {
    {"flash_fwd_kernel", "Flash_fwd_kernel_traits<", 1, 2},
    {"flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel", "Flash_bwd_kernel_traits<", 2, 5},
};

/* What follows the template's own closing bracket; NULL if there is none. */
static const char *after_bracket(const char *arguments) {
  int depth = 1;
  for (const char *at = arguments; *at; at++) {
    depth += (*at == '<') - (*at == '>');
    if (depth == 0)
      return at + 1;
  }
  return NULL;
}

/* The second template argument of the kernel behind its traits: dropout, then causal. */
static bool is_causal(const char *traits) {
  const char *at = after_bracket(traits);
  at = at ? strchr(at, ',') : NULL;
  at = at ? strchr(at + 1, ',') : NULL;
  return at && text_starts_with(at + 1 + strspn(at + 1, " "), "true");
}

static double by_name(const char *name, const u32 grid[3]) {
  FOR_EACH(known, LENGTH_OF(known), one) {
    const char *kernel = strstr(name, one->kernel);
    const char *traits = kernel ? strstr(kernel, one->traits) : NULL;
    if (!traits || kernel[strlen(one->kernel)] != '<')
      continue;
    traits += strlen(one->traits);
    double numbers[3];
    const char *at = traits;
    FOR_EACH_CHANGED(numbers, 3, number)
      *number = (double)leading_number(at + strspn(at, ", "), INT64_MAX, &at);
    double sequence = numbers[one->along_grid] * grid[0];
    double flops = 2 * one->gemms * sequence * sequence * numbers[0] * grid[1] * grid[2];
    if (!(flops > 0) || flops > 1e18)
      return NAN;
    return is_causal(traits) ? flops / 2 : flops;
  }
  return NAN;
}

/* The next number after `*at`; 0 if there is none. */
static double next_number(const char **at) {
  *at += strcspn(*at, "0123456789");
  return (double)leading_number(*at, INT64_MAX, at);
}

/* Tiles of queries, keys and head size are the second tuple of its mainloop. After the architecture
 * it says: causal, then what makes the grid say less (local, soft cap, sequences of several
 * lengths). */
static double backward_of_3(const char *name, const u32 grid[3], u32 heads) {
  const char *at = strstr(name, "CollectiveMainloopBwd"), *flags = at;
  for (int tuple = 0; at && tuple < 2; tuple++)
    at = (at = strstr(at, "tuple<")) ? at + strlen("tuple<") : NULL;
  flags = at ? strstr(at, "arch::Sm") : NULL;
  flags = flags ? strchr(flags, ',') : NULL;
  if (!flags)
    return NAN;
  next_number(&at);
  double keys = next_number(&at), head_size = next_number(&at);
  bool causal = text_starts_with(flags, ", true, false, false, false");
  if (!causal && !text_starts_with(flags, ", false, false, false, false"))
    return NAN;
  bool in_one_row = strstr(name, "LPTScheduler");
  double all_heads = in_one_row ? heads : (double)grid[1] * grid[2];
  double sequence = keys * (in_one_row ? grid[0] / all_heads : grid[0]);
  double flops = 2 * 5 * sequence * sequence * head_size * all_heads;
  return flops > 0 && flops < 1e18 ? (causal ? flops / 2 : flops) : NAN;
}

u32 kernel_attention_heads(const char *name, const u32 grid[3]) {
  return name && strstr(name, "FlashAttnBwdPreprocess") ? grid[1] * grid[2] : 0;
}

double kernel_attention_flops(const char *name, const u32 grid[3], u32 heads) {
  bool third = name && strstr(name, "FlashAttnBwd") && !strstr(name, "FlashAttnBwdP");
  if (!third && (!name || !strstr(name, "flash_")))
    return NAN;
  SCOPED char *demangled = kernel_demangle(name);
  return third ? backward_of_3(demangled, grid, heads) : by_name(demangled, grid);
}
