/* SPDX-License-Identifier: MIT
 *
 * How much findings are worth together: what the replay saves if the causes of all findings up to
 * one are taken away, and how much of that it would not save without this one.
 */
#include <math.h>
#include <string.h>

#include "analyses/findings/findings.h"
#include "analyses/path/path_replay.h"

static void append_cure(struct analysis *a, const struct cure *first, const struct cure *second,
                        struct cure *both) {
  struct cure_change *changes =
      arena_array(a->arena, size_sum(first->n, second->n), sizeof(*changes));
  if (first->n)
    memcpy(changes, first->changes, first->n * sizeof(*changes));
  *both = (struct cure){changes, first->n};
  FOR_EACH(second->changes, second->n, change)
    if (!cure_has(a, first, change))
      changes[both->n++] = *change;
}

/* Whether this cause makes up most of its saving within that of the sum, and much of the sum. */
static bool is_part_of(const struct finding *cause, const struct finding *sum, double together_s) {
  double shared = cause->saving_s + sum->saving_s - together_s;
  return !(finding_traits(cause->id) & SUMS_UP) && cause->cure.n &&
         cause->saving_s >= CAUSE_LEAST * sum->saving_s && shared >= CAUSE_WITHIN * cause->saving_s;
}

/* Puts the causes of what a finding sums up before it; all else keeps its order. */
static void put_causes_before(struct findings *f, u32 at) {
  struct finding *list = &f->r->findings[at];
  u32 n = f->r->n_findings - at, before = 0, after = 0;
  struct cure *both = arena_array(f->a->arena, n, sizeof(*both));
  struct saving *savings = arena_array(f->a->arena, n, sizeof(*savings));
  struct finding *rest = arena_array(f->a->arena, n, sizeof(*rest));
  for (u32 i = 0; i < n; i++)
    append_cure(f->a, &list[0].cure, &list[i].cure, &both[i]);
  replay_savings(f->a, both, n, false, savings);
  const struct finding sum = list[0];
  for (u32 i = 0; i < n; i++) {
    if (is_part_of(&list[i], &sum, run_seconds(f, savings[i].ms)))
      list[before++] = list[i];
    else
      rest[after++] = list[i];
  }
  memcpy(&list[before], rest, after * sizeof(*rest));
}

void findings_put_causes_first(struct findings *f) {
  for (u32 i = f->r->n_findings; i-- > 0;) {
    const struct finding *finding = &f->r->findings[i];
    if (finding_traits(finding->id) & SUMS_UP && finding->cure.n && finding->saving_s > 0)
      put_causes_before(f, i);
  }
}

/* The findings before this one whose causes save less together with its own than apart. One without
 * a cure shares with all of them what is more than the run has left. */
static void list_overlaps(struct findings *f, u32 index) {
  struct finding *at = f->r->findings, *finding = &at[index];
  finding->overlaps = arena_array(f->a->arena, index, sizeof(*finding->overlaps));
  struct cure *both = arena_array(f->a->arena, index, sizeof(*both));
  struct saving *savings = arena_array(f->a->arena, index, sizeof(*savings));
  for (u32 i = 0; i < index; i++)
    append_cure(f->a, &at[i].cure, &finding->cure, &both[i]);
  replay_savings(f->a, both, index, false, savings);
  bool known = false;
  for (u32 i = 0; i < index; i++) {
    const char *id = finding_id_words[at[i].id];
    known |= !isnan(savings[i].ms);
    double shared = at[i].saving_s + finding->saving_s - run_seconds(f, savings[i].ms);
    bool shares = at[i].cure.n && shared > SAVING_OVERLAP * finding->saving_s;
    if (shares && !ANY(finding->overlaps, finding->n_overlaps, one, *one == id))
      finding->overlaps[finding->n_overlaps++] = id;
  }
  /* With no single one of them, but with all together: the first of them stands for all. */
  for (u32 i = 0; i < index && known && !finding->n_overlaps; i++)
    if (at[i].saving_s > 0)
      finding->overlaps[finding->n_overlaps++] = finding_id_words[at[i].id];
}

void findings_share_savings(struct findings *f) {
  struct results *r = f->r;
  struct cure *joint = arena_array(f->a->arena, r->n_findings, sizeof(*joint));
  struct saving *savings = arena_array(f->a->arena, r->n_findings, sizeof(*savings));
  for (u32 i = 0; i < r->n_findings; i++)
    append_cure(f->a, i ? &joint[i - 1] : &(struct cure){0}, &r->findings[i].cure, &joint[i]);
  replay_savings(f->a, joint, r->n_findings, false, savings);
  double before_s = 0, left_s = r->analysed_s > 0 ? r->analysed_s : INFINITY;
  for (u32 i = 0; i < r->n_findings; i++) {
    struct finding *finding = &r->findings[i];
    finding->saving_added_s = finding->saving_s;
    if (finding->cure.n && !isnan(savings[i].ms)) {
      double together_s = fmax(before_s, run_seconds(f, savings[i].ms));
      finding->saving_added_s = fmin(finding->saving_s, together_s - before_s);
      before_s = together_s;
    }
    if (isnan(finding->saving_added_s))
      continue;
    finding->saving_added_s = fmin(finding->saving_added_s, left_s);
    left_s -= finding->saving_added_s;
    if (finding->saving_added_s < (1 - SAVING_OVERLAP) * finding->saving_s)
      list_overlaps(f, i);
  }
}
