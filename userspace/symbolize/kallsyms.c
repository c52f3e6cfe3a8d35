/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's own symbol table.
 *
 * /proc/kallsyms gives starts without sizes, so a function ends where the next symbol of any kind
 * begins. Addresses farther behind its start than a function can be long have no name: that is
 * the space behind the last symbol of a module. The kernel's image has its text marked by
 * _stext.._etext and _sinittext.._einittext; a symbol of the image answers inside those only.
 *
 * One address often has many names. The one shown is, in this order:
 *   1. a function's; next the padding before it (__pfx_, __cfi_). The linker's marks
 *      (__sched_text_start, _stext, …) and data only end what is before them and name nothing;
 *   2. a global one (T, W) before a local one (t, w), and T before W;
 *   3. the shortest, then the first in byte order.
 *
 * The text is of one time. What is reported of code that comes and goes is in kernel_history.c,
 * which makes the symbols here void where it knows more.
 *
 * Every symbol outside the image has a tag: its module, "bpf" for programs and trampolines,
 * "__builtin__ftrace" and "__builtin__kprobes" for their generated code. /proc/modules says no
 * more: since 6.4 a module has several places, and its line one address and the sum of sizes. The
 * space behind a module's last function, whose end is unknown, has no owner after 64 KB: the kernel
 * may have hidden code there (BPF programs, under net.core.bpf_jit_harden).
 *
 * All names are in one block; a function shares the end of the name of the padding before it. A
 * symbol is 16 bytes: 3.5 MB for a kernel of 120,000 symbols.
 */
#include "symbolize/kallsyms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/order.h"
#include "base/parse.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "symbolize/symbolize.h"

#define SYMBOLS_MAX	    (8U << 20)
#define NAMES_MAX	    (256U << 20)
#define NAME_LENGTH_MAX	    512
#define FUNCTION_EXTENT_MAX (1U << 20)
#define MODULE_TAIL_MAX	    (64U << 10) /* behind the start of a module's last function */
#define MODULES_MAX	    UINT16_MAX
#define NEAR_MAX	    64 /* places that a symbol of the image is moved */
#define MODULE_NAME_MAX	    64 /* the kernel's own limit is 56 */
#define BUILTIN		    "__builtin__"
#define PADDING		    "__pfx_"

/* Best first: what a symbol is worth as the name of its address. */
enum worth {
	WORTH_GLOBAL,
	WORTH_WEAK,
	WORTH_LOCAL,
	WORTH_LOCAL_WEAK,
	WORTH_PADDING,
	WORTH_NOTHING,
};

struct kernel_symbol {
	uint64_t address;
	uint32_t name;	 /* offset in names: it grows with each line */
	uint16_t module; /* number in `modules`, 0: the image */
	uint8_t worth;	 /* enum worth */
};

struct text_range {
	uint64_t start, end; /* 0 unknown */
};

enum { TEXT_KERNEL, TEXT_INIT, TEXT_COUNT };

struct kallsyms {
	VEC(struct kernel_symbol) symbols;
	VEC(char) names;
	size_t last_name;	/* offset */
	struct strtab *modules; /* "[ext4]", … */
	struct text_range text[TEXT_COUNT];
	size_t sorted; /* number of symbols that are, one per address */
	uint64_t lines, malformed, nonzero;
	bool left; /* there are more than the limits allow */
};

struct line {
	uint64_t address;
	char type;
	const char *name;
	size_t name_length;
	const char *module; /* behind its bracket, NULL: none */
	size_t module_length;
};

struct kallsyms *kallsyms__new(void)
{
	struct kallsyms *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->modules = strtab__new();
	if (k->modules)
		return k;
	kallsyms__free(k);
	return NULL;
}

