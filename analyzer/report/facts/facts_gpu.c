/* SPDX-License-Identifier: MIT
 *
 * What ran on the GPUs, and how much of them was used.
 */
#include <math.h>

#include "base/texts.h"
#include "report/facts/facts.h"

#define LATE_SHOWN 0.01 /* of a step */

void facts_of_overlap(struct facts *to, const struct results *results) {
  fact_label(to, "comm time");
  if (results->ov_comm_ms == 0) {
    fact_item(to, TONE_PLAIN, "none");
    return;
  }
  fact_item(to, TONE_PLAIN, "%s %s", duration_ms(results->ov_comm_ms).text, per_step(results));
  fact_item(to, TONE_PLAIN, "%s hidden behind compute",
            duration_ms(results->ov_overlapped_ms).text);
  fact_item(to, TONE_STRONG, "%s exposed (%s of it)", duration_ms(results->ov_exposed_ms).text,
            percent(results->ov_exposed_fraction).text);
  if (results->ov_fused_ms > 0)
    fact_item(to, TONE_PLAIN, "of it fused with compute: %s",
              duration_ms(results->ov_fused_ms).text);
  if (results->ov_exposed_late_ms >= LATE_SHOWN * results->ov_step_ms)
    fact_item(to, TONE_PLAIN, "%s of that would go if all ranks came together",
              duration_ms(results->ov_exposed_late_ms).text);
}

enum { FILLS_SHOWN = 3 };

static void put_idle(struct facts *to, const struct gpu_timeline_result *gpu) {
  const struct {
    const char *name;
    double ms;
  } causes[] = {{"the host had not launched yet", gpu->host_bound_ms},
                {"the host captured CUDA graphs", gpu->capturing_ms},
                {"launched work had not begun", gpu->kernel_gap_ms},
                {"not known", gpu->other_ms}};
  if (!(gpu->idle_ms > 0))
    return;
  fact_label(to, "idle while");
  FOR_EACH(causes, LENGTH_OF(causes), cause)
    if (cause->ms > 0)
      fact_item(to, TONE_PLAIN, "%s %s (%s)", cause->name, duration_ms(cause->ms).text,
                percent(cause->ms / gpu->idle_ms).text);
}

static void put_launches(struct facts *to, const struct results *results) {
  const struct launch_result *launch = &results->launch;
  if (!isnan(launch->delay_median_us)) {
    fact_line(to, "launches", TONE_PLAIN, "begin %s after their call (median)",
              duration_s(launch->delay_median_us / 1e6).text);
    fact_item(to, TONE_PLAIN, "p95 %s", duration_s(launch->delay_p95_us / 1e6).text);
    fact_item(to, TONE_PLAIN, "%s queued at most", count_of(launch->queue_max).text);
    if (launch->queue_full_ms > 0)
      fact_item(to, TONE_WARNING, "queue full for %s", duration_ms(launch->queue_full_ms).text);
  }
  if (launch->kernels > 0 && launch->short_kernels > 0)
    fact_line(to, "short", TONE_PLAIN, "%s of the kernels are under 10 µs, %s of them",
              percent(launch->short_kernels / launch->kernels).text,
              duration_ms(launch->short_ms).text);
  if (launch->syncs > 0)
    fact_line(to, "host waits", TONE_PLAIN, "%s took %s",
              plural(launch->syncs, "synchronisation").text, duration_ms(launch->sync_ms).text);
}

static void put_fills(struct facts *to, const struct results *results) {
  const struct launch_result *launch = &results->launch;
  if (!isnan(launch->recompute_ms))
    fact_line(to, "recompute", TONE_PLAIN, "%s of GPU time in recomputed activations",
              duration_ms(launch->recompute_ms).text);
  if (!(launch->fill_ms > 0))
    return;
  fact_line(to, "fills", TONE_PLAIN, "%s took %s of GPU time",
            plural(launch->fill_count, "fill").text, duration_ms(launch->fill_ms).text);
  FOR_EACH(launch->fills, MIN(launch->n_fills, FILLS_SHOWN), fill)
    fact_item(to, TONE_DIM, "%s %s", fill->name, duration_ms(fill->sum_ms).text);
}

void facts_of_gpu(struct facts *to, const struct results *results) {
  put_idle(to, &results->gpu_timeline);
  put_launches(to, results);
  put_fills(to, results);
}

void facts_of_gemms(struct facts *to, const struct results *results) {
  const struct gemms_result *gemms = &results->gemms;
  fact_label(to, "on the GPU");
  if (!gemms->how) {
    fact_item(to, TONE_STRONG, "%s", gemms->reason);
    return;
  }
  fact_item(to, TONE_STRONG, "%s %s", duration_ms(gemms->ms).text, per_step(results));
  fact_if_known(to, TONE_PLAIN, "%s while they run", flops(gemms->tflops * 1e12, "FLOP/s"));
  fact_item(to, TONE_DIM, "only GEMMs, not all compute");
}

static void put_utilisation(struct facts *to, const char *label, double value, const char *reason,
                            const char *otherwise) {
  fact_label(to, label);
  if (isnan(value)) {
    fact_item(to, TONE_PLAIN, "unknown: %s", reason ? reason : otherwise);
    return;
  }
  fact_share(to, TONE_STRONG, value, "%s", percent(value).text);
}

static void put_hfu(struct facts *to, const struct results *results) {
  put_utilisation(to, "HFU", results->hfu, results->hfu_reason,
                  "the arithmetic of kernels is not recorded");
  if (isnan(results->hfu) && isnan(results->hfu_coverage))
    return;
  fact_label(to, "");
  fact_if_known(to, TONE_DIM, "GEMMs: %s a step", flops(results->gemm_flops, "FLOP"));
  if (isnan(results->hfu_coverage))
    fact_item(to, TONE_DIM, "their share of GPU time is unknown");
  else
    fact_item(to, TONE_DIM, "known for %s of GPU compute time",
              percent(results->hfu_coverage).text);
  fact_if_known(to, TONE_DIM, "attention adds about %s, estimated from its grids",
                percent(results->hfu_attention));
  if (results->hfu_note)
    fact_item(to, TONE_DIM, "%s", results->hfu_note);
}

void facts_of_budget(struct facts *to, const struct results *results) {
  put_utilisation(to, "MFU", results->mfu, results->mfu_reason,
                  "give --flops-per-step, or --params and --tokens-per-step");
  if (!isnan(results->mfu)) {
    fact_line(to, "", TONE_DIM, "%s a step", flops(results->flops_per_step, "FLOP").text);
    fact_item(to, TONE_DIM, "%s%speak of all devices %s", text_or_empty(results->peak_precision),
              results->peak_precision ? " " : "", flops(results->peak_flops, "FLOP/s").text);
    if (results->mfu_note)
      fact_item(to, TONE_DIM, "%s", results->mfu_note);
    if (results->peak_note)
      fact_item(to, TONE_DIM, "%s", results->peak_note);
  }
  put_hfu(to, results);
}
