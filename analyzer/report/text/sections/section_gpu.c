/* SPDX-License-Identifier: MIT
 *
 * The GPUs over the whole input: what they did, why they were idle, how the hosts fed them.
 */
#include <math.h>

#include "report/text/section.h"

static void put_parts(struct pen *pen, const struct results *results) {
  const struct gpu_timeline_result *gpu = &results->gpu_timeline;
  const double ms[N_PARTS] = {
      [PART_compute] = gpu->compute_ms,
      [PART_comm] = gpu->exposed_comm_ms,
      [PART_copy] = gpu->exposed_memcpy_ms,
      [PART_idle] = gpu->idle_ms,
  };
  section_parts(pen, results->gpu_timeline_seen < 0.99 ? "known part" : "whole input", ms,
                gpu->total_ms);
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

void body_gpu(struct pen *pen, const struct results *results) {
  put_parts(pen, results);
  put_facts(pen, SECTION_gpu, results);
  put_memcpys(pen, results);
  pen_line(pen, TEXT_INDENT);
  put_basis(pen, SECTION_gpu, results);
}