void kallsyms__free(struct kallsyms *k)
{
	if (!k)
		return;
	vec_free(&k->symbols);
	vec_free(&k->names);
	strtab__free(k->modules);
	free(k);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The text is not terminated by a NUL, so the digits are read with the end in view. */
static const char *parse_address(const char *p, const char *end, uint64_t *address)
{
	const char *start = p;

	*address = 0;
	for (; p < end && hex_digit(*p) >= 0; p++) {
		if (p - start == 16)
			return NULL;
		*address = *address << 4 | (uint64_t)hex_digit(*p);
	}
	return p > start ? p : NULL;
}

/* " [NAME]" or nothing, up to the end of the line. */
static bool parse_module(const char *p, const char *end, struct line *line)
{
	while (p < end && is_blank(*p))
		p++;
	line->module = NULL;
	line->module_length = 0;
	if (p == end)
		return true;
	if (*p != '[' || end[-1] != ']' || end - p <= 2)
		return false;
	line->module = p + 1;
	line->module_length = (size_t)(end - p) - 2;
	for (size_t i = 0; i < line->module_length; i++)
		if ((unsigned char)line->module[i] <= ' ' || line->module[i] == 0x7f)
			return false;
	return line->module_length <= MODULE_NAME_MAX;
}

static bool parse_line(const char *p, const char *end, struct line *line)
{
	p = parse_address(p, end, &line->address);
	if (!p || end - p < 4 || p[0] != ' ' || p[2] != ' ')
		return false;
	line->type = p[1];
	if ((line->type | 0x20) < 'a' || (line->type | 0x20) > 'z')
		return false;
	p += 3;
	line->name = p;
	while (p < end && (unsigned char)*p > ' ' && *p != 0x7f)
		p++;
	if (p < end && !is_blank(*p))
		return false;
	line->name_length = (size_t)(p - line->name);
	if (!line->name_length || line->name_length > NAME_LENGTH_MAX)
		return false;
	return parse_module(p, end, line);
}

static bool name_is(const struct line *line, const char *name)
{
	return strlen(name) == line->name_length && !memcmp(line->name, name, line->name_length);
}

static bool name_starts(const struct line *line, const char *prefix)
{
	size_t length = strlen(prefix);

	return length <= line->name_length && !memcmp(line->name, prefix, length);
}

static bool name_ends(const struct line *line, const char *suffix)
{
	size_t length = strlen(suffix);

	return length <= line->name_length &&
	       !memcmp(line->name + line->name_length - length, suffix, length);
}

/* Keep the bounds of the image's text; true if the symbol is one of them. */
static bool note_text_bound(struct kallsyms *k, const struct line *line)
{
	if (name_is(line, "_stext"))
		k->text[TEXT_KERNEL].start = line->address;
	else if (name_is(line, "_etext"))
		k->text[TEXT_KERNEL].end = line->address;
	else if (name_is(line, "_sinittext"))
		k->text[TEXT_INIT].start = line->address;
	else if (name_is(line, "_einittext"))
		k->text[TEXT_INIT].end = line->address;
	else
		return name_is(line, "_text") || name_is(line, "_end");
	return true;
}

static enum worth name_worth(struct kallsyms *k, const struct line *line)
{
	static const char TYPES[] = {'T', 'W', 't', 'w'}; /* in the order of their worth */
	const char *type = memchr(TYPES, line->type, sizeof(TYPES));

	if (!line->module && note_text_bound(k, line))
		return WORTH_NOTHING;
	if (name_starts(line, "__") &&
	    (name_ends(line, "_text_start") || name_ends(line, "_text_end")))
		return WORTH_NOTHING;
	if (!type)
		return WORTH_NOTHING;
	if (name_starts(line, PADDING) || name_starts(line, "__cfi_"))
		return WORTH_PADDING;
	return WORTH_GLOBAL + (type - TYPES);
}

/* Number of the line's module. -ENOMEM. */
static int module_number(struct kallsyms *k, const struct line *line)
{
	const char *name = line->module;
	size_t length = line->module_length, builtin = sizeof(BUILTIN) - 1;
	char tag[MODULE_NAME_MAX + 3];

	if (!name)
		return 0;
	if (length > builtin && !memcmp(name, BUILTIN, builtin)) {
		name += builtin;
		length -= builtin;
	}
	tag[0] = '[';
	memcpy(tag + 1, name, length);
	memcpy(tag + 1 + length, "]", 2);
	return (int)strtab__intern(k->modules, tag);
}

/* Is the line's name the end of the last one, that of its padding? */
static bool has_padding(const struct kallsyms *k, const struct line *line)
{
	const size_t length = sizeof(PADDING) - 1;
	const char *last = k->names.data + k->last_name;

	return k->names.count - k->last_name == length + line->name_length + 1 &&
	       !memcmp(last, PADDING, length) &&
	       !memcmp(last + length, line->name, line->name_length);
}

static int add_name(struct kallsyms *k, const struct line *line, uint32_t *name)
{
	if (has_padding(k, line)) {
		*name = (uint32_t)(k->last_name + sizeof(PADDING) - 1);
		return 0;
	}
	*name = (uint32_t)(k->last_name = k->names.count);
	return vec_append(&k->names, line->name, line->name_length) ?: vec_push(&k->names, '\0');
}

static int add_symbol(struct kallsyms *k, const struct line *line)
{
	struct kernel_symbol symbol = {
		.address = line->address,
		.name = (uint32_t)k->names.count,
		.worth = (uint8_t)name_worth(k, line),
	};
	int err = module_number(k, line);

	if (err < 0)
		return err;
	symbol.module = (uint16_t)err;
	if (symbol.worth != WORTH_NOTHING)
		err = add_name(k, line, &symbol.name);
	else
		err = 0;
	return err ?: vec_push(&k->symbols, symbol);
}

static int add_line(struct kallsyms *k, const char *start, const char *end)
{
	struct line line;

	k->lines++;
	if (!parse_line(start, end, &line)) {
		k->malformed++;
		return 0;
	}
	if (k->symbols.count >= SYMBOLS_MAX || k->names.count > NAMES_MAX ||
	    strtab__count(k->modules) > MODULES_MAX) {
		k->left = true;
		return 0;
	}
	if (!line.address)
		return 0;
	k->nonzero++;
	return add_symbol(k, &line);
}

int kallsyms__add(struct kallsyms *k, const char *text, size_t size)
{
	const char *end = text + size;

	for (const char *p = text; p < end;) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		const char *line_end = newline ? newline : end;
		int err = line_end > p ? add_line(k, p, line_end) : 0;

		if (err)
			return err;
		p = line_end + 1;
	}
	return 0;
}

