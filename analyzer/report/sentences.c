/* SPDX-License-Identifier: MIT */
#include "report/sentences.h"

#include <math.h>

#include "base/each.h"
#include "base/quantity.h"
#include "diff/diff_result.h"
#include "kernels/kernels.h"

#define ALL_SEEN 0.99 /* of the time: less is said */

static void add(struct basis *basis, bool warns, const char *text) {
  if (basis->n < MOST_BASIS_LINES)
    basis->lines[basis->n++] = (struct basis_line){text, warns};
}

#define ADD(basis, warns, ...) add(basis, warns, arena_printf(arena, __VA_ARGS__))

static void basis_of_lines(struct basis *basis, const struct results *r, struct arena *arena) {
  const struct lines_result *lines = &r->lines;
  ADD(basis, false, "%s, mean over ranks", r->whole_run ? "in all" : "per step");
  add(basis, false,
      lines->of_operators == ANSWER_YES
          ? "the operator that the program called, or the range that it named: the recording has "
            "no stacks (with_stack=True)"
      : lines->of_functions == ANSWER_YES
          ? "the first line of the innermost function of your own code; PyTorch's profiler does "
            "not record the exact line"
          : "the innermost line of your own code; GPU time is estimated from samples of its "
            "launches");
  if (lines->loop)
    ADD(basis, false, "the library called at %s runs the training loop: its code counts as yours",
        lines->loop);
}

/* If the steps' GPU work is not known for all ranks, or not for all steps: what the mean is of. */
static void basis_of_overlap(struct basis *basis, const struct results *r, struct arena *arena) {
  u32 ranks = r->model->n_ranks;
  double steps = r->training_steps;
  if (r->ov_ranks < ranks)
    ADD(basis, true, "MEAN OVER %s OF %u RANKS", count_of(r->ov_ranks).text, ranks);
  if (r->ov_steps < steps)
    ADD(basis, true, "MEAN OVER %s OF %s STEPS", count_of(round(r->ov_steps)).text,
        count_of(steps).text);
  if (r->ov_comm_ms == 0)
    return;
  if (!r->wait_method) {
    add(basis, false, "wait and transfer: cannot be separated");
    return;
  }
  ADD(basis, false, "wait and transfer separated by %s", r->wait_method);
  if (model_lacks_ranks(r->model))
    add(basis, true, "TRANSFER HOLDS WAITING FOR RANKS NOT FOUND");
}

static void basis_of_collectives(struct basis *basis, const struct results *r) {
  bool ran = ANY(r->model->ranks, r->model->n_ranks, one, one->collective_runs);
  add(basis, false,
      !section_unjudged(SECTION_collectives, r)
          ? "medians; busbw is comparable to the link's bandwidth"
      : ran ? "wait, transfer and bandwidth: unknown, no other member was recorded"
            : "wait, transfer and bandwidth: unknown, their times were not recorded");
}

static void basis_of_gpu(struct basis *basis, const struct results *r, struct arena *arena) {
  u32 ranks = r->model->n_ranks;
  if (r->gpu_timeline_ranks < ranks)
    ADD(basis, true,
        "GPU time from the first work to the last, mean over the %s OF %u RANKS whose GPU work is "
        "known",
        count_of(r->gpu_timeline_ranks).text, ranks);
  else
    add(basis, false, "GPU time from the first work to the last, mean over ranks");
  if (r->gpu_timeline_seen < ALL_SEEN)
    ADD(basis, true, "KNOWN FOR %s OF THE TIME ONLY", percent(r->gpu_timeline_seen).text);
  add(basis, false, "counts and copies: sum over all ranks");
}

static void basis_of_kernels(struct basis *basis, const struct results *r, struct arena *arena) {
  if (r->kernels_ranks < r->model->n_ranks && r->kernels_ranks > 0)
    ADD(basis, true, "whole input, sum over %s OF %u RANKS", count_of(r->kernels_ranks).text,
        r->model->n_ranks);
  else
    add(basis, false, "whole input, sum over all ranks");
  if (r->kernels_reason)
    add(basis, true, r->kernels_reason);
  if (r->kernels_note)
    add(basis, true, r->kernels_note);
  if (!r->kernels_reason && r->kernels_seen < ALL_SEEN)
    ADD(basis, true, "SEEN FOR %s OF THE TIME ONLY", percent(r->kernels_seen).text);
  if (ANY(r->kernel_categories, r->n_kernel_categories, one, one->kind == KERNEL_COMMUNICATION))
    add(basis, false, "communication includes waiting for ranks");
}

