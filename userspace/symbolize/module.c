/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One module's addresses to locations.
 *
 * Three sources. A Go program's own function table (elf/gopclntab.h) has all about its Go code and
 * is preferred to DWARF. Go prints stacks by it, in stripped programs as well, so both give the
 * same profile. Names, lines and inlined calls are those of DWARF. But DWARF lacks files that
 * define inlined functions, lines of some generated functions and, from Go 1.19, the function
 * around some inlined calls; and it must be inflated. DWARF is preferred only for versions of Go
 * whose inlined calls are not read from the table.
 *
 * Each of the others has something that the other lacks. DWARF has inlined calls, lines, and one
 * function for the hot and cold parts that a compiler split. Symbol tables have names for code
 * without DWARF (assembly, libraries), and mangled names where DWARF has bare ones (lambdas).
 *
 * Symbols come from the separate debug file first, whose table is whole; a mapped file is often
 * left with the dynamic one. Where there is no debug file, .gnu_debugdata has what that lacks: both
 * together are one table.
 */
#include "symbolize/module.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/order.h"
#include "elf/elf_file.h"
#include "elf/gopclntab.h"
#include "elf/gopclntab_open.h"
#include "stream/symbol_blob.h"
#include "symbolize/demangle.h"
#include "symbolize/memo.h"
#include "symbolize/minidebug.h"
#include "symbolize/module_index.h"
#include "symbolize/module_private.h"

#define DEFAULT_MEMORY_LIMIT (UINT64_C(4) << 30)

#define COUNT(array)	     (sizeof(array) / sizeof(*(array)))

/* ---- opening --------------------------------------------------------------------------------- */

void module_forget_addresses(struct module *m)
{
	free(m->places);
	free(m->matches);
	free(m->addresses);
	free(m->order);
	m->places = NULL;
	m->matches = NULL;
	m->addresses = NULL;
	m->order = NULL;
	m->covered = m->chain = 0;
}

void module__free(struct module *m)
{
	if (!m)
		return;
	dwarf_reader__free(m->dwarf);
	gopclntab__free(m->go);
	elf_file__free(m->elf);
	elf_file__free(m->debug);
	if (m->minidebug_fd >= 0)
		close(m->minidebug_fd);
	memo__free(m->names);
	memo__free(m->functions);
	module_forget_addresses(m);
	vec_free(&m->frames);
	free(m);
}

static int open_elf(int fd, uint64_t base, struct elf_file **file)
{
	return fd < 0 ? -ENOENT : elf_file__open_at(fd, base, file);
}

static enum dwarf_state state_of_dwarf_error(int error)
{
	switch (error) {
	case -ENODATA:
		return DWARF_STATE_NONE;
	case -EFBIG:
	case -ENOMEM:
		return DWARF_STATE_TOO_BIG;
	case -ENOTSUP:
		return DWARF_STATE_UNSUPPORTED;
	default:
		return DWARF_STATE_DAMAGED;
	}
}

/* The debug file's DWARF, or the module's own. Without it only lines are missing. */
void module_open_dwarf(struct module *m)
{
	const struct module_files *files = &m->files;
	struct dwarf_options options = {
		.alt_fd = files->alt_fd,
		.packaged = files->package_size > 0,
		.memory_limit = files->memory_limit ? files->memory_limit : DEFAULT_MEMORY_LIMIT,
	};
	int err = -ENODATA;

	if (files->symbols_only || m->dwarf_tried)
		return;
	m->dwarf_tried = true;
	if (files->debug_fd >= 0)
		err = dwarf_reader__open(files->debug_fd, &options, &m->dwarf);
	options.base = files->elf_base;
	if (err == -ENODATA && files->elf_fd >= 0)
		err = dwarf_reader__open(files->elf_fd, &options, &m->dwarf);
	m->report.dwarf = err ? state_of_dwarf_error(err) : DWARF_STATE_READ;
}

