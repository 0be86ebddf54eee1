/* SPDX-License-Identifier: MIT
 *
 * cuda.h without the macros that give functions the name of their newest version.
 */
#pragma once

#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#undef cuGetProcAddress
#undef cuGetProcAddress_v2
#undef cuMemcpyBatchAsync
#undef cuMemcpy3DBatchAsync
#undef cuMemPrefetchAsync
#undef cuGraphAddNode
