/* SPDX-License-Identifier: MIT */
#include "programs/mpi_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_BYTES (1 << 30) /* of one message: MPI counts with int */

/* What Open MPI hands around as a pointer is an int in MPICH. Both travel in one register on the
 * machines that tscope runs on, so one type serves both. */
typedef uintptr_t handle;

static struct {
  int (*Init)(int *argc, char ***argv);
  int (*Comm_rank)(handle comm, int *rank);
  int (*Comm_size)(handle comm, int *size);
  int (*Allgather)(const void *own, int n, handle type, void *all, int n_all, handle type_all,
                   handle comm);
  int (*Bcast)(void *data, int n, handle type, int root, handle comm);
  int (*Send)(const void *data, int n, handle type, int to, int tag, handle comm);
  int (*Recv)(void *data, int n, handle type, int from, int tag, handle comm, void *status);
  int (*Finalize)(void);
  handle world, byte;
} library;

static bool of_open_mpi(void) {
  return getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMIX_RANK");
}

static void *open_library(void) {
  static const char *const open_mpi[] = {"libmpi.so.40", "libmpi.so.80", NULL};
  static const char *const mpich[] = {"libmpich.so.12", "libmpi.so.12", NULL};
  void *found = NULL;
  for (const char *const *name = of_open_mpi() ? open_mpi : mpich; *name && !found; name++)
    found = dlopen(*name, RTLD_NOW | RTLD_GLOBAL);
  return found;
}

static bool find_handles(void *opened) {
  if (!of_open_mpi()) { /* fixed by MPICH's binary interface */
    library.world = 0x44000000;
    library.byte = 0x4c00010d;
    return true;
  }
  library.world = (handle)dlsym(opened, "ompi_mpi_comm_world");
  library.byte = (handle)dlsym(opened, "ompi_mpi_byte");
  return library.world && library.byte;
}

static bool find_functions(void *opened) {
#define LOOK_UP(name) (*(void **)&library.name = dlsym(opened, "MPI_" #name))
  return LOOK_UP(Init) && LOOK_UP(Comm_rank) && LOOK_UP(Comm_size) && LOOK_UP(Allgather) &&
         LOOK_UP(Bcast) && LOOK_UP(Send) && LOOK_UP(Recv) && LOOK_UP(Finalize);
#undef LOOK_UP
}

bool mpi_begin(struct mpi *mpi, char *why, size_t why_bytes) {
  void *opened = open_library();
  if (!opened) {
    const char *reason = dlerror();
    snprintf(why, why_bytes, "MPI cannot be loaded: %s", reason ? reason : "no library");
    return false;
  }
  if (!find_functions(opened) || !find_handles(opened)) {
    snprintf(why, why_bytes, "the library of MPI is of a kind that is not known here");
    return false;
  }
  if (library.Init(NULL, NULL) != 0 || library.Comm_rank(library.world, &mpi->rank) != 0 ||
      library.Comm_size(library.world, &mpi->size) != 0) {
    snprintf(why, why_bytes, "MPI could not start");
    return false;
  }
  return true;
}

void mpi_end(void) {
  library.Finalize();
}

void mpi_share(const void *own, void *all, size_t bytes) {
  library.Allgather(own, (int)bytes, library.byte, all, (int)bytes, library.byte, library.world);
}

/* The bytes of the next message. */
static int next_part(u64 left) {
  return (int)(MIN(left, MOST_BYTES));
}

void mpi_give_to_all(int root, void *data, u64 bytes) {
  for (u64 at = 0; at < bytes; at += MOST_BYTES)
    library.Bcast((u8 *)data + at, next_part(bytes - at), library.byte, root, library.world);
}

void mpi_send(int to, const void *data, u64 bytes) {
  for (u64 at = 0; at < bytes; at += MOST_BYTES)
    library.Send((const u8 *)data + at, next_part(bytes - at), library.byte, to, 0, library.world);
}

void mpi_receive(int from, void *data, u64 bytes) {
  u64 status[16]; /* room for that of every MPI */
  for (u64 at = 0; at < bytes; at += MOST_BYTES)
    library.Recv((u8 *)data + at, next_part(bytes - at), library.byte, from, 0, library.world,
                 status);
}
