/* SPDX-License-Identifier: MIT */
#include "record/tick_clock.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

#include "inspect/small_file.h"
#endif

struct tscope_clock tscope_clock;
bool tscope_ticks_are_monotonic_clock;
u8 tscope_tick_shift;
u64 (*tscope_gpu_clock_now)(void);
int (*tscope_clock_read)(clockid_t, struct timespec *) = clock_gettime;

u64 tscope_ticks_slow(void) {
  return tscope_clock_ns(CLOCK_MONOTONIC);
}

#if defined(__x86_64__)
/* First what the kernel uses: it has compared the cores' counters. If it uses a paravirtual clock
 * based on the TSC, the CPU's promise of a constant rate is enough. But a kernel that fell back to
 * a timer outside the CPU has seen the TSC fail. */
static bool tsc_is_a_clock(void) {
  char name[32];
  if (small_file_read("/sys/devices/system/clocksource/clocksource0/current_clocksource", name,
                      sizeof(name)) > 0) {
    name[strcspn(name, "\n")] = '\0';
    if (strcmp(name, "tsc") == 0)
      return true;
    if (strcmp(name, "hpet") == 0 || strcmp(name, "acpi_pm") == 0 || strcmp(name, "jiffies") == 0)
      return false;
  }
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && (edx & 1u << 8);
}

/* Frequency from CPUID leaf 0x15: crystal * numerator / denominator; 0 if it is not given. */
static u64 hardware_hz(void) {
  unsigned denominator, numerator, crystal, edx;
  if (!__get_cpuid(0x15, &denominator, &numerator, &crystal, &edx) || !denominator || !crystal)
    return 0;
  return (u64)crystal * numerator / denominator;
}
#elif defined(__aarch64__)
static u64 hardware_hz(void) {
  u64 hz;
  __asm__("mrs %0, cntfrq_el0" : "=r"(hz));
  return hz;
}
#endif

/* From two readings that were not interrupted: if a thread loses its core between reading one clock
 * and the other, the rate is wrong. */
static u64 measured_hz(void) {
  const u64 long_enough_ns = 500000;
  struct tscope_anchor_record begin = {0}, end = {0};
  tscope_clock_anchor(&begin);
  while (tscope_clock_ns(CLOCK_MONOTONIC) - begin.monotonic_ns < long_enough_ns)
    ;
  tscope_clock_anchor(&end);
  return (u64)((double)(end.ticks - begin.ticks) * 1e9 /
               (double)(end.monotonic_ns - begin.monotonic_ns));
}

void tscope_clock_choose(void) {
#if defined(__x86_64__)
  tscope_ticks_are_monotonic_clock = !tsc_is_a_clock();
  tscope_clock.source = TSCOPE_TICK_TSC;
#elif defined(__aarch64__)
  tscope_clock.source = TSCOPE_TICK_CNTVCT;
#endif
  if (tscope_ticks_are_monotonic_clock) {
    tscope_clock.source = TSCOPE_TICK_MONOTONIC;
    tscope_clock.hz = 1000000000;
  } else {
    tscope_clock.hz = hardware_hz();
    if (!tscope_clock.hz)
      tscope_clock.hz = measured_hz();
  }
  /* The smallest shift that makes a unit at least 4 ns. */
  tscope_clock.shift = 0;
  while ((tscope_clock.hz >> tscope_clock.shift) > 250000000)
    tscope_clock.shift++;
  tscope_tick_shift = (u8)tscope_clock.shift;
}

void tscope_clock_anchor(struct tscope_anchor_record *anchor) {
  u64 best = UINT64_MAX;
  for (int attempt = 0; attempt < 8; attempt++) {
    u64 before = tscope_ticks();
    u64 monotonic = tscope_clock_ns(CLOCK_MONOTONIC);
    u64 realtime = tscope_clock_ns(CLOCK_REALTIME);
    u64 after = tscope_ticks();
    if (after - before >= best)
      continue;
    best = after - before;
    anchor->ticks = before + best / 2;
    anchor->monotonic_ns = monotonic;
    anchor->realtime_ns = realtime;
    anchor->error_ticks = best;
  }
  anchor->gpu_ns = tscope_gpu_clock_now ? tscope_gpu_clock_now() : 0;
}
