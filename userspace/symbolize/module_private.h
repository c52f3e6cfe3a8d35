/* SPDX-License-Identifier: BSD-2-Clause */
/* A module and the sources of its names: symbol tables, .gnu_debugdata, Go's table; demangling. */
#ifndef SYMBOLIZE_MODULE_PRIVATE_H
#define SYMBOLIZE_MODULE_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/symbolizer.h>

#include "base/vec.h"
#include "symbolize/dwarf.h"
#include "symbolize/module.h"
#include "symbolize/symbol_table.h"

struct elf_file;
struct memo;

/* ---- symbol_extent.c: symbols without a size ------------------------------------------------- */

/*
 * .gnu_debugdata: the symbol table that Fedora and others leave in stripped files, an ELF file in
 * an LZMA stream. The only user of liblzma.
 */

/* As much as any such section has ever inflated to, and more. */
#define MINIDEBUG_LIMIT (UINT64_C(256) << 20)

/* The only user of libiberty: demangles C++, Rust and D names, within bounds for any input. */

/* Longest readable name, with its NUL; a longer one is cut at a character's edge. */
#define DEMANGLED_SIZE 4096

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
	bool is_other_go;	/* its table is of an unsupported version */
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

/* Finds addresses, for sorted offsets, and their symbols. The state of the file's DWARF stays. */
int module_take_question(struct module *m, const uint64_t *addresses, size_t count);
void module_forget_addresses(struct module *m);
/* Drops all readable names. 0, -ENOMEM. */
int module_renew_names(struct module *m);
/* The symbols of the debug file or .gnu_debugdata, and of the module. */
struct symbol_source module_debug_symbols(const struct module *m);
struct symbol_source module_elf_symbols(const struct module *m);
/* If that was not done yet. */
void module_open_dwarf(struct module *m);
/* Drops a Go table whose inlined calls are not read, if there is DWARF. */
void module_choose_go(struct module *m);
/* The results of reading symbols of the debug file and of the module, for the report. */
void module_note_symbols(struct module *m, int debug_error, int elf_error);
/* The frames of an address, into m->frames: those of its symbol up to *until. 0, -ENOMEM. */
int module_merge_frames(struct module *m, uint64_t address, const struct symbol_match *match,
			uint64_t *until);
void module_finish_report(struct module *m, size_t count);

/*
 * Results for strings, by the address of the string: the readable form of a mangled name.
 * Equal texts are kept once.
 */

struct memo;

#endif
