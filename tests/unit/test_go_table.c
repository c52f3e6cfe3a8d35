/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of a Go program, made by the machine's own Go, against its function table; and of damaged ones.
 */
#include "unit.h"
#include "base/cleanup.h"
#include "elf/elf_sections.h"
#include "elf/gopclntab.h"
#include "elf/gopclntab_open.h"
#include "models/unwind_find.h"
#include "unit/go_program.h"
#include "unwind/unwind_table.h"

#define LIMIT (UINT64_C(16) << 20)

static const char SOURCE[] = "package main\n"
			     "func main() { println(\"x\") }\n";

static void setup(void)
{
	make_go_module(SOURCE);
	run(GO "go build -o exe . && go build -buildmode=pie -o pie . && "
	       "go build -ldflags='-s -w' -o stripped . && strip stripped");
}

struct opened {
	struct go_file go;
	struct unwind_table_image image;
};

static void open_all(const char *name, struct opened *o)
{
	assert_int_equal(open_go_file(name, &o->go), 0);
	assert_int_equal(unwind_table__build(o->go.file, LIMIT, &o->image), 0);
}

static void close_all(struct opened *o)
{
	unwind_table_image__fini(&o->image);
	close_go_file(&o->go);
}

static const struct unwind_rule *rule_at(const struct opened *o, uint64_t address)
{
	return unwind_table__find(o->image.bytes, &o->image.table, address);
}

static bool look_up(const struct opened *o, const char *name, struct go_function *f)
{
	for (size_t i = 0; i < gopclntab__count(o->go.table); i++) {
		if (!gopclntab__function(o->go.table, i, f) && !strcmp(f->name, name))
			return true;
	}
	return false;
}

static struct go_function find(const struct opened *o, const char *name)
{
	struct go_function f;

	if (!look_up(o, name, &f))
		fail_msg("there is no %s", name);
	return f;
}

/* ---- ordinary functions ---------------------------------------------------------------------- */

struct check {
	const struct opened *o;
	size_t stretches, saved;
	uint64_t start; /* of the function */
};

static int check_stretch(void *context, uint64_t start, uint64_t end, int32_t depth)
{
	struct check *c = context;
	const uint64_t places[] = {start, end - 1, start + (end - start) / 2};

	for (size_t i = 0; i < 3; i++) {
		const struct unwind_rule *rule = rule_at(c->o, places[i]);

		assert_int_equal(rule->cfa, UNWIND_CFA_SP);
		assert_int_equal(rule->cfa_offset, depth + 8);
		assert_int_equal(rule->ra_offset, -8);
		if (!depth)
			assert_int_equal(rule->fp, UNWIND_FP_SAME);
		c->saved += rule->fp == UNWIND_FP_AT_CFA && rule->fp_offset == -16;
	}
	c->stretches++;
	return 0;
}

static bool is_special(const struct opened *o, const struct go_function *f)
{
	return f->writes_sp || f->is_top || f->start == elf_file__entry(o->go.file) ||
	       !strcmp(f->name, "_rt0_amd64") || strstr(f->name, "sigreturn");
}

TEST(go_rules_have_the_depths_of_the_function_table)
{
	static const char *const NAMES[] = {"exe", "pie", "stripped"};

	for (size_t i = 0; i < 3; i++) {
		struct check check = {};
		struct opened o;
		size_t functions = 0;

		open_all(NAMES[i], &o);
		check.o = &o;
		for (size_t n = 0; n < gopclntab__count(o.go.table); n++) {
			struct go_function f;

			assert_int_equal(gopclntab__function(o.go.table, n, &f), 0);
			if (is_special(&o, &f))
				continue;
			assert_int_equal(
				gopclntab__each_depth(o.go.table, n, check_stretch, &check), 0);
			functions++;
		}
		assert_true(functions > 500 && check.stretches > 2 * functions);
		assert_true(check.saved > functions);
		close_all(&o);
	}
}

/* ---- others ---------------------------------------------------------------------------------- */

static size_t count_rules(const struct opened *o, const char *name, enum unwind_cfa cfa)
{
	struct go_function f = find(o, name);
	size_t count = 0;

	for (uint64_t at = f.start; at < f.end; at++)
		count += rule_at(o, at)->cfa == cfa;
	return count;
}

