/* SPDX-License-Identifier: MIT
 *
 * Device memory, and what the modules of the model need.
 */
#include <math.h>

#include "analyses/thresholds.h"
#include "report/facts/facts.h"

/* A size, with its share of another size. */
static void put_share(struct facts *to, const char *what, double bytes, double whole) {
  bool of_whole = whole > 0;
  if (!isnan(bytes))
    fact_item(to, TONE_PLAIN, "%s %s%s%s%s", what, memory_size(bytes).text, of_whole ? " (" : "",
              of_whole ? percent(bytes / whole).text : "", of_whole ? ")" : "");
}

static void put_device(struct facts *to, const struct memory_result *memory) {
  /* a job on GPUs has tensors on its hosts too; they are not compared with devices */
  u32 devices = NUMBER_OF(memory->devices, memory->n_devices, one,
                          isnan(one->device) == isnan(memory->device));
  fact_line(to, "from", TONE_PLAIN, "%s", memory->origin);
  if (devices > 1)
    fact_item(to, TONE_PLAIN, "the highest peak of %u devices", devices);
  if (!isnan(memory->rank))
    fact_item(to, TONE_PLAIN, "rank %.0f", memory->rank);
  if (isnan(memory->device))
    fact_item(to, TONE_PLAIN, "CPU");
  else
    fact_item(to, TONE_PLAIN, "GPU %.0f", memory->device);
  fact_item(to, TONE_PLAIN, "%s", plural(memory->events, "event").text);
  if (memory->lost > 0)
    fact_item(to, TONE_WARNING, "%s more are lost", count_of(memory->lost).text);
  FOR_EACH(memory->notes, memory->n_notes, note)
    fact_line(to, "", TONE_DIM, "%s", *note);
}

static void put_peak(struct facts *to, const struct memory_result *memory) {
  fact_line(to, "peak", TONE_STRONG, "%s allocated",
            memory_size(memory->peak_allocated_bytes).text);
  fact_item(to, TONE_PLAIN, "%s reserved", memory_size(memory->peak_reserved_bytes).text);
  fact_if_known(to, TONE_PLAIN, "%s into the recording", duration_s(memory->peak_time_s));
  if (!isnan(memory->peak_step))
    fact_item(to, TONE_PLAIN, "in step %.0f", memory->peak_step);
  fact_line(to, "at the end", TONE_PLAIN, "reserved %s", memory_size(memory->reserved_bytes).text);
  put_share(to, "allocated", memory->allocated_bytes, memory->reserved_bytes);
  put_share(to, "inactive", memory->inactive_bytes, memory->reserved_bytes);
  put_share(to, "slack", memory->slack_bytes, memory->allocated_bytes);
  if (memory->before_bytes > 0)
    fact_line(to, "before", TONE_PLAIN, "%s were allocated when recording began",
              memory_size(memory->before_bytes).text);
}

static void put_headroom(struct facts *to, const struct memory_result *memory) {
  if (isnan(memory->device) && !(memory->out_of_memory > 0))
    return;
  fact_label(to, "headroom");
  if (memory->out_of_memory > 0) {
    fact_item(to, TONE_CRITICAL, "memory ran out %s", plural(memory->out_of_memory, "time").text);
    fact_item(to, TONE_PLAIN, "%s were requested", memory_size(memory->oom_requested_bytes).text);
    fact_if_known(to, TONE_PLAIN, "%s were free on the device",
                  memory_size(memory->oom_free_bytes));
    fact_item(to, TONE_PLAIN, "%s reserved but inactive",
              memory_size(memory->oom_inactive_bytes).text);
  }
  if (isnan(memory->capacity_bytes)) {
    fact_item(to, TONE_PLAIN,
              "unknown: the input does not say how much memory the device has; give --gpu-gb");
    return;
  }
  double used = memory->peak_reserved_bytes / memory->capacity_bytes;
  if (!to->label)
    fact_label(to, "");
  if (memory->headroom_bytes < 0)
    fact_share(to, TONE_CRITICAL, used, "the peak exceeds %s by %s",
               memory_size(memory->capacity_bytes).text, memory_size(-memory->headroom_bytes).text);
  else
    fact_share(to, used >= OOM_RISK_HIGH ? TONE_WARNING : TONE_PLAIN, used,
               "%s of %s left at the peak", memory_size(memory->headroom_bytes).text,
               memory_size(memory->capacity_bytes).text);
}

static void put_growth(struct facts *to, const struct memory_result *memory) {
  fact_label(to, "growth");
  if (isnan(memory->growth_bytes_per_step)) {
    fact_item(to, TONE_PLAIN, "unknown: %s",
              memory->growth_reason ? memory->growth_reason : "no steps");
    return;
  }
  fact_item(to, TONE_PLAIN, "%s%s a step", memory->growth_bytes_per_step < 0 ? "-" : "",
            memory_size(fabs(memory->growth_bytes_per_step)).text);
  fact_item(to, TONE_PLAIN, "over %s", plural(memory->growth_steps, "step").text);
  if (memory->steps_method)
    fact_item(to, TONE_DIM, "steps: %s", memory->steps_method);
}

static void put_segments(struct facts *to, const struct memory_result *memory) {
  const struct memory_segments *segments = &memory->segments;
  if (isnan(segments->count))
    return;
  fact_line(to, "segments", TONE_PLAIN, "%s", plural(segments->count, "segment").text);
  put_share(to, "unused", segments->unused_bytes, memory->reserved_bytes);
  put_share(to, "stranded between blocks", segments->stranded_bytes, memory->reserved_bytes);
  if (segments->gaps > 0)
    fact_item(to, TONE_PLAIN, "largest gap %s", memory_size(segments->largest_gap_bytes).text);
  if (segments->pinned_blocks > 0)
    fact_item(to, TONE_PLAIN, "%s keep gaps apart",
              plural(segments->pinned_blocks, "small block").text);
}

void facts_of_memory(struct facts *to, const struct results *results) {
  const struct memory_result *memory = &results->memory;
  put_device(to, memory);
  put_peak(to, memory);
  put_headroom(to, memory);
  put_growth(to, memory);
  put_segments(to, memory);
}

void facts_of_modules(struct facts *to, const struct results *results) {
  const struct module_result *modules = &results->modules;
  fact_line(to, "model", TONE_STRONG, "%s", modules->root);
  fact_item(to, TONE_PLAIN, "%s", plural(modules->count, "module").text);
  fact_item(to, TONE_PLAIN, "parameters %s", memory_size(modules->parameter_bytes).text);
  fact_line(to, "plain step", TONE_PLAIN, "peak %s", memory_size(modules->plain_peak_bytes).text);
  if (modules->plain_peak_module)
    fact_item(to, TONE_PLAIN, "in the backward pass of %s", modules->plain_peak_module);
  fact_item(to, TONE_PLAIN, "compute %s", duration_ms(modules->plain_time_ms).text);
}
