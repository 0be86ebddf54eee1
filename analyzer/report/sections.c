/* SPDX-License-Identifier: MIT */
#include "report/sections.h"

#include <math.h>

#include "analyses/findings/diff_findings.def"
#include "analyses/findings/findings.def"
#include "diff/diff_result.h"

/* With a smaller part of its tensors on the CPU, a job has none there that matter. */
#define LEAST_ON_CPU (1024.0 * 1024)

static bool always(const struct results *results) {
  (void)results;
  return true;
}

/* The input shows ranks over time. */
static bool has_timelines(const struct results *results) {
  return results->model->n_ranks > 0;
}

static bool ended_early(const struct results *results) {
  const struct run_end *end = &results->run_end;
  return end->how > RUN_ENDED_IN_ORDER;
}

static bool end_unjudged(const struct results *results) {
  return results->run_end.n_culprits == 0;
}

static bool has_calls(const struct results *results) {
  const struct collective_check *check = &results->check;
  return check->flight && (results->model->flight || check->n_suspects || check->cannot_tell);
}

static bool calls_unjudged(const struct results *results) {
  return results->check.cannot_tell != NULL;
}

static bool has_stalls(const struct results *results) {
  return results->stalls.n_ranks || results->stalls.n_past;
}

/* No finding is no praise where something could not be judged. */
static bool is_undecided(const struct results *results) {
  return results->n_undecided > 0;
}

static const char *steps_unknown(const struct results *results) {
  if (results->model->recorder && (results->whole_run || !(results->step_count > 0)))
    return "no steps were found; figures are for the whole recording. To get steps, call the "
           "profiler's step() once per step";
  return results->whole_run || !(results->step_count > 0)
             ? "no steps were found; figures are for the whole run. To get steps, mark them with "
               "tscope_step()"
             : NULL;
}

static const char *phases_unknown(const struct results *results) {
  bool any = !isnan(results->data_ms) || !isnan(results->forward_ms) ||
             !isnan(results->backward_ms) || !isnan(results->optimizer_ms);
  if (!any && results->n_step_kinds)
    return "the steps are iterations of an inference engine, which have none of training's phases";
  if (!any && results->model->recorder)
    return "no rank has training phases (optimizer, data loader, ranges called forward and "
           "backward)";
  return any ? NULL : "no rank has training phases (PyTorch ranges, or tscope_range_push())";
}

static bool has_ranges(const struct results *results) {
  return results->n_named_ranges > 0;
}

static bool has_lines(const struct results *results) {
  return results->lines.known > 0 || results->lines.reason;
}

static const char *lines_unknown(const struct results *results) {
  return results->lines.reason;
}

static const char *ranks_unknown(const struct results *results) {
  if (results->model->n_ranks < 2)
    return results->model->world_size > 1 ? "only one rank's trace was found"
                                          : "one rank has no peers to compare with";
  return NULL;
}

/* A rank without a trace may be the one that makes the others wait. */
static bool ranks_unjudged(const struct results *results) {
  return !(results->dist_steps > 0) || results->model->n_ranks < results->model->world_size;
}

static const char *overlap_unknown(const struct results *results) {
  if (results->overlap_reason)
    return results->overlap_reason;
  return isnan(results->ov_step_ms) ? "the trace has no times of communication" : NULL;
}

static const char *collectives_unknown(const struct results *results) {
  return results->n_collectives ? NULL : "no collective was recorded in the analysed steps";
}

/* Slow links are found by their transfer times. */
static bool collectives_unjudged(const struct results *results) {
  return !ANY(results->collectives, results->n_collectives, one, !isnan(one->transfer_ms));
}

static bool has_gpus(const struct results *results) {
  bool on_gpu =
      ANY(results->model->ranks, results->model->n_ranks, one, one->launches || one->gpu_kernels);
  return on_gpu && results->n_gpu_timelines > 0;
}

static const char *gpu_unknown(const struct results *results) {
  return isnan(results->gpu_timeline.total_ms) ? results->gpu_timeline_reason : NULL;
}

/* Jobs on the CPU have no kernels. */
static bool has_kernels(const struct results *results) {
  if (results->n_kernel_categories)
    return true;
  return ANY(results->model->ranks, results->model->n_ranks, one, one->launches);
}

static const char *kernels_unknown(const struct results *results) {
  return results->n_kernel_categories ? NULL : results->kernels_reason;
}

static bool kernels_unjudged(const struct results *results) {
  return results->kernels_reason != NULL;
}

static bool has_gemms(const struct results *results) {
  return results->gemms.calls > 0;
}

static const char *path_unknown(const struct results *results) {
  if (results->path_reason)
    return results->path_reason;
  return isnan(results->path_length_ms) ? "the trace does not show dependencies" : NULL;
}

static bool path_unjudged(const struct results *results) {
  return results->what_if_reason != NULL;
}

static bool has_pipeline(const struct results *results) {
  return results->n_pipeline_stage > 0;
}

static const char *pipeline_unknown(const struct results *results) {
  return results->pipeline_reason;
}

static const char *budget_unknown(const struct results *results) {
  return isnan(results->wall_s) || results->n_budget == 0 ? "no rank's time could be accounted for"
                                                          : NULL;
}

/* Without overlap, only the wall time is known. */
static bool budget_unjudged(const struct results *results) {
  return results->overlap_reason != NULL;
}

static bool has_memory(const struct results *results) {
  const struct memory_result *memory = &results->memory;
  bool little = isnan(memory->device) && memory->peak_allocated_bytes < LEAST_ON_CPU;
  return memory->reason == NULL && !(little && !(memory->out_of_memory > 0));
}