static int open_debug_symbols(struct module *m)
{
	int err;

	if (m->files.debug_fd >= 0 || !m->elf)
		return open_elf(m->files.debug_fd, 0, &m->debug);
	err = minidebug_inflate(m->elf, MINIDEBUG_LIMIT, &m->minidebug_fd);
	if (!err)
		return elf_file__open(m->minidebug_fd, &m->debug);
	if (err != -ENOMEM && err != -EFBIG)
		return err;
	/* if it needs too much memory, the file's own table is still used */
	m->left |= 1u << OUTSIDE_MINIDEBUG;
	return -EFBIG;
}

void module_choose_go(struct module *m)
{
	if (!m->go || gopclntab__has_trees(m->go))
		return;
	module_open_dwarf(m);
	if (!m->dwarf)
		return;
	gopclntab__free(m->go);
	m->go = NULL;
}

int module_renew_names(struct module *m)
{
	memo__free(m->names);
	memo__free(m->functions);
	m->names = memo__new();
	m->functions = memo__new();
	return m->names && m->functions ? 0 : -ENOMEM;
}

static int open_files(struct module *m)
{
	int debug_error, err;

	if (module_renew_names(m))
		return -ENOMEM;
	m->elf_error = open_elf(m->files.elf_fd, m->files.elf_base, &m->elf);
	debug_error = open_debug_symbols(m);
	if (m->elf_error == -ENOMEM || debug_error == -ENOMEM)
		return -ENOMEM;
	if (!m->elf)
		return 0;
	/* A table that is damaged or too large costs no more than its names and lines. */
	err = gopclntab__open(m->elf, &m->go);
	if (err)
		m->go = NULL;
	if (err == -EFBIG || err == -E2BIG)
		m->left |= 1u << OUTSIDE_DEBUG_INFO;
	m->is_other_go = err == -ENOTSUP && elf_file__is_x86_64(m->elf);
	return 0;
}

/* ---- addresses ------------------------------------------------------------------------------- */

DEFINE_ORDER(compare_places, struct covered_address, ASCENDING(address) ?: ASCENDING(index));

/* Converts file offsets, or addresses of the kernel, to ELF virtual addresses. */
static int elf_address(const struct module *m, uint64_t requested, uint64_t *address)
{
	const struct elf_file *file = m->elf ? m->elf : m->debug;

	if (m->files.kind == DSO_KERNEL) {
		*address = requested;
		return 0;
	}
	return file ? elf_file__address_of_offset(file, requested, address) : -ENOENT;
}

static int take_addresses(struct module *m, const uint64_t *requested, size_t count)
{
	m->places = calloc(count + 1, sizeof(*m->places));
	m->addresses = calloc(count + 1, sizeof(*m->addresses));
	m->matches = calloc(count + 1, sizeof(*m->matches));
	m->order = calloc(count + 1, sizeof(*m->order));
	if (!m->places || !m->addresses || !m->matches || !m->order)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct covered_address place = {.index = i};

		m->order[i] = NOT_COVERED;
		if (!elf_address(m, requested[i], &place.address))
			m->places[m->covered++] = place;
	}
	qsort(m->places, m->covered, sizeof(*m->places), compare_places);
	for (size_t i = 0; i < m->covered; i++) {
		m->addresses[i] = m->places[i].address;
		m->order[m->places[i].index] = i;
	}
	return 0;
}

/* Are all requested addresses Go code? Then DWARF, which is slow to inflate, adds nothing. */
static bool is_all_go(const struct module *m)
{
	size_t number;

	for (size_t i = 0; i < m->covered; i++) {
		if (!m->go || gopclntab__find(m->go, m->addresses[i], &number))
			return false;
	}
	return true;
}

/* ---- symbols --------------------------------------------------------------------------------- */

static enum symbol_state state_of_error(int error)
{
	switch (error) {
	case 0:
		return SYMBOL_STATE_RESOLVED;
	case -ENOENT:
		return SYMBOL_STATE_NO_FILE;
	case -ENOEXEC:
		return SYMBOL_STATE_NOT_ELF;
	case -ENODATA:
		return SYMBOL_STATE_NO_SYMBOLS;
	default:
		return SYMBOL_STATE_DAMAGED;
	}
}

struct symbol_source module_debug_symbols(const struct module *m)
{
	bool is_minidebug = m->debug && m->minidebug_fd >= 0;

