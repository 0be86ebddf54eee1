/* SPDX-License-Identifier: MIT
 *
 * Where the time of the steps looked at went, mean over ranks: lines that sum to the wall time.
 * And how much of the devices' arithmetic the model used.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "analysis.h"
#include "peaks.def"

#define MAX_LINES 10

static void add_line(struct results *r, const char *name, double seconds, double recoverable) {
  r->budget[r->n_budget++] =
      (struct budget_line){name, seconds, r->wall_s > 0 ? seconds / r->wall_s : NAN, recoverable};
}

/* Sums over the ranks whose overlap is known; all ranks that were read if none is. */
static struct rank_summary add_ranks(const struct analysis *a, u32 *n, bool known) {
  struct rank_summary sum;
  memset(&sum, 0, sizeof(sum));
  for (u32 i = *n = 0; i < a->model->n_ranks; i++) {
    const struct rank_summary *rank = &a->ranks[i];
    if (known ? !rank_overlap_known(rank) : !rank->loaded || !rank->steps)
      continue;
    ++*n;
    sum.total += rank->total;
    sum.compute += rank->compute;
    sum.exposed_comm += rank->exposed_comm;
    sum.all.comm += rank->all.comm;
    sum.all.wait += rank->all.wait;
    sum.all.transfer += rank->all.transfer;
    sum.exposed_copy += rank->exposed_copy;
    sum.idle += rank->idle;
    sum.data_stall += rank->data_stall;
    sum.host_bound += rank->host_bound;
    sum.has_phases |= rank->has_phases;
    sum.has_input |= rank->has_input;
    sum.on_gpu |= rank->on_gpu;
  }
  return sum;
}

static void known_lines(struct results *r, const struct rank_summary *sum, double n) {
  double to_s = 1e-9 / n;
  i64 unsplit = sum->exposed_comm - sum->all.wait - sum->all.transfer;
  double transfer = (double)sum->all.transfer * to_s;
  /* Transfers can only hide behind compute that hides none yet. */
  double room = (double)(sum->compute - (sum->all.comm - sum->exposed_comm)) * to_s;
  i64 other = sum->has_phases ? sum->idle - sum->data_stall - sum->host_bound : 0;
  i64 launch = sum->idle - sum->data_stall - other;
  add_line(r, "compute", (double)sum->compute * to_s, NAN);
  if (sum->has_input)
    add_line(r, "waiting for input", (double)sum->data_stall * to_s,
             (double)sum->data_stall * to_s);
  add_line(r, "waiting for ranks", (double)sum->all.wait * to_s, (double)sum->all.wait * to_s);
  add_line(r, "communication", transfer, transfer < room ? transfer : room > 0 ? room : 0);
  if (unsplit)
    add_line(r, "communication or wait", (double)unsplit * to_s, NAN);
  add_line(r, "memory copies", (double)sum->exposed_copy * to_s, (double)sum->exposed_copy * to_s);
  add_line(r, sum->on_gpu ? "launch and idle" : "idle in phases", (double)launch * to_s,
           sum->on_gpu ? (double)launch * to_s : NAN);
  if (sum->has_phases)
    add_line(r, "outside phases", (double)other * to_s, sum->on_gpu ? (double)other * to_s : NAN);
}

static int list_lines(struct analysis *a) {
  struct results *r = a->results;
  u32 n;
  struct rank_summary sum = add_ranks(a, &n, true);
  r->wall_s = r->residual_s = NAN;
  r->budget = arena_array(a->arena, MAX_LINES, sizeof(*r->budget));
  if (!r->budget)
    return -ENOMEM;
  bool known = n > 0;
  if (!known)
    sum = add_ranks(a, &n, false);
  if (n == 0)
    return 0;
  r->wall_s = (double)sum.total / n / 1e9;
  if (known)
    known_lines(r, &sum, n);
  else
    add_line(r, "not seen", r->wall_s, NAN);
  r->residual_s = r->wall_s;
  for (u32 i = 0; i < r->n_budget; i++)
    r->residual_s -= r->budget[i].seconds;
  return 0;
}

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

double device_peak_tflops(const char *name) {
  static const struct {
    const char *words;
    double tflops;
  } peaks[] = {
#define P(words, tflops) {words, tflops},
      TSCOPE_PEAKS(P)
#undef P
  };
  double peak = NAN;
  size_t longest = 0;
  for (size_t i = 0; name && i < sizeof(peaks) / sizeof(peaks[0]); i++)
    if (strlen(peaks[i].words) > longest && has_words(name, peaks[i].words)) {
      peak = peaks[i].tflops;
      longest = strlen(peaks[i].words);
    }
  return peak;
}

