/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/elf_sections.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "elf/elf_file.h"
#include "elf/elf_file_private.h"

#define MAX_SECTION_NAMES (64 << 20) /* -ffunction-sections names a section after each function */
#define MAX_LINK_SECTION  (64 << 10)

/* The section of the names: e_shstrndx, or in section 0 a number that is too large for that. */
static size_t names_index(const struct elf_file *file)
{
	size_t index = file->header.e_shstrndx;

	if (index == SHN_XINDEX && file->sections.count)
		return file->sections.data[0].sh_link;
	return index;
}

/* All bytes of a section with a NUL behind, or -EBADMSG. */
static int read_section(const struct elf_file *file, const Elf64_Shdr *section, size_t limit,
			char **data)
{
	_cleanup_free_ char *buffer = NULL;
	ssize_t got;

	if (section->sh_size > limit)
		return -EFBIG;
	if (elf_file__available(file, section->sh_offset, section->sh_size) < section->sh_size)
		return -EBADMSG;
	buffer = malloc(section->sh_size + 1);
	if (!buffer)
		return -ENOMEM;
	got = section->sh_size ? elf_file__read(file, buffer, section->sh_size, section->sh_offset)
			       : 0;
	if (got < 0)
		return got;
	if ((uint64_t)got < section->sh_size)
		return -EBADMSG;
	buffer[got] = '\0';
	*data = steal_ptr(buffer);
	return 0;
}

static int load_section_names(struct elf_file *file)
{
	size_t index;
	int err = elf_file__load_sections(file);

	if (err || file->section_names.data || !file->sections.count)
		return err;
	index = names_index(file);
	if (index == SHN_UNDEF)
		return 0;
	if (index >= file->sections.count || file->sections.data[index].sh_type != SHT_STRTAB ||
	    file->sections.data[index].sh_flags & SHF_COMPRESSED)
		return -EBADMSG;
	err = read_section(file, &file->sections.data[index], MAX_SECTION_NAMES,
			   &file->section_names.data);
	file->left |= err == -EFBIG;
	if (err)
		return err == -EFBIG ? -EBADMSG : err;
	file->section_names.size = file->sections.data[index].sh_size;
	return 0;
}

static int find_header(struct elf_file *file, const char *name, const Elf64_Shdr **found)
{
	size_t size = strlen(name) + 1;
	int err = load_section_names(file);

	if (err)
		return err;
	for (size_t i = 1; file->section_names.data && i < file->sections.count; i++) {
		uint64_t offset = file->sections.data[i].sh_name;

		if (offset < file->section_names.size &&
		    file->section_names.size - offset >= size &&
		    !memcmp(file->section_names.data + offset, name, size)) {
			*found = &file->sections.data[i];
			return 0;
		}
	}
	return file->sections_damaged ? -EBADMSG : -ENOENT;
}

int elf_file__find_section(struct elf_file *file, const char *name, struct elf_section *section)
{
	const Elf64_Shdr *header;
	int err = find_header(file, name, &header);

	if (err)
		return err;
	*section = (struct elf_section){
		.address = header->sh_addr,
		.offset = header->sh_offset,
		.size = header->sh_size,
		.flags = header->sh_flags,
		.type = header->sh_type,
	};
	return 0;
}

int elf_file__section_data(struct elf_file *file, const char *name, size_t limit, void **data,
			   size_t *size)
{
	const Elf64_Shdr *header;
	char *bytes;
	int err = find_header(file, name, &header);

	if (err)
		return err;
	if (header->sh_type == SHT_NOBITS)
		return -ENOENT;
	if (header->sh_flags & SHF_COMPRESSED)
		return -ENOTSUP;
	err = read_section(file, header, limit, &bytes);
	if (err)
		return err;
	*data = bytes;
	*size = header->sh_size;
	return 0;
}

/* Copies the name at the start of a section. *behind: the offset after its NUL. */
static int read_link(struct elf_file *file, const char *section, char *name, size_t size,
		     void **data, size_t *data_size, size_t *behind)
{
	int err = elf_file__section_data(file, section, MAX_LINK_SECTION, data, data_size);
	size_t length = err ? 0 : strnlen(*data, *data_size);

	if (err)
		return err;
	if (!length || length == *data_size)
		return -EBADMSG;
	if (length >= size)
		return -ENAMETOOLONG;
	memcpy(name, *data, length + 1);
	*behind = length + 1;
	return 0;
}

int elf_file__debug_link(struct elf_file *file, char *name, size_t size, uint32_t *crc)
{
	_cleanup_free_ void *data = NULL;
	Elf_Data word = {.d_size = 4, .d_type = ELF_T_WORD, .d_version = EV_CURRENT};
	size_t data_size, behind;
	uint32_t value;
	int err = read_link(file, ".gnu_debuglink", name, size, &data, &data_size, &behind);

	if (err)
		return err;
	behind = align_up(behind, sizeof(value));
	if (behind + sizeof(value) > data_size)
		return -EBADMSG;
	memcpy(&value, (char *)data + behind, sizeof(value));
	word.d_buf = &value;
	if (!elf32_xlatetom(&word, &word, file->encoding))
		return -EBADMSG;
	*crc = value;
	return 0;
}

int elf_file__alternate_link(struct elf_file *file, char *name, size_t size, uint8_t *id,
			     size_t id_size)
{
	_cleanup_free_ void *data = NULL;
	size_t data_size, behind;
	int err = read_link(file, ".gnu_debugaltlink", name, size, &data, &data_size, &behind);

	if (err)
		return err;
	if (behind == data_size)
		return -EBADMSG;
	if (data_size - behind > id_size)
		return -EFBIG;
	memcpy(id, (char *)data + behind, data_size - behind);
	return data_size - behind;
}
