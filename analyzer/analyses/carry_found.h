/* SPDX-License-Identifier: MIT
 *
 * For functions that write or read what was found on a rank (CARRIES of analyses.def).
 */
#pragma once

#include "analyses/analysis.h"
#include "base/carrier.h"

void rank_summary_carry(struct rank_summary *sum, struct carrier *c);

#define COLUMNS(columns) columns, LENGTH_OF(columns)
