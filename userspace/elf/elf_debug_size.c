/* SPDX-License-Identifier: BSD-2-Clause */
/* The size of the data besides the program itself, once compressed sections are inflated. */
#include <string.h>

#include "elf/elf_file.h"
#include "elf/elf_private.h"

#define OLD_HEADER_SIZE 12 /* "ZLIB" and the size as a big-endian number: .zdebug_* */

static uint64_t number_of(const struct elf_file *file, const unsigned char *bytes, size_t size)
{
	uint64_t value = 0;

	for (size_t i = 0; i < size; i++)
		value = value << 8 | bytes[file->encoding == ELFDATA2MSB ? i : size - 1 - i];
	return value;
}

static uint64_t inflated_size(const struct elf_file *file, const Elf64_Shdr *section)
{
	unsigned char bytes[sizeof(Elf64_Chdr)] = {};
	uint64_t size = elf_file__available(file, section->sh_offset, section->sh_size),
		 inflated = 0;
	ssize_t got;

	if (size < OLD_HEADER_SIZE)
		return size;
	got = elf_file__read(file, bytes, sizeof(bytes), section->sh_offset);
	if (got < OLD_HEADER_SIZE)
		return size;
	if (section->sh_flags & SHF_COMPRESSED) {
		inflated = file->is_64 ? number_of(file, bytes + 8, 8)
				       : number_of(file, bytes + 4, 4);
	} else if (!memcmp(bytes, "ZLIB", 4)) {
		for (size_t i = 4; i < OLD_HEADER_SIZE; i++)
			inflated = inflated << 8 | bytes[i];
	}
	return inflated ? inflated : size;
}

uint64_t elf_file__debug_size(struct elf_file *file)
{
	uint64_t total = 0;

	if (elf_file__load_sections(file))
		return 0;
	for (size_t i = 0; i < file->sections.count; i++) {
		const Elf64_Shdr *section = &file->sections.data[i];
		uint64_t size;

		if (section->sh_type != SHT_PROGBITS || section->sh_flags & SHF_ALLOC)
			continue;
		size = inflated_size(file, section);
		total = total > UINT64_MAX - size ? UINT64_MAX : total + size;
	}
	return total;
}