/* FLOP/s of all devices of the job, NAN with a reason if one of them is not known. */
static double job_peak(struct analysis *a, const char **why) {
  const struct model *model = a->model;
  double devices = model->world_size > model->n_ranks ? model->world_size : model->n_ranks;
  if (!isnan(a->options->peak_tflops))
    return a->options->peak_tflops * 1e12 * devices;
  double sum = 0;
  for (u32 i = 0; i < model->n_ranks; i++) {
    const char *name = model->ranks[i].info[TSCOPE_INFO_GPU_NAME];
    double peak = device_peak_tflops(name);
    if (isnan(peak)) {
      *why = name ? arena_printf(a->arena, "no peak is known for '%s': give --peak-tflops", name)
                  : "the device is not known: give --peak-tflops";
      return NAN;
    }
    sum += peak * 1e12;
  }
  if (model->n_ranks == 0)
    *why = "no rank was found";
  /* ranks that were not found are taken to have what the others have */
  return model->n_ranks ? sum / model->n_ranks * devices : NAN;
}

static void utilisation(struct analysis *a) {
  struct results *r = a->results;
  const struct analyse_options *o = a->options;
  r->mfu = NAN;
  r->flops_per_step = o->flops_per_step;
  if (isnan(r->flops_per_step) && !isnan(o->params) && !isnan(o->tokens_per_step))
    r->flops_per_step = 6 * o->params * o->tokens_per_step;
  r->peak_flops = job_peak(a, &r->peak_reason);
  r->mfu_reason = r->peak_reason;
  if (isnan(r->flops_per_step))
    r->mfu_reason = "FLOPs per step not given: --flops-per-step, or --params and --tokens-per-step";
  else if (!(r->step_mean_ms > 0))
    r->mfu_reason = "no steps were found";
  else if (!isnan(r->peak_flops))
    r->mfu = r->flops_per_step / (r->step_mean_ms / 1e3 * r->peak_flops);
}

/* What limits the figure beside its coverage. */
static const char *note_hfu(struct analysis *a, const struct rank_flops *all) {
  if (all->captured)
    return arena_printf(a->arena,
                        "%llu products went into CUDA graphs, whose replays are not counted",
                        (unsigned long long)all->captured);
  if (all->unknown)
    return arena_printf(a->arena, "%llu products of unknown size are not counted",
                        (unsigned long long)all->unknown);
  return NULL;
}

static const char *why_no_hfu(const struct analysis *a, const struct rank_flops *all) {
  const struct results *r = a->results;
  bool on_gpu = false;
  for (u32 i = 0; i < a->model->n_ranks; i++)
    on_gpu |= a->ranks[i].on_gpu;
  if (!all->products && a->model->recorder && on_gpu)
    return arena_printf(a->arena, "%s does not record the arithmetic of kernels",
                        a->model->recorder);
  if (!all->products)
    return on_gpu ? "no matrix product was seen: cuBLAS was not called, or not through "
                    "its library's symbols"
                  : "no GPU work was seen";
  if (all->products == all->captured + all->unknown)
    return "the matrix products that were seen went into CUDA graphs or are of unknown size";
  return a->whole_run ? "no steps were found" : isnan(r->peak_flops) ? r->peak_reason : NULL;
}

static void hardware_utilisation(struct analysis *a) {
  struct results *r = a->results;
  const struct model *model = a->model;
  struct rank_flops all = flops_all(a, true);
  double devices = model->world_size > model->n_ranks ? model->world_size : model->n_ranks;
  double steps = 0;
  r->hfu = r->hfu_coverage = r->hfu_attention = r->hfu_attention_coverage = NAN;
  r->product_flops = NAN;
  r->hfu_reason = why_no_hfu(a, &all);
  if (!all.products)
    return;
  for (u32 i = 0; i < model->n_ranks; i++)
    if (a->ranks[i].flops.products && a->ranks[i].steps > steps)
      steps = a->ranks[i].steps;
  if (all.kernel_ns) {
    r->hfu_coverage = (double)all.known_ns / (double)all.kernel_ns;
    r->hfu_attention_coverage = (double)all.estimated_ns / (double)all.kernel_ns;
  }
  if (steps > 0 && !a->whole_run)
    r->product_flops = all.flops / steps;
  if (r->hfu_reason)
    return;
  double possible = (double)all.wall_ns / 1e9 * (r->peak_flops / devices);
  r->hfu = all.flops / possible;
  r->hfu_attention = all.estimated > 0 ? all.estimated / possible : NAN;
  r->hfu_note = note_hfu(a, &all);
}

int budget_analyse(struct analysis *a) {
  utilisation(a);
  hardware_utilisation(a);
  return list_lines(a);
}
