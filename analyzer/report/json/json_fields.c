/* SPDX-License-Identifier: MIT */
#include "diff/diff_result.h"
#include "report/json/json_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* What is not simply a member. */

json_t *json_text_or_null(const char *text) {
  if (!text)
    return json_null();
  char *valid = utf8_valid_copy(text);
  json_t *string = valid ? json_string(valid) : NULL;
  free(valid);
  return string;
}

static json_t *make_schema(const struct results *results) {
  (void)results;
  return json_string("tscope.report/1");
}

static json_t *make_run(const struct results *results) {
  return json_text_or_null(results->model->run);
}

static json_t *make_command(const struct results *results) {
  return json_text_or_null(results->model->command);
}

static json_t *make_world_size(const struct results *results) {
  return results->model->world_size ? json_integer(results->model->world_size) : json_null();
}

static json_t *make_ranks_found(const struct results *results) {
  json_t *list = json_array();
  for (u32 i = 0; i < results->model->n_ranks; i++)
    json_array_append_new(list, json_integer(results->model->ranks[i].rank));
  return list;
}

/* Each host once, in the order of its first rank. */
static json_t *make_hosts(const struct results *results) {
  json_t *list = json_array(), *seen = json_object();
  for (u32 i = 0; i < results->model->n_ranks; i++) {
    json_t *host = json_text_or_null(results->model->ranks[i].host);
    const char *name = json_string_value(host);
    if (name && !json_object_get(seen, name)) {
      json_object_set_new(seen, name, json_true());
      json_array_append(list, host);
    }
    json_decref(host);
  }
  json_decref(seen);
  return list;
}

static json_t *make_duration(const struct results *results) {
  const struct model *model = results->model;
  if (model->begin == NS_UNKNOWN || model->end == NS_UNKNOWN)
    return json_null();
  return json_real((double)(model->end - model->begin) / 1e9);
}

static json_t *make_aligned(const struct results *results) {
  return json_boolean(results->model->clock_aligned);
}

static json_t *make_clock_method(const struct results *results) {
  return json_text_or_null(results->model->clock_method);
}

static json_t *number_or_null(double value) {
  return isnan(value) ? json_null() : json_real(value);
}

static json_t *make_residual(const struct results *results) {
  return number_or_null(results->model->clock_residual_us);
}

static json_t *make_steps_method(const struct results *results) {
  return json_text_or_null(results->model->steps.method);
}

static json_t *make_changed_step(const struct results *results) {
  u32 step = results->changed_step;
  return step ? json_integer(results->model->steps.first + step) : json_null();
}

static json_t *make_inputs(const struct results *results) {
  const struct model *model = results->model;
  json_t *list = json_array();
  for (u32 i = 0; i < model->n_inputs; i++)
    json_array_append_new(list, json_pack("{s:s,s:i}", "what", model->inputs[i].what, "files",
                                          (int)model->inputs[i].files));
  return list;
}

static json_t *make_notes(const struct results *results) {
  json_t *list = json_array();
  for (u32 i = 0; i < results->model->n_notes; i++)
    json_array_append_new(list, json_text_or_null(results->model->notes[i]));
  return list;
}

static json_t *make_stragglers(const struct results *results) {
  json_t *list = json_array();
  for (u32 i = 0; i < results->n_ranks; i++)
    if (results->ranks[i].straggler)
      json_array_append_new(list, json_integer(results->ranks[i].rank));
  return list;
}

static json_t *make_path_by_rank(const struct results *results) {
  json_t *map = json_object();
  bool known = results->path_by_rank && !isnan(results->path_wall_ms);
  for (u32 i = 0; known && i < results->n_ranks; i++) {
    char rank[12];
    snprintf(rank, sizeof(rank), "%u", results->ranks[i].rank);
    json_object_set_new(map, rank, number_or_null(results->path_by_rank[i]));
  }
  return map;
}

static json_t *make_path_steps(const struct results *results) {
  return results->path_reason || results->model->n_ranks == 0
             ? json_null()
             : json_integer(results->path_steps_used);
}

/* The tables. */

