/* SPDX-License-Identifier: MIT */
#include "align/align.h"

#include <math.h>

#include "align/clock_bounds.h"
#include "align/clock_domains.h"
#include "align/clock_fit.h"
#include "align/samples.h"
#include "base/host_list.h"
#include "base/rank_list.h"
#include "base/sets.h"
#include "base/texts.h"

#define SANE_ERROR_US 20.0   /* an error below this never counts against the alignment */
#define MOST_OF_TRANSFER 2.0 /* one above so many transfer times does, if it is also */
#define MOST_OF_WAITING 0.1  /* above this share of what ranks spend in collectives */

struct aligner {
  unsigned threads;
  struct model *model;
  const struct clock_facts *facts;
  struct rank_clock *clocks;
  struct arena *arena, scratch;
  struct samples samples;
  struct clock_domains domains;
  struct domain_clock *fits; /* [domains.n] */
  u32 *set;                  /* [n_ranks] ranks that calls link, by one of them */
  u32 root, root_rank;       /* domain, and its first rank */
};

/* A wall clock this far from the time since boot means that the file is damaged. The limit ensures
 * that the difference of two valid ones fits into the type. */
#define MOST_REALTIME 4000000000000000000ll /* ns, the year 2096 */

i64 clock_realtime_difference(const struct clock_facts *a, const struct clock_facts *b) {
  i64 x = a->realtime_minus_monotonic, y = b->realtime_minus_monotonic;
  bool sane =
      x >= -MOST_REALTIME && x <= MOST_REALTIME && y >= -MOST_REALTIME && y <= MOST_REALTIME;
  return sane ? x - y : NS_UNKNOWN;
}

static void join_members(const struct model *model, const struct collective *of, u32 *set) {
  FOR_EACH_MEMBER(model, of, member)
    sets_join(set, members_of(model, of)->rank, member->rank);
}

/* By calls of any kind, their ends known or not. */
static void link_by_calls(struct aligner *aligner) {
  const struct model *model = aligner->model;
  sets_begin(aligner->set, model->n_ranks);
  FOR_EACH(model->collectives, model->n_collectives, collective)
    join_members(model, collective, aligner->set);
}

/* The domain from which collectives with known ends reach the most ranks. */
static void choose_root(struct aligner *aligner) {
  const struct model *model = aligner->model;
  u32 n = model->n_ranks;
  u32 *set = arena_array(&aligner->scratch, n, sizeof(*set));
  u32 *size = arena_array(&aligner->scratch, n, sizeof(*size));
  u32 *first = arena_array(&aligner->scratch, aligner->domains.n, sizeof(*first));
  sets_begin(set, n);
  for (u32 r = n; r-- > 0;)
    first[aligner->domains.of[r]] = r;
  for (u32 r = 0; r < n; r++)
    sets_join(set, r, first[aligner->domains.of[r]]);
  FOR_EACH(aligner->samples.at, aligner->samples.n, sample)
    FOR_EACH(sample->collectives, sample->n, collective)
      join_members(model, &model->collectives[*collective], set);
  for (u32 r = 0; r < n; r++)
    size[set_of(set, r)]++;
  aligner->root = aligner->domains.of[NUMBER_OF_LARGEST(0, n, r, size[r])];
  aligner->root_rank = first[aligner->root];
}

static bool is_placed(const struct aligner *aligner, u32 rank) {
  const struct clock_domains *domains = &aligner->domains;
  u32 domain = domains->of[rank];
  if (!aligner->fits[domain].placed)
    return false;
  /* Without the boot in the trace, ranks that no call links may come from different runs. */
  return domain != aligner->root || domains->certain ||
         set_of(aligner->set, aligner->root_rank) == set_of(aligner->set, rank);
}

/* Ranks that collectives do not reach follow CLOCK_REALTIME, relative to the root's first rank. */
static void follow_realtime(struct aligner *aligner, u32 rank) {
  i64 apart = clock_realtime_difference(&aligner->facts[rank], &aligner->facts[aligner->root_rank]);
  aligner->clocks[rank] = (struct rank_clock){.pivot = aligner->facts[rank].begin,
                                              .offset = apart == NS_UNKNOWN ? 0 : apart};
}

