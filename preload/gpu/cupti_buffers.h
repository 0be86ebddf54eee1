/* SPDX-License-Identifier: MIT
 *
 * The buffers that CUPTI fills with activity records: a fixed number, mapped once and only touched
 * as far as they are used. They are zero when handed out.
 */
#ifndef TSCOPE_CUPTI_BUFFERS_H
#define TSCOPE_CUPTI_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 0, or a negative errno. Done once; the memory stays, since CUPTI may hold on to it. */
int cupti_buffers_map(void);

/* A buffer for CUPTI. When all are in use, one whose contents will be thrown away: CUPTI
 * before 12.9 crashes when it gets none. */
uint8_t *cupti_buffer_take(size_t *bytes);

/* Whether what is in the buffer is to be kept. */
bool cupti_buffer_counts(const uint8_t *buffer);

/* Gives a buffer back, of which `used` bytes were written. */
void cupti_buffer_give(uint8_t *buffer, size_t used);

#endif
