/* SPDX-License-Identifier: MIT
 *
 * What tscope answers when a library reads from the environment which tool to load.
 */
#ifndef TSCOPE_TOOL_INJECTION_H
#define TSCOPE_TOOL_INJECTION_H

/* The answer to the code at `caller` for an environment variable that is not set; NULL for all but
 * those of tool_injection.def. errno is preserved. */
char *tscope_tool_injection(const char *variable, const void *caller);

#endif
