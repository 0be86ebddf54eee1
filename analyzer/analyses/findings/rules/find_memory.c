/* SPDX-License-Identifier: MIT
 *
 * Device memory: what grows, what is unused between blocks, what is nearly full, and what is
 * obtained and released without need. The saving in seconds is not known.
 */
#include <math.h>

#include "analyses/findings/findings.h"
#include "base/quantity.h"

/* The rank of the device that is reported in full. */
static u32 reported_rank(const struct memory_result *memory, u32 *rank) {
  if (isnan(memory->rank))
    return 0;
  *rank = (u32)memory->rank;
  return 1;
}

static const char *or_unknown(const char *text) {
  return text ? text : "not known";
}

void rule_memory_growth(struct findings *f) {
  const struct memory_result *memory = &f->r->memory;
  double slope = memory->growth_bytes_per_step, peak = memory->peak_allocated_bytes;
  if (!(slope > 0) || !(slope >= GROWTH_SHARE_PER_STEP * peak))
    return;
  double rise = memory->growth_to_bytes - memory->growth_from_bytes;
  double left = memory->headroom_bytes / slope; /* NAN where the capacity is not known */
  const char *full = left > 0 ? say(f, " The headroom of %s is gone after %.0f more.",
                                    memory_size(memory->headroom_bytes).text, left)
                              : "";
  const char *category = memory->growth_category ? say(f, " (%.40s)", memory->growth_category) : "";
  const char *samples = memory->growth_samples > 0
                            ? say(f, ", extrapolated from %s of small allocations",
                                  plural(memory->growth_samples, "sample").text)
                            : "";
  const char *source = memory->growth_source || memory->growth_category
                           ? say(f, " %s of the growth comes from %.150s%s%s.",
                                 percent(memory->growth_source_share).text,
                                 or_unknown(memory->growth_source), category, samples)
                           : "";
  enum severity severity = !memory->steps_are_certain         ? SEVERITY_INFO
                           : left < GROWTH_STEPS_TO_FULL / 10 ? SEVERITY_CRITICAL
                                                              : SEVERITY_WARNING;
  u32 rank = 0, n_ranks = reported_rank(memory, &rank);
  finding_add(
      f, severity, NAN,
      memory->growth_source && memory->growth_source_share >= GROWTH_SOURCE_SHARE
          ? say(f, "Allocated memory grows by %s a step, from %s", memory_size(slope).text,
                memory->growth_source)
          : say(f, "Allocated memory grows by %s a step", memory_size(slope).text),
      say(f,
          "The smallest allocated size in a step rose by %s over %.0f steps, from %s to %s; the "
          "median over pairs of steps is %s a step.%s%s Steps: %s%s.",
          memory_size(rise).text, memory->growth_steps, memory_size(memory->growth_from_bytes).text,
          memory_size(memory->growth_to_bytes).text, memory_size(slope).text, full, source,
          or_unknown(memory->steps_method),
          memory->steps_are_certain
              ? ""
              : "; if these are layers of one forward pass, it is their activations"),
      "Something is kept from step to step: losses or outputs summed with their graph (use .item() "
      "or .detach()), lists of tensors that are never emptied, caches without a bound, hooks "
      "registered again in each step. Look at the place of allocation in the evidence.",
      &rank, n_ranks);
}

/* Memory ran out although as much was free inside: the clearest case there is. */
static bool failed_by_fragmentation(const struct memory_result *memory) {
  return memory->out_of_memory > 0 && memory->oom_requested_bytes > 0 &&
         memory->oom_inactive_bytes >= memory->oom_requested_bytes;
}

