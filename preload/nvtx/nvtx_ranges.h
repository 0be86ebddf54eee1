/* SPDX-License-Identifier: MIT
 *
 * What is recorded about ranges. Ranges that are steps or phases are written to the retained
 * records when they begin, so that the trace of a killed process has them. All others get one RANGE
 * record when they end. Nothing is recorded while the process is dormant, and no range wakes it.
 */
#pragma once

#include "nvtx/nvtx_domains.h"

/* Both return NVTX_UNTRACKED, as without a tool. */
int nvtx_push(struct nvtx_domain *domain, struct nvtx_text text);
int nvtx_pop(struct nvtx_domain *domain);

/* A number for nvtx_end(), which any thread may call; 0 if the range is not recorded. */
u64 nvtx_start(struct nvtx_domain *domain, struct nvtx_text text);
void nvtx_end(u64 number);

void nvtx_mark(struct nvtx_domain *domain, struct nvtx_text text);
