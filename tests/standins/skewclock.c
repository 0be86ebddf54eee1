/* SPDX-License-Identifier: MIT
 *
 * Wrong clocks: preloaded before libtscope.so, it gives each rank its own clocks and its own host
 * name, as if every rank ran on another machine whose clock was never set.
 *
 *   SKEW_OFFSET_NS   added to CLOCK_REALTIME and CLOCK_MONOTONIC: one number, which is
 *                    multiplied by RANK, or one for each rank, separated by commas
 *   SKEW_WALL_NS     added to CLOCK_REALTIME only, given in the same way
 *   SKEW_DRIFT_PPM   how much faster the clocks run, given in the same way
 *   SKEW_ZERO_NS     when the drift starts, by CLOCK_MONOTONIC, so that it is one for all processes
 *                    of a host; else with the process
 *   SKEW_RANK        whose settings these are; else RANK
 *   SKEW_HOSTS       1: the host name of rank N is node<N>, and its machine was booted apart
 *
 * The stand-ins and their logs use the kernel's clock (gpu/clock.h), so the truth has the right
 * times. The cycle counter cannot be changed here. Absolute deadlines, which a caller computes from
 * the changed clocks, are converted back.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define NS_PER_S 1000000000ll

static int64_t offset_ns, wall_ns, zero_ns;
static double drift;
static bool own_host;
static int rank;

static int64_t raw(clockid_t clock) {
  struct timespec now;
  syscall(SYS_clock_gettime, clock, &now);
  return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static double setting_of_rank(const char *name) {
  const char *text = getenv(name);
  if (!text || !*text)
    return 0;
  if (!strchr(text, ','))
    return atof(text) * rank;
  for (int i = 0; i < rank && text; i++) {
    text = strchr(text, ',');
    text = text ? text + 1 : NULL;
  }
  return text ? atof(text) : 0;
}

#if defined(__x86_64__)
static const unsigned char jump[] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
enum { JUMP_TARGET = 2 }; /* movabs $target, %rax; jmp *%rax */
#elif defined(__aarch64__)
static const unsigned char jump[] = {0x50, 0, 0, 0x58, 0, 2, 0x1f, 0xd6, 0, 0, 0, 0, 0, 0, 0, 0};
enum { JUMP_TARGET = 8 }; /* ldr x16, target; br x16 */
#endif

/* Who asks the C library for its own function, as libtscope.so does, gets this clock, too. */
static void replace_in_libc(const char *name, void *with) {
  void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  unsigned char *code = libc ? dlsym(libc, name) : NULL;
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)code & ~(page - 1);
  if (!code || mprotect((void *)from, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
    abort(); /* a test whose clocks are right would show nothing */
  memcpy(code, jump, sizeof(jump));
  memcpy(code + JUMP_TARGET, &with, sizeof(with));
  mprotect((void *)from, 2 * page, PROT_READ | PROT_EXEC);
  __builtin___clear_cache((char *)code, (char *)code + sizeof(jump));
}

__attribute__((constructor)) static void read_settings(void) {
  const char *own = getenv("SKEW_RANK"), *text = own ? own : getenv("RANK");
  const char *hosts = getenv("SKEW_HOSTS"), *zero = getenv("SKEW_ZERO_NS");
  rank = text ? atoi(text) : 0;
  offset_ns = (int64_t)setting_of_rank("SKEW_OFFSET_NS");
  wall_ns = (int64_t)setting_of_rank("SKEW_WALL_NS");
  drift = setting_of_rank("SKEW_DRIFT_PPM") / 1e6;
  own_host = text && hosts && atoi(hosts);
  zero_ns = zero ? atoll(zero) : raw(CLOCK_MONOTONIC);
  if (text)
    replace_in_libc("clock_gettime", (void *)(uintptr_t)clock_gettime);
}

static bool is_changed(clockid_t clock) {
  switch (clock) {
  case CLOCK_REALTIME:
  case CLOCK_REALTIME_COARSE:
  case CLOCK_MONOTONIC:
  case CLOCK_MONOTONIC_RAW:
  case CLOCK_MONOTONIC_COARSE:
  case CLOCK_BOOTTIME:
  case CLOCK_TAI:
    return true;
  default:
    return false; /* clocks of CPU time */
  }
}

static bool is_wall(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
}

static int64_t shift(clockid_t clock) {
  return offset_ns + (is_wall(clock) ? wall_ns : 0) +
         (int64_t)(drift * (double)(raw(CLOCK_MONOTONIC) - zero_ns));
}

static struct timespec add_ns(struct timespec time, int64_t by) {
  int64_t ns = time.tv_sec * NS_PER_S + time.tv_nsec + by;
  return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *time) {
  if (syscall(SYS_clock_gettime, clock, time) != 0)
    return -1;
  if (is_changed(clock))
    *time = add_ns(*time, shift(clock));
  return 0;
}

EXPORT int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  *time = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
  return 0;
}

EXPORT time_t time(time_t *into) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (into)
    *into = now.tv_sec;
  return now.tv_sec;
}

EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until,
                           struct timespec *left) {
  struct timespec deadline = *until;
  if (flags & TIMER_ABSTIME && is_changed(clock))
    deadline = add_ns(deadline, -shift(clock));
  return syscall(SYS_clock_nanosleep, clock, flags, &deadline, left) == 0 ? 0 : errno;
}

EXPORT int gethostname(char *name, size_t bytes) {
  struct utsname host;
  if (uname(&host) != 0)
    return -1;
  snprintf(name, bytes, "%s", host.nodename);
  return 0;
}

EXPORT int uname(struct utsname *host) {
  if (syscall(SYS_uname, host) != 0)
    return -1;
  if (own_host)
    snprintf(host->nodename, sizeof(host->nodename), "node%d", rank);
  return 0;
}

/* A file with the number of this rank's boot. */
static int open_boot(void) {
  char text[32];
  int length = snprintf(text, sizeof(text), "boot-of-node%d\n", rank);
  int fd = memfd_create("boot", MFD_CLOEXEC);
  if (fd >= 0 && pwrite(fd, text, (size_t)length, 0) != length) {
    close(fd);
    fd = -1;
  }
  return fd;
}

/* With 64-bit offsets, as everything here is built, the symbol is open64. */
EXPORT int open(const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
  va_end(more);
  if (own_host && strcmp(path, "/proc/sys/kernel/random/boot_id") == 0)
    return open_boot();
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_LARGEFILE, mode);
}
