/* SPDX-License-Identifier: MIT */
#ifndef STANDIN_LAUNCH_H
#define STANDIN_LAUNCH_H

/* Name of the kernel behind a handle, NULL if there is no such kernel. It lives for ever. */
const char *driver_kernel_name(const void *handle);

#endif