/* Where the times come from, and how good they are. */
static void basis_of_gemms(struct basis *basis, const struct results *r, struct arena *arena) {
  const struct gemms_result *gemms = &r->gemms;
  if (!gemms->how)
    return;
  if (gemms->sampled) {
    ADD(basis, true, "SAMPLED: %s of %s timed by pairs of events", count_of(gemms->timed).text,
        plural(gemms->calls, "call").text);
    ADD(basis, false, "one in %.0f", gemms->one_in);
    if (isnan(gemms->ms_error))
      add(basis, false, "too few to estimate the error");
    else
      ADD(basis, false, "standard error %s", duration_ms(gemms->ms_error).text);
  } else {
    ADD(basis, false, "%s of %s timed by %s", count_of(gemms->timed).text,
        plural(gemms->calls, "call").text, gemms->how);
  }
  if (gemms->covered < 1 - 1e-9)
    ADD(basis, false, "the time covers %s of their operations", percent(gemms->covered).text);
  if (gemms->bounded > 0)
    ADD(basis, false, "%s of it includes the launch, because the stream was idle",
        percent(gemms->bounded).text);
}

static void basis_of_path(struct basis *basis, const struct results *r, struct arena *arena) {
  ADD(basis, false, "analysed %s", plural(r->path_steps_used, "step").text);
  if (!isnan(r->path_selfcheck))
    ADD(basis, false, "a replay without changes differs by %s",
        percent(fabs(r->path_selfcheck)).text);
  if (!ANY(r->model->ranks, r->model->n_ranks, rank, rank->launches || rank->gpu_kernels))
    add(basis, false, "launch is making the calls that start collectives: there is no GPU work");
}

/* The host's phases; of a rank that does not tell one, the others are known. */
static void basis_of_phases(struct basis *basis, const struct results *r, struct arena *arena) {
  const struct {
    const char *name;
    double ms;
  } phases[] = {{"data", r->data_ms},
                {"forward", r->forward_ms},
                {"backward", r->backward_ms},
                {"optimizer", r->optimizer_ms},
                {"other", r->other_ms}};
  FOR_EACH(phases, LENGTH_OF(phases), one)
    if (isnan(one->ms))
      ADD(basis, false, "%s unknown", one->name);
  add(basis, false, "host time per step, mean over ranks");
  if (r->model->phase_method)
    add(basis, false, r->model->phase_method);
  ADD(basis, false, "of it exposed communication: %s", duration_ms(r->comm_ms).text);
}

#define RECOVERABLE_BEYOND 0.01 /* of the run */

static void basis_of_budget(struct basis *basis, const struct results *r, struct arena *arena) {
  ADD(basis, false, "sums to the %s analysed, mean over ranks", duration_s(r->wall_s).text);
  if (ANY(r->budget, r->n_budget, one,
          one->recoverable - one->seconds >= RECOVERABLE_BEYOND * r->wall_s))
    add(basis, false,
        "recoverable is what the run gets shorter, which is more than a mean where ranks are "
        "uneven");
  ADD(basis, false, "residual %s", duration_s(round(r->residual_s * 1e9) * 1e-9).text);
}

struct basis section_basis(enum section_id id, const struct results *results, struct arena *arena) {
  struct basis basis = {.n = 0};
  if (id == SECTION_lines)
    basis_of_lines(&basis, results, arena);
  else if (id == SECTION_overlap)
    basis_of_overlap(&basis, results, arena);
  else if (id == SECTION_collectives)
    basis_of_collectives(&basis, results);
  else if (id == SECTION_gpu)
    basis_of_gpu(&basis, results, arena);
  else if (id == SECTION_kernels)
    basis_of_kernels(&basis, results, arena);
  else if (id == SECTION_gemms)
    basis_of_gemms(&basis, results, arena);
  else if (id == SECTION_path)
    basis_of_path(&basis, results, arena);
  else if (id == SECTION_phases)
    basis_of_phases(&basis, results, arena);
  else if (id == SECTION_budget)
    basis_of_budget(&basis, results, arena);
  else if (id == SECTION_modules)
    add(&basis, false, "no sharding, no recomputation; optimizer state not included");
  else if (id == SECTION_diff_times)
    add(&basis, false, "a step, mean over ranks");
  else if (id == SECTION_diff_lines)
    add(&basis, false, "time of the threads that train, mean over ranks");
  else if (id == SECTION_diff_kernels)
    add(&basis, false,
        arena_printf(arena, "calls and kinds %s of one rank",
                     kernels_per_words[results->diff->kernels_per]));
  else if (id == SECTION_diff_provenance && !results->diff->n_facts)
    add(&basis, false,
        results->diff->facts_known > 0 ? "no recorded difference" : "not recorded in the input");
  else if (id == SECTION_ranges)
    add(&basis, false, "NVTX ranges on the host, sum over all ranks; nested ranges count in both");
  return basis;
}

