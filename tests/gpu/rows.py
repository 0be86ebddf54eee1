# SPDX-License-Identifier: MIT
"""The rows of scripts/gpu-check, in three parts of at most ten minutes each. The most important rows come
first in each part, because the time may not be enough for all."""
from rows_basic import (beside_torch_profiler, copies_as_torch_profiler, device_memory, duty_cycle,
                        every_launch_once, graphs, graphs_as_a_whole, kernels_as_torch_profiler,
                        launches_counted, losses_are_the_same, nccl_event_pairs, nccl_four_ranks,
                        nccl_profiler, nccl_one_rank, nccl_ranks, nvtx_ranges, one_queue,
                        gemms_of_known_shape, report_reads, says_nothing, tensor_memory,
                        times_on_the_hosts_clock)
from rows_cost import cost_of_kinds, launch_overhead, overhead
from rows_gpt import (gpt_communication, gpt_findings, gpt_flops, gpt_graphed, gpt_kernels, gpt_memory,
                      gpt_steps, gpt_times_add_up, gpt_utilisation)
from rows_libraries import (library_cublas, library_cudnn, library_cudnn_attention,
                            library_efficient_attention, library_flash_attention, library_flash_attn,
                            library_jax, library_nccl, library_torch_compile, library_triton)

PARTS = {
    1: (launches_counted, times_on_the_hosts_clock, losses_are_the_same, says_nothing,
        kernels_as_torch_profiler, every_launch_once, copies_as_torch_profiler,
        beside_torch_profiler, gemms_of_known_shape, tensor_memory, nvtx_ranges, device_memory,
        graphs, nccl_one_rank, nccl_ranks, report_reads, one_queue, duty_cycle, graphs_as_a_whole,
        nccl_event_pairs, nccl_profiler, nccl_four_ranks),
    2: (library_cublas, library_flash_attention, library_triton, library_torch_compile, library_nccl,
        library_cudnn, gpt_steps, gpt_flops, gpt_utilisation, gpt_kernels, gpt_memory,
        gpt_times_add_up, gpt_findings, gpt_communication, library_efficient_attention,
        library_cudnn_attention, library_flash_attn, library_jax, gpt_graphed),
    3: (cost_of_kinds, launch_overhead, overhead),
}
ROWS = tuple(row for rows in PARTS.values() for row in rows)
