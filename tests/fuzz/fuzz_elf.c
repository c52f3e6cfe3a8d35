/* SPDX-License-Identifier: BSD-2-Clause */
/* The door to libelf: every question about a file, and images of its sections. */
#include <string.h>
#include <unistd.h>

#include "elf/elf_file.h"
#include "elf/elf_image.h"
#include "elf/elf_sections.h"
#include "elf/elf_symbols.h"
#include "fuzz.h"

#define SECTION_LIMIT (1u << 20)
#define IMAGE_LIMIT   (16u << 20)

static const char *const NAMES[] = {
	".debug_info", ".debug_abbrev", ".debug_line",	  ".debug_str",
	".text",       ".symtab",	".gnu_debugdata", "",
};

static int read_symbol(void *context, const struct elf_symbol *symbol)
{
	size_t *left = context;

	MUST(symbol->name && *symbol->name);
	fuzz_read(symbol->name, strlen(symbol->name));
	return --*left == 0;
}

static void read_notes_and_links(struct elf_file *file)
{
	char name[64];
	uint8_t id[20];
	uint32_t crc;
	int size;

	size = elf_file__build_id(file, id, sizeof(id));
	MUST(size <= (int)sizeof(id) && size != 0);
	if (size > 0)
		fuzz_read(id, size);
	if (!elf_file__debug_link(file, name, sizeof(name), &crc))
		MUST(strnlen(name, sizeof(name)) < sizeof(name));
	size = elf_file__alternate_link(file, name, sizeof(name), id, sizeof(id));
	MUST(size <= (int)sizeof(id));
	if (size > 0)
		MUST(strnlen(name, sizeof(name)) < sizeof(name));
}

static void read_sections(struct elf_file *file)
{
	for (size_t i = 0; i < COUNT(NAMES); i++) {
		struct elf_section section;
		void *data;
		size_t size;

		elf_file__find_section(file, NAMES[i], &section);
		if (elf_file__section_data(file, NAMES[i], SECTION_LIMIT, &data, &size))
			continue;
		MUST(size <= SECTION_LIMIT && !((char *)data)[size]);
		fuzz_read(data, size);
		free(data);
	}
	elf_file__debug_size(file);
}

/* The runs of a mapping follow one another to its end. */
static void take_apart(const struct elf_file *file, uint64_t offset, uint64_t end)
{
	struct elf_code code;

	for (size_t runs = 0; offset < end && runs < 1000; runs++, offset = code.end) {
		if (elf_file__code_at(file, offset, end, &code))
			return;
		MUST(code.end > offset && code.end <= end);
	}
	MUST(offset == end);
}

static void translate(const struct elf_file *file)
{
	uint64_t base = 0;

	elf_file__address_of_offset(file, 0, &base);
	elf_file__is_relocatable(file);
	for (unsigned int shift = 0; shift < 64; shift++) {
		uint64_t result;

		elf_file__address_of_offset(file, (UINT64_C(1) << shift) - 1, &result);
		elf_file__offset_of_address(file, base + (UINT64_C(1) << shift), &result);
		take_apart(file, (UINT64_C(1) << shift) & ~UINT64_C(4095), UINT64_C(1) << shift);
		take_apart(file, (UINT64_C(1) << shift) - 1, UINT64_MAX);
	}
}

static void make_image(struct elf_file *file)
{
	struct elf_image *image;
	void *bytes;
	size_t size;

	if (elf_image__load(file, NAMES, COUNT(NAMES) - 1, IMAGE_LIMIT, true, &image))
		return;
	for (size_t i = 0; i < COUNT(NAMES); i++) {
		struct elf_image_section *section = elf_image__section(image, NAMES[i]);

		if (section)
			fuzz_read(section->data, section->size);
	}
	if (!elf_image__finish(image, &bytes, &size))
		fuzz_read(bytes, size);
	elf_image__free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = fuzz_file(data, size);
	struct elf_file *file;
	size_t symbols = 10000;

	if (!elf_file__open(fd, &file)) {
		read_notes_and_links(file);
		read_sections(file);
		translate(file);
		elf_file__each_symbol(file, read_symbol, &symbols);
		make_image(file);
		elf_file__free(file);
	}
	close(fd);
	return 0;
}