static int compare_symbols(const void *a, const void *b, void *table)
{
	const struct kernel_symbol *x = a, *y = b;
	const struct kallsyms *k = table;
	const char *x_name = k->names.data + x->name, *y_name = k->names.data + y->name;

	if (x->address != y->address)
		return ASCENDING(address);
	if (x->worth == WORTH_NOTHING || y->worth == WORTH_NOTHING)
		return ASCENDING(worth) ?: DESCENDING(name);
	if (x->worth != y->worth)
		return ASCENDING(worth);
	return order_of(strlen(x_name), strlen(y_name)) ?: strcmp(x_name, y_name);
}

/* Where symbol `i` belongs among those before it, which are sorted; SIZE_MAX: far away. */
static size_t place_near(const struct kallsyms *k, size_t i)
{
	const struct kernel_symbol *symbols = k->symbols.data;
	size_t at = i;

	while (at && compare_symbols(&symbols[at - 1], &symbols[i], (void *)k) > 0)
		if (i - --at > NEAR_MAX)
			return SIZE_MAX;
	return at;
}

/*
 * The kernel reports its image by address, names of an address in any order. Sorts up to the first
 * symbol that belongs elsewhere, of a module, and returns the number.
 */
static size_t sort_image(struct kallsyms *k)
{
	struct kernel_symbol *symbols = k->symbols.data;
	size_t i;

	for (i = 0; i < k->symbols.count; i++) {
		struct kernel_symbol symbol = symbols[i];
		size_t at = place_near(k, i);

		if (at == SIZE_MAX)
			break;
		memmove(&symbols[at + 1], &symbols[at], (i - at) * sizeof(*symbols));
		symbols[at] = symbol;
	}
	return i;
}

/*
 * Merges new symbols into the sorted ones. Returns from which on symbols have changed. Without
 * memory for a copy all are sorted anew.
 */
static size_t merge_new(struct kallsyms *k)
{
	size_t count = k->symbols.count, old = k->sorted ?: sort_image(k), new = count - old;
	_cleanup_free_ struct kernel_symbol *added = new ? calloc(new, sizeof(*added)) : NULL;
	struct kernel_symbol *symbols = k->symbols.data;
	size_t at = count;

	if (new && !added) {
		qsort_r(symbols, count, sizeof(*symbols), compare_symbols, k);
		return 0;
	}
	if (new) {
		memcpy(added, symbols + old, new * sizeof(*added));
		qsort_r(added, new, sizeof(*added), compare_symbols, k);
	}
	while (new) {
		bool is_old = old && compare_symbols(&symbols[old - 1], &added[new - 1], k) > 0;

		symbols[--at] = is_old ? symbols[--old] : added[--new];
	}
	return k->sorted ? at : 0;
}

/* Number of symbols at or before the address. */
static size_t count_up_to(const struct kallsyms *k, uint64_t address)
{
	return partition_point(k->symbols.data, k->symbols.count, s, s->address <= address);
}

