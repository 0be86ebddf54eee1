/* SPDX-License-Identifier: MIT
 *
 * Kernel launches and host functions.
 */
#include "cu_launch.h"

#include "../standin.h"
#include "driver.h"

static CUresult launch(CUfunction function, const unsigned grid[3], const unsigned block[3],
                       CUstream stream, bool own, void **extra) {
  const char *name = driver_kernel_name(function);
  if (!name)
    return CUDA_ERROR_INVALID_HANDLE;
  for (int i = 0; i < 3; i++)
    if (!grid[i] || !block[i])
      return CUDA_ERROR_INVALID_VALUE;
  struct order order = {.kind = SIM_KERNEL,
                        .name = name,
                        .duration = sim_kernel_duration(name),
                        .grid = {grid[0], grid[1], grid[2]},
                        .block = {block[0], block[1], block[2]}};
  if (extra && extra[0] == STANDIN_ORDER)
    order = *(const struct order *)extra[1];
  return (CUresult)sim_submit(stream, own, &order, false);
}

#define GEOMETRY                                                                                   \
  (unsigned[]){gx, gy, gz}, (unsigned[]) {                                                         \
    bx, by, bz                                                                                     \
  }

TWINS(cuLaunchKernel, _ptsz,
      (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
       unsigned bz, unsigned shared, CUstream stream, void **parameters, void **extra),
      ((void)shared, (void)parameters, launch(function, GEOMETRY, stream, own, extra)))

TWINS(cuLaunchCooperativeKernel, _ptsz,
      (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
       unsigned bz, unsigned shared, CUstream stream, void **parameters),
      ((void)shared, (void)parameters, launch(function, GEOMETRY, stream, own, NULL)))

static CUresult launch_config(const CUlaunchConfig *config, CUfunction function, bool own,
                              void **extra) {
  return launch(function, (unsigned[]){config->gridDimX, config->gridDimY, config->gridDimZ},
                (unsigned[]){config->blockDimX, config->blockDimY, config->blockDimZ},
                config->hStream, own, extra);
}

TWINS(cuLaunchKernelEx, _ptsz,
      (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra),
      ((void)parameters, launch_config(config, function, own, extra)))

TWINS(cuLaunchHostFunc, _ptsz, (CUstream stream, CUhostFn function, void *user),
      sim_call(function, user, stream, own))
