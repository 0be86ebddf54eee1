/* SPDX-License-Identifier: MIT
 *
 * Tensors: how much a collective is about.
 */
#include "format/dtypes.h"
#include "torch/torch_family.h"

/* enum c10::ScalarType, as aoti_torch_get_dtype gives it */
static enum tscope_dtype dtype_of(i32 scalar_type) {
  static const u8 dtypes[] = {
      [0] = TSCOPE_DTYPE_U8,    [1] = TSCOPE_DTYPE_I8,      [2] = TSCOPE_DTYPE_I16,
      [3] = TSCOPE_DTYPE_I32,   [4] = TSCOPE_DTYPE_I64,     [5] = TSCOPE_DTYPE_F16,
      [6] = TSCOPE_DTYPE_F32,   [7] = TSCOPE_DTYPE_F64,     [11] = TSCOPE_DTYPE_BOOL,
      [15] = TSCOPE_DTYPE_BF16, [23] = TSCOPE_DTYPE_F8E5M2, [24] = TSCOPE_DTYPE_F8E4M3,
      [28] = TSCOPE_DTYPE_U32,  [29] = TSCOPE_DTYPE_U64,
  };
  return scalar_type >= 0 && (size_t)scalar_type < sizeof(dtypes) ? dtypes[scalar_type]
                                                                  : TSCOPE_DTYPE_UNKNOWN;
}

/* at::Tensor is one pointer; std::vector is begin, end and end of storage. */
struct torch_count torch_count_tensors(enum torch_tensors shape, const void *tensors) {
  const struct torch_count unknown = {.dtype = TSCOPE_DTYPE_UNKNOWN};
  struct torch_count count = unknown;
  if (!tensors || shape == NO_TENSORS || !torch_family.tensor_numel || !torch_family.tensor_dtype)
    return unknown;
  const void *const *begin = tensors, *const *end = begin + 1;
  if (shape == TENSORS) {
    end = ((const void *const *const *)tensors)[1];
    begin = ((const void *const *const *)tensors)[0];
  }
  for (const void *const *tensor = begin; tensor < end; tensor++) {
    i64 elements;
    i32 scalar_type;
    if (!*tensor || torch_family.tensor_numel(tensor, &elements) ||
        torch_family.tensor_dtype(tensor, &scalar_type) || elements < 0)
      return unknown;
    enum tscope_dtype dtype = dtype_of(scalar_type);
    if (!dtype || (tensor > begin && dtype != count.dtype))
      return unknown;
    count.dtype = (u8)dtype;
    count.elements += (u64)elements;
  }
  count.bytes = count.elements * tscope_dtype_bytes(count.dtype);
  return count;
}
