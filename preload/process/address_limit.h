/* SPDX-License-Identifier: MIT */
#pragma once

/* Where the process may have only so much address space, the trace takes at most this part of it.
 */
enum { TSCOPE_PART_OF_ADDRESS_SPACE = 16 };
