/* SPDX-License-Identifier: MIT
 *
 * Reductions, element by element in rank order, so that every rank gets the same bits. The small
 * float types are converted to float, and the result is rounded to nearest even.
 */
#include <math.h>
#include <string.h>

#include "comm.h"

static float bits_to_float(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

static uint32_t float_to_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/* An IEEE float type with `exponent` and `mantissa` bits. `finite`: no infinity and one NaN (e4m3).
 */
struct small_float {
  int exponent, mantissa;
  bool finite;
};

static float widen(uint32_t bits, struct small_float format) {
  int bias = (1 << (format.exponent - 1)) - 1;
  uint32_t mantissa = bits & ((1u << format.mantissa) - 1);
  int exponent = (int)(bits >> format.mantissa) & ((1 << format.exponent) - 1);
  float sign = bits >> (format.exponent + format.mantissa) ? -1.0f : 1.0f;
  int top = (1 << format.exponent) - 1;
  if (format.finite && exponent == top && mantissa == (1u << format.mantissa) - 1)
    return NAN;
  if (!format.finite && exponent == top)
    return mantissa ? NAN : sign * INFINITY;
  if (!exponent)
    return sign * ldexpf((float)mantissa, 1 - bias - format.mantissa);
  return sign *
         ldexpf((float)(mantissa | 1u << format.mantissa), exponent - bias - format.mantissa);
}

static uint32_t narrow(float value, struct small_float format) {
  int bias = (1 << (format.exponent - 1)) - 1, top = (1 << format.exponent) - 1;
  uint32_t sign = (float_to_bits(value) >> 31) << (format.exponent + format.mantissa);
  uint32_t nan = (uint32_t)top << format.mantissa | ((1u << format.mantissa) - 1);
  if (isnan(value))
    return sign | nan;
  float magnitude = fabsf(value);
  int exponent;
  if (magnitude == 0)
    return sign;
  if (isinf(magnitude))
    return sign | (format.finite ? nan : (uint32_t)top << format.mantissa);
  frexpf(magnitude, &exponent);
  int lowest = 1 - bias;
  int scale = exponent - 1 > lowest ? exponent - 1 : lowest;
  uint32_t steps = (uint32_t)nearbyintf(ldexpf(magnitude, format.mantissa - scale));
  /* steps counts units in the last place from 0; a carry goes into the exponent */
  uint32_t bits = steps + ((uint32_t)(scale - lowest) << format.mantissa);
  uint32_t limit = format.finite ? nan : (uint32_t)top << format.mantissa;
  return sign | (bits < limit ? bits : limit);
}

static const struct small_float half = {5, 10, false}, e5m2 = {5, 2, false}, e4m3 = {4, 3, true};

static float from_bf16(uint16_t bits) {
  return bits_to_float((uint32_t)bits << 16);
}

static uint16_t to_bf16(float value) {
  uint32_t bits = float_to_bits(value);
  if (isnan(value))
    return 0x7fff;
  return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static float from_half(uint16_t bits) {
  return widen(bits, half);
}
static uint16_t to_half(float value) {
  return (uint16_t)narrow(value, half);
}
static float from_e4m3(uint8_t bits) {
  return widen(bits, e4m3);
}
static uint8_t to_e4m3(float value) {
  return (uint8_t)narrow(value, e4m3);
}
static float from_e5m2(uint8_t bits) {
  return widen(bits, e5m2);
}
static uint8_t to_e5m2(float value) {
  return (uint8_t)narrow(value, e5m2);
}

#define SAME(value) (value)

/* `wide` is the type of the intermediate results. */
#define REDUCTION(name, type, wide, from, to)                                                      \
  static void name(void *into, const void *const *sources, int n, size_t count, int redop,         \
                   double scale) {                                                                 \
    type *target = into;                                                                           \
    for (size_t i = 0; i < count; i++) {                                                           \
      wide sum = (wide)(from(((const type *)sources[0])[i]));                                      \
      if (redop >= ncclNumOps)                                                                     \
        sum = (wide)(sum * scale);                                                                 \
      for (int rank = 1; rank < n; rank++) {                                                       \
        wide other = (wide)(from(((const type *)sources[rank])[i]));                               \
        switch (redop) {                                                                           \
        case ncclProd:                                                                             \
          sum = (wide)(sum * other);                                                               \
          break;                                                                                   \
        case ncclMax:                                                                              \
          sum = other > sum ? other : sum;                                                         \
          break;                                                                                   \
        case ncclMin:                                                                              \
          sum = other < sum ? other : sum;                                                         \
          break;                                                                                   \
        default:                                                                                   \
          sum = (wide)(sum + (redop >= ncclNumOps ? (wide)(other * scale) : other));               \
        }                                                                                          \
      }                                                                                            \
      if (redop == ncclAvg)                                                                        \
        sum = (wide)(sum / (wide)n);                                                               \
      target[i] = (type)to(sum);                                                                   \
    }                                                                                              \
  }

REDUCTION(reduce_i8, int8_t, int, SAME, SAME)
REDUCTION(reduce_u8, uint8_t, unsigned, SAME, SAME)
REDUCTION(reduce_i32, int32_t, int64_t, SAME, SAME)
REDUCTION(reduce_u32, uint32_t, uint64_t, SAME, SAME)
REDUCTION(reduce_i64, int64_t, int64_t, SAME, SAME)
REDUCTION(reduce_u64, uint64_t, uint64_t, SAME, SAME)
REDUCTION(reduce_f32, float, float, SAME, SAME)
REDUCTION(reduce_f64, double, double, SAME, SAME)
REDUCTION(reduce_f16, uint16_t, float, from_half, to_half)
REDUCTION(reduce_bf16, uint16_t, float, from_bf16, to_bf16)
REDUCTION(reduce_e4m3, uint8_t, float, from_e4m3, to_e4m3)
REDUCTION(reduce_e5m2, uint8_t, float, from_e5m2, to_e5m2)

void reduce(void *into, const void *const *sources, int n, size_t count, ncclDataType_t dtype,
            const struct ncclComm *comm, ncclRedOp_t redop) {
  static void (*const by_dtype[])(void *, const void *const *, int, size_t, int, double) = {
      [ncclInt8] = reduce_i8,       [ncclUint8] = reduce_u8,        [ncclInt32] = reduce_i32,
      [ncclUint32] = reduce_u32,    [ncclInt64] = reduce_i64,       [ncclUint64] = reduce_u64,
      [ncclFloat16] = reduce_f16,   [ncclFloat32] = reduce_f32,     [ncclFloat64] = reduce_f64,
      [ncclBfloat16] = reduce_bf16, [ncclFloat8e4m3] = reduce_e4m3, [ncclFloat8e5m2] = reduce_e5m2,
  };
  double scale = redop >= ncclNumOps ? comm->scales[redop - ncclNumOps] : 1;
  by_dtype[dtype](into, sources, n, count, (int)redop, scale);
}
