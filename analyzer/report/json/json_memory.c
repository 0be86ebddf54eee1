/* SPDX-License-Identifier: MIT
 *
 * memory{} of the JSON report.
 */
#include <math.h>

#include "report/json/json_table.h"

static json_t *make_expandable(const struct results *results) {
  const struct memory_segments *segments = &results->memory.segments;
  return segments->expandable_known ? json_boolean(segments->expandable_would_help) : json_null();
}

static json_t *make_steps_are_certain(const struct results *results) {
  const struct memory_result *memory = &results->memory;
  return isnan(memory->steps) ? json_null() : json_boolean(memory->steps_are_certain);
}

static json_t *make_notes(const struct results *results) {
  json_t *list = json_array();
  for (u32 i = 0; i < results->memory.n_notes; i++)
    json_array_append_new(list, json_text_or_null(results->memory.notes[i]));
  return list;
}

static const struct json_field use_fields[] = {
    TEXT(memory_use, "category", category,
         "what for: \"optimizer\", \"attention\", ...; \"before recording\"; \"not attributed\""),
    TEXT(memory_use, "source", source, "where: function, file and line, or training phase"),
    NUMBER(memory_use, "bytes", bytes, "bytes", "of them all"),
    NUMBER(memory_use, "blocks", blocks, "integer", "how many"),
    NUMBER(memory_use, "share", share, "fraction", "of the peak"),
    END,
};

static const struct json_field category_fields[] = {
    TEXT(memory_use, "category", category, "as above"),
    NUMBER(memory_use, "bytes", bytes, "bytes", "of them all"),
    NUMBER(memory_use, "blocks", blocks, "integer", "how many"),
    NUMBER(memory_use, "share", share, "fraction", "of the peak"),
    NUMBER(memory_use, "lowers_peak_bytes", lowers_peak_bytes, "bytes",
           "by how much peak_allocated_bytes would be lower without any of them"),
    END,
};

static const struct json_field churn_fields[] = {
    TEXT(memory_churn, "category", category, "as in live_at_peak"),
    TEXT(memory_churn, "source", source, "as in live_at_peak"),
    NUMBER(memory_churn, "size_bytes", size_bytes, "bytes", "of each, as asked for"),
    NUMBER(memory_churn, "count", count, "integer", "allocations"),
    NUMBER(memory_churn, "bytes", bytes, "bytes", "of them all"),
    NUMBER(memory_churn, "per_step", per_step, "number", "allocations a step"),
    NUMBER(memory_churn, "lifetime_ms", lifetime_ms, "ms", "mean, of those given back again"),
    END,
};

static const struct json_field size_fields[] = {
    NUMBER(memory_size_class, "up_to_bytes", up_to_bytes, "bytes",
           "sizes up to this and above half of it"),
    NUMBER(memory_size_class, "live_blocks", live_blocks, "integer", "blocks in use"),
    NUMBER(memory_size_class, "live_bytes", live_bytes, "bytes", "of them all"),
    NUMBER(memory_size_class, "gaps", gaps, "integer", "free between blocks in use"),
    NUMBER(memory_size_class, "gap_bytes", gap_bytes, "bytes", "of them all"),
    END,
};

static const struct json_field picture_fields[] = {
    NUMBER(memory_segment_picture, "bytes", bytes, "bytes", "its size"),
    TEXT(memory_segment_picture, "pool", pool,
         "\"large\", \"small\", \"expandable\" or \"private\""),
    NUMBERS(memory_segment_picture, "pieces", pieces, n_pieces, "array of fractions",
            "in use, of each of 64 equal pieces of it"),
    END,
};

static const struct json_field curve_fields[] = {
    NUMBERS(results, "time_s", memory.curve_time_s, memory.n_curve, "array of s",
            "since the first event"),
    NUMBERS(results, "allocated_bytes", memory.curve_allocated, memory.n_curve, "array of bytes",
            "given to the program then"),
    NUMBERS(results, "reserved_bytes", memory.curve_reserved, memory.n_curve, "array of bytes",
            "held of the device then"),
    END,
};

