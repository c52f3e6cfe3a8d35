/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file as libdw gets it: an image of the sections that are read, in our memory.
 *
 * libdw walks the units of .debug_info by their headers, and one header that it does not like ends
 * the walk: what follows is out of reach. So the headers are checked here first. A unit
 * of an unknown version becomes, in our copy, an empty unit of the same size; where a length makes
 * no sense, the section ends.
 *
 * Left out are the sections about variables and types alone (locations, macros, type units) and
 * the indexes (.debug_aranges, .debug_names), which not every compiler writes; also
 * .gnu_debugaltlink, which would make libdw open a file by a name that is in there.
 */
#include "symbolize/dwarf_image.h"

#include <dwarf.h>
#include <elf.h>
#include <errno.h>

#include "elf/elf_file.h"
#include "elf/elf_image.h"
#include "elf/elf_sections.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static const char *const SECTIONS[] = {
	".debug_info", ".debug_abbrev",	     ".debug_line",   ".debug_line_str", ".debug_str",
	".debug_addr", ".debug_str_offsets", ".debug_ranges", ".debug_rnglists",
};

/* ---- unit headers ---------------------------------------------------------------------------- */

struct bytes {
	unsigned char *data;
	uint64_t size;
	bool big_endian;
};

static uint64_t get_number(const struct bytes *b, uint64_t at, unsigned int size)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < size; i++)
		value |= (uint64_t)b->data[at + i] << 8 * (b->big_endian ? size - 1 - i : i);
	return value;
}

static void put_number(struct bytes *b, uint64_t at, unsigned int size, uint64_t value)
{
	for (unsigned int i = 0; i < size; i++)
		b->data[at + i] = value >> 8 * (b->big_endian ? size - 1 - i : i);
}

struct unit_header {
	uint64_t length;	  /* of what comes behind the length field */
	unsigned int length_size; /* 4, or 12 for the 64-bit format */
	unsigned int offset_size; /* 4 or 8 */
};

/* False: nothing behind it can be found. */
static bool read_length(const struct bytes *b, uint64_t at, struct unit_header *h)
{
	uint64_t left = b->size - at;

	if (left < 4)
		return false;
	*h = (struct unit_header){
		.length = get_number(b, at, 4), .length_size = 4, .offset_size = 4};
	if (h->length == 0xffffffff) {
		if (left < 12)
			return false;
		*h = (struct unit_header){
			.length = get_number(b, at + 4, 8), .length_size = 12, .offset_size = 8};
	} else if (h->length >= 0xfffffff0) {
		return false;
	}
	return h->length <= left - h->length_size;
}

/* The size of the rest of a header of this kind; 0: an unknown kind. */
static unsigned int rest_of_header(const struct unit_header *h, unsigned int version,
				   unsigned int type)
{
	if (version >= 2 && version <= 4)
		return 2 + h->offset_size + 1;
	if (version != 5)
		return 0;
	switch (type) {
	case DW_UT_compile:
	case DW_UT_partial:
		return 2 + 1 + 1 + h->offset_size;
	case DW_UT_skeleton:
	case DW_UT_split_compile:
		return 2 + 1 + 1 + h->offset_size + 8;
	case DW_UT_type:
	case DW_UT_split_type:
		return 2 + 1 + 1 + h->offset_size + 8 + h->offset_size;
	default:
		return 0;
	}
}

static bool header_makes_sense(const struct bytes *b, uint64_t at, const struct unit_header *h,
			       uint64_t abbrev_size)
{
	unsigned int version = get_number(b, at, 2), address_size;
	uint64_t abbrev_offset;
	unsigned int size = rest_of_header(h, version, b->data[at + 2]);

	if (!size || h->length <= size)
		return false;
	abbrev_offset = get_number(b, at + (version == 5 ? 4 : 2), h->offset_size);
	address_size = b->data[at + (version == 5 ? 3 : 2 + h->offset_size)];
	return abbrev_offset < abbrev_size && (address_size == 4 || address_size == 8);
}

/* A header of version 4, and a null where the unit's DIE would be. */
static void make_empty_unit(struct bytes *b, uint64_t at, const struct unit_header *h)
{
	put_number(b, at, 2, 4);
	put_number(b, at + 2, h->offset_size, 0);
	b->data[at + 2 + h->offset_size] = 8;
	b->data[at + 2 + h->offset_size + 1] = 0;
}