	return (struct symbol_source){m->debug, is_minidebug ? m->elf : NULL, m->elf};
}

struct symbol_source module_elf_symbols(const struct module *m)
{
	return (struct symbol_source){.file = m->elf, .code = m->elf};
}

/* Match the symbols of the mapped file where the debug file has left an address open. */
static int fill_from_elf(struct module *m)
{
	_cleanup_free_ struct symbol_match *matches = calloc(m->covered + 1, sizeof(*matches));
	const struct symbol_source source = module_elf_symbols(m);
	int err;

	if (!matches)
		return -ENOMEM;
	err = symbol_table__match(&source, m->addresses, m->covered, matches);
	if (err == -ENOMEM)
		return err;
	for (size_t i = 0; i < m->covered; i++) {
		uint64_t open_until = m->debug ? m->matches[i].until : UINT64_MAX;

		if (m->matches[i].name)
			continue;
		m->matches[i] = matches[i];
		m->matches[i].until = min_u64(matches[i].until, open_until);
	}
	return err;
}

static bool has_open_address(const struct module *m)
{
	return any_of(m->matches, m->covered, match, !match->name);
}

void module_note_symbols(struct module *m, int debug_error, int elf_error)
{
	m->report.state = debug_error ? state_of_error(elf_error) : SYMBOL_STATE_RESOLVED;
}

/* The symbol of each of m->addresses, into m->matches. 0, -ENOMEM. */
static int match_symbols(struct module *m)
{
	const struct symbol_source debug = module_debug_symbols(m);
	int debug_error = -ENODATA, err = m->elf_error;

	if (debug.file) {
		debug_error = symbol_table__match(&debug, m->addresses, m->covered, m->matches);
		if (debug_error == -ENOMEM)
			return debug_error;
	}
	if (m->elf && !debug.rest && (debug_error || has_open_address(m)))
		err = fill_from_elf(m);
	if (err == -ENOMEM)
		return err;
	module_note_symbols(m, debug_error, err);
	return 0;
}

/* ---- merging --------------------------------------------------------------------------------- */

/* The readable form; neighbours and inlined calls need the same few repeatedly. */
static const char *readable_name(struct module *m, const char *name)
{
	const char *known = m->as_in_file ? name : memo__get(m->names, name);
	char text[DEMANGLED_SIZE];

	if (known)
		return known;
	demangle(name, text, sizeof(text));
	return memo__put(m->names, name, text);
}

static bool is_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R' || name[1] == 'D');
}

/* Where in a symbol's name the compiler's mark of a part or a copy begins; else its end. */
static size_t length_without_clone(const char *name)
{
	static const char *const marks[] = {".cold",	 ".part.", ".isra.",	  ".constprop.",
					    ".lto_priv", ".llvm.", ".localalias", ".clone."};
	size_t length = strlen(name);

	for (size_t i = 0; i < COUNT(marks); i++) {
		const char *at = strstr(name, marks[i]);

		if (at && at > name && (size_t)(at - name) < length)
			length = at - name;
	}
	return length;
}

/* "f.isra.0.cold" is a part of "f". NULL: no memory. */
static const char *name_of_function(struct module *m, const char *symbol)
{
	size_t length = length_without_clone(symbol);
	const char *known;
	char *name;

	if (!symbol[length])
		return symbol;
	known = memo__get(m->functions, symbol);
	if (known)
		return known;
	name = strndup(symbol, length);
	known = name ? memo__put(m->functions, symbol, name) : NULL;
	free(name);
	return known;
}

/*
 * The readable name of one level. For the outermost the symbol table is better if DWARF has no
 * mangled name: of a C function's aliases DWARF has one, perhaps internal ("__GI___libc_read"), the
 * table those that programs call ("read"). NULL: no memory.
 */
static const char *frame_name(struct module *m, const struct dwarf_frame *frame,
			      const struct symbol_match *symbol)
{
	const char *symbol_name = symbol ? symbol->name : NULL;
	const char *name = frame->linkage;
	bool better = symbol_name &&
		      (name ? !is_mangled(name) : !frame->name || is_mangled(symbol_name));

	if (better) {
		name = name_of_function(m, symbol_name);
		if (!name)
			return NULL;
	}
	if (!name)
		name = frame->name;
	return name ? readable_name(m, name) : "";
}