static const char *fragmentation_evidence(struct findings *f, const struct memory_result *memory) {
  const struct memory_segments *segments = &memory->segments;
  const char *oom = failed_by_fragmentation(memory)
                        ? say(f, "%s could not be allocated while %s was inactive. ",
                              memory_size(memory->oom_requested_bytes).text,
                              memory_size(memory->oom_inactive_bytes).text)
                        : "";
  if (isnan(segments->count))
    return oom;
  const char *frees = segments->expandable_frees_bytes > 0
                          ? say(f, " Expandable segments can free %s of it at most.",
                                memory_size(segments->expandable_frees_bytes).text)
                          : "";
  return say(f,
             "%sAt the peak segments with blocks in use took %s, of %s reserved, and never were "
             "more than %s allocated: %s between them.%s At the end %s are gaps between blocks in "
             "use: %s, the largest of %s; %s of small blocks (%s) keep gaps of %s "
             "apart. %.0f of %.0f segments are expandable.",
             oom, memory_size(memory->peak_allocated_bytes + memory->peak_unused_bytes).text,
             memory_size(memory->peak_reserved_bytes).text,
             memory_size(memory->peak_allocated_bytes).text,
             memory_size(memory->peak_unused_bytes).text, frees,
             memory_size(segments->stranded_bytes).text, plural(segments->gaps, "gap").text,
             memory_size(segments->largest_gap_bytes).text,
             plural(segments->pinned_blocks, "run").text, memory_size(segments->pinned_bytes).text,
             memory_size(segments->pinned_gap_bytes).text, segments->expandable, segments->count);
}

/* Judged at the peak: free memory at the end does not matter. */
void rule_memory_fragmentation(struct findings *f) {
  const struct memory_result *memory = &f->r->memory;
  const struct memory_segments *segments = &memory->segments;
  double unused = memory->peak_unused_bytes, reserved = memory->peak_reserved_bytes;
  bool failed = failed_by_fragmentation(memory), known = !isnan(segments->count);
  bool large =
      known && unused >= FRAGMENTATION_SHARE * reserved && unused >= FRAGMENTATION_LEAST_BYTES;
  if (!failed && !large)
    return;
  bool fixed = segments->expandable_known && segments->expandable < segments->count;
  u32 rank = 0, n_ranks = reported_rank(memory, &rank);
  finding_add(f, failed ? SEVERITY_CRITICAL : SEVERITY_WARNING, NAN,
              failed ? "Memory ran out while enough of it was inactive"
                     : say(f, "%s of reserved memory was not in use at the peak",
                           percent(unused / reserved).text),
              fragmentation_evidence(f, memory),
              fixed || !known
                  ? "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (PYTORCH_ALLOC_CONF in "
                    "newer versions). Else allocate long-lived tensors (optimizer state, caches) "
                    "before short-lived ones, and keep tensor sizes similar from step to step."
                  : "Segments are expandable already: allocate long-lived tensors before "
                    "short-lived ones, keep tensor sizes similar from step to step (pad or bucket "
                    "sequence lengths), or limit large blocks with max_split_size_mb.",
              &rank, n_ranks);
}

void rule_memory_oom_risk(struct findings *f) {
  const struct memory_result *memory = &f->r->memory;
  bool happened = memory->oom_risk == OOM_HAPPENED;
  if (!happened && memory->oom_risk != OOM_HIGH)
    return;
  const struct memory_use *most = memory->n_by_category ? &memory->by_category[0] : NULL;
  const char *largest = most ? say(f, " Most of the peak is %.60s (%s).",
                                   most->category ? most->category : "of no known category",
                                   percent(most->share).text)
                             : "";
  const char *room = !isnan(memory->capacity_bytes)
                         ? say(f, " The device has %s (%s), which %s %s.",
                               memory_size(memory->capacity_bytes).text, memory->capacity_source,
                               memory->headroom_bytes < 0 ? "the peak exceeds by" : "leaves",
                               memory_size(fabs(memory->headroom_bytes)).text)
                         : "";
  const char *grows =
      memory->growth_bytes_per_step > 0
          ? say(f, " It grows by %s a step.", memory_size(memory->growth_bytes_per_step).text)
          : "";
  const char *oom = happened ? say(f, "Memory ran out %s, the last time for %s. ",
                                   plural(memory->out_of_memory, "time").text,
                                   memory_size(memory->oom_requested_bytes).text)
                             : "";
  u32 rank = 0, n_ranks = reported_rank(memory, &rank);
  finding_add(
      f, happened ? SEVERITY_CRITICAL : SEVERITY_WARNING, NAN,
      happened ? say(f, "Memory ran out: %s could not be allocated",
                     memory_size(memory->oom_requested_bytes).text)
      : memory->headroom_bytes < 0
          ? say(f, "The peak exceeds the device's memory by %s",
                memory_size(-memory->headroom_bytes).text)
          : say(f, "The device is %s full at the peak",
                percent(memory->peak_reserved_bytes / memory->capacity_bytes).text),
      say(f, "%sAt most %s were reserved, %s of them allocated.%s%s%s", oom,
          memory_size(memory->peak_reserved_bytes).text,
          memory_size(memory->peak_allocated_bytes).text, room, grows, largest),
      "Lower the peak: a smaller micro-batch with gradient accumulation, activation checkpointing, "
      "sharded optimizer state (FSDP, ZeRO), a fused loss that does not keep all logits. Context, "
      "libraries and NCCL's buffers need memory in addition to this.",
      &rank, n_ranks);
}

