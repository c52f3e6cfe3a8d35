/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The function table of programs that the machine's own Go made, in all the forms that it has on
 * disk, against the program's symbol table.
 */
#include <elf.h>

#include "unit.h"
#include "base/cleanup.h"
#include "elf/elf_file.h"
#include "elf/elf_symbols.h"
#include "elf/gopclntab.h"

#include "elf/gopclntab_open.h"
#include "unit/go_program.h"

static const char SOURCE[] = "package main\n"
			     "type T[K comparable] struct{ m map[K]int }\n"
			     "//go:noinline\n"
			     "func (t *T[K]) Do(k K) int { t.m[k]++; return t.m[k] }\n"
			     "func main() {\n"
			     "	t := T[string]{m: map[string]int{}}\n"
			     "	f := func(s string) int { return t.Do(s) }\n"
			     "	if f(\"a\") != 1 { panic(\"counted wrong\") }\n"
			     "}\n";

/* The same file without its section headers. */
static void drop_sections(const char *from, const char *to)
{
	size_t size;
	_cleanup_free_ unsigned char *data = read_scratch(from, &size);
	Elf64_Ehdr *header = (Elf64_Ehdr *)data;

	header->e_shoff = header->e_shnum = header->e_shstrndx = 0;
	write_scratch(to, data, size);
}

static void setup(void)
{
	make_go_module(SOURCE);
	run(GO
	    "go build -o exe . && go build -buildmode=pie -o pie . && "
	    "go build -ldflags='-s -w' -o exe-stripped . && "
	    "go build -buildmode=pie -ldflags='-s -w' -o pie-stripped . && "
	    "strip -o exe-strip exe && "
	    "objcopy --rename-section .gopclntab=.other --rename-section .text=.code exe renamed");
	run("printf 'int main(void) { return 0; }' >c.c && ${CC:-cc} -o c c.c");
	drop_sections("exe-stripped", "exe-bare");
	drop_sections("pie-stripped", "pie-bare");
	drop_sections("c", "c-bare");
}

/* A program's own symbols, sorted by address. */
struct symbol {
	uint64_t address;
	char *name;
};

struct symbols {
	struct symbol *data;
	size_t count;
};

static int compare_symbols(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static int take_symbol(void *context, const struct elf_symbol *symbol)
{
	struct symbols *s = context;
	char *suffix;

	s->data = realloc(s->data, (s->count + 1) * sizeof(*s->data));
	assert_non_null(s->data);
	s->data[s->count] = (struct symbol){symbol->address, strdup(symbol->name)};
	suffix = strstr(s->data[s->count].name,
			".abi0"); /* the linker's mark, no part of the name */
	if (suffix)
		*suffix = '\0';
	s->count++;
	return 0;
}

static void free_symbols(struct symbols *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->data[i].name);
	free(s->data);
}

/* Before Go 1.21 the table has "f[...]" for "f[int]", and "type..eq.[...]T" for "type..eq.[5]T". */
static bool is_name_of(const char *name, const char *symbol)
{
	const char *dots = strstr(name, "[...]");
	size_t before = dots ? dots - name : 0, after = dots ? strlen(dots + 5) : 0;
	size_t length = strlen(symbol);

	if (!dots)
		return !strcmp(name, symbol);
	return length > before + after && !strncmp(name, symbol, before) &&
	       !strcmp(dots + 5, symbol + length - after);
}

