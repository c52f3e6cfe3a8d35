/* SPDX-License-Identifier: BSD-2-Clause */
/* The image of the vDSO, which is no file, as a file. */
#ifndef FILES_VDSO_H
#define FILES_VDSO_H

#include <stdint.h>

/*
 * A sealed copy of our own vDSO, which all 64-bit processes share: a descriptor of the caller's,
 * and the image's length in bytes. Negative errno; -ENOENT: there is none.
 */
int vdso_copy(uint64_t *length);

#endif
