/* SPDX-License-Identifier: MIT
 *
 * Measures the cost of the hooks inside PyTorch and NVTX, under the preload, in turns with the
 * floor (floor.h):
 *
 * - allocator: the function that PyTorch's CUDA allocator calls under its lock for every block,
 * here a stub that does nothing
 * - NVTX: a push and a pop of a range: two calls, one record
 * - getenv() of a variable that is set, and of one that is not
 */
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>

#include "floor.h"
#include "scratch.h"

enum { ROUNDS = 501 };

void report_block(
    void *address, long bytes, size_t allocated, size_t reserved,
    unsigned short device) __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");

static void block(u64 i) {
  report_block((void *)(i << 9), 512, i, i, 1);
}

static void range(u64 i) {
  (void)i;
  nvtxRangePushA("transformer layer");
  nvtxRangePop();
}

static void numbered_range(u64 i) {
  static const char *const names[] = {"layer 0", "layer 1", "layer 2", "layer 3"};
  nvtxRangePushA(names[i % 4]);
  nvtxRangePop();
}

static void variable_set(u64 i) {
  (void)i;
  if (!getenv("LD_PRELOAD"))
    fail("LD_PRELOAD");
}

static void variable_not_set(u64 i) {
  (void)i;
  if (getenv("TSCOPE_BENCH_NONE"))
    fail("TSCOPE_BENCH_NONE");
}

static const struct {
  const char *name;
  void (*call)(u64 i);
} subjects[] = {{"allocator's block", block},
                {"NVTX push and pop", range},
                {"the same, numbered", numbered_range},
                {"getenv, set", variable_set},
                {"getenv, not set", variable_not_set}};

int main(void) {
  static double floor_ns[ROUNDS], call_ns[ROUNDS];
  char directory[] = "/tmp/tscope-bench-XXXXXX";
  scratch_make(directory);
  setenv("TSCOPE_DIR", directory, 1);
  setenv("TSCOPE_RING_MAX", "1M", 1);
  struct entry *page = shared_pages(directory);
  /* the first launch starts the recording */
  cudaLaunchKernel(page, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL);
  for (size_t s = 0; s < LENGTH_OF(subjects); s++) {
    for (int i = -20; i < ROUNDS; i++) {
      double base = measure_floor(page);
      i64 begin = now_ns();
      for (u64 call = 0; call < CALLS; call++)
        subjects[s].call(call);
      if (i >= 0) {
        call_ns[i] = (double)(now_ns() - begin) / CALLS;
        floor_ns[i] = base;
      }
    }
    double base = median(floor_ns, ROUNDS), call = median(call_ns, ROUNDS);
    printf("%-20s %6.1f ns   %.2f x floor (%.1f ns)\n", subjects[s].name, call, call / base, base);
  }
  scratch_remove(directory);
  return 0;
}
