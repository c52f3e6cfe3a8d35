/* SPDX-License-Identifier: BSD-2-Clause */
/* What the fuzz targets share: the input as a file, and properties that must hold. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/io.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* abort() is what the fuzzer takes for a crash. */
#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);    \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The doors take open files. The caller closes it. */
static inline int fuzz_file(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	MUST(fd >= 0 && !write_full(fd, data, size));
	return fd;
}

/* Bytes that were handed out are read, so that the sanitizers look at them. */
static inline void fuzz_read(const void *bytes, size_t size)
{
	const unsigned char *b = bytes;
	volatile unsigned char sum = 0;

	for (size_t i = 0; i < size; i++)
		sum ^= b[i];
	(void)sum;
}

#endif
