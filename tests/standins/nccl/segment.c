/* SPDX-License-Identifier: MIT
 *
 * The shared memory of a communicator. The first rank creates it, and the last rank to join unlinks
 * it, so that a job that is killed later leaves nothing behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "comm.h"

void futex_wait(_Atomic uint32_t *word, uint32_t value) {
  syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

void futex_wake(_Atomic uint32_t *word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static int open_segment(const char *identity, size_t bytes, char path[static 128]) {
  static const char *const folders[] = {"/dev/shm", "/tmp"};
  for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
    snprintf(path, 128, "%s/standin-nccl-%u-%s", folders[i], (unsigned)geteuid(), identity);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
      continue;
    if (ftruncate(file, (off_t)bytes) == 0)
      return file;
    close(file);
  }
  return -1;
}

static size_t aligned(size_t bytes) {
  return (bytes + 4095) / 4096 * 4096;
}

/* The staging area is sparse: only the used part takes memory. */
ncclResult_t comm_join(struct ncclComm **into, const char *identity, int nranks, int rank) {
  if (!into || nranks < 1 || nranks > MAX_RANKS || rank < 0 || rank >= nranks)
    return ncclInvalidArgument;
  struct ncclComm *comm = calloc(1, sizeof(*comm));
  if (!comm)
    return ncclSystemError;
  size_t n = (size_t)nranks;
  size_t collectives = aligned(sizeof(struct segment));
  size_t lanes = collectives + aligned(SLOTS * n * sizeof(struct cell));
  size_t staging = lanes + aligned(n * n * sizeof(struct lane));
  comm->staging_bytes = (size_t)sim_setting("STAGING_MB", 64) << 20;
  comm->mapped = staging + n * comm->staging_bytes;
  char path[128];
  int file = open_segment(identity, comm->mapped, path);
  char *memory = MAP_FAILED;
  if (file >= 0)
    memory = mmap(NULL, comm->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) {
    perror("stand-in NCCL: no shared memory");
    if (file >= 0)
      close(file);
    free(comm);
    return ncclSystemError;
  }
  close(file);
  comm->segment = (struct segment *)(void *)memory;
  comm->collectives = (struct cell *)(void *)(memory + collectives);
  comm->lanes = (struct lane *)(void *)(memory + lanes);
  comm->staging = memory + staging;
  comm->rank = rank;
  comm->nranks = nranks;
  comm->device = *sim_device();
  comm->references = 1;
  snprintf(comm->identity, sizeof(comm->identity), "%s", identity);

  struct member *member = &comm->segment->members[rank];
  if (atomic_exchange(&member->taken, 1)) {
    comm_release(comm);
    return ncclInvalidUsage;
  }
  sim_lock();
  member->bell = sim_own_bell();
  sim_unlock();
  const char *global = getenv("RANK");
  member->global_rank = global ? atoi(global) : rank;
  comm_read_fault(comm);
  if (atomic_fetch_add(&comm->segment->joined, 1) + 1 == (uint32_t)nranks) {
    unlink(path);
    futex_wake(&comm->segment->joined);
  }
  profiler_comm_begins(comm);
  *into = comm;
  return ncclSuccess;
}

void comm_await_all(struct ncclComm *comm) {
  uint32_t joined;
  while ((joined = atomic_load(&comm->segment->joined)) < (uint32_t)comm->nranks)
    futex_wait(&comm->segment->joined, joined);
}

void comm_release(struct ncclComm *comm) {
  if (--comm->references)
    return;
  while (comm->oldest) {
    struct block *block = comm->oldest;
    comm->oldest = block->next;
    free(block);
  }
  sim_op_release(comm->last);
  profiler_comm_ends(comm);
  munmap(comm->segment, comm->mapped);
  free(comm);
}

static void free_read_blocks(struct ncclComm *comm) {
  while (comm->oldest && atomic_load(&comm->oldest->cell->unread) == 0) {
    struct block *block = comm->oldest;
    comm->oldest = block->next;
    free(block);
  }
  if (!comm->oldest)
    comm->newest = NULL;
}

/* Finds space for a block: after the newest, or at the front if it is free there. */
static bool find_space(const struct ncclComm *comm, size_t bytes, uint64_t *offset) {
  if (!comm->oldest) {
    *offset = 0;
    return bytes <= comm->staging_bytes;
  }
  uint64_t after = comm->newest->offset + comm->newest->bytes;
  bool wrapped = comm->newest->offset < comm->oldest->offset;
  if (wrapped) {
    *offset = after;
    return after + bytes <= comm->oldest->offset;
  }
  *offset = after + bytes <= comm->staging_bytes ? after : 0;
  return *offset == after || bytes < comm->oldest->offset;
}

bool staging_get(struct ncclComm *comm, struct cell *cell, size_t bytes) {
  uint64_t offset;
  cell->bytes = bytes;
  if (!bytes)
    return true;
  if (bytes > comm->staging_bytes) {
    fprintf(stderr, "stand-in NCCL: %zu bytes do not fit; set STANDIN_STAGING_MB higher\n", bytes);
    abort();
  }
  free_read_blocks(comm);
  if (!find_space(comm, bytes, &offset)) {
    atomic_store(&comm->segment->members[comm->rank].waits_for_space, 1);
    free_read_blocks(comm); /* a block that was read in between did not ring the doorbell */
    if (!find_space(comm, bytes, &offset))
      return false;
  }
  struct block *block = calloc(1, sizeof(*block));
  if (!block)
    abort();
  *block = (struct block){.cell = cell, .offset = offset, .bytes = bytes};
  if (comm->newest)
    comm->newest->next = block;
  else
    comm->oldest = block;
  comm->newest = block;
  cell->offset = offset;
  return true;
}

void comm_ring_others(const struct ncclComm *comm) {
  for (int rank = 0; rank < comm->nranks; rank++)
    if (rank != comm->rank)
      sim_ring(&comm->segment->members[rank].bell);
}
