/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any process can make us search a build-id by mapping a file, and may change the file's times and map it again a
 * thousand times a second. So the search has a budget of its own: reads of one page each, a number of segments and
 * sections that are looked at, and a number of notes in all of them together. Real files need one read or two:
 * linkers put headers and notes into the first page, and make one to three ranges of notes.
 *
 * Ranges are collected before notes are read, so that the one page in memory does not alternate between both.
 */
#include "elf/elf_build_id.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/io.h"
#include "base/minmax.h"

#define WINDOW_SIZE  4096
#define READS_MAX    16
#define SEGMENTS_MAX 256
#define SECTIONS_MAX 256
#define RANGES_MAX   16
#define NOTES_MAX    512 /* of all ranges */
#define NOTE_HEADER  12	 /* sizes of name and content, type */

struct build_id_reader {
	int fd;
	uint64_t base;
	bool is_64, is_big;
	unsigned int reads, notes; /* that are left */
	int error;		   /* the first error of reading */
	uint64_t start;		   /* of the window, in the ELF file */
	size_t size;
	uint8_t window[WINDOW_SIZE];
};

struct range {
	uint64_t offset, size, alignment;
};

struct ranges {
	size_t count;
	struct range data[RANGES_MAX];
};

/* `size` bytes at an offset, until the next call; NULL: they are not there, or enough was read. */
static const uint8_t *bytes_at(struct build_id_reader *r, uint64_t offset, size_t size)
{
	uint64_t at;
	ssize_t got;

	if (offset >= r->start && offset - r->start <= r->size &&
	    r->size - (offset - r->start) >= size)
		return r->window + (offset - r->start);
	if (!r->reads || __builtin_add_overflow(r->base, offset, &at) || at > INT64_MAX)
		return NULL;
	r->reads--;
	got = pread_full(r->fd, r->window, WINDOW_SIZE, at);
	if (got < 0 && !r->error)
		r->error = (int)got;
	r->start = offset;
	r->size = got < 0 ? 0 : got;
	return r->size >= size ? r->window : NULL;
}

static uint64_t load(const struct build_id_reader *r, const uint8_t *bytes, size_t size)
{
	uint64_t value = 0;

	for (size_t i = 0; i < size; i++)
		value = value << 8 | bytes[r->is_big ? i : size - 1 - i];
	return value;
}