/* Why a rank is not on the axis. */
enum why_unaligned { IS_ALIGNED, NOT_LINKED, TOO_ROUGH };

/* Sets every rank's clock, and why it is not on the axis. Returns how many ranks are. A clock is of
 * no use whose error is comparable to the times that it would be used to measure: those of all
 * collectives, or of those that tie it, where these take longer. */
static u32 set_clocks(struct aligner *aligner, u8 *why) {
  struct model *model = aligner->model;
  double transfer_us, waiting_us;
  u32 n = 0;
  samples_mean_times(&aligner->samples, &transfer_us, &waiting_us);
  for (u32 r = 0; r < model->n_ranks; r++) {
    struct domain_clock *fit = &aligner->fits[aligner->domains.of[r]];
    double transfers_us = MOST_OF_TRANSFER * fmax(transfer_us, fit->transfer_ns / 1e3);
    double most_us = fmax(SANE_ERROR_US, fmax(transfers_us, MOST_OF_WAITING * waiting_us));
    why[r] = !is_placed(aligner, r)          ? NOT_LINKED
             : fit->error_ns / 1e3 > most_us ? TOO_ROUGH
                                             : IS_ALIGNED;
    n += why[r] == IS_ALIGNED;
    if (why[r] == IS_ALIGNED)
      aligner->clocks[r] = fit->clock;
    else
      follow_realtime(aligner, r);
    model->ranks[r].clock = (struct clock_fit){.aligned = why[r] == IS_ALIGNED,
                                               .domain = aligner->domains.of[r],
                                               .at_ns = aligner->clocks[r].pivot,
                                               .offset_ns = aligner->clocks[r].offset,
                                               .drift_ppm = aligner->clocks[r].drift * 1e6,
                                               .drift_error_ppm = fit->drift_error * 1e6,
                                               .error_us = fit->error_ns / 1e3,
                                               .collectives = fit->points};
  }
  return n;
}

/* "rank 3 (1 of 8, on node1)", of those that have the reason. */
static const char *list_ranks(struct aligner *aligner, const u8 *why, u8 reason, u32 *count) {
  const struct model *model = aligner->model;
  u32 *ranks = arena_array(aligner->arena, model->n_ranks, sizeof(*ranks)), different;
  const char **hosts = arena_array(aligner->arena, model->n_ranks, sizeof(*hosts));
  *count = 0;
  for (u32 r = 0; r < model->n_ranks; r++)
    if (why[r] == reason) {
      hosts[*count] = model->ranks[r].host;
      ranks[(*count)++] = model->ranks[r].rank;
    }
  char *list = host_list_in(aligner->arena, hosts, *count, &different);
  return arena_printf(aligner->arena, "%s (%u of %u%s%s)", ranks_in(aligner->arena, ranks, *count),
                      *count, model->n_ranks, different ? ", on " : "", list);
}

/* Why ranks are not on the axis: each reason with its ranks; NULL if all are. */
static const char *describe_unaligned(struct aligner *aligner, const u8 *why) {
  const struct model *model = aligner->model;
  u32 unlinked, rough;
  const char *no_links = list_ranks(aligner, why, NOT_LINKED, &unlinked);
  const char *bad = list_ranks(aligner, why, TOO_ROUGH, &rough);
  const char *text = NULL;
  if (unlinked)
    text = arena_printf(aligner->arena,
                        "%s %s not linked to rank %u by at least %u collectives, or messages in "
                        "both directions, with known ends",
                        no_links, unlinked > 1 ? "are" : "is",
                        model->ranks[aligner->root_rank].rank, CLOCK_FIT_LEAST);
  if (rough)
    text = arena_list(aligner->arena, text, "; ",
                      "collective ends of %s vary so much that %s not known to %.0f transfer "
                      "times",
                      bad, rough > 1 ? "their clocks are" : "its clock is", MOST_OF_TRANSFER);
  return text;
}

