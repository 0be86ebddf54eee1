/* SPDX-License-Identifier: MIT
 *
 * Arithmetic that the devices could do but do not, and time that no other finding claims.
 */
#include <math.h>

#include "analyses/findings/findings.h"
#include "analyses/lines/lines.h"
#include "analyses/queries.h"
#include "base/quantity.h"
#include "base/texts.h"

void rule_low_mfu(struct findings *f) {
  const struct results *r = f->r;
  if (!(r->mfu < MFU_LOW))
    return;
  const struct budget_line *beyond = budget_line_of(r, BUDGET_COMPUTE_BEYOND);
  double left = beyond ? beyond->cure.changes->left : 1;
  double saving = left < 1 ? saving_of(f, &beyond->cure, (1 - left) * r->ov_compute_ms) : NAN;
  finding_add(f, SEVERITY_WARNING, saving,
              say(f, "Model FLOPs utilisation is %s", percent(r->mfu).text),
              say(f,
                  "%.3g FLOPs a step (%s) in %s against a dense peak of %.4g TFLOP/s for the job; "
                  "compute runs %s of the step. The saving is the time that compute would "
                  "save at %s of the peak, which tuned jobs reach.",
                  r->flops_per_step, r->mfu_note ? r->mfu_note : "as given",
                  duration_ms(r->step_mean_ms).text, r->peak_flops / 1e12,
                  percent(r->ov_compute_ms / r->ov_step_ms).text, percent(MFU_TUNED).text),
              "First remove the time in which nothing computes (budget). Then the kernels: bf16 or "
              "lower, larger or padded matrices, fused attention, torch.compile. Check that FLOPs "
              "per step and peak are those of this job.",
              NULL, 0);
}

static const struct precision_row *precision_row_of(const struct results *r,
                                                    enum precision precision) {
  return FIND(r->gemms.precisions, r->gemms.n_precisions, one, one->kind == precision);
}

/* Peak of the device that is slowest in a precision, NAN if there is one whose peak is not known.
 */
static double lowest_peak(const struct findings *f, enum precision precision) {
  const struct rank *ranks = f->a->model->ranks;
  double least = INFINITY, peak = NAN;
  for (u32 i = 0; i < f->a->model->n_ranks; i++) {
    const char *name = ranks[i].info[TSCOPE_INFO_GPU_NAME];
    if (!i || !same_text(name, ranks[i - 1].info[TSCOPE_INFO_GPU_NAME]))
      peak = device_peak_tflops(name, precision);
    if (!(peak >= least))
      least = peak;
    if (isnan(peak))
      return NAN;
  }
  return least;
}

/* Only the time that the arithmetic takes at its peak can be saved: the rest waits for memory. */
void rule_precision(struct findings *f) {
  const struct precision_row *row = precision_row_of(f->r, PRECISION_FP32);
  double fp32 = lowest_peak(f, PRECISION_FP32), tf32 = lowest_peak(f, PRECISION_TF32);
  if (!row || !(tf32 > fp32) || isinf(tf32))
    return;
  double utilisation = row->tflops / fp32;
  double saved_ms = row->ms * utilisation * (1 - fp32 / tf32);
  if (!is_notable(f, saved_ms))
    return;
  double saving = saving_of_change(
      f, (struct cure_change){.kind = CHANGE_COMPUTE, .left = 1 - saved_ms / f->r->ov_compute_ms},
      saved_ms);
  finding_add(
      f, severity_of(f, per_step_of(f, saving)), saving,
      say(f, "%s of the matrix arithmetic runs in fp32", percent(row->share).text),
      say(f,
          "These GEMMs take %s a step on the GPU at %.3g TFLOP/s, %s of what the device can "
          "do in fp32; in TF32 it can do %.3g TFLOP/s. TF32 is allowed for none of them.",
          duration_ms(row->ms).text, row->tflops, percent(utilisation).text, tf32),
      "Allow TF32: torch.set_float32_matmul_precision(\"high\"), or "
      "cublasSetMathMode(CUBLAS_TF32_TENSOR_OP_MATH). Or compute in bf16 (torch.autocast). Both "
      "change the numbers: check the loss.",
      NULL, 0);
}

/* The line without whose wait for the GPU at least half of this is saved; NULL if there is none, or
 * if it is a finding of its own (HOST.SYNC). */
static const struct what_if *line_that_costs(const struct results *r, double saving) {
  return LARGEST(r->what_if, r->what_if_reason ? 0 : r->n_what_if, one,
                 one->kind == WHAT_IF_LINE && one->saving_fraction < WORTH_MENTIONING &&
                     one->saving_fraction * r->analysed_s >= 0.5 * saving,
                 one->saving_fraction);
}

