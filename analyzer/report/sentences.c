/* SPDX-License-Identifier: MIT */
#include "report/sentences.h"

#include <math.h>

#include "base/quantity.h"

#define SPREAD_SHOWN 0.1 /* of a saving, between the quartiles of its steps */
#define NOTHING_ADDED 0.01

/* Other findings would save part of the same time: together they are worth less than their sum. */
static const char *say_overlaps(const struct finding *finding, struct arena *arena) {
  if (finding->together)
    return arena_printf(arena, "only if %s are all mended", finding->together);
  if (!finding->n_overlaps)
    return NULL;
  const char *ids = NULL;
  FOR_EACH(finding->overlaps, finding->n_overlaps, overlap)
    ids = arena_list(arena, ids, " and ", "%s", *overlap);
  if (finding->saving_added_s < NOTHING_ADDED * finding->saving_s)
    return arena_printf(arena, "the same time as %s", ids);
  return arena_printf(arena, "%s shared with %s",
                      duration_s(finding->saving_s - finding->saving_added_s).text, ids);
}

const char *say_spread(double low, double high, double saves, struct arena *arena) {
  return high - low > SPREAD_SHOWN * saves ? arena_printf(arena, "%s to %s in half of the steps",
                                                          percent(low).text, percent(high).text)
                                           : NULL;
}

struct savings say_saving(const struct finding *finding, const struct results *r,
                          struct arena *arena) {
  const double saves = finding->saving_s, low = finding->saving_low_s,
               high = finding->saving_high_s, whole = r->analysed_s;
  if (isnan(saves))
    return (struct savings){{"saving unknown"}, 1};
  struct savings said = {.n = 1};
  said.texts[0] = whole > 0 ? arena_printf(arena, "saving %s (%s of the time)",
                                           duration_s(saves).text, percent(saves / whole).text)
                            : arena_printf(arena, "saving %s", duration_s(saves).text);
  const char *spread = say_spread(low / whole, high / whole, saves / whole, arena);
  if (spread)
    said.texts[said.n++] = spread;
  const char *overlaps = say_overlaps(finding, arena);
  if (overlaps)
    said.texts[said.n++] = overlaps;
  return said;
}

const char *say_doing(const struct rank_ending *rank, struct arena *arena) {
  return !rank->call
             ? NULL
             : arena_printf(arena, "%s %s",
                            rank->pending == ANSWER_YES ? "waiting in" : "last call", rank->call);
}

const char *say_no_finding(const struct results *r, struct arena *arena) {
  (void)arena; /* as all of them */
  bool loss = r->convergence.reason && r->step_count > 0 && !r->n_step_kinds;
  if (r->n_findings)
    return NULL;
  if (r->n_undecided)
    return loss ? "No finding reached its threshold, but some things could not be judged. No loss "
                  "is known."
                : "No finding reached its threshold, but some things could not be judged.";
  return loss ? "Nothing that was measured stands out: no finding reached its threshold. No loss "
                "is known."
              : "Nothing that was measured stands out: no finding reached its threshold.";
}

#define MUCH_COMMUNICATION 0.2 /* of a step */
#define MOSTLY_HIDDEN 0.9

const char *say_hidden_communication(const struct results *r, struct arena *arena) {
  double hidden = r->ov_overlapped_ms / r->ov_comm_ms;
  if (!(r->comm_fraction >= MUCH_COMMUNICATION && hidden >= MOSTLY_HIDDEN))
    return NULL;
  return arena_printf(arena, "communication is hidden: %s of %s%s (%s)",
                      duration_ms(r->ov_overlapped_ms).text, duration_ms(r->ov_comm_ms).text,
                      isnan(r->ov_steps) ? "" : " a step", percent(hidden).text);
}