static const struct json_field run_fields[] = {
    MADE("id", make_run, "string", "the run's name, a folder under the traces' directory"),
    MADE("inputs", make_inputs, "array of {what, files}", "kinds of input it was read from"),
    MADE("world_size", make_world_size, "integer", "ranks the job said it has"),
    MADE("ranks_found", make_ranks_found, "array of integers", "global ranks that left a trace"),
    MADE("hosts", make_hosts, "array of strings", "each host once"),
    MADE("command", make_command, "string", "command line of the first rank"),
    MADE("duration_s", make_duration, "s", "first to last instant seen on any rank"),
    END,
};

static const struct json_field clock_fields[] = {
    MADE("aligned", make_aligned, "boolean", "times of different ranks can be compared"),
    MADE("method", make_clock_method, "string", "how, or why not"),
    MADE("residual_us", make_residual, "µs",
         "largest over ranks of the median deviation from the fit"),
    END,
};

static const struct json_field coverage_fields[] = {
    NUMBER(coverage, "share", share, "fraction", "of what was called, what was also timed or seen"),
    TEXT(coverage, "note", note, "what is missing and why"),
    END,
};

static const struct json_field overhead_fields[] = {
    NUMBER(results, "fraction", overhead_fraction, "fraction", "of the run, an estimate"),
    NUMBER(results, "ns_per_event", overhead_ns_per_event, "ns",
           "on the job's threads, once awake"),
    NUMBER(results, "startup_ms", overhead_startup_ms, "ms", "waking up, once, mean over ranks"),
    NUMBER(results, "gpu_clock_ms", overhead_gpu_clock_ms, "ms",
           "that the source of GPU time says it took for itself, mean over ranks"),
    NUMBER(results, "helper_cpu_s", overhead_helper_cpu_s, "s",
           "CPU time of tscope's own threads, all ranks"),
    NUMBER(results, "trace_bytes", trace_bytes, "bytes", "on disk, all ranks"),
    END,
};

static const struct json_field quality_fields[] = {
    NUMBER(results, "events", events, "integer", "records read"),
    NUMBER(results, "lost", lost, "integer", "records the traces say were lost"),
    {"partial_ranks", JSON_FIELD_RANKS, "array of integers",
     "ranks that are missing, damaged, did not end in order or lost records",
     offsetof(struct results, partial_ranks), offsetof(struct results, n_partial), 0, 0, NULL,
     NULL},
    MADE("notes", make_notes, "array of strings",
         "what else to know about the input: files that cannot be read, processes left out"),
    OBJECT("clock", clock_fields, "how ranks were put on one time axis"),
    TEXT(results, "gpu_timing", gpu_timing, "where times on the GPU come from"),
    MAP("coverage", coverage, n_coverage, coverage, name, coverage_fields,
        "by what is covered, such as \"collective times\""),
    OBJECT("overhead", overhead_fields, "what tscope itself cost"),
    END,
};

static const struct json_field steps_fields[] = {
    NUMBER(results, "count", step_count, "integer",
           "steps found, or asked for with --steps; warm-up included"),
    NUMBER(results, "warmup_excluded", warmup_excluded, "integer",
           "the first so many are left out of all figures"),
    MADE("changed_step", make_changed_step, "integer",
         "number in the run of the first step that takes longer for good; null where none does"),
    MADE("method", make_steps_method, "string", "how steps were found"),
    NUMBER(results, "looked_at_s", looked_at_s, "s",
           "the steps looked at, one after the other: what worths are part of"),
    NUMBER(results, "median_ms", step_median_ms, "ms", "wall time of a step"),
    NUMBER(results, "p95_ms", step_p95_ms, "ms", "likewise, 95th percentile"),
    NUMBER(results, "cv", step_cv, "fraction", "standard deviation / mean of step time"),
    NUMBER(results, "host_ahead_ms", host_ahead_ms, "ms",
           "from the host's end of a step to the GPU's, median over steps of the mean over ranks"),
    NUMBER(results, "host_ahead_max_ms", host_ahead_max_ms, "ms",
           "likewise, the largest of any rank and step"),
    NUMBER(results, "host_ahead_max_steps", host_ahead_max_steps, "integer",
           "most steps that a host had ended before its GPU ended the one before them"),
    END,
};

