/* SPDX-License-Identifier: MIT
 *
 * How much of the possible arithmetic the devices did: MFU counts what the model needs, HFU what
 * was called.
 */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "analyses/analyses.h"
#include "analyses/gpu/peaks.def"
#include "analyses/queries.h"
#include "base/quantity.h"
#include "base/texts.h"

/* Whether `words` stands in `name` as whole words, whatever the case. */
static bool has_words(const char *name, const char *words) {
  size_t length = strlen(words);
  for (const char *at = name; *at; at++) {
    bool starts = at == name || !isalnum((unsigned char)at[-1]);
    if (starts && strncasecmp(at, words, length) == 0 && !isalnum((unsigned char)at[length]))
      return true;
  }
  return false;
}

/* In the order of enum precision. */
struct device_peaks {
  const char *words;
  double tflops[PRECISION_UNKNOWN];
};

static const struct device_peaks *find_device(const char *name) {
  static const struct device_peaks devices[] = {
#define P(words, ...) {words, {__VA_ARGS__}},
      TSCOPE_PEAKS(P)
#undef P
  };
  if (!name || has_words(name, "MIG")) /* a part of a device; its name gives no peak */
    return NULL;
  return LARGEST(devices, LENGTH_OF(devices), one, has_words(name, one->words),
                 (double)strlen(one->words));
}

double device_peak_tflops(const char *name, enum precision precision) {
  const struct device_peaks *device = find_device(name);
  return device && precision != PRECISION_UNKNOWN ? device->tflops[precision] : NAN;
}

double rank_peak_tflops(const struct analysis *a, u32 rank, enum precision precision) {
  if (!isnan(a->options->peak_tflops))
    return a->options->peak_tflops;
  return device_peak_tflops(a->model->ranks[rank].info[TSCOPE_INFO_GPU_NAME], precision);
}

/* FLOP/s of all devices of the job in a precision, NAN with a reason if one of them is not known.
 */
static double job_peak(struct analysis *a, enum precision precision, const char **why) {
  const struct model *model = a->model;
  double devices = model_ranks_of_job(model);
  double sum = 0, peak = NAN;
  if (!isnan(a->options->peak_tflops))
    return a->options->peak_tflops * 1e12 * devices;
  for (u32 i = 0; i < model->n_ranks; i++) {
    const char *name = model->ranks[i].info[TSCOPE_INFO_GPU_NAME];
    if (!i || !same_text(name, model->ranks[i - 1].info[TSCOPE_INFO_GPU_NAME]))
      peak = rank_peak_tflops(a, i, precision);
    if (isnan(peak)) {
      *why = name ? say(a, "no peak is known for '%s': give --peak-tflops", name)
                  : "the device is not known: give --peak-tflops";
      return NAN;
    }
    sum += peak * 1e12;
  }
  if (model->n_ranks == 0)
    *why = "no rank was found";
  /* ranks that were not found are assumed to have the same devices as the others */
  return model->n_ranks ? sum / model->n_ranks * devices : NAN;
}

/* The one precision in which all GEMMs were made, if they all were in one that is known. */
static enum precision only_precision(const struct rank_flops *all) {
  u32 n = NUMBER_OF(all->by_precision, PRECISIONS, one, *one > 0);
  u32 only = NUMBER_OF_LARGEST(0, PRECISIONS, p, all->by_precision[p]);
  return n == 1 && !all->unknown && !all->captured && !all->replays_unknown ? (enum precision)only
                                                                            : PRECISION_UNKNOWN;
}

/* MFU refers to the peak of bf16, like published figures, also for a job with some GEMMs in fp8 or
 * fp32. A job with all GEMMs in one other precision cannot come near that peak, or exceeds it: then
 * the peak of that precision is used, and the report says so. */
