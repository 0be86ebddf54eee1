/* SPDX-License-Identifier: MIT
 *
 * The few functions of MPI that `tscope reduce` needs, from the library of the job's own mpirun.
 * Nothing is linked: one program serves Open MPI, and MPICH with all that keep its binary interface
 * (Intel MPI, Cray MPICH, MVAPICH).
 */
#pragma once

#include <stdlib.h>

#include "base/texts.h"
#include "base/vector.h"

/* Whether mpirun (or another launcher of MPI) has started this process beside others. */
static inline bool mpi_launched(void) {
  const char *open_mpi = getenv("OMPI_COMM_WORLD_SIZE"), *mpich = getenv("PMI_SIZE");
  const char *size = open_mpi ? open_mpi : mpich;
  return size && leading_number(size, UINT32_MAX, NULL) > 1;
}

struct mpi {
  int rank, size;
};

/* Loads the library and joins the others. False, with a line in `why`. */
bool mpi_begin(struct mpi *mpi, char *why, size_t why_bytes);
void mpi_end(void);

/* `all` [size * bytes]: what each process gave. */
void mpi_share(const void *own, void *all, size_t bytes);
/* Gives everybody what the process `root` has. */
void mpi_give_to_all(int root, void *data, u64 bytes);
void mpi_send(int to, const void *data, u64 bytes);
void mpi_receive(int from, void *data, u64 bytes);
