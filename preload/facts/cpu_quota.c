/* SPDX-License-Identifier: MIT */
#include "facts/cpu_quota.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NO_QUOTA UINT32_MAX
#define PATH_BYTES 288u

static bool read_small(const char *path, char *text, size_t bytes) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t got = fd < 0 ? -1 : read(fd, text, bytes - 1);
  if (fd >= 0)
    close(fd);
  text[got > 0 ? got : 0] = '\0';
  return got > 0;
}

static uint32_t thousandths(const char *quota, const char *period) {
  char *end;
  long long most = strtoll(quota, &end, 10); /* "max", or -1: as much as there is */
  if (end == quota || most <= 0)
    return NO_QUOTA;
  long long of = strtoll(period, &end, 10);
  if (end == period || of <= 0 || most > LLONG_MAX / 1000 || most * 1000 / of >= NO_QUOTA)
    return NO_QUOTA;
  uint32_t cores = (uint32_t)(most * 1000 / of);
  return cores ? cores : 1;
}

/* "QUOTA PERIOD" or "max PERIOD" */
static uint32_t quota_of_v2(const char *group) {
  char path[PATH_BYTES + 16], text[64];
  snprintf(path, sizeof(path), "%s/cpu.max", group);
  if (!read_small(path, text, sizeof(text)))
    return NO_QUOTA;
  const char *period = strchr(text, ' ');
  return period ? thousandths(text, period + 1) : NO_QUOTA;
}

static uint32_t quota_of_v1(const char *group) {
  char path[PATH_BYTES + 32], quota[32], period[32];
  snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", group);
  if (!read_small(path, quota, sizeof(quota)))
    return NO_QUOTA;
  snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", group);
  return read_small(path, period, sizeof(period)) ? thousandths(quota, period) : NO_QUOTA;
}

/* A group and the groups above it, up to the mount point of the tree. In a container, the path of
 * the process's group may be a path of the host that does not exist here: then the mount point is
 * the container's own group. */
static void find_lowest_quota(const char *top, const char *group,
                              uint32_t (*quota_of)(const char *), struct tscope_cpu_quota *least) {
  char path[PATH_BYTES];
  size_t floor = strlen(top);
  if ((size_t)snprintf(path, sizeof(path), "%s%s", top, group) >= sizeof(path))
    return;
  for (;;) {
    uint32_t here = quota_of(path);
    if (here < least->thousandths) {
      least->thousandths = here;
      snprintf(least->group, sizeof(least->group), "%s", path[floor] ? path + floor : "/");
    }
    char *slash = strrchr(path, '/');
    if (strlen(path) <= floor || !slash)
      return;
    *(slash < path + floor ? path + floor : slash) = '\0';
  }
}

/* Whether "cpu" is among names with commas between them. */
static bool names_cpu(const char *names) {
  for (const char *at = names; *at; at += strcspn(at, ",")) {
    at += *at == ',';
    if (strcspn(at, ",") == 3 && strncmp(at, "cpu", 3) == 0)
      return true;
  }
  return false;
}

/* "ID:CONTROLLERS:PATH"; in version 2 the field CONTROLLERS is empty. */
static void read_cgroup_line(const char *root, char *line, struct tscope_cpu_quota *least) {
  static const char *const roots_of_v1[] = {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct",
                                            "/sys/fs/cgroup/cpuacct,cpu"};
  static const char *const roots_of_v2[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
  char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL, top[PATH_BYTES];
  if (!group)
    return;
  *group++ = '\0';
  names++;
  if (*names && !names_cpu(names))
    return;
  size_t n = *names ? sizeof(roots_of_v1) / sizeof(*roots_of_v1)
                    : sizeof(roots_of_v2) / sizeof(*roots_of_v2);
  for (size_t i = 0; i < n; i++) {
    snprintf(top, sizeof(top), "%s%s", root, *names ? roots_of_v1[i] : roots_of_v2[i]);
    find_lowest_quota(top, group, *names ? quota_of_v1 : quota_of_v2, least);
  }
}

bool tscope_cpu_quota(const char *root, struct tscope_cpu_quota *quota) {
  char path[PATH_BYTES], text[512], *rest = text;
  *quota = (struct tscope_cpu_quota){.thousandths = NO_QUOTA};
  snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
  if (!read_small(path, text, sizeof(text)))
    return false;
  for (char *line; (line = strsep(&rest, "\n"));)
    read_cgroup_line(root, line, quota);
  return quota->thousandths != NO_QUOTA;
}
