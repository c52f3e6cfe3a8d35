/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any process can cause a search by mapping a file, and can repeat it a thousand times a second by
 * changing the file's times. So the search has limits of its own on reads (of one page each),
 * segments, sections and notes. Real files need one or two reads: linkers put headers and notes
 * into the first page, and make one to three ranges of notes.
 *
 * Ranges are collected before notes are read: both would compete for the one page in memory.
 */
#include "elf/elf_build_id.h"

#include <errno.h>
#include <string.h>

#include "base/minmax.h"
#include "elf/elf_file_private.h"

#define READS_MAX    16
#define SEGMENTS_MAX 256
#define SECTIONS_MAX 256
#define RANGES_MAX   16
#define NOTES_MAX    512 /* of all ranges */

struct range {
	uint64_t offset, size, alignment;
};

struct ranges {
	size_t count;
	bool left; /* more than these */
	struct range data[RANGES_MAX];
};

static void add_range(struct ranges *ranges, struct range range)
{
	if (!range.size)
		return;
	if (ranges->count < RANGES_MAX)
		ranges->data[ranges->count++] = range;
	else
		ranges->left = true;
}

static bool read_record(const struct elf_file *file, uint64_t table, uint64_t i, Elf_Type type,
			void *record)
{
	uint64_t offset;

	return !__builtin_add_overflow(table, i * elf_file__record_size(file, type), &offset) &&
	       elf_file__read_records(file, offset, type, record, 1) == 1;
}

/* How many segments were read. */
static size_t note_segments(const struct elf_file *file, uint64_t count, struct ranges *ranges)
{
	const Elf64_Ehdr *h = &file->header;
	Elf64_Phdr s;
	size_t i;

	if (!h->e_phoff || h->e_phentsize != elf_file__record_size(file, ELF_T_PHDR))
		return 0;
	for (i = 0; i < min_u64(count, SEGMENTS_MAX); i++) {
		if (!read_record(file, h->e_phoff, i, ELF_T_PHDR, &s))
			break;
		if (s.p_type == PT_NOTE)
			add_range(ranges, (struct range){s.p_offset, s.p_filesz, s.p_align});
	}
	ranges->left |= i == SEGMENTS_MAX && count > i;
	return i;
}

static void note_sections(const struct elf_file *file, uint64_t count, struct ranges *ranges)
{
	Elf64_Shdr s;

	ranges->left |= count > SECTIONS_MAX;
	for (uint64_t i = 0; i < min_u64(count, SECTIONS_MAX); i++) {
		if (!read_record(file, file->header.e_shoff, i, ELF_T_SHDR, &s))
			break;
		if (s.sh_type == SHT_NOTE && !(s.sh_flags & SHF_COMPRESSED))
			add_range(ranges, (struct range){s.sh_offset, s.sh_size, s.sh_addralign});
	}
}

static bool is_gnu(const struct elf_file *file, uint64_t offset)
{
	char name[sizeof("GNU")];

	return elf_file__read(file, name, sizeof(name), offset) == sizeof(name) &&
	       !memcmp(name, "GNU", sizeof(name));
}

/* The build-id's size; 0: not in the range. */
static size_t find_in_range(const struct elf_file *file, const struct range *range,
			    unsigned int *notes, uint8_t *id, size_t size)
{
	uint64_t alignment = range->alignment == 8 ? 8 : 4, at = 0;
	uint32_t note[3]; /* sizes of name and content, type */

	while (at + sizeof(note) <= range->size && at < INT64_MAX && *notes) {
		uint64_t name = at + sizeof(note), content;

		(*notes)--;
		if (elf_file__read_records(file, range->offset + at, ELF_T_WORD, note, 3) != 3)
			return 0;
		content = align_up(name + note[0], alignment);
		if (content + note[1] > range->size)
			return 0;
		if (note[2] == NT_GNU_BUILD_ID && note[1] && note[0] == sizeof("GNU") &&
		    is_gnu(file, range->offset + name)) {
			size = min_u64(size, note[1]);
			return elf_file__read(file, id, size, range->offset + content) ==
					       (ssize_t)size
				       ? size
				       : 0;
		}
		at = align_up(content + note[1], alignment);
	}
	return 0;
}

static size_t find_in_ranges(const struct elf_file *file, const struct ranges *ranges,
			     unsigned int *notes, uint8_t *id, size_t size)
{
	size_t found = 0;

	for (size_t i = 0; i < ranges->count && !found; i++)
		found = find_in_range(file, &ranges->data[i], notes, id, size);
	return found;
}

int elf_read_build_id(int fd, uint64_t base, uint8_t *id, size_t size)
{
	struct elf_window window = {.reads = READS_MAX};
	struct elf_file file = {.fd = fd, .base = base, .size = UINT64_MAX, .window = &window};
	struct ranges segments = {}, sections = {};
	unsigned int notes = NOTES_MAX;
	Elf64_Shdr first = {};
	bool has_sections;
	size_t found;
	int err = elf_file__read_header(&file);

	if (err)
		return err;
	size = min_u64(size, sizeof(window.bytes));
	if (file.header.e_phnum == PN_XNUM || !file.header.e_shnum)
		(void)elf_file__read_first_section(&file, &first);
	found = note_segments(&file,
			      file.header.e_phnum == PN_XNUM ? first.sh_info : file.header.e_phnum,
			      &segments);
	if (!elf_file__is_useful(&file, found))
		return -EBADMSG;
	found = find_in_ranges(&file, &segments, &notes, id, size);
	if (found)
		return (int)found;
	has_sections = file.header.e_shoff &&
		       file.header.e_shentsize == elf_file__record_size(&file, ELF_T_SHDR);
	if (has_sections)
		note_sections(&file, file.header.e_shnum ? file.header.e_shnum : first.sh_size,
			      &sections);
	found = find_in_ranges(&file, &sections, &notes, id, size);
	if (found)
		return (int)found;
	return segments.left || sections.left || !notes || !window.reads ? -EFBIG : -ENOENT;
}
