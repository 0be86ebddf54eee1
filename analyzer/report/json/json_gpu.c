/* SPDX-License-Identifier: MIT
 *
 * gpu_timeline{}, launches{} and kernels{} of the JSON report.
 */
#include "report/json/json_table.h"

static const struct json_field idle_fields[] = {
    NUMBER(results, "host_bound_ms", gpu_timeline.host_bound_ms, "ms",
           "until the call that launched what ended the idle time had returned"),
    NUMBER(results, "kernel_gap_ms", gpu_timeline.kernel_gap_ms, "ms",
           "from that call on: launch latency, gaps between kernels"),
    NUMBER(results, "other_ms", gpu_timeline.other_ms, "ms", "the launch is not known"),
    END,
};

static const struct json_field rank_idle_fields[] = {
    NUMBER(gpu_timeline_result, "host_bound_ms", host_bound_ms, "ms", "of this rank"),
    NUMBER(gpu_timeline_result, "kernel_gap_ms", kernel_gap_ms, "ms", "of this rank"),
    NUMBER(gpu_timeline_result, "other_ms", other_ms, "ms", "of this rank"),
    END,
};

static const struct json_field gpu_rank_fields[] = {
    RANK(gpu_timeline_result, "rank", rank, "global rank"),
    NUMBER(gpu_timeline_result, "compute_ms", compute_ms, "ms", "as above, of this rank"),
    NUMBER(gpu_timeline_result, "exposed_comm_ms", exposed_comm_ms, "ms", "of this rank"),
    NUMBER(gpu_timeline_result, "exposed_memcpy_ms", exposed_memcpy_ms, "ms", "of this rank"),
    NUMBER(gpu_timeline_result, "idle_ms", idle_ms, "ms", "of this rank"),
    NUMBER(gpu_timeline_result, "total_ms", total_ms, "ms", "of this rank"),
    NUMBER(gpu_timeline_result, "busy_fraction", busy_fraction, "fraction", "of this rank"),
    OBJECT("idle_by_cause", rank_idle_fields, "sums to idle_ms"),
    END,
};

const struct json_field json_gpu_timeline_fields[] = {
    NUMBER(results, "compute_ms", gpu_timeline.compute_ms, "ms",
           "kernels or fills ran, with communication that they hid"),
    NUMBER(results, "exposed_comm_ms", gpu_timeline.exposed_comm_ms, "ms",
           "collectives ran, and no other kernel"),
    NUMBER(results, "exposed_memcpy_ms", gpu_timeline.exposed_memcpy_ms, "ms",
           "copies ran, and nothing else"),
    NUMBER(results, "idle_ms", gpu_timeline.idle_ms, "ms", "nothing ran"),
    NUMBER(results, "total_ms", gpu_timeline.total_ms, "ms",
           "from the first work on the GPU to the last: the sum of the four"),
    NUMBER(results, "busy_fraction", gpu_timeline.busy_fraction, "fraction", "1 - idle / total"),
    OBJECT("idle_by_cause", idle_fields, "sums to idle_ms"),
    LIST("by_rank", gpu_timelines, n_gpu_timelines, gpu_timeline_result, gpu_rank_fields,
         "every rank found"),
    NUMBER(results, "ranks", gpu_timeline_ranks, "integer",
           "that know what their GPU did, and whose means these are"),
    NUMBER(results, "seen", gpu_timeline_seen, "fraction",
           "of the time of all ranks on GPUs, that of which all GPU work is known; the figures are "
           "of that time alone"),
    TEXT(results, "reason", gpu_timeline_reason, "why nothing is known, null if something is"),
    END,
};

static const struct json_field copy_fields[] = {
    TEXT(copy_result, "direction", direction, "such as \"host to device\""),
    NUMBER(copy_result, "count", count, "integer", "how many ran"),
    NUMBER(copy_result, "sum_ms", sum_ms, "ms", "they took together"),
    NUMBER(copy_result, "bytes", bytes, "bytes", "they moved together"),
    NUMBER(copy_result, "gbps", gbps, "1e9 bytes/s", "while they ran"),
    END,
};

