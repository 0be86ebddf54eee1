/* SPDX-License-Identifier: MIT
 *
 * What causes the peak of device memory, if it is something that a job can avoid or compute again.
 * Parameters, gradients and optimizer states are not. The saving is in bytes: by how much the peak
 * of the whole recording is lower without it. Seconds are not known.
 */
#include <math.h>

#include "analyses/findings/findings.h"
#include "base/quantity.h"

#define MOST_NAMED 3u

/* Categories of allocations, and what helps against each. */
static const struct avoidable {
  enum allocation_category category;
  const char *action;
} avoidables[] = {
    {ALLOCATION_SOFTMAX,
     "Softmax over attention scores needs no memory in a fused kernel: "
     "scaled_dot_product_attention, FlashAttention or FlexAttention keep no scores."},
    {ALLOCATION_ATTENTION,
     "Let a fused kernel do it (scaled_dot_product_attention with its flash or memory-efficient "
     "backend): scores of all pairs are then never written."},
    {ALLOCATION_LOSS,
     "Use a fused or chunked cross-entropy over the vocabulary: it does not keep all logits."},
    {ALLOCATION_MATRIX_MULTIPLY,
     "The results of these GEMMs are kept for backward: recompute them (activation checkpointing). "
     "If it is einsum, operands in another order are copied first: order the dimensions so that it "
     "is one matmul, or compile it."},
    {ALLOCATION_COPIES_AND_CASTS,
     "Cast and reorder once, or not at all: keep activations in one type and layout; under "
     "torch.compile copies fuse with what follows."},
    {ALLOCATION_NORM, "Recompute it, or use a fused norm that keeps only its input."},
    {ALLOCATION_POSITION, "Apply positions in place, or fused with the GEMM before."},
    {ALLOCATION_ACTIVATION, "Recompute it, or fuse it with its GEMM (torch.compile): its output is "
                            "a second copy of its input."},
    {ALLOCATION_DROPOUT, "Use fused dropout, which keeps a seed and no mask; or recompute it."},
    {ALLOCATION_EMBEDDING, "Recompute it, or split the vocabulary among ranks."},
    {ALLOCATION_CONVOLUTION,
     "Recompute it (activation checkpointing), or use a smaller micro-batch."},
    {ALLOCATION_MIXTURE_OF_EXPERTS, "Lower the capacity of experts, or recompute them."},
    {ALLOCATION_FORWARD, "Recompute activations (torch.utils.checkpoint), or use a smaller "
                         "micro-batch with gradient accumulation."},
    {ALLOCATION_COMPILED_GRAPH,
     "Compiled graphs keep this for backward: let them recompute more (activation_memory_budget of "
     "torch._functorch.config, or torch.utils.checkpoint), or use a smaller micro-batch."},
    {ALLOCATION_QUANTISATION, "Free the unquantised copy before the next is made."},
    {ALLOCATION_GATHERED_PARAMETERS,
     "Free gathered parameters after use (reshard_after_forward), and wrap smaller units."},
};

static const struct avoidable *find_avoidable(const struct memory_use *use) {
  return FIND(avoidables, LENGTH_OF(avoidables), one, use->kind == one->category);
}

/* The place from which most of a category comes; NULL if none is known. */
static const struct memory_use *main_source_of(const struct memory_result *memory,
                                               enum allocation_category kind) {
  return FIND(memory->live_at_peak, memory->n_live_at_peak, one, one->source && one->kind == kind);
}

/* " 6.40 GiB of it (24 %) is for softmax, most from nn_utils.py:12: the peak is 6.2 GiB lower
 * without." */
static const char *describe_use(struct findings *f, const struct memory_use *use) {
  const struct memory_use *place = main_source_of(&f->r->memory, use->kind);
  const char *from = place ? say(f, ", %s%.150s",
                                 place->bytes < use->bytes ? "most from " : "from ", place->source)
                           : "";
  return say(f, " %s of it (%s) is for %s%s: the peak is %s lower without.",
             memory_size(use->bytes).text, percent(use->share).text, use->category, from,
             memory_size(use->lowers_peak_bytes).text);
}

/* The largest avoidable part of the peak, and up to two more. */
static u32 choose_avoidable(const struct memory_result *memory, const struct memory_use **chosen) {
  u32 n = 0;
  for (u32 i = 0; i < memory->n_by_category && n < MOST_NAMED; i++) {
    const struct memory_use *use = &memory->by_category[i];
    double least = n ? PEAK_SHARE_BESIDE : PEAK_SHARE;
    double saving = use->lowers_peak_bytes;
    if (find_avoidable(use) && saving >= least * memory->peak_allocated_bytes &&
        saving >= PEAK_LEAST_BYTES)
      chosen[n++] = use;
  }
  return n;
}

void rule_memory_peak(struct findings *f) {
  const struct memory_result *memory = &f->r->memory;
  const struct memory_use *chosen[MOST_NAMED];
  u32 n = isnan(memory->device) ? 0 : choose_avoidable(memory, chosen);
  if (!n)
    return;
  const char *text = "";
  FOR_EACH(chosen, n, one)
    text = say(f, "%s%s", text, describe_use(f, *one));
  /* A job that fits may want a larger batch. A job that hardly fits, or might not fit, has a reason
   * to act. */
  bool tight = memory->oom_risk > OOM_LOW;
  u32 rank = isnan(memory->rank) ? 0 : (u32)memory->rank;
  finding_add(f, tight ? SEVERITY_WARNING : SEVERITY_INFO, NAN,
              say(f, "%s of the memory peak is for %s: %s lower without it",
                  percent(chosen[0]->share).text, chosen[0]->category,
                  memory_size(chosen[0]->lowers_peak_bytes).text),
              say(f, "At the peak %s were allocated.%s",
                  memory_size(memory->peak_allocated_bytes).text, text),
              find_avoidable(chosen[0])->action, &rank, !isnan(memory->rank));
}
