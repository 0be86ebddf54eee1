/* SPDX-License-Identifier: MIT */
#include "analyses/carry_found.h"

static void carry_times(struct op_times *times, struct carrier *c) {
  CARRY_EACH(c, times, comm, exposed, wait, transfer);
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
  CARRY_EACH(c, flops, flops, estimated, forward, forward_ranks);
  for (u32 i = 0; i < PRECISIONS; i++) {
    CARRY(c, &flops->by_precision[i]);
    CARRY(c, &flops->replayed_ns[i]);
  }
  CARRY_EACH(c, flops, steps, wall_ns, kernel_ns, known_ns, estimated_ns, gemm_ns, gemm_known_ns,
             kernels, launched, gemms, unknown, captured, replays_unknown, replayed_flops);
}

void rank_summary_carry(struct rank_summary *sum, struct carrier *c) {
  FOR_EACH_CHANGED(sum->spans, SPAN_KINDS, span)
    CARRY(c, span);
  CARRY_EACH(c, sum, on_gpu, has_compute, has_comm, has_memcpy, has_cpu_times, has_phases,
             has_input, steps, steps_overwritten, steps_untimed, steps_left_out, steps_unseen,
             total, compute, exposed_comm, exposed_memcpy, idle, other_steps, data, data_stall,
             begun_late, capturing, capture_steps, host_bound, outside);
  carry_times(&sum->all, c);
  carry_ops(sum, c);
  carry_flops(&sum->flops, c);
  CARRY_EACH(c, sum, collective_kernels, collective_kernels_called, graph_launches,
             graph_launches_run, graph_launches_open, gpu_known);
}
