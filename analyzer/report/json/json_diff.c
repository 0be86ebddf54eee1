/* SPDX-License-Identifier: MIT
 *
 * diff{} of the JSON report.
 */
#include "diff/diff_result.h"
#include "report/json/json_table.h"

static const struct json_field row_fields[] = {
    TEXT(diff_row, "section", section, "part of the report that the figure is from"),
    TEXT(diff_row, "name", name, "figure"),
    TEXT(diff_row, "unit", unit, "\"ms\", \"bytes\" or \"fraction\""),
    NUMBER(diff_row, "before", before, "number", "in the earlier run"),
    NUMBER(diff_row, "after", after, "number", "in the later run"),
    NUMBER(diff_row, "change", change, "fraction", "of before"),
    NUMBER(diff_row, "p_value", p_value, "probability",
           "that steps of one run differ so much; null where the figure is not known by step"),
    TEXT(diff_row, "verdict", verdict, "\"more\", \"less\" or \"same\"; null without p_value"),
    END,
};

static const struct json_field collective_fields[] = {
    TEXT(diff_collective, "op", op, "operation"),
    NUMBER(diff_collective, "ranks", ranks, "integer", "in its communicator"),
    NUMBER(diff_collective, "bytes", bytes, "bytes", "per instance"),
    NUMBER(diff_collective, "before_per_step", before_per_step, "number", "instances a step"),
    NUMBER(diff_collective, "after_per_step", after_per_step, "number", "instances a step"),
    NUMBER(diff_collective, "before_ms", before_ms, "ms", "transfer, median"),
    NUMBER(diff_collective, "after_ms", after_ms, "ms", "transfer, median"),
    NUMBER(diff_collective, "change", change, "fraction", "of before_ms"),
    END,
};

static const struct json_field fact_fields[] = {
    TEXT(diff_fact, "what", what, "such as \"git_commit\" or \"environment\""),
    TEXT(diff_fact, "name", name, "of the variable, where there are several"),
    TEXT(diff_fact, "before", before, "null: not there"),
    TEXT(diff_fact, "after", after, "null: not there"),
    END,
};

static const struct json_field scalar_fields[] = {
    TEXT(diff_scalar, "name", name, "as the job calls it"),
    NUMBER(diff_scalar, "steps", steps, "integer", "steps that both runs tell"),
    NUMBER(diff_scalar, "first_step", first_step, "integer",
           "the first at which they differ at all"),
    NUMBER(diff_scalar, "parted_step", parted_step, "integer",
           "the first at which they differ by more than a thousandth"),
    NUMBER(diff_scalar, "before", before, "number", "at that step"),
    NUMBER(diff_scalar, "after", after, "number", "at that step"),
    END,
};

const struct json_field json_diff_fields[] = {
    TEXT(diff_result, "before", before, "name of the earlier run; null where none was given"),
    TEXT(diff_result, "after", after, "name of the later run"),
    TEXT(diff_result, "verdict", verdict,
         "\"slower\", \"faster\" or \"no change beyond noise\"; null where it cannot be told"),
    TEXT(diff_result, "reason", reason, "why it cannot"),
    NUMBER(diff_result, "step_before_ms", step_before_ms, "ms", "median step"),
    NUMBER(diff_result, "step_after_ms", step_after_ms, "ms", "median step"),
    NUMBER(diff_result, "step_change", step_change, "fraction", "of step_before_ms"),
    NUMBER(diff_result, "step_noise_ms", step_noise_ms, "ms",
           "half the width of the 99 % interval of the change"),
    NUMBER(diff_result, "step_p_value", step_p_value, "probability",
           "that the runs' own noise makes such a change"),
    LIST_IN(diff_result, "rows", rows, n_rows, diff_row, row_fields, "figures of both reports"),
    LIST_IN(diff_result, "collectives", collectives, n_collectives, diff_collective,
            collective_fields, "by operation, size and number of ranks"),
    LIST_IN(diff_result, "provenance", facts, n_facts, diff_fact, fact_fields,
            "what differs in how the runs were made"),
    LIST_IN(diff_result, "scalars", scalars, n_scalars, diff_scalar, scalar_fields,
            "values that the runs tell of themselves"),
    LIST_IN(diff_result, "findings", findings, n_findings, finding, json_finding_fields,
            "what to make of it"),
    END,
};