static const struct json_field phases_fields[] = {
    NUMBER(results, "data_ms", data_ms, "ms", "fetching input"),
    NUMBER(results, "forward_ms", forward_ms, "ms", "forward"),
    NUMBER(results, "backward_ms", backward_ms, "ms", "backward"),
    NUMBER(results, "optimizer_ms", optimizer_ms, "ms", "optimizer"),
    NUMBER(results, "comm_ms", comm_ms, "ms",
           "communication that no compute hid; it lies inside the other phases"),
    NUMBER(results, "other_ms", other_ms, "ms", "rest of the step"),
    END,
};

static const struct json_field rank_fields[] = {
    RANK(rank_result, "rank", rank, "global rank"),
    TEXT(rank_result, "host", host, "its host"),
    NUMBER(rank_result, "mean_compute_ms", mean_compute_ms, "ms", "compute per step"),
    NUMBER(rank_result, "median_compute_ms", median_compute_ms, "ms", "likewise, median"),
    NUMBER(rank_result, "slowest_count", slowest_count, "integer",
           "steps in which it was last at the deciding collective"),
    NUMBER(rank_result, "slowest_fraction", slowest_fraction, "fraction", "of the steps judged"),
    NUMBER(rank_result, "z", z, "number", "z-score of slowest_count against chance"),
    NUMBER(rank_result, "p_value", p_value, "probability",
           "exact binomial tail of slowest_count, Bonferroni-corrected over ranks"),
    NUMBER(rank_result, "rel_slowdown", rel_slowdown, "fraction",
           "compute against the median of its peers, minus 1"),
    NUMBER(rank_result, "imposed_wait_ms", imposed_wait_ms, "ms",
           "that its peers wait for it, per step"),
    NUMBER(rank_result, "last_collectives", last_collectives, "integer",
           "collectives at which it arrived last, by more than clocks err"),
    NUMBER(rank_result, "judged_collectives", judged_collectives, "integer",
           "of so many that it took part in and that can be judged"),
    NUMBER(rank_result, "last_wait_ms", last_wait_ms, "ms",
           "that the mean peer waited for it in those, per step"),
    END,
};

static const struct json_field distributed_fields[] = {
    NUMBER(results, "n_steps", dist_steps, "integer", "steps that could be judged"),
    NUMBER(results, "mean_step_wall_ms", mean_step_wall_ms, "ms", "wall time of a step"),
    NUMBER(results, "comm_fraction", comm_fraction, "fraction", "of the step in communication"),
    NUMBER(results, "imbalance_cv", imbalance_cv, "fraction",
           "standard deviation / mean over ranks of compute per step"),
    NUMBER(results, "sync_skew_ms", sync_skew_ms, "ms",
           "between first and last arrival at a step's deciding collective"),
    NUMBER(results, "wall_frac_lost_to_imbalance", wall_frac_lost_to_imbalance, "fraction",
           "of the wall time, waiting for the last"),
    LIST("ranks", ranks, n_ranks, rank_result, rank_fields, "every rank found"),
    MADE("stragglers", make_stragglers, "array of integers", "ranks found persistently slow"),
    END,
};

static const struct json_field by_collective_fields[] = {
    TEXT(overlap_by_op, "op", op, "operation"),
    NUMBER(overlap_by_op, "comm_ms", comm_ms, "ms", "communication"),
    NUMBER(overlap_by_op, "exposed_ms", exposed_ms, "ms", "of it, while no compute ran"),
    NUMBER(overlap_by_op, "exposed_wait_ms", exposed_wait_ms, "ms", "of that, waiting for ranks"),
    NUMBER(overlap_by_op, "exposed_transfer_ms", exposed_transfer_ms, "ms", "of that, moving data"),
    END,
};

static const struct json_field by_rank_fields[] = {
    RANK(rank_result, "rank", rank, "global rank"),
    NUMBER(rank_result, "comm_ms", comm_ms, "ms", "communication"),
    NUMBER(rank_result, "exposed_ms", exposed_ms, "ms", "of it, while no compute ran"),
    NUMBER(rank_result, "exposed_wait_ms", exposed_wait_ms, "ms", "of that, waiting for ranks"),
    NUMBER(rank_result, "exposed_transfer_ms", exposed_transfer_ms, "ms", "of that, moving data"),
    END,
};