/* Replaces each header that libdw would reject; cuts the section where no unit can be found. */
static void check_units(struct dwarf_image *image, struct elf_image_section *info,
			uint64_t abbrev_size)
{
	struct bytes b = {info->data, info->size, image->image->encoding == ELFDATA2MSB};
	uint64_t at = 0;

	while (at < b.size) {
		struct unit_header h;
		bool walkable = read_length(&b, at, &h);

		/* an empty unit has to fit */
		if (!walkable || h.length < 2 + h.offset_size + 2) {
			info->size = at;
			image->bad_units++;
			return;
		}
		if (!header_makes_sense(&b, at + h.length_size, &h, abbrev_size)) {
			make_empty_unit(&b, at + h.length_size, &h);
			image->bad_units++;
		}
		at += h.length_size + h.length;
	}
}

/* ---- libdw ----------------------------------------------------------------------------------- */

static bool is_compressed(struct elf_image *image)
{
	for (size_t i = 0; i < COUNT(SECTIONS); i++) {
		struct elf_image_section *section = elf_image__section(image, SECTIONS[i]);

		if (section && section->flags & SHF_COMPRESSED)
			return true;
	}
	return false;
}

/* libdw passes over a section that libelf cannot inflate. */
static bool has_units(Dwarf *dwarf)
{
	Dwarf_CU *unit = NULL;

	return !dwarf_get_units(dwarf, NULL, &unit, NULL, NULL, NULL, NULL);
}

static int begin_dwarf(struct dwarf_image *image, bool packaged)
{
	struct elf_image_section *info = elf_image__section(image->image, ".debug_info");
	struct elf_image_section *abbrev = elf_image__section(image->image, ".debug_abbrev");
	bool compressed = is_compressed(image->image);
	size_t size;
	void *bytes;
	int err;

	if (!info || !abbrev || !info->size)
		return image->image->damaged ? -EBADMSG : -ENODATA;
	if (!compressed)
		check_units(image, info, abbrev->size);
	err = elf_image__finish(image->image, &bytes, &size);
	if (err)
		return err;
	elf_version(EV_CURRENT);
	/* beside a file that has a descriptor libdw looks for a package of its .dwo files */
	image->elf = packaged ? elf_begin(image->image->fd, ELF_C_READ_MMAP, NULL)
			      : elf_memory(bytes, size);
	if (!image->elf)
		return -ENOMEM;
	image->dwarf = dwarf_begin_elf(image->elf, DWARF_C_READ, NULL);
	if (!image->dwarf)
		return compressed ? -ENOTSUP : -EBADMSG;
	return compressed && !has_units(image->dwarf) ? -ENOTSUP : 0;
}

static int open_file(struct elf_file *file, enum dwarf_role role,
		     const struct dwarf_options *options, struct dwarf_image *image)
{
	bool packaged = role == DWARF_MAIN && options->packaged;
	struct elf_section section;
	int err;

	/* Nothing in an object file is where it will be, and libdw does not relocate. */
	if (role == DWARF_MAIN && elf_file__is_relocatable(file))
		return -ENODATA;
	err = elf_file__find_section(file, ".debug_info", &section);
	if (err == -ENOENT)
		err = elf_file__find_section(file, ".zdebug_info", &section);
	if (err)
		return err == -ENOENT ? -ENODATA : err;
	if (section.type == SHT_NOBITS || !section.size)
		return -ENODATA;
	err = elf_image__load(file, SECTIONS, COUNT(SECTIONS), options->memory_limit, packaged,
			      &image->image);
	if (err)
		return err;
	image->needs_alt = !elf_file__find_section(file, ".gnu_debugaltlink", &section);
	return begin_dwarf(image, packaged);
}

int dwarf_image__open(int fd, enum dwarf_role role, const struct dwarf_options *options,
		      struct dwarf_image *image)
{
	struct elf_file *file;
	int err = elf_file__open_at(fd, role == DWARF_MAIN ? options->base : 0, &file);

	*image = (struct dwarf_image){};
	if (err)
		return err == -ENOEXEC ? -ENODATA : err;
	err = open_file(file, role, options, image);
	elf_file__free(file);
	if (err) {
		dwarf_image__close(image);
		return err;
	}
	image->inflated = image->image->inflated;
	image->damaged = image->bad_units || image->image->damaged;
	return 0;
}

void dwarf_image__close(struct dwarf_image *image)
{
	if (image->dwarf)
		dwarf_end(image->dwarf);
	if (image->elf)
		elf_end(image->elf);
	elf_image__free(image->image);
	*image = (struct dwarf_image){};
}
