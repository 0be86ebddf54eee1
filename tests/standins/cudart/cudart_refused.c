/* SPDX-License-Identifier: MIT
 *
 * Functions that PyTorch is linked with and that need what this stand-in does not simulate: they
 * say that they are not supported.
 */
#define REFUSED(name)                                                                              \
  __attribute__((visibility("default"))) int name(void);                                           \
  __attribute__((visibility("default"))) int name(void) {                                          \
    return 801; /* cudaErrorNotSupported */                                                        \
  }

REFUSED(cudaDeviceGetGraphMemAttribute)
REFUSED(cudaDeviceSetGraphMemAttribute)
REFUSED(cudaGraphAddNode)
REFUSED(cudaGraphConditionalHandleCreate)
REFUSED(cudaKernelSetAttributeForDevice)
REFUSED(cudaLibraryGetGlobal)
REFUSED(cudaLibraryGetKernel)
REFUSED(cudaLibraryGetKernelCount)
REFUSED(cudaLibraryGetManaged)
REFUSED(cudaLibraryGetUnifiedFunction)
REFUSED(cudaLibraryLoadData)
REFUSED(cudaLibraryLoadFromFile)
REFUSED(cudaLibraryUnload)
REFUSED(cudaStreamUpdateCaptureDependencies)
