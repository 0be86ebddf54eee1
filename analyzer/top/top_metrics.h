/* SPDX-License-Identifier: MIT
 *
 * One poll as OpenMetrics, for node_exporter's textfile collector.
 */
#ifndef TSCOPE_TOP_METRICS_H
#define TSCOPE_TOP_METRICS_H

#include <stdio.h>

#include "live/live_view.h"

/* Without a view: the text of a directory in which there is no run yet. */
void top_metrics_write(const struct live_view *view, FILE *out);

#endif
