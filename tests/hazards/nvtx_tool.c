/* SPDX-License-Identifier: MIT
 *
 * Another NVTX tool: pushes and pops return 100 and 101.
 */
#include <nvtx3/nvToolsExt.h>

static int push(const char *message) {
  (void)message;
  return 100;
}

static int pop(void) {
  return 101;
}

__attribute__((visibility("default"))) int
InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
  NvtxFunctionTable functions;
  unsigned size;
  if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &functions, &size))
    return 0;
  *functions[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
  *functions[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
  return 1;
}
