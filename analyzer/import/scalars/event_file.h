/* SPDX-License-Identifier: MIT
 *
 * TensorBoard's event files: records of TFRecord (length, checksum, bytes, checksum), each with an
 * Event in protocol-buffer form. Read are the scalars whose names are those of training values.
 * https://github.com/tensorflow/tensorboard/tree/master/tensorboard/compat/proto: event.proto,
 * summary.proto, tensor.proto.
 */
#pragma once

#include "import/scalars/scalar_log.h"

/* Whether these first bytes are those of an event file. */
bool event_file_recognise(const u8 *head, size_t n);

/* Adds the values of a whole file. What is damaged is left out and said in log->damage. 0, or
 * -EFBIG; -EINVAL with `why` where nothing can be read. */
int event_file_read(struct scalar_log *log, const u8 *bytes, size_t n, char *why, size_t why_bytes);

/* Adds the values of one Event. 0, or -EBADMSG where it is none. */
int event_file_read_event(struct scalar_log *log, const u8 *bytes, size_t n);
