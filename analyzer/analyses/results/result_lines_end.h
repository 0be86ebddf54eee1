/* SPDX-License-Identifier: MIT
 *
 * After a table of results was read in one way, its lines (results.def) may mean something else.
 */
#undef STRUCT
#undef END_STRUCT
#undef NUMBER
#undef NUMBER_AS
#undef VALUE
#undef RANK
#undef TEXT
#undef TEXT_AS
#undef WORD_OF
#undef WORD_OF_AS
#undef STRINGS
#undef RANKS
#undef NUMBERS
#undef NUMBERS_AS
#undef ELEMENT
#undef LIST
#undef LIST_AS
#undef VIEW_LIST
#undef MAP
#undef MAP_AS
#undef PART
#undef PART_AS
#undef PART_AT
#undef FIELDS_OF
#undef GROUP
#undef END_GROUP
#undef MADE
#undef C_ONLY