static void choose_peak(struct analysis *a, const struct rank_flops *all) {
  struct results *r = a->results;
  enum precision only = only_precision(all);
  r->peak_flops = job_peak(a, PRECISION_FP16, &r->peak_reason);
  r->peak_precision = isnan(a->options->peak_tflops) ? precision_name(PRECISION_FP16) : NULL;
  if (!r->peak_precision || isnan(r->peak_flops) || only == PRECISION_UNKNOWN ||
      only == PRECISION_FP16)
    return;
  const char *why;
  double peak = job_peak(a, only, &why);
  if (isnan(peak))
    return;
  r->peak_flops = peak;
  r->peak_precision = precision_name(only);
  r->peak_note = say(a, "all GEMMs that were recorded are %s", precision_name(only));
}

/* Of a rank that called GEMMs, mean; `all` has the sum. */
static double mean_steps(const struct analysis *a, const struct rank_flops *all) {
  return (double)all->steps / NUMBER_OF(a->ranks, a->model->n_ranks, one, one->flops.gemms > 0);
}

/* A training step does three times the arithmetic of its forward pass: backward has two GEMMs for
 * each (Kaplan et al., 2020, 2.1). Recomputed work is not needed by the model. If some GEMMs are
 * not known, or attention cannot be derived from its grid, this is a lower bound. */
static double model_flops(struct analysis *a, const struct rank_flops *all) {
  struct results *r = a->results;
  const struct model *model = a->model;
  if (!(all->forward > 0) || !all->steps || a->whole_run)
    return NAN;
  double seen = all->forward_ranks, of = model_ranks_of_job(model);
  double coverage =
      all->kernel_ns ? (double)(all->known_ns + all->estimated_ns) / (double)all->kernel_ns : NAN;
  bool bound = all->unknown || all->captured || all->replays_unknown || all->replayed_flops > 0;
  r->mfu_note = say(a, "estimated: three times the GEMMs of the forward pass%s%s%s",
                    all->estimated > 0 ? " and its attention"
                                       : "; attention not called through cuBLAS is left out",
                    isnan(coverage) ? ""
                                    : say(a, "; the arithmetic of %s of GPU compute time is known",
                                          percent(coverage).text),
                    bound ? "; a lower bound: not all GEMMs are known" : "");
  return 3 * all->forward / mean_steps(a, all) * of / seen;
}

static void model_utilisation(struct analysis *a, const struct rank_flops *all) {
  struct results *r = a->results;
  const struct analyse_options *o = a->options;
  r->flops_per_step = o->flops_per_step;
  r->tokens_per_step = o->tokens_per_step;
  if (isnan(r->flops_per_step) && !isnan(o->params) && !isnan(o->tokens_per_step))
    r->flops_per_step = 6 * o->params * o->tokens_per_step;
  if (isnan(r->flops_per_step)) {
    r->flops_per_step = model_flops(a, all);
    r->flops_estimated = !isnan(r->flops_per_step);
  }
  choose_peak(a, all);
  r->mfu_reason = r->peak_reason;
  if (isnan(r->flops_per_step))
    r->mfu_reason = "FLOPs per step not given: --flops-per-step, or --params and "
                    "--tokens-per-step; no forward pass with GEMMs was recorded to estimate them";
  else if (!(r->step_mean_ms > 0))
    r->mfu_reason = "no steps were found";
  else if (!isnan(r->peak_flops))
    r->mfu = r->flops_per_step / (r->step_mean_ms / 1e3 * r->peak_flops);
}

/* Share of the GEMMs' operations that cannot be compared with a peak. */
static double share_without_peak(const struct analysis *a, const struct rank_flops *all) {
  double sum = 0;
  for (u32 i = 0; i < a->model->n_ranks; i++)
    for (u32 p = 0; p < PRECISIONS; p++)
      if (isnan(rank_peak_tflops(a, i, (enum precision)p)))
        sum += a->ranks[i].flops.by_precision[p];
  return all->flops > 0 ? sum / all->flops : 0;
}

