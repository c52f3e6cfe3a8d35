/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the table, and the start of the text that it describes.
 *
 * The table has a section of its own, unless a linker other than Go's merged it with others or the
 * section headers are gone. Then the loaded segments are searched for its first eight bytes; a
 * candidate is accepted if its whole header is sane.
 *
 * Its addresses are relative to runtime.text. Up to Go 1.25 the table has a pointer to it,
 * relocated in a PIE; from 1.26 on it has none. moduledata has the address: a structure that begins
 * with a pointer to the table, repeats the places of its parts and the number of functions, and has
 * the text's bounds. It is found by that first pointer: in place, or in a PIE among the
 * relocations, whose addends then replace the words in place. It is accepted if its pointers into
 * the table agree with the table's header, and its bounds with the first and last function, as the
 * runtime requires too. Without it .text is used, if the entry point is then a function's start.
 *
 * The inline trees are relative to go:func.*, whose address is a word of moduledata too. Its place
 * changes between versions of Go with the same first word, so the words after it decide: the slice
 * of text sections, and from Go 1.26 on, where go:func.* follows the table, the end of both before
 * it. If no place agrees, the version is a newer one, and its inline trees are not read.
 *
 * Format: runtime/symtab.go of Go's sources, "type pcHeader" and "type moduledata".
 */
#include "elf/gopclntab_open.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "elf/elf_file_private.h"
#include "elf/elf_sections.h"
#include "elf/elf_symbols.h"
#include "elf/gopclntab_private.h"

#define MAX_FUNCTIONS (16u << 20)
#define MAX_TABLE     (256u << 20)
#define MAX_TRIES     8
#define SEARCH_CHUNK  (1u << 20)
#define MAX_READ      (UINT64_C(512) << 20) /* bytes read to find the table */
#define MAX_SECTIONS  4096		    /* of text; one is usual */

/* Magic, two zeroes, the sizes of the smallest instruction and of a pointer. */
#define FIRST_WORD_118 UINT64_C(0x08010000fffffff0)
#define FIRST_WORD_120 UINT64_C(0x08010000fffffff1)

/* Words of the table's header. */
enum {
	HEADER_FUNCTIONS = 1,
	HEADER_TEXT = 3, /* 0 from Go 1.26 on */
	HEADER_NAMES,
	HEADER_UNITS,
	HEADER_FILES,
	HEADER_VALUES,
	HEADER_RECORDS,
	HEADER_WORDS,
};

/* Words of moduledata. Slices are a pointer, a length and a capacity. */
enum {
	MODULE_TABLE = 0,
	MODULE_NAMES = 1,
	MODULE_UNITS = 4,
	MODULE_FILES = 7,
	MODULE_VALUES = 10,
	MODULE_RECORDS = 13,
	MODULE_FUNCTIONS = 16,
	MODULE_FIRST_PC = 20,
	MODULE_END_PC = 21,
	MODULE_TEXT = 22,
	MODULE_TEXT_END = 23,
	MODULE_GOFUNC_118 = 38,
	MODULE_GOFUNC_120 = 40,
	MODULE_GOFUNC_127 = 43,
	MODULE_WORDS = 48,
};

struct go_opening {
	struct elf_file *file;
	uint64_t address, offset, available; /* of its header; bytes from there on */
	uint64_t header[HEADER_WORDS];
	uint64_t module[MODULE_WORDS], module_address;
	unsigned int tries, module_tries;
	uint64_t read_budget, size_max;
	struct gopclntab *table; /* the result */
};

/* Called with an address that was found: nonzero ends the search and is returned. */
typedef int (*go_address_fn)(struct go_opening *o, uint64_t address);

/* A word to search for; bits of `without` are ignored. */
struct go_wanted {
	uint64_t word, without;
	uint32_t flags; /* segments that have any of these */
};

/* ---- reading --------------------------------------------------------------------------------- */

/* 0, -EBADMSG: cut short, -EIO. */
static int read_words(const struct elf_file *file, uint64_t offset, uint64_t *words, size_t count)
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

/* Bytes read, or negative errno. -EFBIG: the budget is spent. */
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

static int search(struct go_opening *o, const struct go_wanted *wanted, go_address_fn found)
{
	int err = 0;

	for (size_t i = 0; i < o->file->segments.count && !err; i++) {
		const Elf64_Phdr *segment = &o->file->segments.data[i];

		if (segment->p_type == PT_LOAD && segment->p_flags & wanted->flags)
			err = search_segment(o, segment, wanted, found);
	}
	return err;
}

/* Called with each relative relocation: nonzero ends the walk. */
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
	       slice[1] <= MAX_TABLE;
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

/* The addend replaces the word in the file. */
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

	if (o->module_tries++ == MAX_TRIES)
		return -EBADMSG;
	if (elf_file__offset_of_address(o->file, address, &offset) ||
	    read_words(o->file, offset, o->module, MODULE_WORDS))
		return 0;
	o->module_address = address;
	return each_relocation(o, relocate_module) ?: module_is_sane(o);
}

