/* SPDX-License-Identifier: BSD-2-Clause */
/* A module and the sources of its names: symbol tables, .gnu_debugdata, Go's table; demangling. */
#ifndef SYMBOLIZE_MODULE_PRIVATE_H
#define SYMBOLIZE_MODULE_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/symbolizer.h>

#include "base/vec.h"
#include "elf/gopclntab.h"
#include "symbolize/dwarf.h"
#include "symbolize/module.h"

struct elf_file;
struct memo;

/* ---- symbol_table.c: which symbol of an ELF file covers an address --------------------------- */

struct symbol_match {
	const char
		*name; /* as in the file, until that is freed. NULL: no symbol covers the address */
	uint64_t address, size; /* size 0: the file does not say */
	/* the addresses from the requested one up to this one have the same answer */
	uint64_t until;
};

/* One symbol table. */
struct symbol_source {
	struct elf_file *file;
	struct elf_file *rest; /* with the symbols that `file` lacks; NULL: it lacks none */
	struct elf_file *code; /* with code and .eh_frame; NULL: not available */
};

/*
 * matches[i] is the symbol that covers addresses[i]: ELF virtual addresses, sorted ascending.
 * 0; -ENODATA: the file has no symbols; -EBADMSG: its tables are damaged, what could be read was
 * used; -ENOMEM. `matches` is filled unless memory ran out.
 */
int symbol_table__match(const struct symbol_source *source, const uint64_t *addresses, size_t count,
			struct symbol_match *matches);

/*
 * The symbols whose ranges `wanted` accepts, for ascending searches, with the answers of
 * symbol_table__match(). Names are the files'. Errors as of match, or -EFBIG: too many; free
 * *ranges after an error, too.
 */
struct symbol_ranges;
typedef bool (*symbol_range_fn)(void *context, uint64_t start, uint64_t end);
int symbol_ranges__read(const struct symbol_source *source, symbol_range_fn wanted, void *context,
			struct symbol_ranges **ranges);
void symbol_ranges__free(struct symbol_ranges *r); /* NULL is fine */
/* No address may be below that of the last search. */
void symbol_ranges__find(struct symbol_ranges *r, uint64_t address, struct symbol_match *match);

/* ---- symbol_extent.c: symbols without a size ------------------------------------------------- */

struct elf_symbol;

/* Where the symbol's code ends at the latest. */
uint64_t symbol_extent_limit(const struct elf_symbol *symbol);
/*
 * Where the code of a symbol at `start` ends, `limit` at the latest, but for the next symbol.
 * `whole`: the symbol table has all functions. `start`: unknown. `file` may be NULL.
 */
uint64_t symbol_extent_end(struct elf_file *file, bool whole, uint64_t start, uint64_t limit);

/*
 * .gnu_debugdata: the symbol table that Fedora and others leave in stripped files, an ELF file in
 * an LZMA stream. The only user of liblzma.
 */

/* As much as any such section has ever inflated to, and more. */
#define MINIDEBUG_LIMIT (UINT64_C(256) << 20)

/*
 * Inflates an ELF file's .gnu_debugdata, into a sealed memfd that the caller closes: for
 * symbol_table, beside the file's own tables. Its addresses are the file's. It opens nothing:
 * besides reading and memory it needs memfd_create and fcntl(F_ADD_SEALS).
 *
 * 0; -ENOENT: there is no such section; -EBADMSG: damaged;
 * -EFBIG: more than `limit` bytes, or a dictionary beyond all reason; -ENOMEM; -EIO.
 */
int minidebug_inflate(struct elf_file *file, uint64_t limit, int *inflated);

/* The only user of libiberty: demangles C++, Rust and D names, within bounds for any input. */

/* Longest readable name, with its NUL; a longer one is cut at a character's edge. */
#define DEMANGLED_SIZE 4096

/*
 * The readable form of `name`, or the name itself where it is not mangled, in `buffer`. Always
 * NUL-terminated. `size` is at most DEMANGLED_SIZE. Returns the length of what was written.
 */
size_t demangle(const char *name, char *buffer, size_t size);

/* ---- module.c, for module_index.c ------------------------------------------------------------ */

struct covered_address {
	uint64_t address;
	size_t index;
};

struct module {
	struct module_files files;
	struct elf_file *elf, *debug; /* NULL: not available */
	int minidebug_fd;	      /* what `debug` was inflated to, or -1 */
	int elf_error;
	struct gopclntab *go;	    /* NULL: not a Go program */
	struct dwarf_reader *dwarf; /* NULL: no lines, or not wanted yet */
	bool dwarf_tried;
	struct memo *names;	/* readable ones */
	bool as_in_file;	/* names need not be readable */
	struct memo *functions; /* of symbols that are parts of them */
	/* The addresses in segments, by ELF virtual address, and their answers by symbol. */
	size_t covered;
	struct covered_address *places;
	struct symbol_match *matches;
	uint64_t *addresses;
	/* By index: number among the covered ones, or NOT_COVERED. */
	size_t *order;
	VEC(struct symbol_frame) frames;
	uint64_t chain;			 /* of DWARF, whose frames these are; 0: of none */
	struct symbol_match chain_match; /* the symbol at it */
	uint32_t left;			 /* as of the report, since the module was opened */
	struct module_report report;
};

#define NOT_COVERED SIZE_MAX

void module_forget_addresses(struct module *m);
/* Drops all readable names. 0, -ENOMEM. */
int module_renew_names(struct module *m);
/* The symbols of the debug file or .gnu_debugdata, and of the module. */
struct symbol_source module_debug_symbols(const struct module *m);
struct symbol_source module_elf_symbols(const struct module *m);
/* If that was not done yet. */
void module_open_dwarf(struct module *m);
/* The results of reading symbols of the debug file and of the module, for the report. */
void module_note_symbols(struct module *m, int debug_error, int elf_error);
/* The frames of an address, into m->frames: those of its symbol up to *until. 0, -ENOMEM. */
int module_merge_frames(struct module *m, uint64_t address, const struct symbol_match *match,
			uint64_t *until);
/* module_index.c: see module_report.index_cost. */
uint64_t module_index_cost(const struct module *m);
void module_finish_report(struct module *m, size_t count);

/*
 * Results for strings, by the address of the string: the readable form of a mangled name.
 * Equal texts are kept once.
 */

struct memo;

struct memo *memo__new(void); /* NULL: no memory */
void memo__free(struct memo *m);

/* The result for this address, or NULL. Valid until the memo is freed. */
const char *memo__get(const struct memo *m, const void *place);
/* Keep a copy of `text`; NULL: no memory. */
const char *memo__put(struct memo *m, const void *place, const char *text);

#endif
