/* SPDX-License-Identifier: MIT
 *
 * From dormant to awake: configuration, clocks, the trace file, and the facts of the process.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "facts/directory.h"
#include "facts/identity.h"
#include "facts/memory_limit.h"
#include "format/default_directory.h"
#include "inspect/pid_namespace.h"
#include "process/address_limit.h"
#include "process/bus_errors.h"
#include "process/process.h"
#include "process/workers.h"
#include "record/chunk_pool.h"
#include "record/error_text.h"
#include "record/process_trace.h"
#include "record/self_cost.h"
#include "record/thread.h"
#include "record/tick_clock.h"
#include "record/trace_definitions.h"
#include "settings/env.h"

/* All of this runs on the helper's stack. */
#pragma GCC diagnostic ignored "-Wframe-larger-than="

static void fill_header(struct tscope_file_header *header, const struct tscope_identity *identity,
                        u32 ring_max) {
  struct tscope_anchor_record now = {0};
  tscope_clock_anchor(&now);
  *header = (struct tscope_file_header){
      .version_major = TSCOPE_VERSION_MAJOR,
      .version_minor = TSCOPE_VERSION_MINOR,
      .byte_order_mark = TSCOPE_BYTE_ORDER_MARK,
      .header_bytes = TSCOPE_HEADER_BYTES,
      .chunk_bytes = TSCOPE_CHUNK_BYTES,
      .tick_source = tscope_clock.source,
      .tick_shift = tscope_clock.shift,
      .tick_hz = tscope_clock.hz,
      .pid = (u32)getpid(),
      .pid_namespace = pid_namespace_of("self"),
      .rank = identity->rank,
      .world_size = identity->world_size,
      .local_rank = identity->local_rank,
      .start_ticks = now.ticks,
      .start_monotonic_ns = now.monotonic_ns,
      .start_realtime_ns = now.realtime_ns,
      .alive_ticks = now.ticks,
      .ring_cap_chunks = ring_max,
  };
  memcpy(header->magic, TSCOPE_MAGIC, sizeof(header->magic));
  snprintf(header->host, sizeof(header->host), "%s", identity->host);
  snprintf(header->run, sizeof(header->run), "%s", identity->run);
}

/* `directory` as an absolute path: the job may change its working directory later. */
static bool absolute(char *path, size_t bytes, const char *directory) {
  if (directory[0] == '/')
    return (size_t)snprintf(path, bytes, "%s", directory) < bytes;
  char here[PATH_MAX];
  return getcwd(here, sizeof(here)) &&
         (size_t)snprintf(path, bytes, "%s/%s", here, directory) < bytes;
}

static u32 chunks_of(u64 bytes, u32 least) {
  const u32 most = 1u << 24; /* 1 TiB of chunks */
  u64 chunks = bytes / TSCOPE_CHUNK_BYTES;
  return (u32)CLAMP(chunks, least, most);
}

/* The whole trace is mapped: a process that may have only so much address space has less of it. */
static void stay_within_address_space(u32 *ring_max, u32 *retained_max) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    tscope_chunks_within(limit.rlim_cur / TSCOPE_PART_OF_ADDRESS_SPACE, ring_max, retained_max);
}

static bool open_trace(const struct tscope_identity *identity, char *why, size_t bytes) {
  u32 ring_max = chunks_of(tscope_env.ring_max, 0);
  u32 retained_max = chunks_of(tscope_env.retained_max, TSCOPE_RETAINED_LEAST);
  stay_within_address_space(&ring_max, &retained_max);
  struct tscope_file_header header;
  fill_header(&header, identity, ring_max);
  char directory[PATH_MAX], path[PATH_MAX + 256], name[200];
  char standard[TSCOPE_DEFAULT_DIRECTORY_BYTES];
  tscope_directory_to_write(standard);
  if (!absolute(directory, sizeof(directory), *tscope_env.dir ? tscope_env.dir : standard)) {
    snprintf(why, bytes, "%.200s cannot be used as TSCOPE_DIR", tscope_env.dir);
    return false;
  }
  bool for_group = strcmp(tscope_env.access, "group") == 0;
  int fd = tscope_directory_open(directory, identity->run, for_group, why, bytes);
  if (fd < 0)
    return false;
  snprintf(path, sizeof(path), "%s/%s", directory, identity->run);
  snprintf(name, sizeof(name), "%s-%u-%llx" TSCOPE_FILE_SUFFIX, identity->file_host, header.pid,
           (unsigned long long)header.start_ticks);
  tscope_trace.disk_free = tscope_env.disk_free;
  tscope_memory_limit_find("");
  tscope_trace.memory_allows = tscope_memory_limit_allows;
  int error = tscope_chunk_pool_init(ring_max, retained_max, tscope_helper_wake);
  if (!error)
    error = tscope_trace_create(fd, path, name, &header, ring_max + retained_max);
  if (!error && for_group)
    fchmodat(fd, name, 0640, 0);
  close(fd);
  if (error) {
    snprintf(why, bytes, "cannot write a trace in %.300s (%s)", path, tscope_error_text(-error));
    return false;
  }
  if (!tscope_trace.carried)
    tscope_bus_errors_guard();
  tscope_chunk_pool_refill();
  if (!tscope_queue_length(&tscope_chunk_pool.ready)) {
    snprintf(why, bytes, "no room for a trace in %.300s; free some, or set TSCOPE_DIR", path);
    unlink(tscope_trace.path);
    return false;
  }
  return true;
}

bool tscope_may_wake(void) {
  if (!tscope_is_wanted())
    return false;
  tscope_env_read();
  return tscope_env.enabled;
}

bool tscope_wake(u64 began_ns, char *why, size_t bytes) {
  struct tscope_identity identity;
  tscope_identify(&identity);
  tscope_clock_choose();
  if (!open_trace(&identity, why, bytes))
    return false;
  int error = tscope_definitions_init();
  if (!error) {
    tscope_threads_init();
    tscope_definitions_write_thread(0, (u32)getpid(), "tscope");
    tscope_definitions_write_schema();
    tscope_facts_write(&identity);
    tscope_self_cost_init(tscope_clock_ns(CLOCK_MONOTONIC) - began_ns);
  }
  if (error) {
    snprintf(why, bytes, "cannot start (%s)", tscope_error_text(-error));
    unlink(tscope_trace.path);
    return false;
  }
  return true;
}
