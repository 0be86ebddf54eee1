/* SPDX-License-Identifier: MIT
 *
 * collective_check{} of the JSON report.
 */
#include "report/json/json_table.h"

#define RANKS(R, name, member, count, meaning)                                                     \
  {                                                                                                \
    name, JSON_FIELD_RANKS, "array of integers", meaning, offsetof(struct R, member),              \
        offsetof(struct R, count), 0, 0, NULL, NULL                                                \
  }

static const struct json_field group_fields[] = {
    TEXT(check_group, "group", name, "its name in the job"),
    TEXT(check_group, "desc", desc, "what it is for"),
    NUMBER(check_group, "size", size, "integer", "members"),
    NUMBER(check_group, "recorded", recorded, "integer", "of them, that left a record"),
    NUMBER(check_group, "matched", matched, "integer",
           "collectives in the record on which all members agree"),
    NUMBER(check_group, "mismatched", mismatched, "integer", "on which they do not"),
    NUMBER(check_group, "pending", pending, "integer", "members in a call that has not finished"),
    END,
};

static const struct json_field mismatch_fields[] = {
    TEXT(check_mismatch, "group", group_name, "the group's name in the job"),
    TEXT(check_mismatch, "desc", group, "what the group is for, or its name"),
    NUMBER(check_mismatch, "seq", seq, "integer",
           "of the collective in its group; of a message, its rank's own count"),
    TEXT(check_mismatch, "op", op, "operation"),
    TEXT(check_mismatch, "state", state,
         "\"type mismatch\", \"size or syntax mismatch\", \"dtype mismatch\", \"state mismatch\", "
         "\"missing ranks\" or \"undecided\""),
    RANKS(check_mismatch, "ranks", ranks, n_ranks,
          "the odd ones out; all that differ where there is no majority"),
    TEXT(check_mismatch, "detail", detail, "what differs"),
    END,
};

static const struct json_field suspect_fields[] = {
    RANK(check_suspect, "rank", rank, "global rank"),
    TEXT(check_suspect, "host", host, "its host"),
    TEXT(check_suspect, "reason", reason, "why it is to be looked at first"),
    TEXT(check_suspect, "evidence", evidence, "what that rests on"),
    TEXT(check_suspect, "stack", stack, "where it made the call it is in, innermost frame first"),
    END,
};

static const struct json_field wait_fields[] = {
    TEXT(check_wait, "group", group_name, "the group's name in the job"),
    TEXT(check_wait, "desc", group, "what the group is for, or its name"),
    TEXT(check_wait, "op", op, "operation"),
    NUMBER(check_wait, "seq", seq, "integer", "of the call in its group"),
    RANKS(check_wait, "ranks", ranks, n_ranks, "that are in the call"),
    RANKS(check_wait, "waits_for", waits_for, n_waits_for, "that the call waits for"),
    END,
};

const struct json_field json_check_fields[] = {
    TEXT(results, "source", check.source, "what it was made from"),
    TEXT(results, "verdict", check.verdict,
         "\"hang\", \"desync\", \"hang and desync\", \"none\" or \"cannot tell\""),
    TEXT(results, "cannot_tell", check.cannot_tell,
         "why no rank stands out though calls are pending"),
    NUMBER(results, "matched", check.matched, "integer",
           "collectives and messages on which all members agree"),
    NUMBER(results, "checked", check.checked, "integer", "that were looked at"),
    NUMBER(results, "mismatched", check.mismatches_found, "integer", "mismatches found"),
    NUMBER(results, "pending_ranks", check.pending_ranks, "integer",
           "ranks in a call that has not finished"),
    NUMBER(results, "victims", check.victims, "integer", "of them, those that wait for suspects"),
    NUMBER(results, "pending_s", check.pending_s, "s",
           "since the oldest pending call was made, to the end of the record"),
    RANKS(results, "unrecorded", check.unrecorded, check.n_unrecorded,
          "members of groups that left no record"),
    LIST("groups", check.groups, check.n_groups, check_group, group_fields,
         "every group in the record"),
    LIST("mismatches", check.mismatches, check.n_mismatches, check_mismatch, mismatch_fields,
         "the first ten of each group"),
    LIST("suspects", check.suspects, check.n_suspects, check_suspect, suspect_fields,
         "ranks to look at first"),
    LIST("waits", check.waits, check.n_waits, check_wait, wait_fields,
         "who waits for whom: calls that ranks are in, most ranks first, sixty at most"),
    NUMBER(results, "calls_waiting", check.calls_waiting, "integer",
           "different calls that ranks are in"),
    END,
};