/* What limits the figure apart from its coverage. */
static const char *describe_hfu_limits(struct analysis *a, const struct rank_flops *all) {
  double missing = share_without_peak(a, all);
  if (missing > 0)
    return say(a, "%s of the operations are not counted: no peak is known for their precision",
               percent(missing).text);
  if (all->captured)
    return say(a, "%llu GEMMs went into CUDA graphs, whose replays are not counted",
               (unsigned long long)all->captured);
  if (all->replays_unknown)
    return say(a, "%llu replays of CUDA graphs whose capture was not seen are not counted",
               (unsigned long long)all->replays_unknown);
  if (all->unknown)
    return say(a, "%llu GEMMs of unknown size are not counted", (unsigned long long)all->unknown);
  return NULL;
}

static const char *why_no_hfu(const struct analysis *a, const struct rank_flops *all) {
  const struct results *r = a->results;
  bool on_gpu = ANY(a->ranks, a->model->n_ranks, one, one->on_gpu);
  if (!all->gemms && a->model->recorder && on_gpu)
    return say(a, "%s does not record the arithmetic of kernels", a->model->recorder);
  if (!all->gemms)
    return on_gpu
               ? "no GEMM was recorded: cuBLAS was not called, or not through its library's symbols"
               : "no GPU work was seen";
  if (all->gemms == all->captured + all->unknown)
    return "the GEMMs that were seen went into CUDA graphs or are of unknown size";
  if (a->whole_run)
    return "no steps were found";
  if (isnan(r->peak_flops))
    return r->peak_reason;
  return share_without_peak(a, all) < 1
             ? NULL
             : "no peak of the device is known for the precision of its GEMMs";
}

/* The share of `rank`'s time that its operations of a precision would take at the device's peak; 0
 * where there is no peak. */
static double at_peak_s(const struct analysis *a, u32 rank, enum precision precision,
                        double operations) {
  double peak = rank_peak_tflops(a, rank, precision) * 1e12;
  return operations > 0 && !isnan(peak) ? operations / peak : 0;
}

static void hardware_utilisation(struct analysis *a, const struct rank_flops *all) {
  struct results *r = a->results;
  double used_s = 0, attention_s = 0, wall_s = ns_to_s(all->wall_ns);
  r->hfu_reason = why_no_hfu(a, all);
  if (!all->gemms)
    return;
  if (all->kernel_ns) {
    r->hfu_coverage = (double)all->known_ns / (double)all->kernel_ns;
    r->hfu_attention_coverage = (double)all->estimated_ns / (double)all->kernel_ns;
  }
  if (all->steps > 0 && !a->whole_run)
    r->gemm_flops = all->flops / mean_steps(a, all);
  if (r->hfu_reason)
    return;
  for (u32 i = 0; i < a->model->n_ranks; i++) {
    const struct rank_flops *one = &a->ranks[i].flops;
    if (!one->gemms)
      continue;
    for (u32 p = 0; p < PRECISIONS; p++)
      used_s += at_peak_s(a, i, (enum precision)p, one->by_precision[p]);
    attention_s += at_peak_s(a, i, PRECISION_FP16, one->estimated);
  }
  r->hfu = used_s / wall_s;
  r->hfu_attention = attention_s > 0 ? attention_s / wall_s : NAN;
  r->hfu_note = describe_hfu_limits(a, all);
}

/* Each precision's part of HFU; its operations and times are gemms.c's. */
static void utilisation_by_precision(struct analysis *a, const struct rank_flops *all) {
  struct gemms_result *gemms = &a->results->gemms;
  FOR_EACH_CHANGED(gemms->precisions, gemms->n_precisions, row) {
    double used_s = 0;
    for (u32 rank = 0; rank < a->model->n_ranks; rank++)
      used_s += at_peak_s(a, rank, row->kind, a->ranks[rank].flops.by_precision[row->kind]);
    row->hfu =
        isnan(a->results->hfu) || isnan(row->peak_tflops) ? NAN : used_s / ns_to_s(all->wall_ns);
  }
}

void utilisation_analyse(struct analysis *a) {
  struct rank_flops all = flops_all(a, true);
  model_utilisation(a, &all);
  hardware_utilisation(a, &all);
  utilisation_by_precision(a, &all);
}
