/* SPDX-License-Identifier: MIT
 *
 * What the figures of each section are of, and how good they are. TONE_STRONG: who missed it would
 * take the figures for more than they are.
 */
#include <math.h>

#include "base/each.h"
#include "diff/diff_result.h"
#include "kernels/kernels.h"
#include "report/facts/facts.h"
#include "report/parts.def"

#define ALL_SEEN 0.99 /* of the time: less is said */

void basis_of_lines(struct facts *to, const struct results *r) {
  const struct lines_result *lines = &r->lines;
  fact_item(to, TONE_DIM, "%s, mean over ranks", r->whole_run ? "in all" : "per step");
  fact_item(
      to, TONE_DIM,
      lines->of_operators == ANSWER_YES
          ? "the operator that the program called, or the range that it named: the recording has "
            "no stacks (with_stack=True)"
      : lines->of_functions == ANSWER_YES
          ? "the first line of the innermost function of your own code; PyTorch's profiler does "
            "not record the exact line"
          : "the innermost line of your own code; GPU time is estimated from samples of its "
            "launches");
  if (lines->loop)
    fact_item(to, TONE_DIM,
              "the library called at %s runs the training loop: its code counts as yours",
              lines->loop);
}

/* If the steps' GPU work is not known for all ranks, or not for all steps: what the mean is of. */
void basis_of_overlap(struct facts *to, const struct results *r) {
  u32 ranks = r->model->n_ranks;
  double steps = r->training_steps;
  if (r->ov_ranks < ranks)
    fact_item(to, TONE_STRONG, "MEAN OVER %s OF %u RANKS", count_of(r->ov_ranks).text, ranks);
  if (r->ov_steps < steps)
    fact_item(to, TONE_STRONG, "MEAN OVER %s OF %s STEPS", count_of(round(r->ov_steps)).text,
              count_of(steps).text);
  if (r->ov_comm_ms == 0)
    return;
  if (!r->wait_method) {
    fact_item(to, TONE_DIM, "wait and transfer: cannot be separated");
    return;
  }
  fact_item(to, TONE_DIM, "wait and transfer separated by %s", r->wait_method);
  if (model_lacks_ranks(r->model))
    fact_item(to, TONE_STRONG, "TRANSFER HOLDS WAITING FOR RANKS NOT FOUND");
}

void basis_of_collectives(struct facts *to, const struct results *r) {
  bool ran = ANY(r->model->ranks, r->model->n_ranks, one, one->collective_runs);
  fact_item(to, TONE_DIM,
            !section_unjudged(SECTION_collectives, r)
                ? "medians; busbw is comparable to the link's bandwidth"
            : ran ? "wait, transfer and bandwidth: unknown, no other member was recorded"
                  : "wait, transfer and bandwidth: unknown, their times were not recorded");
}

void basis_of_gpu(struct facts *to, const struct results *r) {
  u32 ranks = r->model->n_ranks;
  if (r->gpu_timeline_ranks < ranks)
    fact_item(
        to, TONE_STRONG,
        "GPU time from the first work to the last, mean over the %s OF %u RANKS whose GPU work is "
        "known",
        count_of(r->gpu_timeline_ranks).text, ranks);
  else
    fact_item(to, TONE_DIM, "GPU time from the first work to the last, mean over ranks");
  if (isnan(r->gpu_timeline.compute_ms))
    fact_item(to, TONE_STRONG, "WHICH KERNELS COMMUNICATE IS NOT KNOWN");
  if (r->gpu_timeline_seen < ALL_SEEN)
    fact_item(to, TONE_STRONG, "KNOWN FOR %s OF THE TIME ONLY", percent(r->gpu_timeline_seen).text);
  fact_item(to, TONE_DIM, "counts and copies: sum over all ranks");
}

void basis_of_kernels(struct facts *to, const struct results *r) {
  if (r->kernels_ranks < r->model->n_ranks && r->kernels_ranks > 0)
    fact_item(to, TONE_STRONG, "whole input, sum over %s OF %u RANKS",
              count_of(r->kernels_ranks).text, r->model->n_ranks);
  else
    fact_item(to, TONE_DIM, "whole input, sum over all ranks");
  if (r->kernels_reason)
    fact_item(to, TONE_STRONG, "%s", r->kernels_reason);
  if (r->kernels_note)
    fact_item(to, TONE_STRONG, "%s", r->kernels_note);
  if (!r->kernels_reason && r->kernels_seen < ALL_SEEN)
    fact_item(to, TONE_STRONG, "SEEN FOR %s OF THE TIME ONLY", percent(r->kernels_seen).text);
  if (ANY(r->kernel_categories, r->n_kernel_categories, one, one->kind == KERNEL_COMMUNICATION))
    fact_item(to, TONE_DIM, "communication includes waiting for ranks");
}

