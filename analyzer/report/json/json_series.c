/* SPDX-License-Identifier: MIT
 *
 * series{} of the JSON report: the run step by step and rank by rank.
 */
#include "report/json/json_table.h"

static const struct json_field step_fields[] = {
    NUMBER(results, "steps_per_point", series.steps_per_point, "integer",
           "of so many neighbouring steps the slowest is here, with its own figures; 1: all are"),
    NUMBERS(results, "step", series.step, series.n_points, "array of integers",
            "number in the run; all arrays beside it are of these steps, warm-up included"),
    NUMBERS(results, "wall_ms", series.wall_ms, series.n_points, "array of ms", "mean over ranks"),
    NUMBERS(results, "wall_least_ms", series.wall_least_ms, series.n_points, "array of ms",
            "of the fastest rank"),
    NUMBERS(results, "wall_most_ms", series.wall_most_ms, series.n_points, "array of ms",
            "of the slowest rank"),
    NUMBERS(results, "slowest_rank", series.slowest_rank, series.n_points, "array of integers",
            "global rank"),
    NUMBERS(results, "compute_ms", series.compute_ms, series.n_points, "array of ms",
            "compute; this and what follows: mean over the ranks that know it, null in warm-up"),
    NUMBERS(results, "exposed_ms", series.exposed_ms, series.n_points, "array of ms",
            "communication that no compute hid"),
    NUMBERS(results, "exposed_wait_ms", series.wait_ms, series.n_points, "array of ms",
            "of it, waiting for ranks"),
    NUMBERS(results, "exposed_transfer_ms", series.transfer_ms, series.n_points, "array of ms",
            "of it, moving data"),
    NUMBERS(results, "exposed_copy_ms", series.copy_ms, series.n_points, "array of ms",
            "copies that neither hid"),
    NUMBERS(results, "idle_ms", series.idle_ms, series.n_points, "array of ms", "nothing of these"),
    NUMBERS(results, "input_ms", series.input_ms, series.n_points, "array of ms",
            "fetching input; may lie beside all of these"),
    END,
};

static const struct json_field row_fields[] = {
    RANK(series_row, "rank", rank, "global rank; the first of those joined"),
    RANK(series_row, "last_rank", last_rank, "the last of those joined; rank where it is one"),
    NUMBER(series_row, "ranks", ranks, "integer",
           "that the row is the mean of; the worst ranks have a row each"),
    TEXT(series_row, "host", host, "of the first"),
#define X(ID, name, type, meaning)                                                                 \
  NUMBERS(series_row, name, values[SERIES_##ID], n_values[SERIES_##ID], type, meaning),
    SERIES_MEASURES(X)
#undef X
        END,
};

static const struct json_field by_rank_fields[] = {
    NUMBER(results, "steps_per_column", series.steps_per_column, "integer",
           "of so many neighbouring steps the slowest is here; 1: all are"),
    NUMBERS(results, "step", series.column_step, series.n_columns, "array of integers",
            "number in the run; the rows' arrays are of these steps, or empty where nothing is "
            "known; warm-up left out"),
    NUMBER(results, "ranks_joined", series.ranks_joined, "integer",
           "ranks without a row of their own"),
    LIST("rows", series.rows, series.n_rows, series_row, row_fields, "in the order of ranks"),
    END,
};

const struct json_field json_series_fields[] = {
    OBJECT("steps", step_fields, "each step, 2,000 at most"),
    OBJECT("by_rank", by_rank_fields, "ranks by steps, 50,000 cells at most"),
    END,
};
