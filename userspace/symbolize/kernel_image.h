/* SPDX-License-Identifier: BSD-2-Clause */
/* The running kernel beside its vmlinux: address space layout randomization moves it as a whole. */
#ifndef SYMBOLIZE_KERNEL_IMAGE_H
#define SYMBOLIZE_KERNEL_IMAGE_H

#include <stdint.h>

/*
 * How far the kernel whose text begins at `start` lies from where the ELF file says (modulo 2^64).
 * 0; -ENOENT: the file does not say; what reading it met.
 */
int kernel_image_shift(int fd, uint64_t start, uint64_t *shift);

#endif