static bool has_symbol(const struct symbols *s, uint64_t address, const char *name)
{
	size_t low = 0, high = s->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (s->data[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < s->count && s->data[low].address == address; low++) {
		if (is_name_of(name, s->data[low].name))
			return true;
	}
	return false;
}

struct depths {
	uint64_t next;
	size_t stretches;
	int32_t deepest;
};

static int take_depth(void *context, uint64_t start, uint64_t end, int32_t depth)
{
	struct depths *d = context;

	assert_true(start == d->next && end > start);
	if (!d->stretches)
		assert_int_equal(depth, 0);
	d->next = end;
	d->stretches++;
	d->deepest = depth > d->deepest ? depth : d->deepest;
	return 0;
}

/* The linker writes a full stop where the compiler has a middle dot. */
static void full_stops(const char *name, char *text, size_t size)
{
	size_t length = 0;

	for (; *name && length + 1 < size; name++) {
		if (name[0] == '\xc2' && name[1] == '\xb7')
			name++;
		text[length++] = *name == '\xb7' ? '.' : *name;
	}
	text[length] = '\0';
}

/* Starts, ends, names and depths of all functions; -> their count. */
static size_t check_functions(const struct gopclntab *t, const struct symbols *symbols)
{
	size_t found, with_depths = 0;
	uint64_t last = 0;

	for (size_t i = 0; i < gopclntab__count(t); i++) {
		struct go_function function;
		struct depths depths = {};
		char name[4096];

		assert_int_equal(gopclntab__function(t, i, &function), 0);
		assert_true(function.start >= last && function.end > function.start);
		last = function.end;
		full_stops(function.name, name, sizeof(name));
		if (!has_symbol(symbols, function.start, name))
			fail_msg("no symbol %s at %#llx", function.name,
				 (unsigned long long)function.start);
		assert_int_equal(gopclntab__find(t, function.start, &found), 0);
		assert_int_equal(found, i);
		assert_int_equal(gopclntab__find(t, function.end - 1, &found), 0);
		assert_int_equal(found, i);
		depths.next = function.start;
		assert_int_equal(gopclntab__each_depth(t, i, take_depth, &depths), 0);
		assert_true(depths.next <= function.end);
		with_depths += depths.deepest > 0;
	}
	assert_int_equal(gopclntab__find(t, last, &found), -ENOENT);
	assert_int_equal(gopclntab__find(t, 0, &found), -ENOENT);
	assert_true(with_depths > gopclntab__count(t) / 2);
	return gopclntab__count(t);
}

static void check_forms(const char *whole, const char *const *forms)
{
	struct symbols symbols = {};
	struct go_file o;
	size_t count;

	assert_int_equal(open_go_file(whole, &o), 0);
	assert_int_equal(elf_file__each_symbol(o.file, take_symbol, &symbols), 0);
	qsort(symbols.data, symbols.count, sizeof(*symbols.data), compare_symbols);
	count = check_functions(o.table, &symbols);
	assert_true(count > 1000);
	close_go_file(&o);
	for (; *forms; forms++) {
		assert_int_equal(open_go_file(*forms, &o), 0);
		assert_int_equal(check_functions(o.table, &symbols), count);
		close_go_file(&o);
	}
	free_symbols(&symbols);
}

TEST(functions_are_found_without_section_names_or_symbols)
{
	static const char *const forms[] = {"exe-stripped", "exe-strip", "exe-bare", "renamed",
					    NULL};

	check_forms("exe", forms);
}

TEST(functions_of_a_stripped_pie_match_its_symbols)
{
	static const char *const forms[] = {"pie-stripped", "pie-bare", NULL};

	check_forms("pie", forms);
}

/* The only one whose name this could be; otherwise the test has failed. */
static size_t number_of(const struct gopclntab *t, const char *name, struct go_function *function)
{
	for (size_t i = 0; i < gopclntab__count(t); i++) {
		if (!gopclntab__function(t, i, function) && is_name_of(function->name, name))
			return i;
	}
	fail_msg("no function %s", name);
	return 0;
}

TEST(functions_that_switch_or_start_stacks_are_flagged)
{
	struct go_function function;
	struct go_file o;

	assert_int_equal(open_go_file("exe-stripped", &o), 0);
	number_of(o.table, "main.main", &function);
	assert_false(function.writes_sp || function.is_top);
	number_of(o.table, "main.(*T[go.shape.string]).Do", &function);
	number_of(o.table, "runtime.systemstack", &function);
	assert_true(function.id);
	number_of(o.table, "runtime.mstart", &function);
	assert_true(function.id);
	assert_true(function.is_top);
	number_of(o.table, "runtime.mcall", &function);
	assert_true(function.writes_sp);
	close_go_file(&o);
}

static int stop_at_second(void *context, uint64_t start, uint64_t end, int32_t depth)
{
	int *calls = context;

	return ++*calls == 2 ? 17 : 0;
}

TEST(a_callback_that_returns_nonzero_ends_the_iteration)
{
	struct go_function function;
	struct go_file o;
	int calls = 0;
	size_t number;

	assert_int_equal(open_go_file("exe", &o), 0);
	number = number_of(o.table, "main.main", &function);
	assert_int_equal(gopclntab__each_depth(o.table, number, stop_at_second, &calls), 17);
	assert_int_equal(calls, 2);
	number = gopclntab__count(o.table);
	assert_int_equal(gopclntab__each_depth(o.table, number, stop_at_second, &calls), -EBADMSG);
	assert_int_equal(gopclntab__function(o.table, number, &function), -EBADMSG);
	close_go_file(&o);
}

TEST(a_c_program_has_no_gopclntab)
{
	struct go_file o;

	assert_int_equal(open_go_file("c", &o), -ENOENT);
	close_go_file(&o);
	assert_int_equal(open_go_file("c-bare", &o), -ENOENT);
	close_go_file(&o);
}

ALL_TESTS_WITH(setup, remove_scratch);
