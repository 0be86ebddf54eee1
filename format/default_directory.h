/* SPDX-License-Identifier: MIT */
#ifndef TSCOPE_DEFAULT_DIRECTORY_H
#define TSCOPE_DEFAULT_DIRECTORY_H

/* Where traces are if TSCOPE_DIR is not set. */
#define TSCOPE_DEFAULT_DIRECTORY "/tmp/tscope"

#endif
