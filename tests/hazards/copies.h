/* SPDX-License-Identifier: MIT
 *
 * The NCCL calls of a small training, with the functions of any copy of NCCL.
 */
#pragma once

#include <stdio.h>

#include "fake_nccl.h"

struct nccl_api {
  ncclResult_t (*init)(ncclComm_t *, int, ncclUniqueId, int);
  ncclResult_t (*all_reduce)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                             cudaStream_t);
  ncclResult_t (*bcast)(void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
  ncclResult_t (*destroy)(ncclComm_t);
  unsigned long (*foreign_calls)(void), (*all_reduces)(void);
};

enum { ALL_REDUCES = 10, BCASTS = 5 };

static inline void train(const char *title, const struct nccl_api *nccl) {
  ncclUniqueId id = {.internal = "copies"};
  ncclComm_t comm = NULL;
  unsigned long before = nccl->all_reduces();
  int failed = nccl->init(&comm, 1, id, 0) != ncclSuccess;
  for (int i = 0; i < ALL_REDUCES; i++)
    failed += nccl->all_reduce(NULL, NULL, 8, ncclFloat, ncclSum, comm, NULL) != ncclSuccess;
  failed += nccl->all_reduces() != before + ALL_REDUCES; /* another copy made them */
  for (int i = 0; i < BCASTS; i++)
    failed += nccl->bcast(NULL, 8, ncclFloat, 0, comm, NULL) != ncclSuccess;
  failed += nccl->destroy(comm) != ncclSuccess;
  printf("%s: %d failed, %lu of another copy's\n", title, failed, nccl->foreign_calls());
}

/* The same in a library that links NCCL. */
void train_linked_copy(const char *title);
