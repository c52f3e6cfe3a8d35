/* SPDX-License-Identifier: BSD-2-Clause */
/* A table that is being opened: values of its header and of the program's moduledata. */
#ifndef ELF_GOPCLNTAB_OPENING_H
#define ELF_GOPCLNTAB_OPENING_H

#include "elf/elf_private.h"
#include "elf/gopclntab_private.h"

#define GO_MAX_TABLE (256u << 20)
#define GO_MAX_TRIES 8

/* Words of the table's header. */
enum {
	HEADER_FUNCTIONS = 1,
	HEADER_TEXT = 3, /* nothing from Go 1.26 on */
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
	MODULE_WORDS,
};

/* A table that is being opened. */
struct go_opening {
	struct elf_file *file;
	uint64_t address, offset, available; /* of its header; bytes from there on */
	uint64_t header[HEADER_WORDS];
	uint64_t module[MODULE_WORDS], module_address;
	unsigned int tries, module_tries;
	uint64_t read_budget, size_max;
	struct gopclntab *table; /* when it could be opened */
};

/* An address where something was found: nonzero ends the search and is returned. */
typedef int (*go_address_fn)(struct go_opening *o, uint64_t address);

/* A word to search for, but for the bits that are left out. */
struct go_wanted {
	uint64_t word, without;
	uint32_t flags; /* segments that have any of these */
};
int go_search(struct go_opening *o, const struct go_wanted *wanted, go_address_fn found);

/* So many words at an offset of the file. 0, -EBADMSG, -EIO. */
int go_read_words(const struct elf_file *file, uint64_t offset, uint64_t *words, size_t count);

/* Find o->module, after o->address and o->header. 1; 0: there is none; -ENOMEM, -EIO, … */
int go_find_module(struct go_opening *o);

#endif