static int try_relocated_module(struct go_opening *o, const Elf64_Rela *relocation)
{
	return (uint64_t)relocation->r_addend == o->address ? try_module(o, relocation->r_offset)
							    : 0;
}

/* Sets o->module; needs o->address and o->header. 1; 0: there is none; -ENOMEM, -EIO, … */
static int find_module(struct go_opening *o)
{
	struct go_wanted wanted = {.word = o->address, .flags = PF_W};
	int found;

	o->module_tries = 0;
	found = each_relocation(o, try_relocated_module);
	if (!found)
		found = search(o, &wanted, try_module);
	return found == -EBADMSG ? 0 : found;
}

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

/* The slice of text sections. A plugin's has no address in the file, but a relocation by name. */
static bool is_section_slice(const struct go_opening *o, size_t word)
{
	const uint64_t *slice = &o->module[word];
	uint64_t offset;

	return slice[1] && slice[1] == slice[2] && slice[1] <= MAX_SECTIONS &&
	       (!slice[0] || !elf_file__offset_of_address(o->file, slice[0], &offset));
}

static bool is_behind_table(const struct go_opening *o, size_t word)
{
	const uint64_t *m = o->module;

	return m[word] >= m[MODULE_RECORDS] + m[MODULE_RECORDS + 1] && m[word] < m[word + 1];
}

/* The address of go:func.*, or 0. */
static uint64_t find_gofunc(const struct go_opening *o, bool go_120)
{
	static const struct {
		size_t word;
		bool go_120, behind_table;
	} forms[] = {
		{MODULE_GOFUNC_118, false, false},
		{MODULE_GOFUNC_120, true, false},
		{MODULE_GOFUNC_120, true, true}, /* Go 1.26 */
		{MODULE_GOFUNC_127, true, true},
	};
	uint64_t offset;

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		size_t word = forms[i].word, next = word + (forms[i].behind_table ? 2 : 1);

		if (forms[i].go_120 == go_120 && is_section_slice(o, next) &&
		    (!forms[i].behind_table || is_behind_table(o, word)) &&
		    !elf_file__offset_of_address(o->file, o->module[word], &offset))
			return o->module[word];
	}
	return 0;
}

static bool take_module(struct gopclntab *t, const struct go_opening *o)
{
	const uint64_t *m = o->module;
	uint64_t first = go_load32(t->functions.data);
	uint64_t end = go_load32(t->functions.data + t->count * 8);

	if (m[MODULE_FIRST_PC] - m[MODULE_TEXT] != first ||
	    m[MODULE_END_PC] - m[MODULE_TEXT] != end || !take_text(t, m[MODULE_TEXT]))
		return false;
	t->gofunc = find_gofunc(o, t->go_120);
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

/* The parts must be in order. */
static bool header_is_sane(const struct go_opening *o)
{
	const uint64_t *h = o->header;

	for (size_t i = HEADER_NAMES; i < HEADER_RECORDS; i++) {
		if (h[i] >= h[i + 1])
			return false;
	}
	return h[HEADER_NAMES] >= sizeof(o->header) && h[HEADER_RECORDS] < o->available &&
	       h[HEADER_FUNCTIONS];
}

static struct go_bytes part_of_table(const struct gopclntab *t, const struct go_opening *o,
				     size_t word)
{
	uint64_t start = o->header[word];
	uint64_t end = word == HEADER_RECORDS ? t->size : o->header[word + 1];

	return (struct go_bytes){.data = t->data + start, .size = end - start};
}

/* The index is complete, and functions do not overlap. */
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

/* The caller has checked that `size` bytes are in the file. */
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

/* Without moduledata the last part extends to the end of its section or segment. */
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
	err = read_words(o->file, offset, o->header, HEADER_WORDS);
	if (err)
		return err;
	if (!is_first_word(o->header[0]))
		return -ENOTSUP;
	if (!header_is_sane(o))
		return -EBADMSG;
	if (o->header[HEADER_FUNCTIONS] > MAX_FUNCTIONS)
		return -E2BIG;
	found = find_module(o);
	if (found < 0)
		return found;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->file = o->file;
	err = load_table(t, o, size_of_table(o, found)) ?: place_text(t, o, found);
	if (err) {
		gopclntab__free(t);
		return err;
	}
	o->table = t;
	return 0;
}

/* ---- finding it ------------------------------------------------------------------------------ */

/* A candidate by its first word. 1 if it is a table. */
static int try_table(struct go_opening *o, uint64_t address)
{
	uint64_t offset;
	int err;

	if (o->tries++ == MAX_TRIES)
		return -EFBIG;
	if (elf_file__offset_of_address(o->file, address, &offset))
		return 0;
	err = open_at(o, address, offset, elf_file__segment_end(o->file, offset) - offset);
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
	int found = search(o, &wanted, try_table);

	if (found < 0)
		return found;
	return found ? 0 : -ENOENT;
}

/* It has a section of Go's, or no readable section names. */
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
		.file = file, .read_budget = MAX_READ, .size_max = min_u64(size_max, MAX_TABLE)};
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
	return gopclntab__open_within(file, MAX_TABLE, table);
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
