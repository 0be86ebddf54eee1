/* SPDX-License-Identifier: MIT
 *
 * GPU work that is not necessary, and a GPU that waits for work.
 */
#include <math.h>
#include <string.h>

#include "analyses/findings/findings.h"
#include "analyses/gpu/kernel_times.h"
#include "analyses/lines/lines.h"
#include "analyses/path/path_labels.h"
#include "base/quantity.h"

/* Time of all kernels, memcpys and memsets except communication, which includes waiting for ranks.
 * All ranks together, whole input. */
static double own_work_ms(const struct results *r) {
  return TOTAL(double, r->kernel_categories, r->n_kernel_categories, one,
               one->kind == KERNEL_COMMUNICATION ? 0 : one->sum_ms);
}

/* Seconds of the run from milliseconds of all ranks together over the whole input; as much again in
 * the time that was not analysed. */
static double rank_seconds(const struct findings *f, double ms) {
  return ms / 1e3 / kernels_are_of(f->r, false);
}

/* Of work over the whole input, the share in the analysed steps; NAN if it cannot be known. */
static double share_in_steps(const struct results *r, double all_ms) {
  double a_step = r->ov_compute_ms + r->ov_exposed_memcpy_ms;
  return r->ov_steps > 0 ? a_step * r->ov_steps * MAX(r->kernels_ranks, 1) / all_ms : NAN;
}

/* What a part of that work takes in a step, as far as no other work hides it: of copies,
 * `copies_ms` of the part, no more than is exposed. */
static double exposed_a_step(const struct findings *f, double ms, double copies_ms, double all_ms) {
  const struct results *r = f->r;
  if (!(r->ov_steps > 0))
    return rank_seconds(f, ms) * 1e3 / f->steps;
  double work = r->ov_compute_ms + r->ov_exposed_memcpy_ms;
  double copies = copies_ms / all_ms * work, exposed = fmin(copies, r->ov_exposed_memcpy_ms);
  return (ms - copies_ms) / all_ms * work + exposed;
}

/* Adds a finding about part of the GPU's own work. If nearly all of that work ran before the
 * analysed steps (for example a compiler that tries its kernels), its part in these steps is not
 * known: then the finding claims nothing. */
static void add_own_work(struct findings *f, double ms, double copies_ms, double all_ms,
                         const struct cure *cure, char *title, char *evidence, char *action) {
  enum { LEAST_SHARE_IN_STEPS = 25 }; /* percent: parallel streams count once in a step */
  double inside = share_in_steps(f->r, all_ms);
  if (evidence && inside < LEAST_SHARE_IN_STEPS / 1e2)
    evidence = say(f,
                   "%s Only %s of all that work is in the analysed steps: its share of these "
                   "steps is not known.",
                   evidence, percent(inside).text);
  bool elsewhere = inside < LEAST_SHARE_IN_STEPS / 1e2;
  double saving = saving_of(f, cure, exposed_a_step(f, ms, copies_ms, all_ms));
  if (elsewhere)
    f->cure = (struct cure){0};
  finding_add(f, elsewhere ? SEVERITY_INFO : SEVERITY_WARNING, elsewhere ? NAN : saving, title,
              evidence, action, NULL, 0);
}

void rule_launch_bound(struct findings *f) {
  const struct results *r = f->r;
  const struct gpu_timeline_result *gpu = &r->gpu_timeline;
  double bound = launch_bound_share(r);
  double small = r->launch.short_kernels / r->launch.kernels;
  if (mostly_captures(r) || !(bound >= LAUNCH_BOUND_SHARE) || !(small >= LAUNCH_BOUND_SHORT))
    return;
  double all_s = gpu->host_bound_ms / 1e3 / r->gpu_timeline_seen;
  double a_step = r->ov_steps > 0 ? bound * r->ov_step_ms : all_s * 1e3 / f->steps;
  double saving = saving_of(f, what_if_cure(f, WHAT_IF_LAUNCHES, -1), a_step);
  const struct sampled_line *line;
  const char *host = describe_launching_line(f, &line);
  finding_add(
      f, severity_of(f, per_step_of(f, saving)), saving,
      say(f, "The GPU waits %s of %s for the host to launch work%s", percent(bound).text,
          r->ov_steps > 0 ? "each step" : "the time", at_line(f, ", mostly", line)),
      say(f,
          "From the first work on the GPU to the last, nothing had been launched for %s of %s, "
          "mean over ranks. %s of %.0f kernels ran under 10 \u00b5s; half of them began "
          "within %.3g \u00b5s of their launch.%s",
          duration_ms(gpu->host_bound_ms).text, duration_ms(gpu->total_ms).text,
          percent(small).text, r->launch.kernels, r->launch.delay_median_us, host),
      line ? say(f, LOOK_AT_HOST_LINE, line->place)
      : serves(f)
          ? "Launch less and sooner: CUDA graphs for the batch sizes that occur (no eager mode), "
            "torch.compile, fused operators; schedule the next batch while this one runs."
          : "Launch less and sooner: torch.compile or CUDA graphs, larger batches, fused operators "
            "and optimizers; take .item(), .cpu() and prints out of the step.",
      NULL, 0);
}

