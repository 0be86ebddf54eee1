/* SPDX-License-Identifier: MIT
 *
 * A library that links NCCL, as PyTorch does.
 */
#include "copies.h"

__attribute__((visibility("default"))) void train_linked_copy(const char *title) {
  train(title, &(struct nccl_api){ncclCommInitRank, ncclAllReduce, ncclBcast, ncclCommDestroy,
                                  fake_nccl_foreign_calls, fake_nccl_all_reduces});
}
