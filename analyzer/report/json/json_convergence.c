/* SPDX-License-Identifier: MIT
 *
 * convergence{} of the JSON report.
 */
#include "report/json/json_table.h"

static json_t *make_plateau(const struct results *results) {
  const struct convergence_result *c = &results->convergence;
  return c->plateau_steps == c->plateau_steps ? json_boolean(c->plateau) : json_null();
}

static const struct json_field series_fields[] = {
    TEXT(convergence_series, "name", name, "as the job calls it"),
    TEXT(convergence_series, "role", role, "what it is taken for"),
    NUMBER(convergence_series, "values", values, "integer", "how many"),
    NUMBER(convergence_series, "first_step", first_step, "integer",
           "as the job counts; values are counted where it does not"),
    NUMBER(convergence_series, "last_step", last_step, "integer", "likewise"),
    NUMBER(convergence_series, "first", first, "number", "median of the first tenth"),
    NUMBER(convergence_series, "last", last, "number", "median of the last tenth"),
    NUMBER(convergence_series, "best", best, "number", "smallest"),
    NUMBER(convergence_series, "change_per_step", change_per_step, "number",
           "slope over the last half; 0 where chance explains it"),
    NUMBER(convergence_series, "not_finite", not_finite, "integer", "NaN or infinite"),
    NUMBER(convergence_series, "first_not_finite_step", first_not_finite, "integer",
           "of the first of them"),
    NUMBER(convergence_series, "spikes", spikes, "integer",
           "values far above those before; loss and gradient norm only"),
    NUMBERS(convergence_series, "step", at_step, n_points, "array of integers",
            "of the values beside it: a thousand at most, of neighbours the one farthest off their "
            "middle"),
    NUMBERS(convergence_series, "value", value, n_points, "array of numbers",
            "null where it is not finite"),
    END,
};

static const struct json_field spike_fields[] = {
    TEXT(convergence_spike, "signal", signal,
         "\"loss\", \"gradient norm\", \"step time\" (ms) or \"memory\" (bytes)"),
    NUMBER(convergence_spike, "step", step, "integer", "at which step"),
    NUMBER(convergence_spike, "value", value, "number", "there"),
    NUMBER(convergence_spike, "typical", typical, "number", "median of the values before"),
    END,
};

static const struct json_field cluster_fields[] = {
    NUMBER(convergence_cluster, "first_step", first_step, "integer", "of the spikes in it"),
    NUMBER(convergence_cluster, "last_step", last_step, "integer", "likewise"),
    TEXT(convergence_cluster, "signals", signals, "that have spikes there"),
    END,
};

const struct json_field json_convergence_fields[] = {
    TEXT(results, "reason", convergence.reason, "why nothing is known"),
    TEXT(results, "verdict", convergence.verdict,
         "of the loss: \"falling\", \"flat\", \"rising\" or \"diverged\""),
    LIST("series", convergence.series, convergence.n_series, convergence_series, series_fields,
         "one of each role"),
    NUMBER(results, "diverged_step", convergence.diverged_step, "integer",
           "from which on the loss is not finite, or above its best for good"),
    TEXT(results, "diverged_by", convergence.diverged_by, "\"not finite\" or \"growth\""),
    MADE("plateau", make_plateau, "boolean", "the loss stands still; null with too few values"),
    NUMBER(results, "plateau_steps", convergence.plateau_steps, "integer", "that were looked at"),
    NUMBER(results, "plateau_change", convergence.plateau_change, "fraction",
           "by which the loss fell over them"),
    LIST("spikes", convergence.spikes, convergence.n_spikes, convergence_spike, spike_fields,
         "of all signals, in order of steps"),
    LIST("instability", convergence.clusters, convergence.n_clusters, convergence_cluster,
         cluster_fields, "spikes of several signals close together"),
    NUMBER(results, "instability_p", convergence.instability_p, "probability",
           "that chance puts spikes of two signals so close so often, times the pairs"),
    END,
};