/* Time of fills and zeroing: by operator if operators are recorded, else by kernel. */
static double fill_ms(const struct results *r, double *count) {
  if (r->launch.fill_count > 0) {
    *count = r->launch.fill_count;
    return r->launch.fill_ms;
  }
  const struct kernel_category_result *memset = find_category(r, KERNEL_MEMSET);
  double sum = memset ? memset->sum_ms : 0;
  *count = memset ? memset->count : 0;
  FOR_EACH(r->kernels, r->n_kernels, kernel)
    if (strstr(kernel->name, "FillFunctor")) {
      sum += kernel->sum_ms;
      *count += kernel->count;
    }
  return sum;
}

static bool is_fill(const char *name, const struct kernel *kernel) {
  (void)kernel;
  return strstr(name, "FillFunctor") != NULL;
}

static bool name_copies(const char *name) {
  return strstr(name, "direct_copy_kernel") || strstr(name, "CatArrayBatchedCopy");
}

static bool is_copy(const char *name, const struct kernel *kernel) {
  return kernel->category != KERNEL_CONVERSION && name_copies(name);
}

static bool is_conversion(const char *name, const struct kernel *kernel) {
  (void)name;
  return kernel->category == KERNEL_CONVERSION;
}

void rule_fill(struct findings *f) {
  const struct results *r = f->r;
  double count, ms = fill_ms(r, &count), all = own_work_ms(r);
  if (!(all > 0) || !(ms >= WORTH_MENTIONING * all))
    return;
  const char *which = r->launch.n_fills ? say(f, " Most: %s, %s in %s.", r->launch.fills[0].name,
                                              plural(r->launch.fills[0].count, "time").text,
                                              duration_ms(r->launch.fills[0].sum_ms).text)
                                        : "";
  static const struct cure_change fills = {.kind = CHANGE_FILLS};
  struct cure cure = {&fills, 1};
  path_labels_take(f->a, is_fill, &cure);
  add_own_work(f, ms, 0, all, &cure,
               say(f, "%s of the GPU's own work is filling memory", percent(ms / all).text),
               say(f, "%.0f fills took %s of %s of work, all ranks together.%s", count,
                   duration_ms(ms).text, duration_ms(all).text, which),
               "zero_grad(set_to_none=True), torch.empty where every element is written anyway, "
               "and buffers that are allocated once and used again.");
}

/* Copies between memories, and kernels that copy element by element (contiguous(), clone(), cat).
 */
void rule_copy(struct findings *f) {
  const struct results *r = f->r;
  const struct kernel_category_result *memcpy_ = find_category(r, KERNEL_MEMCPY);
  const struct memcpy_result *most =
      LARGEST(r->launch.memcpys, r->launch.n_memcpys, one, true, one->sum_ms);
  double n = memcpy_ ? memcpy_->count : 0, ms = memcpy_ ? memcpy_->sum_ms : 0;
  double all = own_work_ms(r), by_kernels = 0, kernels = 0;
  FOR_EACH(r->kernels, r->n_kernels, kernel)
    if (kernel->kind != KERNEL_CONVERSION && name_copies(kernel->name)) {
      by_kernels += kernel->sum_ms;
      kernels += kernel->count;
    }
  if (!(all > 0) || !(ms + by_kernels >= WORTH_MENTIONING * all))
    return;
  const char *fast = most && !isnan(most->gbps) ? say(f, ", %s", bandwidth(most->gbps).text) : "";
  bool kernels_copy = by_kernels > ms;
  const char *which = most && !kernels_copy
                          ? say(f, " Most of them %s: %s in %s%s.", most->direction,
                                count_of(most->count).text, duration_ms(most->sum_ms).text, fast)
                          : "";
  static const struct cure_change copies = {.kind = CHANGE_COPIES};
  struct cure cure = {&copies, 1};
  path_labels_take(f->a, is_copy, &cure);
  add_own_work(
      f, ms + by_kernels, ms, all, &cure,
      say(f, "%s of the GPU's own work is copying memory", percent((ms + by_kernels) / all).text),
      say(f, "%s%s%s, of %s of work, all ranks together.%s",
          n > 0 ? say(f, "%s took %s", plural(n, "copy").text, duration_ms(ms).text) : "",
          n > 0 && kernels > 0 ? ", " : "",
          kernels > 0 ? say(f, "%s that only %s took %s", plural(kernels, "kernel").text,
                            kernels == 1 ? "copies" : "copy", duration_ms(by_kernels).text)
                      : "",
          duration_ms(all).text, which),
      kernels_copy ? "Avoid contiguous(), clone() and cat() of large tensors in the step; write "
                     "results in place (out=), and choose layouts that the next operator takes."
                   : "Keep data on the device if it is used there again; copy once, from pinned "
                     "memory, on a separate stream; avoid contiguous(), clone() and cat() of large "
                     "tensors in the step, and write results in place (out=).");
}

void rule_dtype_conversion(struct findings *f) {
  const struct kernel_category_result *conversion = find_category(f->r, KERNEL_CONVERSION);
  double all = own_work_ms(f->r);
  if (!conversion || !(all > 0) || !(conversion->sum_ms >= WORTH_MENTIONING * all))
    return;
  struct cure cure = {0};
  path_labels_take(f->a, is_conversion, &cure);
  add_own_work(f, conversion->sum_ms, 0, all, &cure,
               say(f, "%s of the GPU's own work is converting number types",
                   percent(conversion->sum_ms / all).text),
               say(f, "%.0f conversions took %s of %s of work, all ranks together.",
                   conversion->count, duration_ms(conversion->sum_ms).text, duration_ms(all).text),
               "Keep weights and activations in one type: a bfloat16 model instead of autocast per "
               "operator, cached casts, norms and losses that accept their input's type; let "
               "torch.compile fuse the rest.");
}
