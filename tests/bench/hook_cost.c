/* SPDX-License-Identifier: MIT
 *
 * Measures the cost of hooked calls: cudaLaunchKernel and cudaEventQuery of a stub that does
 * nothing, under the preload. Every figure is compared with the floor (floor.h). The two are
 * measured in turns in the same process, so that variations of the machine affect both.
 *
 *   warm        the ring is small enough to stay in the cache, as with the real rate of a job
 *   sustained   50 million launches without pause, with the default size of the ring
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <sys/wait.h>

#include "floor.h"
#include "scratch.h"
#include "trace.h"

enum { ROUNDS = 2001 };

static const char kernel;
static double floor_ns[ROUNDS], direct_ns[ROUNDS], hooked_ns[ROUNDS], found_ns[ROUNDS],
    query_ns[ROUNDS], ratio[ROUNDS];

typedef cudaError_t (*launch_function)(const void *, dim3, dim3, void **, size_t, cudaStream_t);

__attribute__((noinline)) static double measure_calls(launch_function launch, u64 calls) {
  cudaStream_t stream = (cudaStream_t)0x1000;
  i64 begin = now_ns();
  for (u64 i = 0; i < calls; i++)
    launch(&kernel, (dim3){128, 1, 1}, (dim3){256, 1, 1}, NULL, 0, stream);
  return (double)(now_ns() - begin) / (double)calls;
}

static double measure_queries(u64 calls) {
  i64 begin = now_ns();
  for (u64 i = 0; i < calls; i++)
    cudaEventQuery((cudaEvent_t)0x2000);
  return (double)(now_ns() - begin) / (double)calls;
}

/* Looks up a function in the library: `stub_launch` has no hook; a look-up of a hooked name may
 * return the shim's function. */
static launch_function look_up(const char *name) {
  void *library = dlopen("libcudart.so.12", RTLD_LAZY | RTLD_NOLOAD);
  launch_function launch = library ? (launch_function)dlsym(library, name) : NULL;
  if (!launch)
    fail("libcudart.so.12");
  return launch;
}

static void warm(const char *directory) {
  struct entry *page = shared_pages(directory);
  launch_function direct = look_up("stub_launch"), found = look_up("cudaLaunchKernel");
  measure_calls(cudaLaunchKernel, 200000);
  for (int i = 0; i < ROUNDS; i++) {
    floor_ns[i] = measure_floor(page);
    hooked_ns[i] = measure_calls(cudaLaunchKernel, CALLS);
    found_ns[i] = measure_calls(found, CALLS);
    direct_ns[i] = measure_calls(direct, CALLS);
    query_ns[i] = measure_queries(CALLS);
    ratio[i] = hooked_ns[i] / floor_ns[i];
  }
  double base = median(floor_ns, ROUNDS), alone = median(direct_ns, ROUNDS);
  double call = median(hooked_ns, ROUNDS);
  printf("floor                 %6.1f ns   counter read twice, one 32-byte store to a warm shared "
         "page\n",
         base);
  printf("stub alone            %6.1f ns   the call without a hook\n", alone);
  printf("hooked call, warm     %6.1f ns   %.2f x floor, the whole call (wanted: 1.50)\n", call,
         median(ratio, ROUNDS));
  printf("looked up by name     %6.1f ns   the same, found with dlsym()\n",
         median(found_ns, ROUNDS));
  printf("added by the hook     %6.1f ns   %.2f x floor\n", call - alone, (call - alone) / base);
  double query = median(query_ns, ROUNDS);
  printf(
      "polled event          %6.1f ns   %.2f x floor, cudaEventQuery() of one that is not done\n",
      query, query / base);
}

/* Wall time is what a job with its own cores sees. On a busy machine it is mostly the time of other
 * programs, and the CPU time of this thread, with page faults, is more useful. */
static void sustained(const char *directory) {
  const u64 calls = 50000000, part = 1000000;
  struct entry *page = shared_pages(directory);
  double floors[50], wall = 0;
  measure_calls(cudaLaunchKernel, 1);
  i64 cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  for (u64 i = 0; i < calls / part; i++) {
    floors[i] = measure_floor(page);
    wall += measure_calls(cudaLaunchKernel, part) * (double)part / (double)calls;
  }
  double busy = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu) / (double)calls;
  double base = median(floors, calls / part);
  printf(
      "hooked call, sustained%6.1f ns   %.2f x floor by CPU time, %.1f ns (%.2f x) by wall time, "
      "over %.0f M calls (wanted: 2.00)\n",
      busy, busy / base, wall, wall / base, (double)calls / 1e6);
}

struct bytes {
  u64 records, bytes;
};

static void count(const struct trace_record *at, void *more) {
  struct bytes *bytes = more;
  bytes->records++;
  bytes->bytes += 8u * at->record->words;
}

static void show_trace(const char *directory) {
  char *path = NULL;
  struct trace trace;
  struct bytes bytes = {0};
  if (trace_find(directory, &path, 1) != 1 || !trace_open(&trace, path)) {
    printf("  no trace: is libtscope.so preloaded?\n");
    return;
  }
  long records = trace_walk(&trace, count, &bytes);
  const u64 *lost = trace.header->lost;
  printf("  trace               %6.1f bytes per event; %ld records kept, %" PRIu64
         " overwritten, %" PRIu64 " dropped for want of a chunk, %" PRIu64 " for want of disk\n",
         (double)bytes.bytes / (double)bytes.records, records, lost[TSCOPE_LOSS_RING],
         lost[TSCOPE_LOSS_BEHIND], lost[TSCOPE_LOSS_DISK]);
  trace_close(&trace);
  free(path);
}

/* Runs each part in its own process, so that the shim starts with the settings of that part. */
static void in_child(void (*part)(const char *directory), const char *ring_max) {
  const char *parent = getenv("TMPDIR");
  char directory[512];
  snprintf(directory, sizeof(directory), "%s/tscope-bench-XXXXXX", parent ? parent : "/tmp");
  scratch_make(directory);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    setenv("TSCOPE_DIR", directory, 1);
    if (ring_max)
      setenv("TSCOPE_RING_MAX", ring_max, 1);
    part(directory);
    exit(0);
  }
  int status;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
    fail("child");
  show_trace(directory);
  scratch_remove(directory);
}

int main(void) {
  in_child(warm, "1M");
  in_child(sustained, NULL);
  return 0;
}
