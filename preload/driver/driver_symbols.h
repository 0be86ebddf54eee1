/* SPDX-License-Identifier: MIT
 *
 * A number for each hooked function of the driver: DRIVER_cuLaunchKernel and so on.
 */
#pragma once

#include "driver/driver_hooks.def"
#include "driver/hooked_symbols.h"

#define DRIVER_SYMBOL(name, since, type, params, args, failure, recorder, what) DRIVER_##name,
enum driver_symbol { TSCOPE_DRIVER_HOOKS(DRIVER_SYMBOL) DRIVER_SYMBOLS };
#undef DRIVER_SYMBOL
