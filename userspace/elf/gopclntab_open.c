/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the table, and the start of the text that it describes.
 *
 * The table has a section of its own, unless a linker other than Go's has merged that with others or the section
 * headers are gone. Then the loaded segments are searched for its first eight bytes; a candidate is accepted only if
 * all of its header is sane.
 *
 * Its addresses are relative to runtime.text, whose address is not reliably in the table: until Go 1.25 it has a
 * pointer, which is relocated in a PIE, and from 1.26 on none. The program's moduledata has it: a structure that
 * begins with a pointer to the table, repeats where its parts are and how many functions there are, and has the
 * text's bounds. It is found by that pointer, in place or among the relocations. The runtime refuses to start if its
 * bounds are not those of the table's first and last function, so this is checked here too. Without such a structure
 * .text is used, if the program starts at one of the functions that result.
 *
 * The form: runtime/symtab.go of Go's sources, "type pcHeader" and "type moduledata".
 */
#include "elf/gopclntab.h"

#include <errno.h>
#include <stdlib.h>

#include "base/minmax.h"
#include "elf/gopclntab_private.h"

#define MAX_FUNCTIONS (16u << 20)
#define MAX_READ      (UINT64_C(512) << 20) /* bytes of the file, until the table is found */

/* magic, two zeroes, the size of the smallest instruction, that of a pointer */
#define FIRST_WORD_118 UINT64_C(0x08010000fffffff0)
#define FIRST_WORD_120 UINT64_C(0x08010000fffffff1)

/* ---- text ------------------------------------------------------------------------------------ */

static bool is_code(const struct elf_file *file, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < file->segments.count; i++) {
		const Elf64_Phdr *s = &file->segments.data[i];

		if (s->p_type == PT_LOAD && s->p_flags & PF_X && start >= s->p_vaddr &&
		    start < end && end - s->p_vaddr <= s->p_filesz)
			return true;
	}
	return false;
}

static bool take_text(struct gopclntab *t, uint64_t text)
{
	uint32_t end = go_load32(t->functions.data + t->count * 8);

	if (text > UINT64_MAX - end || !is_code(t->file, text, text + end))
		return false;
	t->text = text;
	return true;
}

static bool take_module(struct gopclntab *t, const struct go_opening *o)
{
	const uint64_t *m = o->module;
	uint64_t first = go_load32(t->functions.data);
	uint64_t end = go_load32(t->functions.data + t->count * 8), offset;

	if (m[MODULE_FIRST_PC] - m[MODULE_TEXT] != first ||
	    m[MODULE_END_PC] - m[MODULE_TEXT] != end || !take_text(t, m[MODULE_TEXT]))
		return false;
	t->gofunc = m[t->go_120 ? MODULE_GOFUNC_120 : MODULE_GOFUNC_118];
	if (elf_file__offset_of_address(t->file, t->gofunc, &offset))
		t->gofunc = 0;
	return true;
}

static bool begins_at_function(const struct gopclntab *t)
{
	struct go_function function;
	size_t number;

	return !gopclntab__find(t, t->file->header.e_entry, &number) &&
	       !gopclntab__function(t, number, &function) &&
	       function.start == t->file->header.e_entry;
}

static int place_text(struct gopclntab *t, const struct go_opening *o, bool has_module)
{
	struct elf_section text;

	if (has_module && take_module(t, o))
		return 0;
	if (o->header[HEADER_TEXT] && take_text(t, o->header[HEADER_TEXT]))
		return 0;
	if (!elf_file__find_section(t->file, ".text", &text) && take_text(t, text.address) &&
	    begins_at_function(t))
		return 0;
	return -EBADMSG;
}

/* ---- the table ------------------------------------------------------------------------------- */

static bool is_first_word(uint64_t word)
{
	return word == FIRST_WORD_118 || word == FIRST_WORD_120;
}

/* The parts lie one behind the other. */
static bool header_is_sane(const struct go_opening *o)
{
	const uint64_t *h = o->header;

	for (size_t i = HEADER_NAMES; i < HEADER_RECORDS; i++) {
		if (h[i] >= h[i + 1])
			return false;
	}
	return h[HEADER_NAMES] >= sizeof(o->header) && h[HEADER_RECORDS] < o->available &&
	       h[HEADER_FUNCTIONS] && h[HEADER_FUNCTIONS] <= MAX_FUNCTIONS;
}

static struct go_bytes part_of_table(const struct gopclntab *t, const struct go_opening *o,
				     size_t word)
{
	uint64_t start = o->header[word];
	uint64_t end = word == HEADER_RECORDS ? t->size : o->header[word + 1];

	return (struct go_bytes){.data = t->data + start, .size = end - start};
}

/* All that the header promises is there, and functions do not overlap. */
static bool functions_are_sane(const struct gopclntab *t)
{
	if (t->functions.size / 8 <= t->count)
		return false;
	for (size_t i = 0; i < t->count; i++) {
		if (go_load32(t->functions.data + i * 8) > go_load32(t->functions.data + i * 8 + 8))
			return false;
	}
	return true;
}

