/* SPDX-License-Identifier: MIT */
#include "analyses/carry_found.h"

static void carry_times(struct op_times *times, struct carrier *c) {
  CARRY(c, &times->comm);
  CARRY(c, &times->exposed);
  CARRY(c, &times->wait);
  CARRY(c, &times->transfer);
}

static void carry_ops(struct rank_summary *sum, struct carrier *c) {
  u32 n = carry_count(c, sum->by_op.n, 5);
  for (u32 i = 0; i < n && !c->bad; i++) {
    if (c->reads)
      VECTOR_REACH(&sum->by_op, i);
    CARRY(c, &sum->by_op.at[i].op);
    carry_times(&sum->by_op.at[i], c);
    c->bad |= sum->by_op.at[i].op >= OPS;
  }
  if (c->bad)
    sum->by_op.n = 0;
}

static void carry_flops(struct rank_flops *flops, struct carrier *c) {
  CARRY(c, &flops->flops);
  CARRY(c, &flops->estimated);
  CARRY(c, &flops->forward);
  CARRY(c, &flops->forward_ranks);
  for (u32 i = 0; i < PRECISIONS; i++) {
    CARRY(c, &flops->by_precision[i]);
    CARRY(c, &flops->replayed_ns[i]);
  }
  CARRY(c, &flops->steps);
  CARRY(c, &flops->wall_ns);
  CARRY(c, &flops->kernel_ns);
  CARRY(c, &flops->known_ns);
  CARRY(c, &flops->estimated_ns);
  CARRY(c, &flops->gemm_ns);
  CARRY(c, &flops->gemm_known_ns);
  CARRY(c, &flops->kernels);
  CARRY(c, &flops->launched);
  CARRY(c, &flops->gemms);
  CARRY(c, &flops->unknown);
  CARRY(c, &flops->captured);
  CARRY(c, &flops->replays_unknown);
  CARRY(c, &flops->replayed_flops);
}

void rank_summary_carry(struct rank_summary *sum, struct carrier *c) {
  for (u32 i = 0; i < SPAN_KINDS; i++)
    CARRY(c, &sum->spans[i]);
  CARRY(c, &sum->on_gpu);
  CARRY(c, &sum->has_compute);
  CARRY(c, &sum->has_comm);
  CARRY(c, &sum->has_memcpy);
  CARRY(c, &sum->has_cpu_times);
  CARRY(c, &sum->has_phases);
  CARRY(c, &sum->has_input);
  CARRY(c, &sum->steps);
  CARRY(c, &sum->steps_overwritten);
  CARRY(c, &sum->steps_untimed);
  CARRY(c, &sum->steps_unseen);
  CARRY(c, &sum->total);
  CARRY(c, &sum->compute);
  CARRY(c, &sum->exposed_comm);
  CARRY(c, &sum->exposed_memcpy);
  CARRY(c, &sum->idle);
  CARRY(c, &sum->other_steps);
  CARRY(c, &sum->data);
  CARRY(c, &sum->data_stall);
  CARRY(c, &sum->host_bound);
  carry_times(&sum->all, c);
  carry_ops(sum, c);
  carry_flops(&sum->flops, c);
  CARRY(c, &sum->collective_kernels);
  CARRY(c, &sum->collective_kernels_called);
  CARRY(c, &sum->graph_launches);
  CARRY(c, &sum->graph_launches_run);
  CARRY(c, &sum->graph_launches_open);
  CARRY(c, &sum->ring_begin);
  CARRY(c, &sum->gpu_known);
}
