/* SPDX-License-Identifier: MIT */
#include "analyses/findings/findings.h"
#include "analyses/analyses.h"
#include "analyses/lines/lines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyses/findings/diff_findings.def"
#include "analyses/path/path_graph.h"
#include "analyses/queries.h"
#include "base/plain_numbers.h"
#include "base/quantity.h"
#include "base/sorting.h"
#include "model/span_call_sites.h"

static const struct {
  enum finding_id id;
  void (*rule)(struct findings *);
  u32 traits;
} rules[] = {
#define F(group, name, rule, sections, traits, cause, fix)                                         \
  {FINDING_##group##_##name, rule_##rule, traits},
    TSCOPE_FINDINGS(F)
#undef F
};

#define RULES LENGTH_OF(rules)

u32 finding_traits(enum finding_id id) {
  const __typeof__(rules[0]) *rule = FIND(rules, RULES, one, one->id == id);
  return rule ? rule->traits : 0;
}

#define IN(name) #name,
#define F(group, name, rule, sections, ...)                                                        \
  static const char *sections_of_##group##_##name[] = {sections NULL};
TSCOPE_FINDINGS(F)
TSCOPE_DIFF_FINDINGS(F)
#undef F
#undef IN

static const char **const sections_of[] = {
#define F(group, name, ...) [FINDING_##group##_##name] = sections_of_##group##_##name,
    TSCOPE_FINDINGS(F) TSCOPE_DIFF_FINDINGS(F)
#undef F
};

void finding_set_sections(struct finding *finding) {
  finding->sections = sections_of[finding->id];
  while (finding->sections && finding->sections[finding->n_sections])
    finding->n_sections++;
}

static bool rank_may_be_missing(const struct findings *f) {
  return finding_traits(f->id) & NEEDS_ALL_RANKS && model_lacks_ranks(f->a->model);
}

static const char *limit_evidence(struct findings *f, const char *evidence,
                                  enum severity severity) {
  const struct model *model = f->a->model;
  u32 missing = model->world_size - model->n_ranks;
  return say(f,
             "%s %u of %u ranks %s not found: a rank that the others wait for would look the same, "
             "so %sno saving is given.",
             evidence, missing, model->world_size, missing == 1 ? "was" : "were",
             severity == SEVERITY_CRITICAL ? "this is no more than a warning and " : "");
}

bool cure_pays(const struct findings *f) {
  return !f->cure.n || saving_pays(&f->saving, f->step_ms);
}

/* What waits for something that is not recorded waits as long in each replay: what that would save
 * besides is not known. */
static bool replay_lacks_reasons(const struct results *r) {
  return r->n_path_by_category && r->path_length_ms > 0 &&
         r->path_by_category[PATH_UNKNOWN].ms >= WORTH_MENTIONING * r->path_length_ms;
}

static const char *what_holds_up(const struct findings *f) {
  const struct results *r = f->r;
  const struct share *most =
      LARGEST(r->path_by_category, r->n_path_by_category, one, true, one->ms);
  return say(f, "First shorten what holds up the step: %s of the critical path is %s.",
             percent(most->ms / r->path_length_ms).text, most->name);
}

void finding_add(struct findings *f, enum severity severity, double saving_s, const char *title,
                 const char *evidence, const char *action, const u32 *ranks, u32 n_ranks) {
  struct results *r = f->r;
  if (evidence && rank_may_be_missing(f)) {
    evidence = limit_evidence(f, evidence, severity);
    severity = severity == SEVERITY_CRITICAL ? SEVERITY_WARNING : severity;
    saving_s = NAN;
    f->cure = (struct cure){0};
    f->together = NULL;
  }
  if (!cure_pays(f) && replay_lacks_reasons(r)) {
    severity = severity == SEVERITY_CRITICAL ? SEVERITY_WARNING : severity;
    saving_s = NAN;
    f->cure = (struct cure){0};
    title = say(f, "%s, but what mending that saves cannot be told", title);
    evidence =
        say(f, "%s For %s of the critical path no reason is recorded.", text_or_empty(evidence),
            percent(r->path_by_category[PATH_UNKNOWN].ms / r->path_length_ms).text);
  } else if (!cure_pays(f)) {
    severity = SEVERITY_INFO;
    title = say(f,
                f->saving.ms < REPLAY_TOLERANCE * f->step_ms
                    ? "%s, but mending that saves next to nothing"
                    : "%s, but what mending that saves differs too much between steps to tell",
                title);
    action = what_holds_up(f);
  }
  u32 *copy = arena_elements(f->a->arena, ranks, n_ranks, sizeof(u32));
  title = plain_numbers(f->a->arena, title);
  evidence = plain_numbers(f->a->arena, evidence);
  r->findings = arena_more(f->a->arena, r->findings, r->n_findings, &f->room, sizeof(*r->findings));
  r->findings[r->n_findings++] = (struct finding){.severity = severity,
                                                  .saving_s = saving_s,
                                                  .title = title,
                                                  .evidence = evidence,
                                                  .action = action,
                                                  .ranks = copy,
                                                  .n_ranks = n_ranks,
                                                  .saving_low_s = NAN,
                                                  .saving_high_s = NAN,
                                                  SAME(f, id, cure, together, spent_at)};
  struct finding *added = &r->findings[r->n_findings - 1];
  if (f->cure.n && !isnan(saving_s)) {
    /* a rule may count a part of what the cure saves */
    double part = f->saving.ms > 0 ? saving_s / run_seconds(f, f->saving.ms) : 1;
    added->saving_low_s = part * run_seconds(f, f->saving.low_ms);
    added->saving_high_s = part * run_seconds(f, f->saving.high_ms);
  }
  finding_set_sections(added);
  f->cure = (struct cure){0};
  f->together = NULL;
  f->spent_at = NULL;
}

enum severity severity_of(const struct findings *f, double per_step_ms) {
  return per_step_ms >= SAVING_ALARM * f->step_ms ? SEVERITY_CRITICAL : SEVERITY_WARNING;
}

double saving_of(struct findings *f, const struct cure *cure, double measured_ms) {
  struct saving saving = {.ms = NAN};
  f->cure = (struct cure){0};
  if (cure && cure->n)
    replay_savings(f->a, cure, 1, false, &saving);
  if (isnan(saving.ms))
    return run_seconds(f, measured_ms);
  f->cure = *cure;
  f->saving = saving;
  return run_seconds(f, saving.ms);
}

double saving_of_change(struct findings *f, struct cure_change change, double measured_ms) {
  struct cure cure = cure_by(f->a, change);
  return saving_of(f, &cure, measured_ms);
}

double saving_of_ranks(struct findings *f, const u32 *ranks, u32 n, u32 since, double measured_ms) {
  return saving_of_change(f,
                          (struct cure_change){.kind = CHANGE_RANKS,
                                               .ranks = mark_ranks(f->a, ranks, n),
                                               .since = since},
                          measured_ms);
}

double saving_beyond_stragglers(struct findings *f, const struct cure *cure, double measured_ms) {
  const struct results *r = f->r;
  bool *late = arena_array(f->a->arena, r->n_ranks, sizeof(bool)), any = false;
  double wait_ms = 0;
  for (u32 i = 0; i < r->n_ranks; i++) {
    any |= late[i] = r->ranks[i].straggler;
    wait_ms += late[i] ? r->ranks[i].imposed_wait_ms : 0;
  }
  if (!any)
    return saving_of(f, cure, measured_ms);
  struct cure_change both[] = {{.kind = CHANGE_RANKS, .ranks = late},
                               cure ? *cure->changes : (struct cure_change){0}};
  double theirs = saving_of(f, &(struct cure){both, 1}, wait_ms);
  double all = saving_of(f, &(struct cure){both, cure ? 2 : 0}, measured_ms);
  double alone = saving_of(f, cure, measured_ms);
  f->cure = (struct cure){0};
  return isnan(all) || isnan(theirs) ? NAN : fmin(fmax(0, all - theirs), alone);
}

double launch_bound_share(const struct results *r) {
  double share = r->gpu_timeline.host_bound_ms / r->gpu_timeline.total_ms;
  return r->ov_steps > 0 ? fmin(share, r->ov_idle_ms / r->ov_step_ms) : share;
}

const char *describe_where(struct findings *f, const char *subject,
                           const struct sampled_line *line) {
  return line ? say(f, " %s %s in %s of the samples%s%s.", subject, say_place(f, line),
                    percent(line->share).text, line->in_workers ? " of them at work" : "",
                    say_inside(f, line))
              : "";
}

const char *line_in_function(struct findings *f, const struct sampled_line *line) {
  return place_with_function(f->arena, line->place, line->function);
}

const char *line_where(struct findings *f, const struct sampled_line *line) {
  return line->is_line ? say(f, "at %s", line_in_function(f, line)) : line->where;
}

/* "train.py:9 (main, called at train.py:3)" */
static const char *called_line(struct findings *f, const struct sampled_line *line) {
  return place_with_function(f->arena, line->place,
                             say(f, "%s%s", line->function, called_at(f, line)));
}

static const char *say_line(struct findings *f, const struct sampled_line *line) {
  return say(f, "at %s", called_line(f, line));
}

const char *say_place(struct findings *f, const struct sampled_line *line) {
  return line->inside ? say(f, "%s, with all that it calls,", line->where) : say_line(f, line);
}

const char *say_inside(struct findings *f, const struct sampled_line *line) {
  const struct sampled_line *inside = line->inside;
  return inside ? say(f, ", in %s %s", percent(inside->share).text, say_line(f, inside)) : "";
}

const char *at_line(struct findings *f, const char *words, const struct sampled_line *line) {
  return line ? say(f, "%s %s", words, line->inside ? line->where : say(f, "at %s", line->place))
              : "";
}

const char *describe_launching_line(struct findings *f, const struct sampled_line **line) {
  const struct results *r = f->r;
  const struct rank_result *rank = LARGEST(
      r->ranks, r->n_ranks, one, one->launching_line && one->launching_line->share >= REASON_SHARE,
      one->launching_line->ms);
  *line = rank ? rank->launching_line : NULL;
  return rank ? describe_where(f, say(f, "Rank %u is then", rank->rank), *line) : "";
}

double without_waits_for_gpu(const struct findings *f, double host_ms) {
  bool on_gpu = ANY(f->a->ranks, f->a->ranks ? f->a->model->n_ranks : 0, one, one->on_gpu);
  return on_gpu ? fmin(host_ms, launch_bound_share(f->r) * f->step_ms) : host_ms;
}

const struct cure *what_if_cure(const struct findings *f, enum what_if_kind kind, i64 rank) {
  const struct what_if *row =
      FIND(f->r->what_if, f->r->n_what_if, one, one->kind == kind && one->rank == rank);
  return row ? &row->cure : NULL;
}

const char *called_at(struct findings *f, const struct sampled_line *line) {
  return line->path
             ? say(f, ", %scalled at %s", line->called_elsewhere ? "longer when " : "", line->path)
             : "";
}

const char *busy_with(struct findings *f, const struct sampled_line *line) {
  const char *beside = line->beside ? say(f, ", while another thread is at %s", line->beside) : "";
  const char *compiles = *about_compiling(f, line) ? say(f, ", in torch.compile for %s of it",
                                                         percent(line->compiling_share).text)
                                                   : "";
  return line->activity ? say(f, ", %s for %s of it%s%s", line->activity,
                              percent(line->activity_share).text, beside, compiles)
                        : compiles;
}

/* Compiling is most of the time there, or of what is more than usual, if that is most of it. */
static bool mostly_compiles(const struct sampled_line *line) {
  double more_ms = line->ms - line->peers_ms;
  return line->compiling_share >= REASON_SHARE ||
         (line->compiling_share > 0 && more_ms >= REASON_SHARE * line->ms &&
          line->compiling_share * line->ms >= REASON_SHARE * more_ms);
}

const char *about_compiling(struct findings *f, const struct sampled_line *line) {
  return line && mostly_compiles(line)
             ? say(f,
                   " At %s torch.compile compiles: TORCH_LOGS=recompiles says why it does so "
                   "again; "
                   "shapes that change are compiled once with dynamic=True, or padded.",
                   line->place)
             : "";
}

const char *about_gil(const struct sampled_line *line) {
  return line && line->beside_has_gil
             ? " Python runs one thread at a time: only in a process of its own "
               "does that not hold up training."
             : "";
}

const char *words_of_line(struct findings *f, const struct sampled_line *line) {
  bool shared = line->path && line->peers_ms >= LINE_OF_ONE * line->ms;
  if (!line->function)
    return line->place;
  return shared ? called_line(f, line) : line_in_function(f, line);
}

const struct budget_line *budget_line_of(const struct results *r, enum budget_part part) {
  return FIND(r->budget, r->n_budget, one, one->part == part);
}

bool mostly_captures(const struct results *r) {
  const struct budget_line *line = budget_line_of(r, BUDGET_CAPTURING);
  return line && line->fraction >= REASON_SHARE;
}

/* A critical finding without a saving says that the report itself is not reliable, and comes before
 * everything that it puts in doubt. Other findings of unknown saving come last. */
static double sort_key(const struct finding *finding) {
  if (!isnan(finding->saving_s))
    return finding->saving_s;
  return finding->severity == SEVERITY_CRITICAL ? INFINITY : -1;
}

static int order_class(const struct finding *finding) {
  u32 traits = finding_traits(finding->id);
  return traits & FIRST_OF_ALL ? 2 : traits & BEFORE_COSTS ? 1 : -finding->explained;
}

/* First what ended a job, or why it hangs; then what it did before; last what another finding may
 * explain, whatever it is worth. Then by saving, then by severity, then by alphabet. */
ORDER_BY(by_saving, struct finding,
         DOWN_OF(order_class) DOWN_OF(sort_key) DOWN(severity)
             THEN(strcmp(finding_id_words[a->id], finding_id_words[b->id])))

/* Whether the first two would be in this order in another run of the same job. */
static void describe_close_second(struct analysis *a) {
  struct results *r = a->results;
  if (r->n_findings < 2 || !(r->findings[0].saving_s > 0) || !(r->findings[1].saving_s > 0))
    return;
  struct finding *first = &r->findings[0], *second = &r->findings[1];
  double chance = a->n_steps > 1 ? 2 * r->step_cv / sqrt(a->n_steps) : 0;
  double margin = MAX(chance, SAVING_LEAST_MARGIN);
  if (second->saving_s < (1 - margin) * first->saving_s)
    return;
  if (ANY(second->overlaps, second->n_overlaps, one, *one == finding_id_words[first->id]))
    return; /* the same time, described in another way */
  first->close_second =
      say(a, "not stable: %s is worth %s of that, and may come first in another run",
          finding_id_words[second->id], percent(second->saving_s / first->saving_s).text);
}

void findings_analyse(struct analysis *a) {
  struct results *r = a->results;
  struct findings f = {.a = a,
                       .r = r,
                       .arena = a->arena,
                       .steps = analysis_windows(a),
                       .step_ms = analysis_length_ms(a)};
  FOR_EACH(rules, RULES, one) {
    f.id = one->id;
    f.cure = (struct cure){0}; /* of a rule that asked what it saves, and found nothing */
    f.spent_at = NULL;
    one->rule(&f);
  }
  findings_note_core_shortage(a);
  SORT(r->findings, r->n_findings, by_saving);
  findings_put_causes_first(&f);
  findings_share_savings(&f);
  describe_close_second(a);
}
