/* SPDX-License-Identifier: MIT */
#include "lookups.h"

int links_the_library(void) {
  return 1;
}

const char *cu_marker(void) {
  return "library";
}