#define SPREAD_SHOWN 0.1 /* of a saving, between the quartiles of its steps */
#define NOTHING_ADDED 0.01

/* Other findings would save part of the same time: together they are worth less than their sum. */
static const char *say_overlaps(const struct finding *finding, struct arena *arena) {
  if (finding->together)
    return arena_printf(arena, "only if %s are all mended", finding->together);
  if (!finding->n_overlaps)
    return NULL;
  const char *ids = finding->overlaps[0];
  for (u32 i = 1; i < finding->n_overlaps; i++)
    ids = arena_printf(arena, "%s and %s", ids, finding->overlaps[i]);
  if (finding->saving_added_s < NOTHING_ADDED * finding->saving_s)
    return arena_printf(arena, "the same time as %s", ids);
  return arena_printf(arena, "%s shared with %s",
                      duration_s(finding->saving_s - finding->saving_added_s).text, ids);
}

const char *say_spread(double low, double high, double saves, struct arena *arena) {
  return high - low > SPREAD_SHOWN * saves ? arena_printf(arena, "%s to %s in half of the steps",
                                                          percent(low).text, percent(high).text)
                                           : NULL;
}

struct savings say_saving(const struct finding *finding, const struct results *r,
                          struct arena *arena) {
  const double saves = finding->saving_s, low = finding->saving_low_s,
               high = finding->saving_high_s, whole = r->analysed_s;
  if (isnan(saves))
    return (struct savings){{"saving unknown"}, 1};
  struct savings said = {.n = 1};
  said.texts[0] = whole > 0 ? arena_printf(arena, "saving %s (%s of the time)",
                                           duration_s(saves).text, percent(saves / whole).text)
                            : arena_printf(arena, "saving %s", duration_s(saves).text);
  const char *spread = say_spread(low / whole, high / whole, saves / whole, arena);
  if (spread)
    said.texts[said.n++] = spread;
  const char *overlaps = say_overlaps(finding, arena);
  if (overlaps)
    said.texts[said.n++] = overlaps;
  return said;
}

const char *say_doing(const struct rank_ending *rank, struct arena *arena) {
  return !rank->call
             ? NULL
             : arena_printf(arena, "%s %s",
                            rank->pending == ANSWER_YES ? "waiting in" : "last call", rank->call);
}

const char *say_no_finding(const struct results *r, struct arena *arena) {
  (void)arena; /* as all of them */
  bool loss = r->convergence.reason && r->step_count > 0 && !r->n_step_kinds;
  if (r->n_findings)
    return NULL;
  if (r->n_undecided)
    return loss ? "No finding reached its threshold, but some things could not be judged. No loss "
                  "is known."
                : "No finding reached its threshold, but some things could not be judged.";
  return loss ? "Nothing that was measured stands out: no finding reached its threshold. No loss "
                "is known."
              : "Nothing that was measured stands out: no finding reached its threshold.";
}

#define MUCH_COMMUNICATION 0.2 /* of a step */
#define MOSTLY_HIDDEN 0.9

const char *say_hidden_communication(const struct results *r, struct arena *arena) {
  double hidden = r->ov_overlapped_ms / r->ov_comm_ms;
  if (!(r->comm_fraction >= MUCH_COMMUNICATION && hidden >= MOSTLY_HIDDEN))
    return NULL;
  return arena_printf(arena, "communication is hidden: %s of %s%s (%s)",
                      duration_ms(r->ov_overlapped_ms).text, duration_ms(r->ov_comm_ms).text,
                      isnan(r->ov_steps) ? "" : " a step", percent(hidden).text);
}
