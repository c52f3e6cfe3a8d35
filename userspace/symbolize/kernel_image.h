/* SPDX-License-Identifier: BSD-2-Clause */
/* The running kernel beside its vmlinux: address space layout randomization moves it as a whole. */
#ifndef SYMBOLIZE_KERNEL_IMAGE_H
#define SYMBOLIZE_KERNEL_IMAGE_H

#include <stdint.h>

/*
 * The distance between the address of the text in the ELF file and `start`, that of the running kernel (modulo 2^64).
 * 0; -ENOENT: the file has no such address; or an error of reading it.
 */
int kernel_image_shift(int fd, uint64_t start, uint64_t *shift);

#endif