static const struct json_field overlap_fields[] = {
    NUMBER(results, "comm_ms", ov_comm_ms, "ms", "communication per step"),
    NUMBER(results, "overlapped_ms", ov_overlapped_ms, "ms", "of it, while compute ran"),
    NUMBER(results, "exposed_ms", ov_exposed_ms, "ms", "of it, while no compute ran"),
    NUMBER(results, "exposed_wait_ms", ov_exposed_wait_ms, "ms", "of that, waiting for ranks"),
    NUMBER(results, "exposed_transfer_ms", ov_exposed_transfer_ms, "ms", "of that, moving data"),
    NUMBER(results, "exposed_fraction", ov_exposed_fraction, "fraction", "exposed_ms / comm_ms"),
    LIST("by_collective", by_op, n_by_op, overlap_by_op, by_collective_fields,
         "by operation, per step, mean over ranks"),
    LIST("by_rank", ranks, n_ranks, rank_result, by_rank_fields, "by rank, per step"),
    NUMBER(results, "ranks", ov_ranks, "integer", "that know all of it, and whose means these are"),
    NUMBER(results, "steps", ov_steps, "number",
           "counted on each of them, mean: those of which all GPU work is known"),
    TEXT(results, "reason", overlap_reason, "why it is unknown; null where it is known"),
    END,
};

static const struct json_field collective_fields[] = {
    TEXT(collective_result, "comm", comm, "communicator: its name, or its identity and size"),
    TEXT(collective_result, "op", op, "operation"),
    NUMBER(collective_result, "count", count, "integer", "how many in the steps looked at"),
    NUMBER(collective_result, "bytes", bytes, "bytes",
           "of each; the full array for all_gather and reduce_scatter"),
    NUMBER(collective_result, "algbw_gbps", algbw_gbps, "1e9 bytes/s", "bytes / transfer time"),
    NUMBER(collective_result, "busbw_gbps", busbw_gbps, "1e9 bytes/s",
           "algbw scaled to what each link carries (NCCL tests' definition)"),
    NUMBER(collective_result, "wait_ms", wait_ms, "ms",
           "median over instances of the mean wait for the last rank"),
    NUMBER(collective_result, "transfer_ms", transfer_ms, "ms",
           "median over instances, from the last rank's start to the end"),
    TEXT(collective_result, "algorithm", algorithm,
         "that NCCL chose, / between several; null if not asked (TSCOPE_NCCL_INSIDE)"),
    TEXT(collective_result, "protocol", protocol, "likewise"),
    NUMBER(collective_result, "channels", channels, "integer", "likewise, median"),
    RANK(collective_result, "from", from, "of messages, global rank that sends; else null"),
    RANK(collective_result, "to", to, "of messages, global rank that receives; else null"),
    END,
};

static const struct json_field named_range_fields[] = {
    TEXT(named_range_result, "name", name, "without the number at its end"),
    TEXT(named_range_result, "domain", domain,
         "library that named it; empty for the program itself"),
    NUMBER(named_range_result, "count", count, "integer", "over all ranks and the whole input"),
    NUMBER(named_range_result, "sum_ms", sum_ms, "ms", "likewise, ranges inside it included"),
    NUMBER(named_range_result, "mean_ms", mean_ms, "ms", "of one"),
    NUMBER(named_range_result, "max_ms", max_ms, "ms", "of one"),
    NUMBER(named_range_result, "share", share, "fraction", "sum_ms / time of all ranks"),
    END,
};

static const struct json_field line_fields[] = {
    TEXT(line_result, "place", place, "file and line, short"),
    TEXT(line_result, "file", file, "as the program says it"),
    TEXT(line_result, "function", function, "qualified"),
    NUMBER(line_result, "line", line, "integer", "in that file"),
    NUMBER(line_result, "waits", waits, "number",
           "of the host for the GPU or a collective, per step, mean over ranks, like what follows"),
    NUMBER(line_result, "wait_ms", wait_ms, "ms", "in those"),
    NUMBER(line_result, "idle_ms", idle_ms, "ms",
           "after them, in which the GPU had nothing to do until it was given work"),
    NUMBER(line_result, "without_ms", without_ms, "ms", "a step, did the host not wait there"),
    NUMBER(line_result, "input_ms", input_ms, "ms", "in the data phase"),
    NUMBER(line_result, "collectives", collectives, "number", "calls, and groups of them"),
    NUMBER(line_result, "comm_ms", comm_ms, "ms", "that they ran"),
    NUMBER(line_result, "exposed_ms", exposed_ms, "ms", "of which nothing was computed meanwhile"),
    NUMBER(line_result, "launches", launches, "number", "of work on the GPU, from samples"),
    NUMBER(line_result, "gpu_ms", gpu_ms, "ms", "that it ran, likewise"),
    NUMBER(line_result, "samples", samples, "integer", "launches that these rest on, in all"),
    NUMBER(line_result, "backward", backward, "fraction",
           "of its calls that autograd made on threads without Python"),
    END,
};

