/* SPDX-License-Identifier: MIT
 *
 * Measures the cost of a hooked call after the kernel has written the trace's pages to the disk:
 * the next store to each page has a page fault. Times single calls of a stub runtime under the
 * preload, with the ring of the trace full, first without other load and then while another program
 * writes to the same disk.
 *
 *   not written back   the pages are as in a running job
 *   at once            the file was written to the disk just before the first call
 *   later              the file was written half a second before; the helper prepares the pages in
 *                      that time
 *
 * TMPDIR selects the disk.
 */
#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "floor.h"
#include "scratch.h"
#include "trace.h"

enum { TIMED = 1 << 14, FILLS_THE_RING = 1 << 18, ROUNDS = 20 };

static const char kernel;
static char directory[512], *path;
static double took_ns[TIMED * ROUNDS];

static void launch(void) {
  cudaLaunchKernel(&kernel, (dim3){128, 1, 1}, (dim3){256, 1, 1}, NULL, 0, (cudaStream_t)0x1000);
}

static void write_back(void) {
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0 || fdatasync(fd))
    fail(path);
  close(fd);
}

static long faults(void) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

static void pause_ms(long ms) {
  nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void measure(const char *what, bool back, long wait_ms, double ns_per_tick) {
  long n_faults = 0;
  double sum = 0;
  for (int round = 0; round < ROUNDS; round++) {
    if (back)
      write_back();
    launch();
    pause_ms(wait_ms);
    long before = faults();
    for (int i = 0; i < TIMED; i++) {
      u64 start = counter();
      launch();
      double ns = (double)(counter() - start) * ns_per_tick;
      took_ns[round * TIMED + i] = ns;
      sum += ns;
    }
    n_faults += faults() - before;
  }
  const size_t n = (size_t)TIMED * ROUNDS;
  median(took_ns, n); /* sorts */
  printf("  %-17s mean %5.1f ns · median %5.1f · 99.9 %% %7.0f · 99.99 %% %8.0f · most %9.0f · "
         "%ld page faults in %zu calls\n",
         what, sum / (double)n, took_ns[n / 2], took_ns[n - n / 1000], took_ns[n - n / 10000],
         took_ns[n - 1], n_faults, n);
  fflush(stdout);
}

static void measure_all(void) {
  i64 ns = now_ns();
  u64 ticks = counter();
  pause_ms(100);
  double ns_per_tick = (double)(now_ns() - ns) / (double)(counter() - ticks);
  measure("not written back", false, 10, ns_per_tick);
  measure("at once", true, 0, ns_per_tick);
  measure("later", true, 500, ns_per_tick);
}

/* Starts a process that writes to the disk until it is killed. */
static pid_t start_load(void) {
  pid_t child = fork();
  if (child)
    return child;
  static char block[1 << 20];
  char file[600];
  snprintf(file, sizeof(file), "%s/load", directory);
  memset(block, 1, sizeof(block));
  int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  for (u32 i = 0; fd >= 0; i++)
    if (pwrite(fd, block, sizeof(block), (off_t)(i % 256) << 20) < 0 ||
        (i % 64 == 63 && fdatasync(fd)))
      break;
  _exit(1);
}

int main(void) {
  const char *parent = getenv("TMPDIR");
  snprintf(directory, sizeof(directory), "%s/tscope-bench-XXXXXX", parent ? parent : "/tmp");
  scratch_make(directory);
  setenv("TSCOPE_DIR", directory, 1);
  setenv("TSCOPE_RING_MAX", "4M", 1);
  for (int i = 0; i < FILLS_THE_RING; i++)
    launch();
  if (trace_find(directory, &path, 1) != 1)
    fail("no trace: is libtscope.so preloaded?");
  printf("disk at rest\n");
  measure_all();
  pid_t load = start_load();
  printf("disk under load\n");
  measure_all();
  kill(load, SIGKILL);
  waitpid(load, NULL, 0);
  scratch_remove(directory);
  return 0;
}
