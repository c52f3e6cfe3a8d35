/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One module's addresses to locations, from its open files alone: symbol tables, then DWARF.
 *
 * This is what a sealed child runs (sealed.h), and what tests run in their own process: the same
 * code, the same answers. It opens nothing by name, but for .dwo files, which libdw opens itself;
 * in a sealed child the parent does that for it.
 */
#ifndef SYMBOLIZE_MODULE_H
#define SYMBOLIZE_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/symbolizer.h>

#include "tenants/outside_books.h"

struct module_files {
	enum dso_kind kind;
	int elf_fd;	       /* the mapped file, or -1: then debug_fd stands for it */
	uint64_t elf_base;     /* where the module begins in it */
	int debug_fd;	       /* its separate debug file, already found to belong to it, or -1 */
	int alt_fd;	       /* the dwz file its DWARF refers to, or -1 */
	uint64_t package_size; /* bytes of the .dwp file that libdw will read; 0: there is none */
	bool symbols_only;     /* leave the DWARF alone: names from symbol tables */
	uint64_t memory_limit; /* bytes that inflated DWARF may take; 0: a fixed default */
};

/* How lines were got, or why there are none. X(ENUM, sentence) */
#define DWARF_STATES(X)                                                                            \
	X(NONE, "it has no debug information")                                                     \
	X(READ, "debug information was read")                                                      \
	X(PARTLY, "a part of the debug information is damaged or missing")                         \
	X(PACKAGED, "its debug information is in a .dwp file, which this libdw does not read")     \
	X(DAMAGED, "its debug information is damaged")                                             \
	X(UNSUPPORTED,                                                                             \
	  "its debug information is compressed by a method that libelf does not support: "         \
	  "objcopy --decompress-debug-sections")                                                   \
	X(TOO_BIG, "its debug information is larger than there is memory for")                     \
	X(LIMIT, "reading its debug information took too long")                                    \
	X(UNSEALED, "the process to read its debug information could not be sealed")               \
	X(CRASHED, "the process that read its debug information died")                             \
	X(HUNG, "its file system does not answer")                                                 \
	X(CUT, "a part of the debug information is over the limits")                               \
	X(GO, "its version of Go is not supported, or its inlined calls are not")

enum dwarf_state {
#define X(id, text) DWARF_STATE_##id,
	DWARF_STATES(X)
#undef X
		DWARF_STATE_COUNT
};

struct module_report {
	enum symbol_state state;
	enum dwarf_state dwarf;
	uint64_t addresses, with_symbol, with_lines;
	uint64_t units_skipped; /* damaged, or their .dwo is missing */
	uint64_t inflated;	/* bytes of DWARF that had to be inflated */
	uint64_t index_cost;	/* ns of CPU time, estimated, of its index; 0: it can have none */
	uint32_t left;		/* bits of MODULE_LEAVES: a limit left out a part of these */
};

/* Bits of enum outside_thing. */
#define MODULE_LEAVES                                                                              \
	(1u << OUTSIDE_DEBUG_INFO | 1u << OUTSIDE_MINIDEBUG | 1u << OUTSIDE_SYMBOL_TABLES)
_Static_assert(OUTSIDE_THING_COUNT <= 32, "things are bits");

/*
 * May its answers be kept? Those of half a file would hide the other half, and the limit that left
 * it out. That a file has no symbols is kept, too. Without `lines` the state of its debug information does not matter.
 */
static inline bool module_report__is_whole(const struct module_report *r, bool lines)
{
	return !r->left &&
	       (r->state == SYMBOL_STATE_RESOLVED || r->state == SYMBOL_STATE_NO_SYMBOLS) &&
	       (!lines || r->dwarf == DWARF_STATE_NONE || r->dwarf == DWARF_STATE_READ);
}

/*
 * As symbolizer__resolve_all(): sorted distinct addresses; the sink is called for each, in order.
 * If DWARF has no name of the outermost frame, the symbol table's is used.
 */
int module_resolve(const struct module_files *files, const uint64_t *addresses, size_t count,
		   symbol_sink_fn sink, void *context, struct module_report *report);

/*
 * The same for further requests: what was read stays in memory. The descriptors stay the caller's,
 * open until module__free(). After an error of module__resolve() it can only be freed.
 */
struct module;
int module__open(const struct module_files *files, struct module **module);
int module__resolve(struct module *m, const uint64_t *addresses, size_t count, symbol_sink_fn sink,
		    void *context, struct module_report *report);
void module__free(struct module *m);

#endif