/* A field of a record in the file's class. */
#define FIELD(r, bytes, record, field)                                                             \
	((r)->is_64 ? load(r, (bytes) + offsetof(Elf64_##record, field),                           \
			   sizeof(((Elf64_##record *)NULL)->field))                                \
		    : load(r, (bytes) + offsetof(Elf32_##record, field),                           \
			   sizeof(((Elf32_##record *)NULL)->field)))
#define SIZE_OF(r, record) ((r)->is_64 ? sizeof(Elf64_##record) : sizeof(Elf32_##record))

struct header {
	uint64_t segments, sections; /* offsets; 0: none */
	uint64_t segment_count, section_count, segment_size, section_size;
};

/* ---- what the headers say -------------------------------------------------------------------- */

static int read_ident(struct build_id_reader *r)
{
	const uint8_t *ident = bytes_at(r, 0, EI_NIDENT);

	if (r->error)
		return r->error;
	if (!ident || memcmp(ident, ELFMAG, SELFMAG))
		return -ENOEXEC;
	if ((ident[EI_CLASS] != ELFCLASS32 && ident[EI_CLASS] != ELFCLASS64) ||
	    (ident[EI_DATA] != ELFDATA2LSB && ident[EI_DATA] != ELFDATA2MSB))
		return -EBADMSG;
	r->is_64 = ident[EI_CLASS] == ELFCLASS64;
	r->is_big = ident[EI_DATA] == ELFDATA2MSB;
	return 0;
}

static int read_header(struct build_id_reader *r, struct header *h)
{
	int err = read_ident(r);
	const uint8_t *bytes = err ? NULL : bytes_at(r, 0, SIZE_OF(r, Ehdr));

	if (err)
		return err;
	if (!bytes)
		return -ENOEXEC;
	*h = (struct header){
		.segments = FIELD(r, bytes, Ehdr, e_phoff),
		.sections = FIELD(r, bytes, Ehdr, e_shoff),
		.segment_count = FIELD(r, bytes, Ehdr, e_phnum),
		.section_count = FIELD(r, bytes, Ehdr, e_shnum),
		.segment_size = FIELD(r, bytes, Ehdr, e_phentsize),
		.section_size = FIELD(r, bytes, Ehdr, e_shentsize),
	};
	return 0;
}

/* Section number `i`, or NULL. */
static const uint8_t *section_at(struct build_id_reader *r, const struct header *h, uint64_t i)
{
	uint64_t size = SIZE_OF(r, Shdr), offset;

	if (!h->sections || h->section_size != size ||
	    __builtin_add_overflow(h->sections, i * size, &offset))
		return NULL;
	return bytes_at(r, offset, size);
}

/* Section 0 holds the numbers that were too large for the ELF header. */
static void take_large_numbers(struct build_id_reader *r, struct header *h)
{
	const uint8_t *first = h->segment_count == PN_XNUM || !h->section_count
				       ? section_at(r, h, 0)
				       : NULL;

	if (first && h->segment_count == PN_XNUM)
		h->segment_count = FIELD(r, first, Shdr, sh_info);
	if (first && !h->section_count)
		h->section_count = FIELD(r, first, Shdr, sh_size);
}

static void add_range(struct ranges *ranges, struct range range)
{
	if (ranges->count < RANGES_MAX && range.size)
		ranges->data[ranges->count++] = range;
}

/* How many segments can be read. */
static size_t note_segments(struct build_id_reader *r, const struct header *h,
			    struct ranges *ranges)
{
	uint64_t size = SIZE_OF(r, Phdr), count = min_u64(h->segment_count, SEGMENTS_MAX), offset;
	size_t i;

	if (!h->segments || h->segment_size != size)
		return 0;
	for (i = 0; i < count; i++) {
		const uint8_t *s = __builtin_add_overflow(h->segments, i * size, &offset)
					   ? NULL
					   : bytes_at(r, offset, size);

		if (!s)
			break;
		if (FIELD(r, s, Phdr, p_type) == PT_NOTE)
			add_range(ranges, (struct range){FIELD(r, s, Phdr, p_offset),
							 FIELD(r, s, Phdr, p_filesz),
							 FIELD(r, s, Phdr, p_align)});
	}
	return i;
}

static void note_sections(struct build_id_reader *r, const struct header *h, struct ranges *ranges)
{
	uint64_t count = min_u64(h->section_count, SECTIONS_MAX);

	for (uint64_t i = 0; i < count; i++) {
		const uint8_t *s = section_at(r, h, i);

		if (!s)
			break;
		if (FIELD(r, s, Shdr, sh_type) == SHT_NOTE &&
		    !(FIELD(r, s, Shdr, sh_flags) & SHF_COMPRESSED))
			add_range(ranges, (struct range){FIELD(r, s, Shdr, sh_offset),
							 FIELD(r, s, Shdr, sh_size),
							 FIELD(r, s, Shdr, sh_addralign)});
	}
}

/* ---- notes ----------------------------------------------------------------------------------- */

static bool is_gnu(struct build_id_reader *r, uint64_t offset)
{
	const uint8_t *name = bytes_at(r, offset, sizeof("GNU"));

	return name && !memcmp(name, "GNU", sizeof("GNU"));
}

/* The build-id's size, or 0: there is none in the range. */
static size_t find_in_range(struct build_id_reader *r, const struct range *range, uint8_t *id,
			    size_t size)
{
	uint64_t alignment = range->alignment == 8 ? 8 : 4, at = 0;

	while (at + NOTE_HEADER <= range->size && at < INT64_MAX && r->notes) {
		const uint8_t *note = bytes_at(r, range->offset + at, NOTE_HEADER);
		uint64_t name = at + NOTE_HEADER, name_size, content, content_size, type;

		r->notes--;
		if (!note)
			return 0;
		name_size = load(r, note, 4);
		content_size = load(r, note + 4, 4);
		type = load(r, note + 8, 4);
		content = align_up(name + name_size, alignment);
		if (content + content_size > range->size)
			return 0;
		if (type == NT_GNU_BUILD_ID && content_size && name_size == sizeof("GNU") &&
		    is_gnu(r, range->offset + name)) {
			size = min_u64(size, content_size);
			note = bytes_at(r, range->offset + content, size);
			if (!note)
				return 0;
			memcpy(id, note, size);
			return size;
		}
		at = align_up(content + content_size, alignment);
	}
	return 0;
}

static size_t find_in_ranges(struct build_id_reader *r, const struct ranges *ranges, uint8_t *id,
			     size_t size)
{
	size_t found = 0;

	for (size_t i = 0; i < ranges->count && !found; i++)
		found = find_in_range(r, &ranges->data[i], id, size);
	return found;
}

/* A file without both of the tables that its header promises is rejected. */
static bool is_useful(struct build_id_reader *r, const struct header *h, size_t segments)
{
	return segments || (!h->segment_count && !h->sections) || section_at(r, h, 0);
}

int elf_read_build_id(int fd, uint64_t base, uint8_t *id, size_t size)
{
	struct build_id_reader r = {.fd = fd, .base = base, .reads = READS_MAX, .notes = NOTES_MAX};
	struct ranges segments = {}, sections = {};
	struct header h;
	size_t count, found;
	int err = read_header(&r, &h);

	if (err)
		return err;
	size = min_u64(size, WINDOW_SIZE);
	take_large_numbers(&r, &h);
	count = note_segments(&r, &h, &segments);
	if (!is_useful(&r, &h, count))
		return -EBADMSG;
	found = find_in_ranges(&r, &segments, id, size);
	if (found)
		return (int)found;
	note_sections(&r, &h, &sections);
	found = find_in_ranges(&r, &sections, id, size);
	return found ? (int)found : -ENOENT;
}
