/* SPDX-License-Identifier: MIT */
#pragma once

#include "record/hook.h"

/* Records GPU name and memory, driver and runtime version, the first time it is called. Only calls
 * functions that the process has loaded; call it where a context exists. */
void gpu_facts_record_once(struct tscope_thread *thread);

/* The version of the CUDA runtime to which the hooked call in progress goes on, as CUDART_VERSION;
 * 0 if it cannot be queried. */
int gpu_facts_runtime_version(const struct tscope_thread *thread);
