/* SPDX-License-Identifier: MIT */
#pragma once

/* The name of the kernel behind a handle, NULL if there is no such kernel. It is never freed. */
const char *driver_kernel_name(const void *handle);
