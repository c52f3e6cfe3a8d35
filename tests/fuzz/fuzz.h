/* SPDX-License-Identifier: BSD-2-Clause */
/* What the fuzz targets share: the input as a file, and properties that must hold. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <unistd.h>

#include "base/io.h"
#include "elf/elf_file.h"
#include "elf/elf_sections.h"

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
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

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

#define FUZZ_BLIND_MUTATIONS 4 /* one of so many goes anywhere in the file */

/*
 * A LLVMFuzzerCustomMutator() for ELF files. Most random changes of one change bytes that are never read, or
 * so much of it that it is never read. So most change bytes of one of these sections, in place.
 */
static inline size_t fuzz_mutate_section(const char *const *names, size_t count, uint8_t *data,
					 size_t size, size_t max_size, unsigned int seed)
{
	const char *name = names[seed / FUZZ_BLIND_MUTATIONS % count];
	int fd = fuzz_file(data, size);
	struct elf_section section = {};
	struct elf_file *file;

	if (!elf_file__open(fd, &file)) {
		elf_file__find_section(file, name, &section);
		elf_file__free(file);
	}
	close(fd);
	if (seed % FUZZ_BLIND_MUTATIONS == 0 || !section.size || section.offset >= size ||
	    section.size > size - section.offset)
		return LLVMFuzzerMutate(data, size, max_size);
	LLVMFuzzerMutate(data + section.offset, section.size, section.size);
	return size;
}

#endif
