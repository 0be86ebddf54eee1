/* SPDX-License-Identifier: MIT
 *
 * A library that links an NCCL, as PyTorch does.
 */
#include "copies.h"

__attribute__((visibility("default"))) void linked_trains(const char *title) {
  train(title, &(struct nccl_api){ncclCommInitRank, ncclAllReduce, ncclBcast, ncclCommDestroy,
                                  fake_nccl_strangers});
}
