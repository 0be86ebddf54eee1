/* SPDX-License-Identifier: MIT
 *
 * The buffers that CUPTI fills with activity records: a fixed number, mapped once; only used parts
 * are touched. They are zero when handed out. CUPTI 13 fills one for each thread that launches
 * work, and holds each back until all work in it is done.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum cupti_buffer {
  CUPTI_BUFFER_KEPT,      /* what is in it is to be kept */
  CUPTI_BUFFER_DISCARDED, /* taken when there was no other: its contents are lost */
  CUPTI_BUFFER_FOREIGN,   /* not from here */
};

/* 0, or a negative errno. Done once; the memory stays, since CUPTI may hold on to it. */
int cupti_buffers_map(void);

/* A buffer for CUPTI, reserved until it is given back. When all are in use, a spare one whose
 * contents will be thrown away: CUPTI before 12.9 crashes if it gets none. NULL and 0 bytes if
 * there is no memory for that either. */
uint8_t *cupti_buffer_acquire(size_t *bytes);

enum cupti_buffer cupti_buffer_kind(const uint8_t *buffer);

/* Gives back a buffer with `used` bytes written. A foreign one is left alone. */
void cupti_buffer_release(uint8_t *buffer, size_t used);
