/* SPDX-License-Identifier: MIT */
#pragma once

/* With which programs end. */
enum {
  STATUS_OK = 0,
  STATUS_FINDINGS = 1, /* it did what was asked, and what it found is not as it should be */
  STATUS_BAD = 2,      /* it could not do that: a line on standard error says why */
};