/* Sort by address and keep the best name of each. A kernel has 100,000. */
static void kallsyms__sort(struct kallsyms *k)
{
	size_t first, kept;

	if (k->sorted == k->symbols.count)
		return;
	first = kept = merge_new(k);
	for (size_t i = first; i < k->symbols.count; i++) {
		if (kept && k->symbols.data[kept - 1].address == k->symbols.data[i].address)
			continue;
		k->symbols.data[kept++] = k->symbols.data[i];
	}
	k->symbols.count = kept;
	k->sorted = k->symbols.count;
}

static bool in_kernel_text(const struct kallsyms *k, uint64_t address)
{
	bool known = false;

	for (int i = 0; i < TEXT_COUNT; i++) {
		const struct text_range *range = &k->text[i];

		if (!range->start || range->end <= range->start)
			continue;
		if (address >= range->start && address < range->end)
			return true;
		known |= i == TEXT_KERNEL;
	}
	return !known;
}

/* How far the function of a symbol can reach. */
static uint64_t extent_limit(const struct kallsyms *k, const struct kernel_symbol *symbol,
			     bool is_last)
{
	if (!symbol->module || !is_last ||
	    !strcmp(strtab__get(k->modules, symbol->module), "[bpf]"))
		return FUNCTION_EXTENT_MAX;
	return MODULE_TAIL_MAX;
}

/* Is it the last one of its module? Then the next symbol is not its end. */
static bool is_last(const struct kallsyms *k, size_t i)
{
	return i + 1 == k->symbols.count ||
	       k->symbols.data[i + 1].module != k->symbols.data[i].module;
}

static struct kernel_function describe(const struct kallsyms *k, size_t i)
{
	const struct kernel_symbol *symbol = &k->symbols.data[i];
	struct kernel_function function = {
		.name = k->names.data + symbol->name,
		.address = symbol->address,
		.module = symbol->module ? strtab__get(k->modules, symbol->module) : NULL,
	};

	if (!is_last(k, i) && symbol[1].address - symbol->address <= FUNCTION_EXTENT_MAX)
		function.size = symbol[1].address - symbol->address;
	return function;
}

int kallsyms__find(struct kallsyms *k, uint64_t address, struct kernel_function *function)
{
	const struct kernel_symbol *symbol;
	size_t count;

	kallsyms__sort(k);
	count = count_up_to(k, address);
	if (!count)
		return -ENOENT;
	symbol = &k->symbols.data[count - 1];
	if (symbol->worth == WORTH_NOTHING ||
	    address - symbol->address >= extent_limit(k, symbol, is_last(k, count - 1)))
		return -ENOENT;
	if (!symbol->module && !in_kernel_text(k, address))
		return -ENOENT;
	*function = describe(k, count - 1);
	return 0;
}

/* End the function in which the address is: what follows it has no name. */
static int cut_at(struct kallsyms *k, uint64_t address)
{
	size_t count = count_up_to(k, address);
	const struct kernel_symbol *before = count ? &k->symbols.data[count - 1] : NULL;

	if (!before || before->address == address || before->worth == WORTH_NOTHING ||
	    !before->module || k->symbols.count >= SYMBOLS_MAX)
		return 0;
	return vec_push(&k->symbols, ((struct kernel_symbol){.address = address,
							     .name = (uint32_t)k->names.count,
							     .module = before->module,
							     .worth = WORTH_NOTHING}));
}

int kallsyms__void(struct kallsyms *k, uint64_t start, uint64_t end, kernel_function_fn gone,
		   void *context)
{
	size_t first;
	int err = 0;

	kallsyms__sort(k);
	first = partition_point(k->symbols.data, k->symbols.count, s, s->address < start);
	for (size_t i = first; i < k->symbols.count && k->symbols.data[i].address < end; i++) {
		struct kernel_symbol *symbol = &k->symbols.data[i];
		const struct kernel_function function = describe(k, i);

		if (!symbol->module || symbol->worth == WORTH_NOTHING)
			continue;
		err = err ?: gone(context, &function);
		symbol->worth = WORTH_NOTHING;
	}
	return err ?: cut_at(k, start);
}

int kallsyms__text_start(const struct kallsyms *k, uint64_t *address)
{
	if (!k->text[TEXT_KERNEL].start)
		return -ENOENT;
	*address = k->text[TEXT_KERNEL].start;
	return 0;
}

bool kallsyms__hidden(const struct kallsyms *k)
{
	return k->lines > k->malformed && !k->nonzero;
}

bool kallsyms__empty(const struct kallsyms *k)
{
	return !k->symbols.count;
}

bool kallsyms__left(const struct kallsyms *k)
{
	return k->left;
}

uint64_t kallsyms__malformed(const struct kallsyms *k)
{
	return k->malformed;
}
