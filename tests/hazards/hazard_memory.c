/* SPDX-License-Identifier: MIT
 *
 * A job that locks all of its memory, or leaves a core dump: what tscope has reserved and not used
 * must be in neither.
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hazard.h"

static const size_t mib = 1 << 20;

/* A limit counts only without the right to lock as much as one likes. Where the limit is lower and
 * may not be raised, that right is kept. */
static void limit_locked_memory(size_t bytes) {
  struct rlimit limit = {bytes, bytes};
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct caps[2] = {{0, 0, 0}, {0, 0, 0}};
  bool limited = setrlimit(RLIMIT_MEMLOCK, &limit) == 0;
  if (syscall(SYS_capget, &header, caps) != 0)
    fail("capget");
  if (!limited && !(caps[0].effective & 1u << CAP_IPC_LOCK))
    fail("limit of locked memory");
  if (limited)
    caps[0].effective &= ~(1u << CAP_IPC_LOCK);
  if (syscall(SYS_capset, &header, caps) != 0)
    fail("capset");
}

/* In kB, of this process. */
static unsigned long status(const char *what) {
  char line[256];
  unsigned long value = 0;
  FILE *file = fopen("/proc/self/status", "re");
  while (file && fgets(line, sizeof(line), file))
    if (strncmp(line, what, strlen(what)) == 0)
      value = strtoul(line + strlen(what) + 1, NULL, 10);
  if (file)
    fclose(file);
  return value;
}

static void say_memory(void) {
  printf("%s memory, %s of it locked\n", status("VmRSS") < 200000 ? "little" : "much",
         status("VmLck") < 200000 ? "little" : "much");
}

static void lock_all(void) {
  errno = 0;
  int result = mlockall(MCL_CURRENT | MCL_FUTURE);
  printf("mlockall: %d, %s\n", result, strerror(errno));
}

/* Without a launch. */
void lock_idle(char **arguments) {
  (void)arguments;
  if (mlockall(MCL_CURRENT) != 0)
    fail("mlockall");
  printf("%lu kB locked\n", status("VmLck"));
}

/* Says whether a trace can be read behind the end of its file: a tool that reads all memory at the
 * end, as valgrind does in its search for leaks, would be stopped at each word there. */
static void look_at_traces(void) {
  char line[8192], rights, *name;
  unsigned long from, to;
  FILE *file = fopen("/proc/self/maps", "re");
  while (file && fgets(line, sizeof(line), file)) {
    struct stat trace;
    line[strcspn(line, "\n")] = 0;
    if (!strstr(line, ".tscope") || !(name = strchr(line, '/')) ||
        sscanf(line, "%lx-%lx %c", &from, &to, &rights) != 3)
      continue;
    if (rights == 'r' && stat(name, &trace) == 0 &&
        to - from > (unsigned long)trace.st_size + (64 << 10))
      puts("mapped behind its end");
  }
  if (file)
    fclose(file);
}

void end_with_a_look(char **arguments) {
  (void)arguments;
  atexit(look_at_traces); /* before tscope's: runs after it */
  launch(5000);
  look_at_traces(); /* as it is when a signal or _exit() ends the process */
}

/* "before" the first launch, or after it. */
void lock_memory(char **arguments) {
  limit_locked_memory(400 * mib);
  if (strcmp(arguments[0], "before") == 0)
    lock_all();
  launch(1000);
  usleep(150 * 1000);
  if (strcmp(arguments[0], "before") != 0)
    lock_all();
  launch(1000);
  say_memory();
  void *more = mmap(NULL, 100 * mib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  puts(more == MAP_FAILED ? "no room for more" : "room for more");
  launch(50000); /* the trace grows */
}

/* The limit comes when the job has already launched. */
void limit_address_space(char **arguments) {
  bool by_prlimit = strcmp(arguments[0], "prlimit") == 0;
  struct rlimit limit = {1024 * mib, RLIM_INFINITY};
  launch(1000);
  usleep(150 * 1000);
  if (by_prlimit ? prlimit(0, RLIMIT_AS, &limit, NULL) : setrlimit(RLIMIT_AS, &limit))
    fail("limit of address space");
  void *more = malloc(700 * mib);
  puts(more ? "room for more" : "no room for more");
  free(more);
  launch(200000); /* the trace grows */
}

/* In a forked child, which does not train. */
void lock_in_child(char **arguments) {
  (void)arguments;
  launch(1000);
  usleep(150 * 1000);
  pid_t child = fork();
  if (child == 0) {
    if (mlockall(MCL_CURRENT) != 0)
      fail("mlockall");
    say_memory();
    fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("ended with %d\n", WEXITSTATUS(status));
}

void core_dump(char **arguments) {
  struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
  launch(1000);
  if (chdir(arguments[0]) != 0 || setrlimit(RLIMIT_CORE, &limit) != 0)
    fail(arguments[0]);
  abort();
}