static int add_symbol_frame(struct module *m, const struct symbol_match *match)
{
	struct symbol_frame frame = {
		.function = readable_name(m, match->name),
		.function_address = match->address,
		.function_size = match->size,
	};

	return frame.function ? vec_push(&m->frames, frame) : -ENOMEM;
}

/* Of a chain that is longer than an answer, the outermost frames are left out. */
static void note_length(struct module *m, size_t count)
{
	if (count > SYMBOL_CHAIN_MAX)
		m->left |= 1u << OUTSIDE_DEBUG_INFO;
}

static int add_dwarf_frames(struct module *m, const struct dwarf_frame *frames, size_t count,
			    const struct symbol_match *match)
{
	note_length(m, count);
	for (size_t i = 0; i < count; i++) {
		bool outermost = i + 1 == count;
		struct symbol_frame frame = frames[i].where;
		int err;

		if (outermost && match->name && frame.function_address == PROFILE_UNKNOWN_ADDRESS) {
			frame.function_address = match->address;
			frame.function_size = match->size;
		}
		frame.function = frame_name(m, &frames[i], outermost ? match : NULL);
		if (!frame.function)
			return -ENOMEM;
		err = vec_push(&m->frames, frame);
		if (err)
			return err;
	}
	return 0;
}

/* 1: it is Go code, its frames were added; 0; -ENOMEM. */
static int add_go_frames(struct module *m, uint64_t address, uint64_t *until)
{
	struct symbol_frame frames[GO_MAX_FRAMES];
	size_t number;
	int count, err;

	if (gopclntab__find(m->go, address, &number))
		return 0;
	count = gopclntab__frames(m->go, number, address, frames, until);
	if (count <= 0 || !frames[count - 1].function[0])
		return 0;
	note_length(m, (size_t)count);
	err = vec_append(&m->frames, frames, count);
	m->report.with_lines += frames[0].line != 0;
	return err ? err : 1;
}

/* Are m->frames those of this chain, but for the place that is executed? */
static bool is_same_chain(const struct module *m, const struct dwarf_chain *chain,
			  const struct symbol_match *match)
{
	return chain->count && chain->number == m->chain && match->name == m->chain_match.name &&
	       match->address == m->chain_match.address && match->size == m->chain_match.size;
}

static int merge_chain(struct module *m, const struct dwarf_chain *chain,
		       const struct symbol_match *match)
{
	const struct dwarf_frame *innermost = chain->frames;
	size_t count = chain->count;
	int err = 0;

	if (is_same_chain(m, chain, match)) {
		m->frames.data[0].file = innermost->where.file;
		m->frames.data[0].line = innermost->where.line;
		m->frames.data[0].column = innermost->where.column;
		m->report.with_lines += innermost->where.line != 0;
		return 0;
	}
	m->frames.count = m->chain = 0;
	/* Code with a line and no name at all is as good as unknown. */
	if (count == 1 && !innermost->linkage && !innermost->name && !match->name)
		count = 0;
	if (count)
		err = add_dwarf_frames(m, chain->frames, count, match);
	else if (match->name)
		err = add_symbol_frame(m, match);
	if (err || !count)
		return err;
	m->report.with_lines += m->frames.data[0].line != 0;
	m->chain = chain->number;
	m->chain_match = *match;
	return 0;
}

int module_merge_frames(struct module *m, uint64_t address, const struct symbol_match *match,
			uint64_t *until)
{
	struct dwarf_chain chain = {.until = UINT64_MAX};
	int err = 0;

	*until = UINT64_MAX;
	m->report.with_symbol += match->name != NULL;
	if (m->go) {
		m->frames.count = m->chain = 0;
		err = add_go_frames(m, address, until);
	}
	if (err)
		return err < 0 ? err : 0;
	if (m->dwarf)
		err = dwarf_reader__resolve(m->dwarf, address, &chain);
	*until = min_u64(*until, chain.until);
	return err ? err : merge_chain(m, &chain, match);
}