static const char *recoverable_action(struct findings *f, enum budget_part part, double saving) {
  if (part == BUDGET_MEMCPYS)
    return "Copy from pinned memory with non_blocking=True on a separate stream, before the data "
           "is used; keep constant data on the device.";
  const struct sampled_line *host;
  describe_launching_line(f, &host);
  if (host)
    return say(f, LOOK_AT_HOST_LINE, host->place);
  if (serves(f))
    return "Keep the device busy: CUDA graphs for the batch sizes that occur, more requests a "
           "batch, scheduling of the next batch while this one runs; check that the host's CPU is "
           "not the limit.";
  const struct what_if *line = line_that_costs(f->r, saving);
  if (line)
    return say(f,
               "Do not wait for the GPU in %s at %s (.item(), .cpu(), synchronize()): without that "
               "wait %s is %s shorter. Then keep the device busy: CUDA graphs or "
               "torch.compile, larger batch, fused optimizer.",
               of_each_step(f), f->r->lines.at[line->rank].place, a_step(f),
               percent(line->saving_fraction).text);
  return "Keep the device busy: CUDA graphs or torch.compile, larger batch, fused optimizer; "
         "remove .item(), .cpu() and synchronize() from the step; check that the host's CPU is not "
         "the limit.";
}

/* ", besides waiting for input (64 %)": idle time that has a finding of its own. */
static const char *other_idle_time(struct findings *f) {
  static const struct {
    enum budget_part part;
    const char *what;
  } others[] = {{BUDGET_INPUT, "waiting for input"},
                {BUDGET_OUTSIDE_PHASES, "work of the host outside the phases"},
                {BUDGET_BEGUN_LATE, "launched work that begins late"},
                {BUDGET_CAPTURING, "capturing CUDA graphs"}};
  const char *text = "";
  FOR_EACH(others, LENGTH_OF(others), other) {
    const struct budget_line *line = budget_line_of(f->r, other->part);
    if (line && line->fraction >= WORTH_MENTIONING)
      text =
          arena_list(f->arena, text, " and ", "%s (%s)", other->what, percent(line->fraction).text);
  }
  return *text ? say(f, ", besides %s", text) : text;
}

/* What could be saved beyond what the findings above already claim. */
void rule_recoverable(struct findings *f) {
  static const enum budget_part parts[] = {BUDGET_MEMCPYS, BUDGET_LAUNCH_AND_IDLE};
  enum { PARTS = LENGTH_OF(parts) };
  const struct results *r = f->r;
  double sum = 0, measured_ms = 0;
  const struct budget_line *most = NULL;
  FOR_EACH(parts, PARTS, one) {
    const struct budget_line *line = budget_line_of(r, *one);
    if (!line || !line->cure.n)
      continue;
    sum += line->seconds;
    measured_ms += *one == BUDGET_LAUNCH_AND_IDLE
                       ? without_waits_for_gpu(f, line->fraction * f->step_ms)
                       : line->fraction * f->step_ms;
    most = !most || line->seconds > most->seconds ? line : most;
  }
  double saving = saving_of(f, &r->idle_devices, measured_ms);
  if (!most || mostly_captures(r) || sum < WORTH_MENTIONING * r->wall_s ||
      !(saving >= WORTH_MENTIONING * r->analysed_s))
    return;
  const struct sampled_line *line;
  const char *host = most->part == BUDGET_LAUNCH_AND_IDLE ? describe_launching_line(f, &line) : "";
  /* A recording begins at a chosen moment, a run begins with its start-up. */
  bool with_start_up = f->a->whole_run && !f->a->model->recorder;
  if (with_start_up)
    f->cure = (struct cure){0};
  finding_add(f, with_start_up ? SEVERITY_INFO : severity_of(f, per_step_of(f, saving)),
              with_start_up ? NAN : saving,
              say(f, "%s of the time the devices neither compute nor communicate%s",
                  percent(sum / r->wall_s).text, other_idle_time(f)),
              say(f, "%s of %s, mean over ranks; the largest part is '%s' with %s (%s).%s%s",
                  duration_s(sum).text, duration_s(r->wall_s).text, budget_part_words[most->part],
                  duration_s(most->seconds).text, percent(most->fraction).text, host,
                  with_start_up ? " No steps were found, so this includes start-up and end of the "
                                  "run; how much of it is training is not known."
                                : ""),
              recoverable_action(f, most->part, saving), NULL, 0);
}
