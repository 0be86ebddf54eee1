/* SPDX-License-Identifier: MIT */
#include "record/stall_now.h"

u32 tscope_stall_now;
