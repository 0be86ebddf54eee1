/* SPDX-License-Identifier: MIT */
#ifndef TSCOPE_DEFAULT_DIRECTORY_H
#define TSCOPE_DEFAULT_DIRECTORY_H

/* Where traces go when TSCOPE_DIR is not set, for those who look for them. */
#define TSCOPE_DEFAULT_DIRECTORY "/tmp/tscope"

#endif
