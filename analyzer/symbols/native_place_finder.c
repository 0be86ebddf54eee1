/* SPDX-License-Identifier: MIT */
#include "symbols/native_places.h"

native_place_finder *native_place_find = NULL;