TEST(special_runtime_functions_have_rules_of_their_own)
{
	struct go_function f;
	struct opened o;
	size_t size;

	open_all("stripped", &o);
	for (const char *const *name = (const char *const[]){"runtime.goexit", "runtime.mstart",
							     "runtime.rt0_go", NULL};
	     *name; name++) {
		f = find(&o, *name);
		assert_int_equal(rule_at(&o, f.start)->cfa, UNWIND_CFA_ROOT);
		assert_int_equal(rule_at(&o, f.start + 5)->cfa, UNWIND_CFA_ROOT);
	}
	/* where it leads depends on whether it has a frame */
	f = find(&o, "runtime.systemstack");
	size = count_rules(&o, f.name, UNWIND_CFA_SWITCH) +
	       count_rules(&o, f.name, UNWIND_CFA_GO_CALLER);
	assert_true(size > 30 && size < f.end - f.start - 20);
	assert_int_equal(rule_at(&o, f.start)->cfa, UNWIND_CFA_SP);
	assert_true(count_rules(&o, "runtime.asmcgocall", UNWIND_CFA_SWITCH) +
			    count_rules(&o, "runtime.asmcgocall", UNWIND_CFA_GO_DEPTH) >
		    30);
	assert_true(count_rules(&o, "runtime.nanotime1", UNWIND_CFA_SWITCH) > 30);
	assert_true(count_rules(&o, "runtime.mcall", UNWIND_CFA_ROOT) > 5);
	assert_true(count_rules(&o, "runtime.mcall", UNWIND_CFA_SP) > 30);
	assert_true(count_rules(&o, "runtime.morestack", UNWIND_CFA_GO_INTERRUPTED) > 5);
	f = find(&o, "runtime.asyncPreempt");
	assert_int_equal(rule_at(&o, f.start)->ra, UNWIND_RA_INTERRUPTED);
	f = find(&o, "runtime.sigpanic");
	assert_int_equal(rule_at(&o, f.start)->ra, UNWIND_RA_INTERRUPTED);
	f = find(&o, "runtime.sigtramp");
	assert_int_equal(rule_at(&o, f.start)->cfa, UNWIND_CFA_SP);
	if (!look_up(&o, "runtime.sigreturn__sigaction", &f))
		f = find(&o, "runtime.sigreturn"); /* before Go 1.20 */
	assert_int_equal(rule_at(&o, f.start - 1)->cfa, UNWIND_CFA_SIGNAL);
	assert_int_equal(rule_at(&o, f.start)->cfa, UNWIND_CFA_SIGNAL);
	close_all(&o);
}

/* Symbols and sections that a program does not need make no difference. */
TEST(a_stripped_program_has_the_same_rules)
{
	struct opened a, b;
	struct go_function f;

	open_all("exe", &a);
	open_all("stripped", &b);
	assert_int_equal(a.image.rows, b.image.rows);
	f = find(&a, "runtime.mallocgc");
	for (uint64_t at = f.start; at < f.end; at++)
		assert_memory_equal(rule_at(&a, at), rule_at(&b, at), sizeof(struct unwind_rule));
	close_all(&a);
	close_all(&b);
}

TEST(a_table_beyond_the_limit_is_too_big)
{
	struct unwind_table_image image;
	struct opened o;

	open_all("exe", &o);
	assert_int_equal(unwind_table__build(o.go.file, o.image.size - 1, &image), -EFBIG);
	assert_int_equal(unwind_table__build(o.go.file, 1000, &image), -EFBIG);
	close_all(&o);
}

/* Bytes of the function table and of the code are changed: whatever comes of it is a table that can be searched. */
TEST(tables_of_damaged_programs_can_be_searched)
{
	_cleanup_free_ unsigned char *data = NULL;
	struct elf_section tables, text;
	struct opened o;
	size_t size, built = 0;

	open_all("exe", &o);
	assert_int_equal(elf_file__find_section(o.go.file, ".gopclntab", &tables), 0);
	assert_int_equal(elf_file__find_section(o.go.file, ".text", &text), 0);
	close_all(&o);
	data = read_scratch("exe", &size);
	srandom(1);
	for (int round = 0; round < 20; round++) {
		struct unwind_table_image image;
		struct elf_file *file;
		_cleanup_close_ int fd = -1;

		for (int i = 0; i < 200 << (round / 4); i++) {
			const struct elf_section *s = i & 1 ? &tables : &text;

			data[s->offset + 128 + random() % (s->size - 128)] = random();
		}
		write_scratch("damaged", data, size);
		fd = open_scratch("damaged", O_RDONLY);
		assert_int_equal(elf_file__open(fd, &file), 0);
		if (!unwind_table__build(file, LIMIT, &image)) {
			assert_true(image.size <= LIMIT);
			for (uint64_t at = text.address; at < text.address + text.size; at += 61)
				assert_true(
					unwind_table__find(image.bytes, &image.table, at)->cfa <=
					UNWIND_CFA_UNKNOWN);
			unwind_table_image__fini(&image);
			built++;
		}
		elf_file__free(file);
	}
	assert_true(built > 5);
}

ALL_TESTS_WITH(setup, remove_scratch);