static const struct json_field segment_fields[] = {
    NUMBER(results, "count", memory.segments.count, "integer", "segments at the end"),
    NUMBER(results, "large", memory.segments.large, "integer", "for blocks above 1 MiB"),
    NUMBER(results, "small", memory.segments.small, "integer", "for blocks up to 1 MiB"),
    NUMBER(results, "expandable", memory.segments.expandable, "integer", "that can grow"),
    NUMBER(results, "private_pool", memory.segments.private_pool, "integer",
           "of CUDA graphs and of pools that the program made"),
    NUMBER(results, "unused_bytes", memory.segments.unused_bytes, "bytes",
           "in segments without a block in use: can be given back to the device"),
    NUMBER(results, "stranded_bytes", memory.segments.stranded_bytes, "bytes",
           "free in all other segments"),
    NUMBER(results, "gaps", memory.segments.gaps, "integer",
           "stretches of free memory between blocks in use"),
    NUMBER(results, "largest_gap_bytes", memory.segments.largest_gap_bytes, "bytes",
           "the most that one allocation can have without more segments"),
    NUMBER(results, "pinned_blocks", memory.segments.pinned_blocks, "integer",
           "runs of blocks in use, up to 1 MiB, with a gap on both sides"),
    NUMBER(results, "pinned_bytes", memory.segments.pinned_bytes, "bytes", "of them all"),
    NUMBER(results, "pinned_gap_bytes", memory.segments.pinned_gap_bytes, "bytes",
           "of the gaps on both sides, a gap between two runs twice"),
    NUMBER(results, "obtained", memory.segments.obtained, "integer",
           "calls for memory of the device while recording"),
    NUMBER(results, "obtained_bytes", memory.segments.obtained_bytes, "bytes", "of them all"),
    NUMBER(results, "returned", memory.segments.returned, "integer",
           "calls that gave memory back to the device"),
    NUMBER(results, "returned_bytes", memory.segments.returned_bytes, "bytes", "of them all"),
    NUMBER(results, "refetched", memory.segments.refetched, "integer",
           "calls that obtained again what had been obtained and given back while recording"),
    NUMBER(results, "rounds", memory.segments.rounds, "integer",
           "times that memory was given back and then obtained again"),
    MADE("expandable_would_help", make_expandable, "boolean",
         "expandable_frees_bytes is worth having back"),
    NUMBER(results, "expandable_frees_bytes", memory.segments.expandable_frees_bytes, "bytes",
           "the most that expandable segments could take off peak_reserved_bytes"),
    LIST("by_size", memory.segments.by_size, memory.segments.n_by_size, memory_size_class,
         size_fields, "blocks in use and gaps by size"),
    LIST("largest", memory.segments.largest, memory.segments.n_largest, memory_segment_picture,
         picture_fields, "largest first, sixty at most"),
    END,
};

static const struct json_field device_fields[] = {
    NUMBER(memory_device, "rank", rank, "integer", "global rank, if the input tells"),
    NUMBER(memory_device, "device", device, "integer", "its GPU; null is the CPU"),
    NUMBER(memory_device, "peak_allocated_bytes", peak_allocated_bytes, "bytes", "as above"),
    NUMBER(memory_device, "peak_reserved_bytes", peak_reserved_bytes, "bytes", "as above"),
    NUMBER(memory_device, "allocated_bytes", allocated_bytes, "bytes", "as above"),
    NUMBER(memory_device, "reserved_bytes", reserved_bytes, "bytes", "as above"),
    NUMBER(memory_device, "inactive_bytes", inactive_bytes, "bytes", "as above"),
    NUMBER(memory_device, "fragmentation", fragmentation, "fraction", "as above"),
    NUMBER(memory_device, "growth_bytes_per_step", growth_bytes_per_step, "bytes", "as above"),
    NUMBER(memory_device, "out_of_memory", out_of_memory, "integer", "as above"),
    END,
};

