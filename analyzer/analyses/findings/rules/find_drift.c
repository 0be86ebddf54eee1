/* SPDX-License-Identifier: MIT
 *
 * Ranks of one run that do not run the same thing.
 */
#include <math.h>
#include <string.h>

#include "analyses/findings/findings.h"
#include "base/quantity.h"
#include "base/texts.h"

static const struct {
  u32 key;
  const char *name;
} compared[] = {
    {TSCOPE_INFO_GIT_COMMIT, "commit of the code"},
    {TSCOPE_INFO_TORCH, "PyTorch"},
    {TSCOPE_INFO_PYTHON, "Python"},
    {TSCOPE_INFO_NCCL, "NCCL"},
    {TSCOPE_INFO_CUDA_RUNTIME, "CUDA runtime"},
    {TSCOPE_INFO_CUDA_DRIVER, "CUDA driver"},
    {TSCOPE_INFO_GPU_NAME, "GPU"},
};

/* The value of most ranks that have one; NULL if none has one. */
static const char *most_common_value(const struct model *model, u32 key) {
  const char *most = NULL;
  u32 most_times = 0;
  for (u32 i = 0; i < model->n_ranks; i++) {
    const char *value = model->ranks[i].info[key];
    if (!value || same_text(value, most))
      continue;
    u32 times =
        NUMBER_OF(model->ranks + i, model->n_ranks - i, one, same_text(one->info[key], value));
    if (times > most_times) {
      most = value;
      most_times = times;
    }
  }
  return most;
}

static void add_difference_finding(struct findings *f, u32 key, const char *name, const char *most,
                                   u32 *ranks) {
  const struct model *model = f->a->model;
  const struct rank *first =
      FIND(model->ranks, model->n_ranks, one, one->info[key] && strcmp(one->info[key], most));
  if (!first)
    return;
  const char *other = first->info[key];
  u32 n = LIST_WHERE(ranks, 0, model->n_ranks, i,
                     model->ranks[i].info[key] && strcmp(model->ranks[i].info[key], most),
                     model->ranks[i].rank);
  finding_add(
      f, SEVERITY_WARNING, NAN,
      say(f, "%s %s not run the same %s as the others", plural(n, "rank").text,
          n == 1 ? "does" : "do", name),
      model->n_ranks == 2
          ? say(f, "%s is %.80s on rank %u, %.80s on the other.", name, other, ranks[0], most)
          : say(f, "%s is %.80s on rank %u, %.80s on most of the %u ranks.", name, other, ranks[0],
                most, model->n_ranks),
      key == TSCOPE_INFO_GPU_NAME
          ? "Run on GPUs of one kind, or give each as much work as it does in the same time: the "
            "slowest sets the pace, and results depend on where each rank ran."
          : "Bring all hosts to one version: results of such a run cannot be reproduced, and the "
            "slowest version sets the pace.",
      ranks, n);
}

void rule_drift(struct findings *f) {
  u32 *ranks = arena_array(f->a->arena, f->a->model->n_ranks, sizeof(u32));
  FOR_EACH(compared, LENGTH_OF(compared), one) {
    const char *most = most_common_value(f->a->model, one->key);
    if (most)
      add_difference_finding(f, one->key, one->name, most, ranks);
  }
}
