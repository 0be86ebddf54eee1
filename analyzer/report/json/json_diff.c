/* SPDX-License-Identifier: MIT
 *
 * diff{} of the JSON report.
 */
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
    TEXT(results, "before", diff.before, "name of the earlier run; null where none was given"),
    TEXT(results, "after", diff.after, "name of the later run"),
    TEXT(results, "verdict", diff.verdict,
         "\"slower\", \"faster\" or \"no change beyond noise\"; null where it cannot be told"),
    TEXT(results, "reason", diff.reason, "why it cannot"),
    NUMBER(results, "step_before_ms", diff.step_before_ms, "ms", "median step"),
    NUMBER(results, "step_after_ms", diff.step_after_ms, "ms", "median step"),
    NUMBER(results, "step_change", diff.step_change, "fraction", "of step_before_ms"),
    NUMBER(results, "step_noise_ms", diff.step_noise_ms, "ms",
           "half the width of the 99 % interval of the change"),
    NUMBER(results, "step_p_value", diff.step_p_value, "probability",
           "that the runs' own noise makes such a change"),
    LIST("rows", diff.rows, diff.n_rows, diff_row, row_fields, "figures of both reports"),
    LIST("collectives", diff.collectives, diff.n_collectives, diff_collective, collective_fields,
         "by operation, size and number of ranks"),
    LIST("provenance", diff.facts, diff.n_facts, diff_fact, fact_fields,
         "what differs in how the runs were made"),
    LIST("scalars", diff.scalars, diff.n_scalars, diff_scalar, scalar_fields,
         "values that the runs tell of themselves"),
    LIST("findings", diff.findings, diff.n_findings, finding, json_finding_fields,
         "what to make of it"),
    END,
};
