/* SPDX-License-Identifier: MIT
 *
 * Ranks of one run that do not run the same thing.
 */
#include <math.h>
#include <string.h>

#include "analyses/findings/findings.h"

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

static bool has_value(const struct rank *rank, u32 key, const char *value) {
  return rank->info[key] && !strcmp(rank->info[key], value);
}

/* The value of most ranks that have one; NULL if none has one. */
static const char *most_common_value(const struct model *model, u32 key) {
  const char *most = NULL;
  u32 most_times = 0;
  for (u32 i = 0; i < model->n_ranks; i++) {
    const char *value = model->ranks[i].info[key];
    u32 times = 0;
    if (!value || (most && !strcmp(value, most)))
      continue;
    for (u32 k = i; k < model->n_ranks; k++)
      times += has_value(&model->ranks[k], key, value);
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
  const char *other = NULL;
  u32 n = 0;
  for (u32 i = 0; i < model->n_ranks; i++) {
    const char *value = model->ranks[i].info[key];
    if (!value || !strcmp(value, most))
      continue;
    other = other ? other : value;
    ranks[n++] = model->ranks[i].rank;
  }
  if (n == 0)
    return;
  finding_add(
      f, SEVERITY_WARNING, NAN,
      say(f, "%u rank%s not run the same %s as the others", n, n == 1 ? " does" : "s do", name),
      model->n_ranks == 2
          ? say(f, "%s is %.80s on rank %u, %.80s on the other.", name, other, ranks[0], most)
          : say(f, "%s is %.80s on rank %u, %.80s on most of the %u ranks.", name, other, ranks[0],
                most, model->n_ranks),
      "Bring all hosts to one version: results of such a run cannot be reproduced, and the slowest "
      "version sets the pace.",
      ranks, n);
}

void rule_drift(struct findings *f) {
  u32 *ranks = arena_array(f->a->arena, f->a->model->n_ranks, sizeof(u32));
  for (size_t i = 0; i < sizeof(compared) / sizeof(compared[0]); i++) {
    const char *most = most_common_value(f->a->model, compared[i].key);
    if (most)
      add_difference_finding(f, compared[i].key, compared[i].name, most, ranks);
  }
}