const struct json_field json_memory_fields[] = {
    TEXT(results, "reason", memory.reason, "why nothing is known"),
    TEXT(results, "origin", memory.origin, "what the figures are from"),
    NUMBER(results, "rank", memory.rank, "integer", "of the device that is told in full"),
    NUMBER(results, "device", memory.device, "integer",
           "which of that rank's GPUs; null is the CPU"),
    NUMBER(results, "events", memory.events, "integer", "allocations, frees and others seen"),
    NUMBER(results, "lost", memory.lost, "integer", "of them, known to be missing"),
    NUMBER(results, "peak_allocated_bytes", memory.peak_allocated_bytes, "bytes",
           "most given to the program at once"),
    NUMBER(results, "peak_reserved_bytes", memory.peak_reserved_bytes, "bytes",
           "most held of the device at once"),
    NUMBER(results, "peak_unused_bytes", memory.peak_unused_bytes, "bytes",
           "peak_reserved_bytes - peak_allocated_bytes: the most that better packing could free"),
    NUMBER(results, "peak_time_s", memory.peak_time_s, "s",
           "of the allocated peak, since the first event"),
    NUMBER(results, "peak_step", memory.peak_step, "integer", "in which step"),
    NUMBER(results, "reserved_bytes", memory.reserved_bytes, "bytes",
           "held of the device at the end"),
    NUMBER(results, "allocated_bytes", memory.allocated_bytes, "bytes",
           "of it given to the program, in whole blocks"),
    NUMBER(results, "inactive_bytes", memory.inactive_bytes, "bytes",
           "the rest: reserved_bytes - allocated_bytes"),
    NUMBER(results, "pending_bytes", memory.pending_bytes, "bytes",
           "of inactive_bytes, what other streams may still use"),
    NUMBER(results, "slack_bytes", memory.slack_bytes, "bytes",
           "of allocated_bytes, what nobody asked for"),
    NUMBER(results, "before_recording_bytes", memory.before_bytes, "bytes",
           "allocated when recording began"),
    NUMBER(results, "fragmentation", memory.fragmentation, "fraction",
           "inactive_bytes / reserved_bytes"),
    NUMBER(results, "steps", memory.steps, "integer", "found in the recording"),
    TEXT(results, "steps_method", memory.steps_method, "how"),
    MADE("steps_are_certain", make_steps_are_certain, "boolean",
         "the recording marks them; else they are what repeats, and may be layers"),
    NUMBER(
        results, "growth_bytes_per_step", memory.growth_bytes_per_step, "bytes",
        "slope of the least allocated in each step; 0 where chance or a single jump explains it"),
    TEXT(results, "growth_reason", memory.growth_reason, "why growth is unknown"),
    TEXT(results, "growth_source", memory.growth_source, "where most of what was added comes from"),
    TEXT(results, "growth_category", memory.growth_category, "and what for"),
    NUMBER(results, "capacity_bytes", memory.capacity_bytes, "bytes", "memory of the device"),
    TEXT(results, "capacity_source", memory.capacity_source, "who says so"),
    NUMBER(results, "headroom_bytes", memory.headroom_bytes, "bytes",
           "capacity_bytes - peak_reserved_bytes"),
    TEXT(results, "oom_risk", memory.oom_risk, "\"low\", \"medium\", \"high\", or \"happened\""),
    NUMBER(results, "out_of_memory", memory.out_of_memory, "integer", "times that memory ran out"),
    OBJECT("over_time", curve_fields,
           "about a thousand events, of neighbours the one after which most was allocated"),
    LIST("live_at_peak", memory.live_at_peak, memory.n_live_at_peak, memory_use, use_fields,
         "what was allocated then, largest first; sums to peak_allocated_bytes"),
    LIST("live_by_category", memory.by_category, memory.n_by_category, memory_use, category_fields,
         "likewise, by category alone"),
    LIST("churn", memory.churn, memory.n_churn, memory_churn, churn_fields,
         "what was allocated over and over, by source and size, most bytes first"),
    NUMBER(results, "churn_allocations", memory.churn_allocations, "integer", "all allocations"),
    NUMBER(results, "churn_bytes", memory.churn_bytes, "bytes", "of them all"),
    OBJECT("segments", segment_fields, "the device's segments at the end"),
    LIST("devices", memory.devices, memory.n_devices, memory_device, device_fields,
         "every device seen"),
    MADE("notes", make_notes, "array of strings", "what else to know about the input"),
    END,
};
