/* SPDX-License-Identifier: MIT
 *
 * For functions that write or read what was found on a rank (CARRIES of analyses.def).
 */
#ifndef TSCOPE_ANALYSES_CARRY_H
#define TSCOPE_ANALYSES_CARRY_H

#include <stddef.h>

#include "analyses/analysis.h"
#include "base/carrier.h"

void rank_summary_carry(struct rank_summary *sum, struct carrier *c);

/* Columns of an array of structs: of(type), then its members. */
#define COLUMN(type, member)                                                                       \
  {                                                                                                \
    .name = #member, .offset = offsetof(type, member), .bytes = sizeof(((type *)0)->member),       \
    .coding = COLUMN_STEPS                                                                         \
  }
#define COLUMN_AS_BYTES(type, member)                                                              \
  {                                                                                                \
    .name = #member, .offset = offsetof(type, member), .bytes = sizeof(((type *)0)->member),       \
    .coding = COLUMN_BYTES                                                                         \
  }
#define COLUMN_NEAR(type, member, other)                                                           \
  {                                                                                                \
    .name = #member, .offset = offsetof(type, member), .bytes = sizeof(((type *)0)->member),       \
    .after = offsetof(type, other), .coding = COLUMN_AFTER                                         \
  }
#define COLUMNS(columns) columns, sizeof(columns) / sizeof(*(columns))

#endif