static const struct json_field lines_fields[] = {
    LIST("lines", lines.at, lines.n, line_result, line_fields, "most time first, 100 at most"),
    NUMBER(results, "known", lines.known, "integer", "how many there are"),
    NUMBER(results, "call_sites", lines.sites, "integer", "calls in the trace that say their line"),
    TEXT(results, "reason", lines.reason, "why there are none; null where there are, or no Python"),
    END,
};

static const struct json_field category_value[] = {
    NUMBER(share, "", ms, "ms", "on the path in that category, per step"),
    END,
};

static const struct json_field what_if_fields[] = {
    TEXT(what_if, "change", change, "what would be different"),
    NUMBER(what_if, "step_ms", step_ms, "ms", "what a step would take"),
    NUMBER(what_if, "saving_fraction", saving_fraction, "fraction", "of the step saved"),
    END,
};

static const struct json_field path_name_fields[] = {
    TEXT(path_name_result, "name", name, "kernel, operator, call, or what kind of gap"),
    TEXT(path_name_result, "category", category, "as in by_category"),
    NUMBER(path_name_result, "ms", ms, "ms", "on the path, per step"),
    NUMBER(path_name_result, "count", count, "number", "stretches of it, per step"),
    END,
};

static const struct json_field path_segment_fields[] = {
    RANK(path_segment_result, "rank", rank, "global rank"),
    TEXT(path_segment_result, "name", name, "as in by_name"),
    TEXT(path_segment_result, "category", category, "as in by_category"),
    TEXT(path_segment_result, "reached_by", reached_by,
         "what it had to wait for: the edge that leads to it, as in edges; null at the beginning "
         "and within one piece of work"),
    NUMBER(path_segment_result, "start_ms", start_ms, "ms", "since the path's beginning"),
    NUMBER(path_segment_result, "ms", ms, "ms", "its length"),
    END,
};

static const struct json_field path_edge_value[] = {
    NUMBER(path_edge_result, "", count, "number",
           "how often the path crosses such an edge, per step"),
    END,
};

static const struct json_field path_fields[] = {
    NUMBER(results, "wall_ms", path_wall_ms, "ms", "length of the path: wall time of a step"),
    MAP("by_category", path_by_category, n_path_categories, share, name, category_value,
        "by what the path is made of"),
    MADE("by_rank", make_path_by_rank, "object of ms", "on the path in that rank, per step"),
    LIST("by_name", path_by_name, n_path_by_name, path_name_result, path_name_fields,
         "most time first, fifty at most"),
    MAP("edges", path_edges, n_path_edges, path_edge_result, name, path_edge_value,
        "thread, stream, launch, event, sync, other thread, collective"),
    LIST("segments", path_segments, n_path_segments, path_segment_result, path_segment_fields,
         "the path through one sample of steps, its first two hundred stretches"),
    LIST("what_if", what_if, n_what_if, what_if, what_if_fields, "replays of the steps, edited"),
    MADE("steps", make_path_steps, "integer", "in which it was walked"),
    TEXT(results, "reason", path_reason, "why it is unknown; null where it is known"),
    TEXT(results, "what_if_reason", what_if_reason,
         "why what_if is missing, or not to be relied on; null where it is"),
    END,
};

static const struct json_field budget_line_fields[] = {
    TEXT(budget_line, "name", name, "where the time went"),
    NUMBER(budget_line, "seconds", seconds, "s", "mean over ranks"),
    NUMBER(budget_line, "fraction", fraction, "fraction", "of wall_s"),
    NUMBER(budget_line, "recoverable", recoverable, "s", "of it, what could be had back"),
    END,
};

