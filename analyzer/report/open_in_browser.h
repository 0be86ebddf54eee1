/* SPDX-License-Identifier: MIT
 *
 * Shows a file that was written in the browser of whoever runs the report.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Opens a page from disk. False, with what to do instead in `why`, if there is no browser. */
bool open_page(const char *path, char *why, size_t why_bytes);

/* Opens ui.perfetto.dev and gives it the trace at `path`, the only file that is served and to that
 * site only, from 127.0.0.1:9001: the page's rules let it fetch from nowhere else on this machine.
 * Returns when it was fetched, or when nobody came for `patience_s` seconds; false, with what to do
 * instead in `why`, if it was not. */
bool open_in_perfetto(const char *path, unsigned patience_s, char *why, size_t why_bytes);
