/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The moduledata of a Go program: a structure that begins with a pointer to the table, repeats where the table's
 * parts are and how many functions there are, and has the bounds of the text.
 *
 * It is found by that pointer: in place, or in a PIE among the relocations, whose addends then stand for what is in
 * place. It is accepted if all of its pointers into the table agree with the table's header.
 *
 * The form: runtime/symtab.go of Go's sources, "type moduledata".
 */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "elf/gopclntab_private.h"

#define SEARCH_CHUNK (1u << 20)

/* ---- reading --------------------------------------------------------------------------------- */

int go_read_words(const struct elf_file *file, uint64_t offset, uint64_t *words, size_t count)
{
	ssize_t got = elf_file__read(file, words, count * sizeof(*words), offset);

	if (got < 0)
		return got;
	if ((size_t)got < count * sizeof(*words))
		return -EBADMSG;
	for (size_t i = 0; i < count; i++)
		words[i] = le64toh(words[i]);
	return 0;
}

/* Read a piece of what is searched: how many bytes, or negative errno. -EFBIG: too much already. */
static ssize_t read_piece(struct go_opening *o, void *data, size_t size, uint64_t offset)
{
	if (size > o->read_budget)
		return -EFBIG;
	o->read_budget -= size;
	return elf_file__read(o->file, data, size, offset);
}

static int search_segment(struct go_opening *o, const Elf64_Phdr *segment,
			  const struct go_wanted *wanted, go_address_fn found)
{
	_cleanup_free_ unsigned char *data = malloc(SEARCH_CHUNK);
	uint64_t size = elf_file__available(o->file, segment->p_offset, segment->p_filesz);
	int err = 0;

	if (!data)
		return -ENOMEM;
	for (uint64_t at = -segment->p_vaddr & 7; at < size; at += SEARCH_CHUNK) {
		uint64_t left = min_u64(size - at, SEARCH_CHUNK);
		ssize_t got = read_piece(o, data, left, segment->p_offset + at);

		if (got < 0)
			return got;
		for (size_t i = 0; i + sizeof(uint64_t) <= (size_t)got && !err; i += 8) {
			if (!((go_load64(data + i) ^ wanted->word) & ~wanted->without))
				err = found(o, segment->p_vaddr + at + i);
		}
		if (err)
			return err;
	}
	return 0;
}

int go_search(struct go_opening *o, const struct go_wanted *wanted, go_address_fn found)
{
	int err = 0;

	for (size_t i = 0; i < o->file->segments.count && !err; i++) {
		const Elf64_Phdr *segment = &o->file->segments.data[i];

		if (segment->p_type == PT_LOAD && segment->p_flags & wanted->flags)
			err = search_segment(o, segment, wanted, found);
	}
	return err;
}

/* A relocation that puts an address of the file itself somewhere: nonzero ends the walk. */
typedef int (*relocation_fn)(struct go_opening *o, const Elf64_Rela *relocation);

static int find_relocations(const struct elf_file *file, uint64_t *offset, uint64_t *count)
{
	struct elf_dynamic d = {};
	int err = elf_file__dynamic(file, &d);

	if (err)
		return err;
	if (!d.relocations_size || elf_file__offset_of_address(file, d.relocations, offset))
		return -ENODATA;
	*count = elf_file__available(file, *offset, d.relocations_size) / sizeof(Elf64_Rela);
	return 0;
}

static int each_relocation(struct go_opening *o, relocation_fn visit)
{
	Elf64_Rela relocations[2048];
	uint64_t offset, count = 0;
	int err = find_relocations(o->file, &offset, &count);

	if (err)
		return err == -ENODATA ? 0 : err;
	for (uint64_t done = 0; done < count;) {
		size_t at_once = sizeof(relocations) / sizeof(*relocations);
		ssize_t got;

		if (count - done < at_once)
			at_once = count - done;
		got = read_piece(o, relocations, at_once * sizeof(*relocations),
				 offset + done * sizeof(*relocations));
		if (got < 0)
			return got;
		for (size_t i = 0; i < got / sizeof(*relocations); i++) {
			if (ELF64_R_TYPE(relocations[i].r_info) != R_X86_64_RELATIVE)
				continue;
			err = visit(o, &relocations[i]);
			if (err)
				return err;
		}
		done += at_once;
	}
	return 0;
}

/* ---- moduledata ------------------------------------------------------------------------------ */

static bool is_slice(const struct go_opening *o, size_t word, size_t header_word)
{
	const uint64_t *slice = &o->module[word];

	return slice[0] == o->address + o->header[header_word] && slice[1] == slice[2] &&
	       slice[1] <= GO_MAX_TABLE;
}

static bool module_is_sane(const struct go_opening *o)
{
	const uint64_t *m = o->module;

	return m[MODULE_TABLE] == o->address && is_slice(o, MODULE_NAMES, HEADER_NAMES) &&
	       is_slice(o, MODULE_UNITS, HEADER_UNITS) && is_slice(o, MODULE_FILES, HEADER_FILES) &&
	       is_slice(o, MODULE_VALUES, HEADER_VALUES) &&
	       is_slice(o, MODULE_RECORDS, HEADER_RECORDS) &&
	       is_slice(o, MODULE_FUNCTIONS, HEADER_RECORDS) &&
	       m[MODULE_FUNCTIONS + 1] == o->header[HEADER_FUNCTIONS] + 1 &&
	       m[MODULE_TEXT] <= m[MODULE_FIRST_PC] && m[MODULE_FIRST_PC] < m[MODULE_END_PC] &&
	       m[MODULE_END_PC] <= m[MODULE_TEXT_END];
}

/* The addend takes the place of what the file has there. */
static int relocate_module(struct go_opening *o, const Elf64_Rela *relocation)
{
	uint64_t distance = relocation->r_offset - o->module_address;

	if (distance < sizeof(o->module) && distance % sizeof(*o->module) == 0)
		o->module[distance / sizeof(*o->module)] = relocation->r_addend;
	return 0;
}

/* 1 if moduledata is at this address. */
static int try_module(struct go_opening *o, uint64_t address)
{
	uint64_t offset;
	int err;

	if (o->module_tries++ == GO_MAX_TRIES)
		return -EBADMSG;
	if (elf_file__offset_of_address(o->file, address, &offset) ||
	    go_read_words(o->file, offset, o->module, MODULE_WORDS))
		return 0;
	o->module_address = address;
	err = each_relocation(o, relocate_module);
	return err ? err : module_is_sane(o);
}

static int try_relocated_module(struct go_opening *o, const Elf64_Rela *relocation)
{
	return (uint64_t)relocation->r_addend == o->address ? try_module(o, relocation->r_offset)
							    : 0;
}

int go_find_module(struct go_opening *o)
{
	struct go_wanted wanted = {.word = o->address, .flags = PF_W};
	int found;

	o->module_tries = 0;
	found = each_relocation(o, try_relocated_module);
	if (!found)
		found = go_search(o, &wanted, try_module);
	return found == -EBADMSG ? 0 : found;
}