/* `size` bytes of the table, all of which the caller has found to be in the file. */
static int load_table(struct gopclntab *t, struct go_opening *o, uint64_t size)
{
	ssize_t got;

	if (size > o->size_max)
		return -E2BIG;
	if (size > o->read_budget)
		return -EFBIG;
	o->read_budget -= size;
	t->data = malloc(size);
	if (!t->data)
		return -ENOMEM;
	got = elf_file__read(t->file, t->data, size, o->offset);
	if (got < 0)
		return got;
	if ((uint64_t)got <= o->header[HEADER_RECORDS])
		return -EBADMSG;
	t->size = got;
	t->go_120 = o->header[0] == FIRST_WORD_120;
	t->count = o->header[HEADER_FUNCTIONS];
	t->names = part_of_table(t, o, HEADER_NAMES);
	t->units = part_of_table(t, o, HEADER_UNITS);
	t->files = part_of_table(t, o, HEADER_FILES);
	t->values = part_of_table(t, o, HEADER_VALUES);
	t->functions = part_of_table(t, o, HEADER_RECORDS);
	return functions_are_sane(t) ? 0 : -EBADMSG;
}

/* Without moduledata the last part reaches as far as what it is in. */
static uint64_t size_of_table(const struct go_opening *o, bool has_module)
{
	uint64_t records = o->header[HEADER_RECORDS], size = o->available;

	if (has_module && o->module[MODULE_RECORDS + 1] < size - records)
		size = records + o->module[MODULE_RECORDS + 1];
	return size;
}

static int open_at(struct go_opening *o, uint64_t address, uint64_t offset, uint64_t available)
{
	struct gopclntab *t;
	int found, err;

	o->address = address;
	o->offset = offset;
	o->available = elf_file__available(o->file, offset, available);
	err = go_read_words(o->file, offset, o->header, HEADER_WORDS);
	if (err)
		return err;
	if (!is_first_word(o->header[0]))
		return -ENOTSUP;
	if (!header_is_sane(o))
		return -EBADMSG;
	found = go_find_module(o);
	if (found < 0)
		return found;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->file = o->file;
	err = load_table(t, o, size_of_table(o, found));
	if (!err)
		err = place_text(t, o, found);
	if (err) {
		gopclntab__free(t);
		return err;
	}
	o->table = t;
	return 0;
}

/* ---- finding it ------------------------------------------------------------------------------ */

/* Bytes of the file from an address on, up to the end of its segment. */
static uint64_t bytes_from(const struct elf_file *file, uint64_t address)
{
	for (size_t i = 0; i < file->segments.count; i++) {
		const Elf64_Phdr *s = &file->segments.data[i];

		if (s->p_type == PT_LOAD && address >= s->p_vaddr &&
		    address - s->p_vaddr < s->p_filesz)
			return s->p_filesz - (address - s->p_vaddr);
	}
	return 0;
}

/* Something that begins like a table. 1 if it is one. */
static int try_table(struct go_opening *o, uint64_t address)
{
	uint64_t offset;
	int err;

	if (o->tries++ == GO_MAX_TRIES)
		return -EBADMSG;
	if (elf_file__offset_of_address(o->file, address, &offset))
		return 0;
	err = open_at(o, address, offset, bytes_from(o->file, address));
	if (!err)
		return 1;
	return err == -ENOMEM || err == -EIO || err == -EFBIG || err == -E2BIG ? err : 0;
}

static int search_table(struct go_opening *o)
{
	struct go_wanted wanted = {
		.word = FIRST_WORD_118,
		.without = FIRST_WORD_118 ^ FIRST_WORD_120,
		.flags = PF_R | PF_W | PF_X,
	};
	int found = go_search(o, &wanted, try_table);

	if (found < 0)
		return found;
	return found ? 0 : -ENOENT;
}

/* Has it any of these sections, or no readable section names? */
static bool may_be_go(struct elf_file *file)
{
	static const char *const names[] = {".go.buildinfo", ".note.go.buildid"};
	struct elf_section section;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (elf_file__find_section(file, names[i], &section) != -ENOENT)
			return true;
	}
	return !file->sections.count;
}

static int find_table(struct go_opening *o)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab"};
	struct elf_section section;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!elf_file__find_section(o->file, names[i], &section))
			return section.type == SHT_NOBITS
				       ? -ENOENT
				       : open_at(o, section.address, section.offset, section.size);
	}
	return may_be_go(o->file) ? search_table(o) : -ENOENT;
}

int gopclntab__open_within(struct elf_file *file, uint64_t size_max, struct gopclntab **table)
{
	struct go_opening o = {
		.file = file, .read_budget = MAX_READ, .size_max = min_u64(size_max, GO_MAX_TABLE)};
	int err;

	if (!elf_file__is_x86_64(file))
		return -ENOTSUP;
	err = find_table(&o);
	if (err)
		return err;
	*table = o.table;
	return 0;
}

int gopclntab__open(struct elf_file *file, struct gopclntab **table)
{
	return gopclntab__open_within(file, GO_MAX_TABLE, table);
}

size_t gopclntab__size(const struct gopclntab *t)
{
	return t->size;
}

void gopclntab__free(struct gopclntab *t)
{
	if (!t)
		return;
	free(t->data);
	free(t);
}