/* How far an answer holds: to its symbol's end, in its segment; 0 with lines: they change often. */
static uint64_t same_until(const struct module *m, uint64_t requested, size_t number)
{
	const struct elf_file *file = m->elf ? m->elf : m->debug;
	uint64_t address = m->addresses[number], until = m->matches[number].until, end;

	if (m->go || m->dwarf || until <= address || m->files.kind == DSO_KERNEL)
		return 0;
	end = elf_file__segment_end(file, requested);
	return end > requested ? address + min_u64(until - address, end - requested) : 0;
}

static int deliver_results(struct module *m, const uint64_t *requested, size_t count,
			   symbol_sink_fn sink, void *context)
{
	for (size_t i = 0; i < count; i++) {
		struct symbol_result result = {.elf_address = PROFILE_UNKNOWN_ADDRESS};
		size_t number = m->order[i];
		uint64_t until;
		int err;

		if (number != NOT_COVERED) {
			result.elf_address = m->addresses[number];
			err = module_merge_frames(m, result.elf_address, &m->matches[number],
						  &until);
			if (err)
				return err;
			result.frames = m->frames.data;
			result.frame_count = m->frames.count;
			result.same_until = same_until(m, requested[i], number);
		}
		err = sink(context, i, &result);
		if (err)
			return err;
	}
	return 0;
}

/* Is something missing because of the version of Go? Without its table, DWARF has all of it. */
static bool lacks_go(const struct module *m)
{
	return m->go ? !gopclntab__has_trees(m->go)
		     : m->is_other_go && m->report.dwarf == DWARF_STATE_NONE;
}

void module_finish_report(struct module *m, size_t count)
{
	struct dwarf_stats stats;

	m->report.addresses = count;
	m->report.left = m->left;
	if ((m->elf && elf_file__left(m->elf)) || (m->debug && elf_file__left(m->debug)))
		m->report.left |= 1u << OUTSIDE_SYMBOL_TABLES;
	if (m->go && gopclntab__left(m->go))
		m->report.left |= 1u << OUTSIDE_DEBUG_INFO;
	if (lacks_go(m))
		m->report.dwarf = DWARF_STATE_GO;
	m->report.index_cost = module_index_cost(m);
	/* names from DWARF or Go's table alone are names as well */
	if (m->report.with_lines && m->report.state == SYMBOL_STATE_NO_SYMBOLS)
		m->report.state = SYMBOL_STATE_RESOLVED;
	if (!m->dwarf)
		return;
	dwarf_reader__stats(m->dwarf, &stats);
	m->report.units_skipped = stats.units_skipped;
	m->report.inflated = stats.inflated;
	if (stats.left)
		m->report.left |= 1u << OUTSIDE_DEBUG_INFO;
	if (stats.units_skipped || stats.incomplete)
		m->report.dwarf = DWARF_STATE_PARTLY;
	else if (stats.left)
		m->report.dwarf = DWARF_STATE_CUT;
}

int module__open(const struct module_files *files, struct module **module)
{
	struct module *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	m->files = *files;
	m->minidebug_fd = -1;
	err = open_files(m);
	return finish_new(err, m, module__free, module);
}

int module_take_question(struct module *m, const uint64_t *addresses, size_t count)
{
	int err;

	module_forget_addresses(m);
	m->report = (struct module_report){.dwarf = m->report.dwarf};
	err = take_addresses(m, addresses, count);
	if (err)
		return err;
	module_choose_go(m);
	if (!is_all_go(m))
		module_open_dwarf(m);
	return match_symbols(m);
}

int module__resolve(struct module *m, const uint64_t *addresses, size_t count, symbol_sink_fn sink,
		    void *context, struct module_report *report)
{
	int err = module_take_question(m, addresses, count)
			  ?: deliver_results(m, addresses, count, sink, context);

	if (err)
		return err;
	module_finish_report(m, count);
	*report = m->report;
	return 0;
}

int module_resolve(const struct module_files *files, const uint64_t *addresses, size_t count,
		   symbol_sink_fn sink, void *context, struct module_report *report)
{
	struct module *m;
	int err = module__open(files, &m);

	if (err)
		return err;
	err = module__resolve(m, addresses, count, sink, context, report);
	module__free(m);
	return err;
}
