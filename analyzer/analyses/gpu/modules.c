/* SPDX-License-Identifier: MIT
 *
 * The model's modules, and what a plain step would need: the baseline for comparison with sharding
 * and recomputation.
 *
 *   peak = max over modules of parameters of the model + gradients so far
 *                            + activation gradients + activations so far
 *   time = forward + backward of the root
 *
 * as in PyTorch's own planner of sharding and recomputation
 * (torch.distributed._tools.ilp_utils.get_peak_memory_runtime_baseline). Optimizer state is
 * separate.
 */
#include <math.h>

#include "analyses/analyses.h"
#include "model/module_tree.h"

struct module_result module_result_unknown(void) {
  struct module_result result = unknown_module_result;
  result.reason =
      "no input has statistics of modules: scripts/export_modules.py writes such a file";
  return result;
}

static struct module_row row_of(const struct module_tree *stats, u32 index) {
  const struct module_stat *stat = &stats->at[index], *root = &stats->at[0];
  return (struct module_row){
      .parent = stat->parent == INDEX_NONE ? NULL : stats->at[stat->parent].name,
      .parameter_bytes = stat->parameters,
      .gradient_bytes = stat->gradients,
      .activation_bytes = stat->activations_forward,
      .gradients_so_far_bytes = stat->gradients_so_far,
      .activations_so_far_bytes = stat->activations_so_far,
      .activation_gradient_bytes = stat->activation_gradients,
      .plain_peak_bytes = root->parameters + stat->gradients_so_far + stat->activation_gradients +
                          stat->activations_so_far,
      .time_share = (stat->forward_ms + stat->backward_ms) / (root->forward_ms + root->backward_ms),
      SAME(stat, name, depth, leaf, forward_ms, backward_ms)};
}

void modules_analyse(struct analysis *a) {
  const struct module_tree *stats = a->model->modules;
  struct module_result *result = &a->results->modules;
  *result = module_result_unknown();
  if (!stats || !stats->n)
    return;
  const struct module_stat *root = &stats->at[0];
  result->tree = arena_array(a->arena, stats->n, sizeof(*result->tree));
  result->reason = NULL;
  result->path = stats->path;
  result->root = root->name;
  result->count = result->n_tree = stats->n;
  result->parameter_bytes = root->parameters;
  result->forward_ms = root->forward_ms;
  result->backward_ms = root->backward_ms;
  result->plain_time_ms = root->forward_ms + root->backward_ms;
  for (u32 i = 0; i < stats->n; i++) {
    struct module_row *row = &result->tree[i];
    *row = row_of(stats, i);
    if (row->plain_peak_bytes > result->plain_peak_bytes || isnan(result->plain_peak_bytes)) {
      result->plain_peak_bytes = row->plain_peak_bytes;
      result->plain_peak_module = isnan(row->plain_peak_bytes) ? NULL : row->name;
    }
  }
}
