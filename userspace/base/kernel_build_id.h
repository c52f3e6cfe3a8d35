/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_KERNEL_BUILD_ID_H
#define BASE_KERNEL_BUILD_ID_H

#include <stddef.h>

/* The build-id in the running kernel's notes, as hexadecimal digits. 0 or negative errno. */
int kernel_build_id__read(char *text, size_t size);

#endif
