/* SPDX-License-Identifier: MIT
 *
 * What single ranks lack, said once for all ranks. So it is not known before all are there.
 */
#include <math.h>

#include "base/quantity.h"
#include "base/texts.h"
#include "join/joining.h"

/* Where the times of collectives are NCCL's own, how far they may be off. */
static void note_nccl_clock(struct model *model) {
  i64 error = MOST_OF(i64, internal_of(model)->events, model->n_ranks, one, one->inside_error_ns);
  if (error) {
    model_note(model,
               "times of collectives come from NCCL (TSCOPE_NCCL_PROFILER), on the host's "
               "clock, exact to %.0f us",
               ceil((double)error / 1e3));
  }
}

/* What a trace says that its lines lack: "lines of SOMETHING=WHY" among its features. */
struct lines_lack {
  struct named_value line;
  u32 ranks;
};

enum { LACKS = 8 };

static void count_lack(struct lines_lack *lacks, const struct named_value *line) {
  size_t bytes = (size_t)(line->value + line->of_value - line->name);
  for (struct lines_lack *lack = lacks; lack < lacks + LACKS; lack++) {
    const struct named_value *known = &lack->line;
    if (lack->ranks && (known->of_name != line->of_name || known->of_value != line->of_value ||
                        memcmp(known->name, line->name, bytes) != 0))
      continue;
    *lack = (struct lines_lack){*line, lack->ranks + 1};
    return;
  }
}

static void note_lacks(struct model *model) {
  struct lines_lack lacks[LACKS] = {0};
  FOR_EACH(model->ranks, model->n_ranks, rank) {
    const char *features = rank->info[TSCOPE_INFO_FEATURE];
    for (struct named_value line; next_named_value(&features, &line);)
      if (line.value && text_starts_with(line.name, "lines of "))
        count_lack(lacks, &line);
  }
  for (struct lines_lack *lack = lacks; lack < lacks + LACKS && lack->ranks; lack++)
    model_note(model, "%.*s are missing on %u of %u ranks: %.*s", lack->line.of_name,
               lack->line.name, lack->ranks, model->n_ranks, lack->line.of_value, lack->line.value);
}

static double unread_share(const struct rank *rank) {
  return (double)rank->unread_samples / (double)(rank->unread_samples + rank->samples);
}

/* Where more than one sample in 20 has no stack. */
static void note_unread_samples(struct model *model) {
  const double notable = 0.05;
  const struct rank *worst =
      LARGEST(model->ranks, model->n_ranks, one, one->unread_samples, unread_share(one));
  if (worst && unread_share(worst) > notable)
    model_note(model,
               "lines: threads could not be read in %s of the samples of rank %u, the most of "
               "all ranks; their time is in no line",
               percent(unread_share(worst)).text, worst->rank);
}

void note_of_ranks(struct model *model) {
  note_nccl_clock(model);
  note_lacks(model);
  note_unread_samples(model);
}