/* Where the times come from, and how good they are. */
void basis_of_gemms(struct facts *to, const struct results *r) {
  const struct gemms_result *gemms = &r->gemms;
  if (!gemms->how)
    return;
  if (gemms->sampled) {
    fact_item(to, TONE_STRONG, "SAMPLED: %s of %s timed by pairs of events",
              count_of(gemms->timed).text, plural(gemms->calls, "call").text);
    fact_item(to, TONE_DIM, "one in %.0f", gemms->one_in);
    if (isnan(gemms->ms_error))
      fact_item(to, TONE_DIM, "too few to estimate the error");
    else
      fact_item(to, TONE_DIM, "standard error %s", duration_ms(gemms->ms_error).text);
  } else {
    fact_item(to, TONE_DIM, "%s of %s timed by %s", count_of(gemms->timed).text,
              plural(gemms->calls, "call").text, gemms->how);
  }
  if (gemms->covered < 1 - 1e-9)
    fact_item(to, TONE_DIM, "the time covers %s of their operations", percent(gemms->covered).text);
  if (gemms->bounded > 0)
    fact_item(to, TONE_DIM, "%s of it includes the launch, because the stream was idle",
              percent(gemms->bounded).text);
}

static bool has_gpu_work(const struct results *r) {
  return ANY(r->model->ranks, r->model->n_ranks, rank, rank->launches || rank->gpu_kernels);
}

void basis_of_path(struct facts *to, const struct results *r) {
  fact_item(to, TONE_DIM, "analysed %s", plural(r->path_steps_used, "step").text);
  if (!isnan(r->path_selfcheck))
    fact_item(to, TONE_DIM, "a replay without changes differs by %s",
              percent(fabs(r->path_selfcheck)).text);
  if (!has_gpu_work(r))
    fact_item(to, TONE_DIM,
              "launch is making the calls that start collectives: there is no GPU work");
}

/* The host's phases; of a rank that does not tell one, the others are known. */
void basis_of_phases(struct facts *to, const struct results *r) {
#define P(name, style)                                                                             \
  if (isnan(r->name##_ms))                                                                         \
    fact_item(to, TONE_DIM, #name " unknown");
  BAR_PHASES(P)
#undef P
  fact_item(to, TONE_DIM, "host time per step, mean over ranks");
  if (r->model->phase_method)
    fact_item(to, TONE_DIM, "%s", r->model->phase_method);
  if (r->comm_ms != 0) /* of devices, for which a host need not wait in its phases */
    fact_item(to, TONE_DIM,
              has_gpu_work(r) ? "exposed communication on the devices: %s a step"
                              : "of it exposed communication: %s",
              duration_ms(r->comm_ms).text);
}

#define RECOVERABLE_BEYOND 0.01 /* of the run */

void basis_of_budget(struct facts *to, const struct results *r) {
  fact_item(to, TONE_DIM, "sums to the %s analysed, mean over ranks", duration_s(r->wall_s).text);
  if (ANY(r->budget, r->n_budget, one,
          one->recoverable - one->seconds >= RECOVERABLE_BEYOND * r->wall_s))
    fact_item(to, TONE_DIM,
              "recoverable is what the run gets shorter, which is more than a mean where ranks are "
              "uneven");
  fact_item(to, TONE_DIM, "residual %s", duration_s(round(r->residual_s * 1e9) * 1e-9).text);
}

void basis_of_modules(struct facts *to, const struct results *r) {
  (void)r;
  fact_item(to, TONE_DIM, "no sharding, no recomputation; optimizer state not included");
}

void basis_of_ranges(struct facts *to, const struct results *r) {
  (void)r;
  fact_item(to, TONE_DIM,
            "NVTX ranges on the host, sum over all ranks; nested ranges count in both");
}

void basis_of_diff_times(struct facts *to, const struct results *r) {
  (void)r;
  fact_item(to, TONE_DIM, "a step, mean over ranks");
}

void basis_of_diff_lines(struct facts *to, const struct results *r) {
  (void)r;
  fact_item(to, TONE_DIM, "time of the threads that train, mean over ranks");
}

void basis_of_diff_kernels(struct facts *to, const struct results *r) {
  fact_item(to, TONE_DIM, "calls and kinds %s of one rank",
            kernels_per_words[r->diff->kernels_per]);
}

void basis_of_diff_provenance(struct facts *to, const struct results *r) {
  if (!r->diff->n_facts)
    fact_item(to, TONE_DIM,
              r->diff->facts_known > 0 ? "no recorded difference" : "not recorded in the input");
}
