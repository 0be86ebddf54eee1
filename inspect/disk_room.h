/* SPDX-License-Identifier: MIT
 *
 * Whether a disk may take more.
 */
#pragma once

#include <stdbool.h>
#include <sys/statvfs.h>

#include "format/values.h"

/* Whether it has room for so many bytes, and then keeps a twentieth of its size or `least` bytes,
 * whichever is less. One that does not say its size has. */
static inline bool disk_has_room(const struct statvfs *disk, u64 least, u64 bytes) {
  u64 unit = disk->f_frsize ? disk->f_frsize : disk->f_bsize;
  return disk->f_blocks == 0 ||
         (u64)disk->f_bavail * unit >= MIN((u64)disk->f_blocks * unit / 20, least) + bytes;
}