static const char *describe_method(const struct aligner *aligner) {
  const struct clock_domains *domains = &aligner->domains;
  bool messages = ANY(aligner->fits, domains->n, one, one->by_messages);
  bool bounds = ANY(aligner->fits, domains->n, one, one->by_bounds);
  if (domains->n == 1 && aligner->samples.n == 0)
    return "same host clock, not checked: no collective has a known end";
  if (domains->n == 1)
    return domains->confirmed ? "same host clock, confirmed by collective ends"
                              : "same host clock; not confirmed for all ranks by collective ends";
  if (messages)
    return "collective ends, and messages in both directions";
  if (domains->shared)
    return bounds ? "host clocks, tied by starts and ends of collectives"
                  : "host clocks, tied by collective ends";
  return bounds ? "starts and ends of collectives" : "collective ends";
}

static const char *describe_no_ends(struct aligner *aligner) {
  bool linked = !ANY_NUMBER(1, aligner->model->n_ranks, r,
                            set_of(aligner->set, r) != set_of(aligner->set, 0));
  return linked ? "no collective has a known end (no GPU times), and each host has its own clock"
                : "no collectives link the ranks";
}

/* The error within a host is that of reading its clock. Between hosts it is that of two clocks
 * against the axis. */
static void report_errors(struct aligner *aligner) {
  struct model *model = aligner->model;
  double largest = 0, second = 0;
  model->clock_residual_us = model->clock_aligned ? 0 : NAN;
  model->clock_between_us = NAN;
  for (u32 r = 0; r < model->n_ranks; r++) /* of a domain that is not on the axis: NAN */
    if (!model->ranks[r].clock.aligned)
      aligner->fits[aligner->domains.of[r]].error_ns = NAN;
  FOR_EACH(aligner->fits, aligner->domains.n, one) {
    double error_us = one->error_ns / 1e3;
    if (isnan(error_us))
      continue;
    second = fmax(second, fmin(error_us, largest));
    largest = fmax(largest, error_us);
  }
  if (model->clock_aligned && aligner->domains.n > 1)
    model->clock_between_us = largest + second;
  for (u32 r = 0; r < model->n_ranks; r++) {
    struct clock_fit *fit = &model->ranks[r].clock;
    fit->reading_us = (double)aligner->facts[r].anchor_error_ns / 1e3;
    if (!fit->aligned)
      fit->error_us = NAN;
    else if (model->clock_aligned && model->n_ranks > 1)
      model->clock_residual_us = fmax(model->clock_residual_us, fit->reading_us);
  }
}

/* Ranks that nothing ties to the others take the axis from nobody: where most are tied, only these
 * are compared with no others. */
static void align(struct aligner *aligner) {
  struct model *model = aligner->model;
  u8 *why = arena_array(&aligner->scratch, model->n_ranks, sizeof(*why));
  choose_root(aligner);
  clock_fit_domains(model, aligner->facts, &aligner->samples, &aligner->domains, aligner->root,
                    aligner->fits, aligner->threads);
  u32 n_aligned = set_clocks(aligner, why);
  const char *problem = aligner->samples.n || n_aligned == model->n_ranks
                            ? describe_unaligned(aligner, why)
                            : describe_no_ends(aligner);
  model->clock_aligned =
      n_aligned == model->n_ranks || (n_aligned > 1 && 2 * n_aligned > model->n_ranks);
  if (!model->clock_aligned)
    model->clock_method = arena_printf(aligner->arena, "refused: %s", problem);
  else if (problem)
    model->clock_method =
        arena_printf(aligner->arena, "%s; but %s", describe_method(aligner), problem);
  else
    model->clock_method = model->n_ranks == 1 ? "one rank" : describe_method(aligner);
}

void align_clocks(struct model *model, const struct clock_facts *facts, struct rank_clock *clocks,
                  struct arena *arena, unsigned threads) {
  struct aligner aligner = {
      .model = model, .facts = facts, .clocks = clocks, .arena = arena, .threads = threads};
  if (model->n_ranks == 0) {
    model->clock_method = "refused: no ranks";
    return;
  }
  aligner.set = arena_array(&aligner.scratch, model->n_ranks, sizeof(*aligner.set));
  samples_collect(&aligner.samples, model, &aligner.scratch);
  clock_domains_find(&aligner.domains, model, facts, &aligner.samples, &aligner.scratch);
  aligner.fits = arena_array(&aligner.scratch, aligner.domains.n, sizeof(*aligner.fits));
  link_by_calls(&aligner);
  align(&aligner);
  report_errors(&aligner);
  arena_release(&aligner.scratch);
}