static const struct json_field budget_fields[] = {
    NUMBER(results, "wall_s", wall_s, "s", "of the steps looked at, mean over ranks"),
    LIST("lines", budget, n_budget, budget_line, budget_line_fields, "they sum to wall_s"),
    NUMBER(results, "residual_s", residual_s, "s", "wall_s less the sum of the lines"),
    NUMBER(results, "mfu", mfu, "fraction", "model FLOPs utilisation"),
    TEXT(results, "mfu_reason", mfu_reason, "why mfu is null"),
    TEXT(results, "mfu_note", mfu_note,
         "what an estimate of flops_per_step rests on; null where it was given"),
    NUMBER(results, "hfu", hfu, "fraction",
           "hardware FLOPs utilisation: the matrix products called, each against the peak of its "
           "precision; a lower bound of all"),
    TEXT(results, "hfu_reason", hfu_reason, "why hfu is null"),
    TEXT(results, "hfu_note", hfu_note, "what else to know about hfu"),
    NUMBER(results, "hfu_coverage", hfu_coverage, "fraction",
           "of GPU compute time, that whose arithmetic hfu counts"),
    NUMBER(results, "hfu_attention", hfu_attention, "fraction",
           "what attention would add to hfu: an estimate by grids, not part of it"),
    NUMBER(results, "hfu_attention_coverage", hfu_attention_coverage, "fraction",
           "of GPU compute time, that whose arithmetic is so estimated"),
    NUMBER(results, "product_flops", product_flops, "FLOP",
           "of the matrix products called, per step, all ranks seen together"),
    NUMBER(results, "flops_per_step", flops_per_step, "FLOP",
           "of the whole job, as given, or as estimated"),
    NUMBER(results, "peak_flops", peak_flops, "FLOP/s",
           "of all devices together: what mfu is a share of"),
    TEXT(results, "peak_precision", peak_precision,
         "of which peak_flops is the dense peak; null where it was given"),
    TEXT(results, "peak_note", peak_note, "why of that precision and not of bf16"),
    END,
};

static const struct json_field pipeline_stage_fields[] = {
    {"stage", JSON_FIELD_RANK, "integer", "0 is the first", offsetof(struct pipeline_stage, stage),
     0, 0, 0, NULL, NULL},
    {"ranks", JSON_FIELD_RANKS, "array of integers", "its ranks, one of each pipeline",
     offsetof(struct pipeline_stage, ranks), offsetof(struct pipeline_stage, n_ranks), 0, 0, NULL,
     NULL},
    NUMBER(pipeline_stage, "compute_ms", compute_ms, "ms", "compute per step, mean over its ranks"),
    NUMBER(pipeline_stage, "bubble_ms", bubble_ms, "ms",
           "per step: exposed messages between stages, and exposed wait in collectives"),
    END,
};

static const struct json_field pipeline_fields[] = {
    NUMBER(results, "stages", pipeline_stages, "integer", "stages of a pipeline"),
    NUMBER(results, "microbatches", pipeline_micro_batches, "integer", "micro-batches a step"),
    NUMBER(results, "chunks", pipeline_chunks, "integer",
           "model chunks a stage holds; more than 1 in an interleaved schedule"),
    NUMBER(results, "bubble", pipeline_bubble, "fraction", "bubble / (compute + bubble)"),
    NUMBER(results, "inherent", pipeline_inherent, "fraction",
           "what stages and micro-batches make unavoidable: (p - 1) / (v m + p - 1)"),
    NUMBER(results, "excess", pipeline_excess, "fraction", "bubble less inherent, 0 at least"),
    LIST("by_stage", pipeline_stage, n_pipeline_stage, pipeline_stage, pipeline_stage_fields,
         "from the first stage to the last"),
    TEXT(results, "reason", pipeline_reason, "why it is unknown; null where it is known"),
    END,
};

