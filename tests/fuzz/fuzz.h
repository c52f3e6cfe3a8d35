/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the fuzzers share. Each is a libFuzzer program: a file of any bytes is read through one of the doors
 * to a foreign library, and whatever comes out of it is looked at, so that a sanitizer sees what is
 * not there.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The bytes as a file; the same one each time. */
static inline int input_file(const uint8_t *bytes, size_t size)
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("input", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)size) || pwrite(fd, bytes, size, 0) != (ssize_t)size) {
		perror("memfd");
		exit(1);
	}
	return fd;
}

/* Reads all of it; what it was made of is kept from the optimizer. */
static inline void look_at(const void *bytes, size_t size)
{
	const unsigned char *p = bytes;
	unsigned int sum = 0;

	for (size_t i = 0; i < size; i++)
		sum = sum * 31 + p[i];
	__asm__ volatile("" : : "r"(sum));
}

#endif
