/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/elf_frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "elf/elf_file.h"
#include "elf/elf_file_private.h"
#include "elf/elf_private.h"

#define TABLE_MAX    (UINT64_C(64) << 20)
#define HEADER_SIZE  12
#define ENTRY_SIZE   8
#define VERSION	     1
#define UDATA4	     0x03
#define TABLE_FORM   0x3b /* relative to the header, signed, 4 bytes */
#define FORM_SIZE    0x07
#define RELATIVE     0x10 /* to the field */
#define RECORD_BYTES 64	  /* of a CIE or an FDE, from its length on */

/* The bytes of one CIE or FDE up to RECORD_BYTES. */
struct record {
	unsigned char bytes[RECORD_BYTES];
	size_t size, at;
	bool bad;
};

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

static bool read_record(const struct elf_file *file, uint64_t address, struct record *r)
{
	ssize_t got = elf_file__read_at(file, address, r->bytes, sizeof(r->bytes));

	r->size = got > 0 ? got : 0;
	r->at = 0;
	r->bad = false;
	return got > 0;
}

static uint64_t take_fixed(struct record *r, size_t size)
{
	uint64_t value = 0;

	if (size > r->size - r->at) {
		r->bad = true;
		return 0;
	}
	memcpy(&value, r->bytes + r->at, size);
	r->at += size;
	return le64toh(value);
}

static uint64_t take_leb(struct record *r)
{
	uint64_t value = 0, byte;
	unsigned int shift = 0;

	do {
		byte = take_fixed(r, 1);
		if (shift < 64)
			value |= (byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && !r->bad);
	return value;
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
	struct record r;
	const char *letters;

	if (!read_record(file, cie, &r))
		return false;
	take_fixed(&r, 4); /* length */
	if (take_fixed(&r, 4) || take_fixed(&r, 1) != VERSION)
		return false;
	letters = (const char *)r.bytes + r.at;
	while (take_fixed(&r, 1) && !r.bad)
		;
	take_leb(&r);
	take_leb(&r);
	take_fixed(&r, 1); /* register */
	*encoding = 0;
	if (r.bad || *letters != 'z')
		return !r.bad && !*letters;
	take_leb(&r);
	while (*++letters && !r.bad) {
		if (*letters == 'R') {
			*encoding = take_fixed(&r, 1);
			return !r.bad;
		}
		if (*letters == 'P')
			take_fixed(&r, form_size(take_fixed(&r, 1)));
		else if (*letters == 'L')
			take_fixed(&r, 1);
		else if (*letters != 'S')
			return false;
	}
	return !r.bad;
}

/* The code's size, of the FDE at this address. 0: unknown, or its code begins elsewhere. */
static uint64_t fde_size(const struct elf_file *file, uint64_t fde, uint64_t start)
{
	uint64_t cie, begin, base, size;
	struct record r;
	uint8_t encoding;
	size_t width;

	if (!read_record(file, fde, &r))
		return 0;
	take_fixed(&r, 4); /* length */
	cie = fde + r.at;
	cie -= take_fixed(&r, 4);
	if (r.bad || !read_encoding(file, cie, &encoding))
		return 0;
	width = form_size(encoding);
	base = encoding & RELATIVE ? fde + r.at : 0;
	begin = take_fixed(&r, width);
	if (width == 4 && base)
		begin = (uint64_t)(int64_t)(int32_t)begin;
	size = take_fixed(&r, width);
	return r.bad || !width || begin + base != start ? 0 : size;
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