const struct json_field json_finding_fields[] = {
    TEXT(finding, "id", id, "see findings.md"),
    {"severity", JSON_FIELD_SEVERITY, "string", "\"info\", \"warning\" or \"critical\"",
     offsetof(struct finding, severity), 0, 0, 0, NULL, NULL},
    TEXT(finding, "title", title, "in one line"),
    TEXT(finding, "evidence", evidence, "with numbers"),
    TEXT(finding, "action", action, "what to do"),
    {"ranks", JSON_FIELD_RANKS, "array of integers", "ranks concerned, if any",
     offsetof(struct finding, ranks), offsetof(struct finding, n_ranks), 0, 0, NULL, NULL},
    NUMBER(finding, "worth_s", worth_s, "s",
           "of the recorded run that mending it would save; null if that cannot be told"),
    END,
};

static const struct json_field undecided_fields[] = {
    TEXT(undecided, "what", what, "what could not be judged"),
    TEXT(undecided, "why", why, "and why"),
    END,
};

const struct json_field json_report_fields[] = {
    MADE("schema", make_schema, "string", "\"tscope.report/1\""),
    OBJECT("run", run_fields, "what was looked at"),
    OBJECT("quality", quality_fields, "how far the report can be trusted"),
    OBJECT("steps", steps_fields, "training steps"),
    OBJECT("phases", phases_fields, "host time per step by phase, mean over ranks"),
    OBJECT("distributed", distributed_fields, "ranks against each other"),
    OBJECT("overlap", overlap_fields, "communication and what hid it, per step, mean over ranks"),
    LIST("collectives", collectives, n_collectives, collective_result, collective_fields,
         "by communicator, operation and size"),
    LIST("ranges", named_ranges, n_named_ranges, named_range_result, named_range_fields,
         "that the program named through NVTX, most time first, 100 at most"),
    OBJECT("lines", lines_fields, "of the program: what each costs"),
    OBJECT("critical_path", path_fields, "what the step's wall time is made of, across ranks"),
    OBJECT("gpu_timeline", json_gpu_timeline_fields,
           "what the GPUs did, over the whole input, mean over ranks"),
    OBJECT("launches", json_launch_fields,
           "how the hosts fed the GPUs, over the whole input, all ranks together"),
    OBJECT("kernels", json_kernels_fields,
           "what ran on the GPUs, summed over the whole input and all ranks"),
    OBJECT("products", json_products_fields, "matrix products: how fast they are made"),
    OBJECT("pipeline", pipeline_fields, "pipeline parallelism, found from who sends to whom"),
    OBJECT("budget", budget_fields, "where the wall time went"),
    OBJECT("run_end", json_run_end_fields, "how the run ended, and who ended it"),
    OBJECT("collective_check", json_check_fields,
           "whether all ranks called the same collectives, and who holds up the job"),
    OBJECT("memory", json_memory_fields, "memory of the device with the highest peak"),
    OBJECT("modules", json_modules_fields, "what the modules of the model need"),
    OBJECT("convergence", json_convergence_fields, "what the job's own values tell"),
    OBJECT("series", json_series_fields, "the run step by step and rank by rank, thinned out"),
    PART("diff", diff, &diff_none, json_diff_fields,
         "against an earlier run: tscope-report diff BEFORE AFTER"),
    TEXT(results, "verdict", verdict,
         "\"ok\", \"undecided\", \"note\", \"warning\" or \"critical\": the worst finding; \"ok\" "
         "only "
         "where nothing is undecided"),
    LIST("undecided", undecided, n_undecided, undecided, undecided_fields,
         "what could not be judged"),
    LIST("findings", findings, n_findings, finding, json_finding_fields, "most worth first"),
    END,
};

struct visit {
  void (*each)(void *, const char *, const struct json_field *);
  void *user;
};

static void visit(const struct visit *v, const struct json_field *fields, const char *prefix) {
  for (const struct json_field *field = fields; field->name; field++) {
    char path[160], below[176];
    snprintf(path, sizeof(path), "%s%s%s", prefix, *prefix && *field->name ? "." : "", field->name);
    v->each(v->user, path, field);
    if (!field->fields)
      continue;
    const char *step = field->kind == JSON_FIELD_LIST  ? "[]"
                       : field->kind == JSON_FIELD_MAP ? ".*"
                                                       : "";
    snprintf(below, sizeof(below), "%s%s", path, step);
    visit(v, field->fields, below);
  }
}

void json_fields_visit(void (*each)(void *user, const char *path, const struct json_field *field),
                       void *user) {
  visit(&(struct visit){each, user}, json_report_fields, "");
}
