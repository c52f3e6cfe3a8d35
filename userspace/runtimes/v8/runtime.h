/* SPDX-License-Identifier: BSD-2-Clause */
/* V8 by the contract of runtimes/runtime.h: Node.js, and what else is built on it. */
#ifndef RUNTIMES_V8_RUNTIME_H
#define RUNTIMES_V8_RUNTIME_H

#include <sysprof/runtime_info.h>

struct v8_layout;

/* The offsets by which the kernel reads its frames. */
struct runtime_v8 v8_info(const struct v8_layout *v8);

#endif
