/* SPDX-License-Identifier: MIT
 *
 * What a mixture of experts exchanges after a layer, as PyTorch's all_to_all_single makes it: one
 * group of sends and receives, also to itself. Experts get unequal parts: the one of rank r of n
 * gets r + 1 parts of n from each.
 */
#include "train.h"

void exchange_tokens(struct rank *rank) {
  const struct options *options = rank->options;
  size_t ranks = (size_t)options->tensor, own = (size_t)rank->rank % ranks;
  size_t part = (size_t)(options->tensor_kb * 1024) / sizeof(float) / (ranks * ranks);
  if (rank->dp_size == 1)
    fall_ill(rank);
  NCCL(ncclGroupStart());
  for (size_t peer = 0; peer < ranks; peer++) {
    NCCL(ncclSend(rank->gradients, part * (peer + 1), ncclFloat, (int)peer, rank->tp_comm,
                  rank->compute));
    NCCL(ncclRecv(rank->activations + peer * ranks * part, part * (own + 1), ncclFloat, (int)peer,
                  rank->tp_comm, rank->compute));
  }
  NCCL(ncclGroupEnd());
}
