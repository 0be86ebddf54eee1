/* SPDX-License-Identifier: MIT
 *
 * What one rank alone does, where its arrivals do not show it.
 */
#include <math.h>
#include <string.h>

#include "analyses/findings/findings.h"
#include "analyses/lines/lines.h"
#include "base/quantity.h"

enum { RANKS_NAMED = 3 };

/* Whether the title of a finding about this rank alone has the line already: as what long steps
 * run, or what makes it late. */
static bool is_told(const struct findings *f, u32 rank, const struct sampled_line *line) {
  return ANY(f->r->findings, f->r->n_findings, one,
             one->n_ranks == 1 && one->ranks[0] == rank && strstr(one->title, line->place));
}

static void add_lone_line_finding(struct findings *f, u32 index, const struct lone_line *lone) {
  const struct sampled_line *line = lone->line;
  u32 rank = f->a->model->ranks[index].rank;
  finding_add(
      f, SEVERITY_INFO, NAN, say(f, "Rank %u alone is at %s in %s", rank, line->place, lone->when),
      say(f,
          "It was seen there in %u of %.0f steps, its peers in %u (by chance: %s)%s: %s in "
          "samples in such a step%s. A step takes %s (median). The times at which ranks arrive do "
          "not show whether its peers wait for that.",
          lone->seen, f->steps, lone->peers_seen, p_value(lone->chance).text, called_at(f, line),
          duration_ms(lone->ms).text, busy_with(f, line), duration_ms(f->r->step_median_ms).text),
      say(f,
          "Look at %s first. Do it less often, in the background, or let every rank do its part.%s",
          words_of_line(f, line), about_compiling(f, line)),
      &rank, 1);
}

/* The ranks that are longest at a line of their own. */
void rule_lone_line(struct findings *f) {
  const struct lone_line *of = lone_lines(f->a);
  bool *seen = arena_array(f->a->arena, f->a->model->n_ranks, sizeof(*seen));
  for (u32 told = 0; told < RANKS_NAMED;) {
    const struct lone_line *most =
        LARGEST(of, f->r->n_ranks, one, one->line && !seen[one - of], one->run_ns);
    if (!most)
      return;
    const struct rank_result *rank = &f->r->ranks[most - of];
    seen[most - of] = true;
    if (rank->straggler || is_told(f, rank->rank, most->line))
      continue;
    add_lone_line_finding(f, (u32)(most - of), most);
    told++;
  }
}
