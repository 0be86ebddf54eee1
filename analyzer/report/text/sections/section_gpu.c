/* SPDX-License-Identifier: MIT
 *
 * The GPUs over the whole input: what they did, why they were idle, how the hosts fed them.
 */
#include <math.h>

#include "report/text/section.h"

enum { FILLS_SHOWN = 3 };

static void put_parts(struct pen *pen, const struct results *results) {
  const struct gpu_timeline_result *gpu = &results->gpu_timeline;
  const struct meter_part parts[] = {
      {"compute", gpu->compute_ms, STYLE_COMPUTE, "█", "C"},
      {"exposed communication", gpu->exposed_comm_ms, STYLE_WAIT, "▓", "X"},
      {"copies", gpu->exposed_memcpy_ms, STYLE_MEMCPY, "▚", "M"},
      {"idle", gpu->idle_ms, STYLE_DIM, "░", "."},
  };
  section_parts(pen, results->gpu_timeline_seen < 0.99 ? "known part" : "whole input", parts,
                sizeof(parts) / sizeof(parts[0]), gpu->total_ms);
}

static void put_idle(struct pen *pen, const struct gpu_timeline_result *gpu) {
  const struct {
    const char *name;
    double ms;
  } causes[] = {{"the host had not launched yet", gpu->host_bound_ms},
                {"the host captured CUDA graphs", gpu->capturing_ms},
                {"launched work had not begun", gpu->kernel_gap_ms},
                {"not known", gpu->other_ms}};
  if (!(gpu->idle_ms > 0))
    return;
  section_label(pen, "idle while");
  for (unsigned i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
    if (causes[i].ms > 0)
      pen_item(pen, STYLE_PLAIN, "%s %s (%s)", causes[i].name, duration_ms(causes[i].ms).text,
               percent(causes[i].ms / gpu->idle_ms).text);
}

static void put_launches(struct pen *pen, const struct results *results) {
  const struct launch_result *launch = &results->launch;
  if (!isnan(launch->delay_median_us)) {
    section_value(pen, "launches", STYLE_PLAIN, "begin %s after their call (median)",
                  duration_s(launch->delay_median_us / 1e6).text);
    pen_item(pen, STYLE_PLAIN, "p95 %s", duration_s(launch->delay_p95_us / 1e6).text);
    pen_item(pen, STYLE_PLAIN, "%s queued at most", count_of(launch->queue_max).text);
    if (launch->queue_full_ms > 0)
      pen_item(pen, STYLE_WARNING, "queue full for %s", duration_ms(launch->queue_full_ms).text);
  }
  if (launch->kernels > 0 && launch->short_kernels > 0)
    section_value(pen, "short", STYLE_PLAIN, "%s of the kernels are under 10 %s, %s of them",
                  percent(launch->short_kernels / launch->kernels).text, pen->utf8 ? "µs" : "us",
                  duration_ms(launch->short_ms).text);
  if (launch->syncs > 0)
    section_value(pen, "host waits", STYLE_PLAIN, "%s took %s",
                  plural(launch->syncs, "synchronisation").text, duration_ms(launch->sync_ms).text);
}

static void put_memcpys(struct pen *pen, const struct results *results) {
  for (u32 i = 0; i < results->launch.n_memcpys; i++) {
    const struct memcpy_result *copy = &results->launch.memcpys[i];
    section_value(pen, i ? "" : "copies", STYLE_PLAIN, "%s: %s in %s", copy->direction,
                  count_of(copy->count).text, duration_ms(copy->sum_ms).text);
    if (!isnan(copy->bytes))
      pen_item(pen, STYLE_PLAIN, "%s at %s", byte_size(copy->bytes).text,
               bandwidth(copy->gbps).text);
  }
}

static void put_fills(struct pen *pen, const struct results *results) {
  const struct launch_result *launch = &results->launch;
  if (!isnan(launch->recompute_ms))
    section_value(pen, "recompute", STYLE_PLAIN, "%s of GPU time in recomputed activations",
                  duration_ms(launch->recompute_ms).text);
  if (!(launch->fill_ms > 0))
    return;
  section_value(pen, "fills", STYLE_PLAIN, "%s took %s of GPU time",
                plural(launch->fill_count, "fill").text, duration_ms(launch->fill_ms).text);
  FOR_EACH(launch->fills, launch->n_fills < FILLS_SHOWN ? launch->n_fills : FILLS_SHOWN, fill)
    pen_item(pen, STYLE_DIM, "%s %s", fill->name, duration_ms(fill->sum_ms).text);
}

void body_gpu(struct pen *pen, const struct results *results) {
  put_parts(pen, results);
  put_idle(pen, &results->gpu_timeline);
  put_launches(pen, results);
  put_memcpys(pen, results);
  put_fills(pen, results);
  pen_line(pen, TEXT_INDENT);
  put_basis(pen, SECTION_gpu, results);
}
