/* SPDX-License-Identifier: MIT
 *
 * Fields of the JSON report that are not members of the results: MADE in
 * analyses/results/results.def and in the tables beside it. Each returns NULL when there is no
 * memory.
 */
#ifndef TSCOPE_JSON_MADE_H
#define TSCOPE_JSON_MADE_H

#include "analyses/results/results.h"
#include "base/json_values.h"

json_t *make_schema(const struct results *results);
json_t *make_run(const struct results *results);
json_t *make_command(const struct results *results);
json_t *make_world_size(const struct results *results);
json_t *make_ranks_found(const struct results *results);
json_t *make_began(const struct results *results);
json_t *make_attempt(const struct results *results);
json_t *make_hosts(const struct results *results);
json_t *make_duration(const struct results *results);
json_t *make_aligned(const struct results *results);
json_t *make_clock_method(const struct results *results);
json_t *make_residual(const struct results *results);
json_t *make_between_hosts(const struct results *results);
json_t *make_clocks(const struct results *results);
json_t *make_steps_method(const struct results *results);
json_t *make_steps_agreement(const struct results *results);
json_t *make_changed_step(const struct results *results);
json_t *make_inputs(const struct results *results);
json_t *make_notes(const struct results *results);
json_t *make_stragglers(const struct results *results);
json_t *make_path_by_rank(const struct results *results);
json_t *make_path_steps(const struct results *results);
json_t *make_expandable_would_help(const struct results *results);
json_t *make_steps_are_certain(const struct results *results);
json_t *make_sampled(const struct results *results);
json_t *make_sections(const struct results *results);
json_t *make_plateau(const struct results *results);

#endif