static const struct json_field fill_fields[] = {
    TEXT(fill_result, "name", name, "the operator, with the shape where that is recorded"),
    NUMBER(fill_result, "count", count, "integer", "how often it was called"),
    NUMBER(fill_result, "sum_ms", sum_ms, "ms", "its work on the GPU"),
    END,
};

const struct json_field json_launch_fields[] = {
    NUMBER(results, "kernels", launch.kernels, "integer", "that ran, collectives not among them"),
    NUMBER(results, "short_kernels", launch.short_kernels, "integer", "of under 10 µs"),
    NUMBER(results, "short_ms", launch.short_ms, "ms", "those took together"),
    NUMBER(results, "delay_median_us", launch.delay_median_us, "µs",
           "from the end of a call to the start of what it launched; 0 where that began earlier"),
    NUMBER(results, "delay_p95_us", launch.delay_p95_us, "µs", "likewise, 95th percentile"),
    NUMBER(results, "delay_max_us", launch.delay_max_us, "µs", "likewise, longest"),
    NUMBER(results, "queue_mean", launch.queue_mean, "calls",
           "called and not begun, by stream, mean over time"),
    NUMBER(results, "queue_max", launch.queue_max, "calls", "likewise, most"),
    NUMBER(results, "queue_full_ms", launch.queue_full_ms, "ms",
           "with 1,024 or more of them: a further call blocks the host"),
    NUMBER(results, "syncs", launch.syncs, "integer", "calls that wait for the GPU"),
    NUMBER(results, "sync_ms", launch.sync_ms, "ms", "those took together"),
    NUMBER(results, "fill_count", launch.fill_count, "integer",
           "operators that fill a tensor; null where operators are not recorded, or none does"),
    NUMBER(results, "fill_ms", launch.fill_ms, "ms", "their work on the GPU"),
    LIST("fills", fills, n_fills, fill_result, fill_fields, "most time first, sixteen at most"),
    NUMBER(results, "recompute_ms", launch.recompute_ms, "ms",
           "on the GPU, by activation checkpointing; null where none was seen"),
    LIST("copies", copies, n_copies, copy_result, copy_fields, "by direction"),
    END,
};

static const struct json_field kernel_category_fields[] = {
    TEXT(kernel_category_result, "category", category, "see kernels.md"),
    NUMBER(kernel_category_result, "count", count, "integer", "how many ran"),
    NUMBER(kernel_category_result, "sum_ms", sum_ms, "ms", "they took together"),
    NUMBER(kernel_category_result, "share", share, "fraction", "of the sum over all categories"),
    END,
};

static const struct json_field kernel_fields[] = {
    TEXT(kernel_result, "name", name, "whole, demangled"),
    TEXT(kernel_result, "short_name", shortened, "what the text report calls it"),
    TEXT(kernel_result, "category", category, "see kernels.md"),
    NUMBER(kernel_result, "count", count, "integer", "how many ran"),
    NUMBER(kernel_result, "sum_ms", sum_ms, "ms", "they took together"),
    NUMBER(kernel_result, "mean_ms", mean_ms, "ms", "mean of one"),
    NUMBER(kernel_result, "max_ms", max_ms, "ms", "longest"),
    NUMBER(kernel_result, "share", share, "fraction", "of the sum over all categories"),
    END,
};

const struct json_field json_kernels_fields[] = {
    LIST("by_category", kernel_categories, n_kernel_categories, kernel_category_result,
         kernel_category_fields, "most time first; empty where reason says why"),
    LIST("top", kernels, n_kernels, kernel_result, kernel_fields,
         "the first hundred by time; communication, copies and fills are among them"),
    NUMBER(results, "names", kernel_names, "integer", "different names in all"),
    NUMBER(results, "ranks", kernels_ranks, "integer", "whose GPU work this is"),
    NUMBER(results, "seen", kernels_seen, "fraction",
           "of the ranks' time, that in which what ran was looked at"),
    TEXT(results, "note", kernels_note, "what the kinds do not tell, null if nothing"),
    TEXT(results, "reason", kernels_reason,
         "why nothing is known, or nothing but collectives; null if all kinds of work are"),
    END,
};