static bool memory_unjudged(const struct results *results) {
  return results->memory.oom_risk == OOM_UNKNOWN;
}

static bool has_modules(const struct results *results) {
  return results->modules.reason == NULL;
}

/* Where a job trained and no value of it is known, that is said: its loss may be anything. */
static bool may_have_convergence(const struct results *results) {
  return results->convergence.reason == NULL ||
         (results->step_count > 0 && !results->n_step_kinds && has_timelines(results));
}

static const char *convergence_unknown(const struct results *results) {
  return results->convergence.reason
             ? "no loss is known: no printed line has one (\"step 10 loss 2.31\"), or "
               "TSCOPE_SCALARS=off. libtscope.scalar(\"loss\", x) records it; or name the job's "
               "log beside the traces"
             : NULL;
}

static bool convergence_unjudged(const struct results *results) {
  return results->convergence.verdict == LOSS_TREND_UNKNOWN;
}

/* Logs have no steps with times. */
static bool diff_has_steps(const struct results *results) {
  return !isnan(results->diff->step_before_ms) || !isnan(results->diff->step_after_ms);
}

static bool diff_steps_unjudged(const struct results *results) {
  return results->diff->verdict == STEPS_UNJUDGED || results->diff->verdict == STEPS_UNDECIDED;
}

static bool diff_has_unit(const struct results *results, enum diff_unit unit) {
  return ANY(results->diff->rows, results->diff->n_rows, one, one->unit == unit);
}

static bool diff_has_times(const struct results *results) {
  return diff_has_unit(results, UNIT_MS);
}

/* One run on each side: differences are shown, and nothing is judged. */
static bool diff_few_runs(const struct results *results) {
  return results->diff->noise != NOISE_BETWEEN_RUNS;
}

static bool diff_has_lines(const struct results *results) {
  return results->diff->n_lines > 0;
}

static bool diff_has_kernels(const struct results *results) {
  return results->diff->n_kernels > 0;
}

static bool diff_has_bytes(const struct results *results) {
  return diff_has_unit(results, UNIT_BYTES);
}

static bool diff_has_collectives(const struct results *results) {
  return results->diff->n_collectives > 0;
}

static bool diff_has_scalars(const struct results *results) {
  return results->diff->n_scalars > 0;
}

static bool diff_facts_unknown(const struct results *results) {
  return !(results->diff->facts_known > 0);
}

enum judged_by { OWN, ALL };

static const struct {
  const char *name, *title;
  bool (*shown)(const struct results *results);
  const char *(*unknown)(const struct results *results);
  bool (*unjudged)(const struct results *results);
  enum judged_by by;
} sections[] = {
#define S(name, ...) {#name, __VA_ARGS__},
    TSCOPE_SECTIONS(S) TSCOPE_DIFF_SECTIONS(S)
#undef S
};

/* For each finding's id, the sections that it belongs to: a bit for each. */
static const u64 sections_of[] = {
#define IN(name) 1ull << SECTION_##name |
#define F(group, name, rule, sections, ...) [FINDING_##group##_##name] = sections 0,
    TSCOPE_FINDINGS(F) TSCOPE_DIFF_FINDINGS(F)
#undef F
#undef IN
};
_Static_assert(N_SECTIONS <= 64, "sections_of[] has 64 bits");

const char *const mark_words[N_MARKS] = {
    [MARK_GOOD] = "ok",           [MARK_NOTE] = "note",       [MARK_WARNING] = "warning",
    [MARK_CRITICAL] = "critical", [MARK_UNKNOWN] = "unknown",
};

enum mark mark_of(enum severity severity) {
  return severity == SEVERITY_CRITICAL  ? MARK_CRITICAL
         : severity == SEVERITY_WARNING ? MARK_WARNING
                                        : MARK_NOTE;
}

const char *section_title(enum section_id id) {
  return sections[id].title;
}

static bool belongs(enum section_id id, enum finding_id finding) {
  return sections[id].by == ALL || sections_of[finding] >> id & 1;
}

static bool is_judged(enum section_id id) {
  bool judged = false;
  for (size_t i = 0; i < sizeof(sections_of) / sizeof(sections_of[0]); i++)
    judged |= belongs(id, (enum finding_id)i);
  return judged;
}

bool section_unjudged(enum section_id id, const struct results *results) {
  return sections[id].unjudged && sections[id].unjudged(results);
}

static enum mark judge(enum section_id id, const struct results *results) {
  enum mark worst = MARK_GOOD;
  for (u32 i = 0; i < results->n_findings; i++) {
    enum mark one = mark_of(results->findings[i].severity);
    if (belongs(id, results->findings[i].id) && one > worst)
      worst = one;
  }
  if (worst != MARK_GOOD)
    return worst;
  return !is_judged(id) ? MARK_NONE : section_unjudged(id, results) ? MARK_UNKNOWN : MARK_GOOD;
}

struct section section_of(enum section_id id, const struct results *results) {
  struct section section = {
      .name = sections[id].name, .title = sections[id].title, .mark = MARK_NONE};
  section.shown = sections[id].shown(results);
  if (!section.shown)
    return section;
  section.unknown = sections[id].unknown ? sections[id].unknown(results) : NULL;
  section.mark = section.unknown ? MARK_UNKNOWN : judge(id, results);
  return section;
}

struct results section_compared(const struct results *results) {
  struct results compared = *results;
  compared.findings = results->diff->findings;
  compared.n_findings = results->diff->n_findings;
  return compared;
}
