/* SPDX-License-Identifier: MIT
 *
 * What `tscope hosts` does: hosts, devices and links over many runs.
 */
#ifndef TSCOPE_COMPARE_HOSTS_H
#define TSCOPE_COMPARE_HOSTS_H

#include <jansson.h>

#include "report/options.h"

/* The JSON report on a run of the options' paths; NULL with a line in `why`. The caller releases
 * it. */
typedef json_t *run_document(const struct options *options, const char *run, char *why,
                             size_t why_bytes);

/* Reads the JSON reports in options->paths, and makes those of runs whose traces are there without
 * one. 0, or negative errno with a line in `why`. */
int compare_hosts(const struct options *options, run_document *document_of, char *why,
                  size_t why_bytes);

#endif
