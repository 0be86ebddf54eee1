/* SPDX-License-Identifier: MIT
 *
 * What elfutils says of places in a module, which is a file of C or C++ code.
 */
#pragma once

#include <elfutils/libdwfl.h>

#include "symbols/native_places.h"

/* In hex; NULL if it has none. */
const char *dwfl_build_id(struct arena *arena, Dwfl_Module *module);

/* Fills in what is known of an address of the module, as elfutils counts them. */
void dwfl_name_place(struct arena *arena, Dwfl_Module *module, u64 address,
                     struct native_place *place);
