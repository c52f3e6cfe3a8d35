/* SPDX-License-Identifier: BSD-2-Clause */
/* elf_file and elf_image, the door to libelf, on any bytes. */
#include <string.h>

#include "elf/elf_file.h"
#include "elf/elf_image.h"
#include "fuzz.h"

#define SECTION_LIMIT (1u << 20)
#define IMAGE_LIMIT   (16u << 20)

static const char *const section_names[] = {
	".eh_frame",	".text",	  ".symtab",	       ".strtab",    ".dynsym",
	".debug_info",	".debug_line",	  ".gnu_debugdata",    ".plt",	     ".note.gnu.build-id",
	".debug_frame", ".gnu_debuglink", ".gnu_debugaltlink", ".debug_str",
};

static int visit_symbol(void *context, const struct elf_symbol *symbol)
{
	size_t *count = context;

	look_at(symbol->name, strlen(symbol->name));
	look_at(symbol, sizeof(*symbol));
	++*count;
	return 0;
}

static void read_sections(struct elf_file *file)
{
	for (size_t i = 0; i < sizeof(section_names) / sizeof(*section_names); i++) {
		struct elf_section section;
		void *data;
		size_t size;

		if (!elf_file__find_section(file, section_names[i], &section))
			look_at(&section, sizeof(section));
		if (elf_file__section_data(file, section_names[i], SECTION_LIMIT, &data, &size))
			continue;
		if (size > SECTION_LIMIT)
			abort();
		look_at(data, size);
		free(data);
	}
}

static void read_image(struct elf_file *file)
{
	struct elf_image *image;
	void *bytes;
	size_t size;

	if (elf_image__load(file, section_names, sizeof(section_names) / sizeof(*section_names),
			    IMAGE_LIMIT, &image))
		return;
	if (!elf_image__finish(image, &bytes, &size))
		look_at(bytes, size);
	elf_image__free(image);
}

static void translate(struct elf_file *file)
{
	static const uint64_t points[] = {0, 0x40, 0x1000, 0x401000, UINT64_MAX / 2, UINT64_MAX};

	for (size_t i = 0; i < sizeof(points) / sizeof(*points); i++) {
		uint64_t address, offset;

		/* what leads there leads back, if not to the same offset */
		if (!elf_file__address_of_offset(file, points[i], &address) &&
		    elf_file__offset_of_address(file, address, &offset))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	int fd = input_file(bytes, size);
	struct elf_file *file;
	uint8_t id[20];
	size_t symbols = 0;
	int length;

	if (elf_file__open(fd, &file))
		return 0;
	length = elf_file__build_id(file, id, sizeof(id));
	if (length > (int)sizeof(id))
		abort();
	if (length > 0)
		look_at(id, (size_t)length);
	elf_file__each_symbol(file, visit_symbol, &symbols);
	elf_file__debug_size(file);
	elf_file__base_address(file);
	translate(file);
	read_sections(file);
	read_image(file);
	elf_file__free(file);
	return 0;
}
