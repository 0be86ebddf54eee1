/* SPDX-License-Identifier: MIT
 *
 * run_end{} of the JSON report.
 */
#include "report/json/json_table.h"

static const struct json_field rank_fields[] = {
    RANK(rank_ending, "rank", rank, "global rank"),
    TEXT(rank_ending, "host", host, "its host"),
    TEXT(rank_ending, "part", part,
         "\"culprit\", \"followed\", \"in order\", \"silent\" or \"no record\""),
    TEXT(rank_ending, "how", how, "\"exit\", \"_exit\", \"signal\", \"silent\" or \"no record\""),
    NUMBER(rank_ending, "status", status, "integer", "exit status"),
    NUMBER(rank_ending, "signal", signal, "integer", "that ended it, as its launcher saw"),
    NUMBER(rank_ending, "at_s", at_s, "s",
           "when the reason for its end came, or when it was last known to live"),
    TEXT(rank_ending, "why", why, "in words"),
    TEXT(rank_ending, "exception", exception,
         "the last that Python wrote to standard error, its type and first line"),
    NUMBER(rank_ending, "step", step, "integer", "that it was in"),
    TEXT(rank_ending, "phase", phase, "that it was in"),
    TEXT(rank_ending, "call", call, "the last collective that it called"),
    TEXT(rank_ending, "pending", pending, "\"yes\" if that had not returned, else \"no\""),
    END,
};

const struct json_field json_run_end_fields[] = {
    TEXT(results, "how", run_end.how, "\"in order\", \"early\" or \"cannot tell\""),
    TEXT(
        results, "cause", run_end.cause,
        "of the first culprit: \"exception\", \"exit status\", \"signal\", \"out of memory\", "
        "\"CUDA error\", \"NCCL error\", \"calls differ\", \"left early\", \"held up\", \"silent\" "
        "or \"host lost\""),
    TEXT(results, "summary", run_end.summary, "who ended first, where, why, and who only followed"),
    TEXT(results, "calls", run_end.calls,
         "which collective a rank left out, or made too many, against its peers"),
    {"culprits", JSON_FIELD_RANKS, "array of integers", "ranks that ended the run",
     offsetof(struct results, run_end.culprits), offsetof(struct results, run_end.n_culprits), 0, 0,
     NULL, NULL},
    NUMBER(results, "ahead_s", run_end.ahead_s, "s", "so long before the next rank ended"),
    NUMBER(results, "followed", run_end.followed, "integer", "ranks that are no culprits"),
    LIST("ranks", run_end.ranks, run_end.n_ranks, rank_ending, rank_fields,
         "in the order in which they ended"),
    END,
};