/* Device memory that is obtained and released in every step. */
static bool segments_churn(const struct memory_result *memory) {
  const struct memory_segments *segments = &memory->segments;
  double steps = memory->steps > 1 ? memory->steps - 1 : 1; /* the first fetches, and none again */
  return segments->refetched >= CHURN_LEAST_SEGMENTS && segments->rounds >= CHURN_LEAST_ROUNDS &&
         segments->refetched >= CHURN_SEGMENTS_PER_STEP * steps;
}

/* The source and size that is allocated most often, and freed every time; NULL if it is too rare to
 * matter. */
static const struct memory_churn *frequent_churn(const struct memory_result *memory) {
  const struct memory_churn *most =
      LARGEST(memory->churn, memory->n_churn, one, !isnan(one->lifetime_ms), one->count);
  if (!most)
    return NULL;
  bool in_step = most->per_step >= CHURN_LEAST;
  bool in_all = isnan(most->per_step) && most->count >= CHURN_LEAST &&
                most->count >= CHURN_SHARE * memory->churn_allocations;
  return in_step || in_all ? most : NULL;
}

/* Stacks are taken of a part of all allocations: the place of most of those of that size. */
static const char *describe_sampled_place(struct findings *f, const struct memory_churn *of) {
  const struct memory_result *memory = &f->r->memory;
  const struct memory_churn *most = NULL;
  double known = 0;
  for (u32 i = 0; i < memory->n_churn && !of->source; i++) {
    const struct memory_churn *row = &memory->churn[i];
    if (!row->source || row->size_bytes != of->size_bytes)
      continue;
    known += row->count;
    most = !most || row->count > most->count ? row : most;
  }
  return most ? say(f, "Of %.0f more whose place is known, %.0f are from %s. ", known, most->count,
                    most->source)
              : "";
}

void rule_memory_churn(struct findings *f) {
  const struct memory_result *memory = &f->r->memory;
  const struct memory_segments *segments = &memory->segments;
  const struct memory_churn *most = frequent_churn(memory);
  bool refetched = segments_churn(memory);
  if (!most && !refetched)
    return;
  u32 rank = 0, n_ranks = reported_rank(memory, &rank);
  const char *again =
      most ? say(f,
                 "%.0f of %.0f allocations are of %s from %.150s (%.40s), %s in total, each freed "
                 "after %s on average. ",
                 most->count, memory->churn_allocations, memory_size(most->size_bytes).text,
                 or_unknown(most->source), or_unknown(most->category),
                 memory_size(most->bytes).text, duration_ms(most->lifetime_ms).text)
           : "";
  const char *device =
      refetched
          ? say(f,
                "While recording, memory of the device was allocated %s (%s) and freed "
                "%s (%s), in %s. ",
                plural(segments->obtained, "time").text, memory_size(segments->obtained_bytes).text,
                plural(segments->returned, "time").text, memory_size(segments->returned_bytes).text,
                plural(segments->rounds, "round").text)
          : "";
  finding_add(
      f, refetched ? SEVERITY_WARNING : SEVERITY_INFO, NAN,
      refetched ? say(f, "Memory of the device is freed and allocated again: %s",
                      plural(segments->refetched, "time").text)
                : say(f, "%s %s of all allocations",
                      most->source ? "One place makes" : "Memory of one size is",
                      percent(most->count / memory->churn_allocations).text),
      say(f, "%s%s%s", device, again, most ? describe_sampled_place(f, most) : ""),
      refetched
          ? "Each such call waits for the device. Remove torch.cuda.empty_cache() from the loop. "
            "If the allocator does it by itself, because memory is short, lower the peak or use "
            "expandable_segments:True."
          : "Allocate the buffer once and write into it (out=, in-place operations), fuse the "
            "operation that needs it, or do it for all tensors at once (foreach, fused optimizer).",
      &rank, n_ranks);
}
