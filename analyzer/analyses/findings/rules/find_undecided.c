/* SPDX-License-Identifier: MIT
 *
 * What could not be judged. A report that names no problem says "ok" only if it could have named
 * one. Calls that hang for an unknown reason, logs without values and the like are a verdict of
 * their own.
 */
#include <math.h>

#include "analyses/analyses.h"
#include "analyses/findings/findings.h"
#include "base/quantity.h"
#include "base/texts.h"

/* Calls that no finding mentions and that are not known to be right either; NULL if there are
 * none. Who ended the run explains those that are left unfinished. */
static const char *describe_undecided_calls(struct analysis *a) {
  const struct collective_check *check = &a->results->check;
  if (!check->flight || check->n_hang_ranks || check->n_desync_ranks ||
      a->results->run_end.n_culprits)
    return NULL;
  if (check->cannot_tell)
    return say(a, "%s in calls that have not finished, and %s%s%s",
               plural_is(check->pending_ranks, "rank").text, check->cannot_tell,
               check->nccl ? ". " : "", text_or_empty(check->nccl));
  if (check->pending_ranks > 0)
    return say(a, "%s in calls that have not finished, and nothing shows for which rank they wait",
               plural_is(check->pending_ranks, "rank").text);
  if (!a->model->flight) /* the ends of ranks that were killed need not match */
    return NULL;
  if (check->mismatches_found > 0)
    return say(a, "%.0f of %.0f calls do not match on all members, the first: %s: %s",
               check->mismatches_found, check->checked, check->mismatches[0].call,
               check->mismatches[0].detail);
  if (check->checked == 0 || check->matched < check->checked)
    return say(a, "%.0f of %.0f calls in the record match on all members", check->matched,
               check->checked);
  return check->n_unrecorded ? say(a, "%u of the ranks left no record", check->n_unrecorded) : NULL;
}

/* Whether calls hold up the job, and not only the judgement. */
static bool calls_are_stuck(const struct collective_check *check) {
  return check->flight && check->pending_ranks > 0;
}

static const char *why_nothing_known(const struct analysis *a) {
  const struct model *model = a->model;
  if (model->n_logs && model->n_scalars == 0)
    return "no value such as a loss was found in the log";
  bool any =
      model->n_ranks || model->flight || model->n_memories || model->modules || model->n_scalars;
  return any ? NULL : "nothing in the input says how the job went";
}

/* Most of the time was spent on making graphs: what it says of the GPU says nothing of the rest. */
static const char *describe_capturing(struct analysis *a) {
  return mostly_captures(a->results)
             ? say(a,
                   "for %s of the time the host captured CUDA graphs, and nothing runs "
                   "meanwhile; record later steps, which launch the graphs",
                   percent(budget_line_of(a->results, BUDGET_CAPTURING)->fraction).text)
             : NULL;
}

void undecided_analyse(struct analysis *a) {
  struct results *r = a->results;
  const struct model *model = a->model;
  bool ranks = model->n_ranks > 0;
  const struct undecided gaps[] = {
      {"collectives", describe_undecided_calls(a)},
      {"the job", why_nothing_known(a)},
      {"memory", model->n_memories ? r->memory.reason : NULL},
      {"step times", ranks && a->whole_run ? "no steps were found in the trace" : NULL},
      {"how busy the devices are", describe_capturing(a)},
      {"waits between ranks",
       model_all_aligned(model) || model->n_ranks < 2 ? NULL : model->clock_method},
      {"exposed communication", ranks ? r->overlap_reason : NULL},
      {"critical path", ranks ? r->path_reason : NULL},
  };
  u32 n = LENGTH_OF(gaps);
  r->undecided = arena_array(a->arena, n, sizeof(*r->undecided));
  r->n_undecided = LIST_WHERE(r->undecided, 0, n, i, gaps[i].why, gaps[i]);
}

/* Calls, and input without information: nothing else would warn about them. */
void rule_undecided(struct findings *f) {
  const char *calls = describe_undecided_calls(f->a), *nothing = why_nothing_known(f->a);
  bool stuck = calls && calls_are_stuck(&f->r->check);
  if (calls)
    finding_add(
        f, stuck ? SEVERITY_CRITICAL : SEVERITY_WARNING, (double)NAN,
        stuck ? "The job is stuck, and the rank that causes it is not known"
              : "Whether the ranks make the same calls is not known",
        say(f, "%c%s.", calls[0] >= 'a' && calls[0] <= 'z' ? calls[0] - 32 : calls[0], calls + 1),
        stuck ? "Gather the dumps of all ranks; take them again a minute later and see which calls "
                "have moved; look at stacks of the live processes."
              : "Gather the dumps of all ranks, taken at one time, with a longer record "
                "(TORCH_FR_BUFFER_SIZE).",
        NULL, 0);
  if (nothing)
    finding_add(f, SEVERITY_WARNING, (double)NAN, "Nothing in the input can be judged",
                say(f, "%c%s: 0 values from %u %s.", nothing[0] - 32, nothing + 1,
                    f->a->model->n_inputs ? f->a->model->inputs[0].files : 0, "files"),
                "Give the report what the job left: traces, dumps, or a log in a form that "
                "docs/inputs.md names.",
                NULL, 0);
}

/* The worst that was found; if nothing was found, whether something could have been found. */
static enum report_verdict verdict_of(const struct results *r) {
  static const enum report_verdict verdicts[] = {[SEVERITY_INFO] = REPORT_NOTE,
                                                 [SEVERITY_WARNING] = REPORT_WARNING,
                                                 [SEVERITY_CRITICAL] = REPORT_CRITICAL};
  enum report_verdict verdict = r->n_undecided ? REPORT_UNDECIDED : REPORT_OK;
  enum severity worst = SEVERITY_INFO;
  FOR_EACH(r->findings, r->n_findings, finding) {
    worst = MAX(finding->severity, worst);
    if (worst > SEVERITY_INFO || !r->n_undecided)
      verdict = verdicts[worst];
  }
  return verdict;
}

void verdict_word_analyse(struct analysis *a) {
  a->results->verdict = verdict_of(a->results);
}
