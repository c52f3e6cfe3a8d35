/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/elf_frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/minmax.h"
#include "elf/elf_file.h"
#include "elf/elf_file_private.h"

#define TABLE_MAX    (UINT64_C(64) << 20)
#define HEADER_SIZE  12
#define ENTRY_SIZE   8
#define VERSION	     1
#define UDATA4	     0x03
#define TABLE_FORM   0x3b /* relative to the header, signed, 4 bytes */
#define FORM_SIZE    0x07
#define RELATIVE     0x10 /* to the field */
#define RECORD_BYTES 64	  /* of a CIE or an FDE, from its length on */

static int32_t table_word(const unsigned char *at)
{
	uint32_t word;

	memcpy(&word, at, sizeof(word));
	return (int32_t)le32toh(word);
}

/* Leaves the table empty if there is none in the usual form. */
static void load_table(struct elf_file *file)
{
	struct elf_frames *f = &file->frames;
	const Elf64_Phdr *segment = NULL;
	unsigned char *data;
	uint64_t size;

	f->tried = true;
	for (size_t i = 0; i < file->segments.count && !segment; i++)
		if (file->segments.data[i].p_type == PT_GNU_EH_FRAME)
			segment = &file->segments.data[i];
	if (!segment || !elf_file__is_x86_64(file))
		return;
	size = elf_file__available(file, segment->p_offset, segment->p_filesz);
	file->left |= size > TABLE_MAX;
	size = min_u64(size, TABLE_MAX);
	data = size >= HEADER_SIZE ? malloc(size) : NULL;
	if (!data)
		return;
	f->data = data;
	if (elf_file__read(file, data, size, segment->p_offset) != (ssize_t)size ||
	    data[0] != VERSION || (data[1] & FORM_SIZE) != UDATA4 || data[2] != UDATA4 ||
	    data[3] != TABLE_FORM)
		return;
	f->address = segment->p_vaddr;
	f->count = min_u64((uint32_t)table_word(data + 8), (size - HEADER_SIZE) / ENTRY_SIZE);
}

static uint64_t entry_word(const struct elf_frames *f, size_t number, size_t word)
{
	const unsigned char *entry = f->data + HEADER_SIZE + number * ENTRY_SIZE;

	return f->address + (uint64_t)(int64_t)table_word(entry + word);
}

/* How many FDEs begin at or before the address. */
static size_t count_up_to(const struct elf_frames *f, uint64_t address)
{
	size_t low = 0, high = f->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (entry_word(f, middle, 0) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* One CIE or FDE, up to RECORD_BYTES, which is little-endian. False: it cannot be read. */
static bool read_record(const struct elf_file *file, uint64_t address, uint8_t bytes[RECORD_BYTES],
			struct cursor *c)
{
	ssize_t got = elf_file__read_at(file, address, bytes, RECORD_BYTES);

	if (got <= 0)
		return false;
	*c = (struct cursor){.at = bytes, .end = bytes + got};
	cursor__skip(c, 4); /* length */
	return true;
}

/* Of a pointer; 0: it has no fixed size. */
static size_t form_size(uint8_t encoding)
{
	static const uint8_t SIZES[] = {8, 0, 2, 4, 8};

	return (encoding & FORM_SIZE) < sizeof(SIZES) ? SIZES[encoding & FORM_SIZE] : 0;
}

/* The encoding of a CIE's pointers to code. False: unknown. */
static bool read_encoding(const struct elf_file *file, uint64_t cie, uint8_t *encoding)
{
	uint8_t bytes[RECORD_BYTES];
	const char *letters;
	struct cursor c;

	if (!read_record(file, cie, bytes, &c) || cursor__u32(&c) || cursor__u8(&c) != VERSION)
		return false;
	letters = cursor__string(&c);
	cursor__uleb(&c);
	cursor__uleb(&c);
	cursor__u8(&c); /* register */
	*encoding = 0;
	if (c.bad || *letters != 'z')
		return !c.bad && !*letters;
	cursor__uleb(&c);
	while (*++letters && !c.bad) {
		if (*letters == 'R') {
			*encoding = cursor__u8(&c);
			return !c.bad;
		}
		if (*letters == 'P')
			cursor__skip(&c, form_size(cursor__u8(&c)));
		else if (*letters == 'L')
			cursor__u8(&c);
		else if (*letters != 'S')
			return false;
	}
	return !c.bad;
}

/* The code's size, of the FDE at this address. 0: unknown, or its code begins elsewhere. */
static uint64_t fde_size(const struct elf_file *file, uint64_t fde, uint64_t start)
{
	uint8_t bytes[RECORD_BYTES], encoding;
	uint64_t begin, base, size;
	struct cursor c;
	size_t width;

	if (!read_record(file, fde, bytes, &c) ||
	    !read_encoding(file, fde + 4 - cursor__u32(&c), &encoding) || c.bad)
		return 0;
	width = form_size(encoding);
	base = encoding & RELATIVE ? fde + 8 : 0;
	begin = cursor__fixed(&c, width);
	if (width == 4 && base)
		begin = (uint64_t)(int64_t)(int32_t)begin;
	size = cursor__fixed(&c, width);
	return c.bad || !width || begin + base != start ? 0 : size;
}

bool elf_file__find_frame(struct elf_file *file, uint64_t address, struct elf_frame *frame)
{
	struct elf_frames *f = &file->frames;
	size_t behind;

	if (!f->tried)
		load_table(file);
	behind = count_up_to(f, address);
	frame->next = behind < f->count ? entry_word(f, behind, 0) : UINT64_MAX;
	if (!behind)
		return false;
	frame->start = entry_word(f, behind - 1, 0);
	frame->end = frame->start + fde_size(file, entry_word(f, behind - 1, 4), frame->start);
	frame->end = min_u64(frame->end, frame->next);
	return address < frame->end;
}
