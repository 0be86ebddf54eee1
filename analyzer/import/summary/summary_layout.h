/* SPDX-License-Identifier: MIT
 *
 * The names of all that a summary holds, in order: a summary of other things has another layout.
 */
#ifndef TSCOPE_SUMMARY_LAYOUT_H
#define TSCOPE_SUMMARY_LAYOUT_H

#include "model/rank_lists.def"

#define NAME(member) #member " "
#define NAME_AFTER(member, other) #member " "
#define LIST(list, element, FIELDS) #list "{" FIELDS(NAME, NAME_AFTER, NAME, NAME) "}"
#define STRUCT(what, type, MEMBERS) #what "{" MEMBERS(NAME) "}"

/* The version counts what no table names: the functions that carry values. */
static const char summary_layout_text[] =
    "6 " TSCOPE_VERSION " " RANK_LISTS(LIST) RANK_STRUCTS(STRUCT);

#undef NAME
#undef NAME_AFTER
#undef LIST
#undef STRUCT

#endif
