/* SPDX-License-Identifier: MIT */
#include "report/sections.h"

#include <math.h>

#include "analyses/findings/diff_findings.def"
#include "analyses/findings/findings.def"
#include "diff/diff_result.h"

/* With a smaller part of its tensors on the CPU, a job has none there that matter. */
#define LEAST_ON_CPU (1024.0 * 1024)

/* The input shows ranks over time. */
static bool has_timelines(const struct results *r) {
  return r->model->n_ranks > 0;
}

static bool has_calls(const struct results *r) {
  return r->check.flight && (r->model->flight || r->check.n_suspects || r->check.cannot_tell);
}

/* Why something is not known that is known if `known`: the reason given, or what it must be. */
static const char *unless(bool known, const char *reason, const char *otherwise) {
  return reason ? reason : known ? NULL : otherwise;
}

static const char *steps_unknown(const struct results *r) {
  if (!r->whole_run && r->step_count > 0)
    return NULL;
  return r->model->recorder
             ? "no steps were found; figures are for the whole recording. To get steps, call the "
               "profiler's step() once per step"
             : "no steps were found; figures are for the whole run. To get steps, mark them with "
               "tscope_step()";
}

static const char *phases_unknown(const struct results *r) {
  if (!isnan(r->data_ms) || !isnan(r->forward_ms) || !isnan(r->backward_ms) ||
      !isnan(r->optimizer_ms))
    return NULL;
  if (r->n_step_kinds)
    return "the steps are iterations of an inference engine, which have none of training's phases";
  return r->model->recorder ? "no rank has training phases (optimizer, data loader, ranges called "
                              "forward and backward)"
                            : "no rank has training phases (PyTorch ranges, or "
                              "tscope_range_push())";
}

static const char *ranks_unknown(const struct results *r) {
  return r->model->n_ranks >= 2     ? NULL
         : r->model->world_size > 1 ? "only one rank's trace was found"
                                    : "one rank has no peers to compare with";
}

/* A rank without a trace may be the one that makes the others wait. */
static bool ranks_unjudged(const struct results *r) {
  return !(r->dist_steps > 0) || model_lacks_ranks(r->model);
}

/* Slow links are found by their transfer times. */
static bool collectives_unjudged(const struct results *r) {
  return !ANY(r->collectives, r->n_collectives, one, !isnan(one->transfer_ms));
}

static bool has_gpus(const struct results *r) {
  return r->n_gpu_timelines > 0 &&
         ANY(r->model->ranks, r->model->n_ranks, one, one->launches || one->gpu_kernels);
}

/* Jobs on the CPU have no kernels. */
static bool has_kernels(const struct results *r) {
  return r->n_kernel_categories || ANY(r->model->ranks, r->model->n_ranks, one, one->launches);
}

static bool has_memory(const struct results *r) {
  const struct memory_result *memory = &r->memory;
  bool little = isnan(memory->device) && memory->peak_allocated_bytes < LEAST_ON_CPU;
  return memory->reason == NULL && !(little && !(memory->out_of_memory > 0));
}

/* Where a job trained and no value of it is known, that is said: its loss may be anything. */
static bool may_have_convergence(const struct results *r) {
  return r->convergence.reason == NULL ||
         (r->step_count > 0 && !r->n_step_kinds && has_timelines(r));
}

static const char *convergence_unknown(const struct results *r) {
  return r->convergence.reason
             ? "no loss is known: no printed line has one (\"step 10 loss 2.31\"), or "
               "TSCOPE_SCALARS=off. libtscope.scalar(\"loss\", x) records it; or name the job's "
               "log beside the traces"
             : NULL;
}

static bool diff_has_unit(const struct results *r, enum diff_unit unit) {
  return ANY(r->diff->rows, r->diff->n_rows, one, one->unit == unit);
}

/* One run on each side: differences are shown, and nothing is judged. */
static bool diff_few_runs(const struct results *r) {
  return r->diff->noise != NOISE_BETWEEN_RUNS;
}

enum judged_by { OWN, ALL };

static const struct {
  const char *name, *title;
  enum judged_by by;
} sections[] = {
#define S(name, title, shown, unknown, unjudged, by) {#name, title, by},
    TSCOPE_SECTIONS(S) TSCOPE_DIFF_SECTIONS(S)
#undef S
};

struct state {
  bool shown;
  const char *unknown;
  bool unjudged;
};

static struct state state_of(enum section_id id, const struct results *r) {
  switch (id) {
#define S(name, title, shown, unknown, unjudged, by)                                               \
  case SECTION_##name:                                                                             \
    return (struct state){shown, unknown, unjudged};
    TSCOPE_SECTIONS(S)
    TSCOPE_DIFF_SECTIONS(S)
#undef S
  case N_SECTIONS:
    break;
  }
  return (struct state){0};
}

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
#define M(mark, word, ...) word,
    TSCOPE_MARKS(M)
#undef M
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
  return ANY_NUMBER(0, LENGTH_OF(sections_of), i, belongs(id, (enum finding_id)i));
}

bool section_unjudged(enum section_id id, const struct results *results) {
  return state_of(id, results).unjudged;
}

static enum mark judge(enum section_id id, const struct results *results, bool unjudged) {
  enum mark worst = MARK_GOOD;
  FOR_EACH(results->findings, results->n_findings, finding)
    if (belongs(id, finding->id) && mark_of(finding->severity) > worst)
      worst = mark_of(finding->severity);
  if (worst != MARK_GOOD)
    return worst;
  return !is_judged(id) ? MARK_NONE : unjudged ? MARK_UNKNOWN : MARK_GOOD;
}

struct section section_of(enum section_id id, const struct results *results) {
  const struct state state = state_of(id, results);
  return (struct section){.name = sections[id].name,
                          .title = sections[id].title,
                          .shown = state.shown,
                          .unknown = state.shown ? state.unknown : NULL,
                          .mark = !state.shown    ? MARK_NONE
                                  : state.unknown ? MARK_UNKNOWN
                                                  : judge(id, results, state.unjudged)};
}

struct results section_compared(const struct results *results) {
  struct results compared = *results;
  compared.findings = results->diff->findings;
  compared.n_findings = results->diff->n_findings;
  return compared;
}
