/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's symbols: from written text, hostile text, and the live /proc/kallsyms. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "symbolize/kallsyms.h"
#include "symbolize/symbolize.h"

static const char SMALL[] = "0000000000000000 A fixed_percpu_data\n"
			    "ffffffff81000000 T _text\n"
			    "ffffffff81000000 T _stext\n"
			    "ffffffff81000000 t first_code\n"
			    "ffffffff81000100 t __pfx_do_work\n"
			    "ffffffff81000110 T do_work\n"
			    "ffffffff81000200 t local_name\n"
			    "ffffffff81000200 T global_name\n"
			    "ffffffff81000200 W weak\n"
			    "ffffffff81000300 T __sched_text_start\n"
			    "ffffffff81000300 T longer_name\n"
			    "ffffffff81000300 T same_b\n"
			    "ffffffff81000300 T same_a\n"
			    "ffffffff81000400 T __sched_text_end\n"
			    "ffffffff81000480 T after_the_gap\n"
			    "ffffffff81000500 T _etext\n"
			    "ffffffff81001000 D some_data\n"
			    "ffffffff81002000 T _sinittext\n"
			    "ffffffff81002000 t start_kernel\n"
			    "ffffffff81003000 T _einittext\n"
			    "ffffffff81004000 T stray_text\n"
			    "ffffffffc0001000 t mod_b\t[two]\n"
			    "ffffffffc0000000 t mod_a\t[one]\n"
			    "ffffffffc0000080 d mod_data\t[one]\n"
			    "ffffffffc0300000 t bpf_prog_0123456789abcdef_f\t[bpf]\n"
			    "ffffffffc0300200 t bpf_trampoline_6442\t[bpf]\n"
			    "ffffffffc0400000 t ftrace_trampoline\t[__builtin__ftrace]\n"
			    "ffffffffc0400040 t kprobe_insn_page\t[__builtin__kprobes]\n";

static struct kallsyms *table_of(const char *text)
{
	struct kallsyms *k = kallsyms__new();

	assert_non_null(k);
	assert_int_equal(kallsyms__add(k, text, strlen(text)), 0);
	return k;
}

static void assert_function(struct kallsyms *k, uint64_t address, const char *name, uint64_t start,
			    uint64_t size)
{
	struct kernel_function f;

	assert_int_equal(kallsyms__find(k, address, &f), 0);
	assert_string_equal(f.name, name);
	assert_int_equal(f.address, start);
	assert_int_equal(f.size, size);
}

static void assert_nameless(struct kallsyms *k, uint64_t address)
{
	struct kernel_function f = {.name = "untouched"};

	assert_int_equal(kallsyms__find(k, address, &f), -ENOENT);
	assert_string_equal(f.name, "untouched");
}

static void addresses_in_a_function_have_its_name_and_size(void **state)
{
	struct kallsyms *k = table_of(SMALL);

	(void)state;
	assert_function(k, 0xffffffff81000000, "first_code", 0xffffffff81000000, 0x100);
	assert_function(k, 0xffffffff810000ff, "first_code", 0xffffffff81000000, 0x100);
	assert_function(k, 0xffffffff81000104, "__pfx_do_work", 0xffffffff81000100, 0x10);
	assert_function(k, 0xffffffff81000110, "do_work", 0xffffffff81000110, 0xf0);
	assert_function(k, 0xffffffff81000201, "global_name", 0xffffffff81000200, 0x100);
	assert_function(k, 0xffffffff81000333, "same_a", 0xffffffff81000300, 0x100);
	assert_function(k, 0xffffffff810004ff, "after_the_gap", 0xffffffff81000480, 0x80);
	assert_function(k, 0xffffffff81002fff, "start_kernel", 0xffffffff81002000, 0x1000);
	kallsyms__free(k);
}

static void addresses_outside_of_functions_have_no_name(void **state)
{
	struct kallsyms *k = table_of(SMALL);

	(void)state;
	assert_nameless(k, 0);
	assert_nameless(k, 0xffffffff80ffffff);
	assert_nameless(k, 0xffffffff81000440); /* behind a linker's mark */
	assert_nameless(k, 0xffffffff81000500); /* past _etext */
	assert_nameless(k, 0xffffffff81001001); /* data */
	assert_nameless(k, 0xffffffff81004000); /* outside every range of text */
	assert_nameless(k, UINT64_MAX);
	kallsyms__free(k);
}

static void a_modules_last_function_covers_a_limited_range(void **state)
{
	struct kallsyms *k = table_of(SMALL);

	(void)state;
	assert_function(k, 0xffffffffc000007f, "mod_a", 0xffffffffc0000000, 0x80);
	assert_nameless(k, 0xffffffffc0000080);
	/* The last of its module: what is next lies 3 MB off, so its size is not known. */
	assert_function(k, 0xffffffffc0001100, "mod_b", 0xffffffffc0001000, 0);
	assert_function(k, 0xffffffffc0010fff, "mod_b", 0xffffffffc0001000, 0);
	assert_nameless(k, 0xffffffffc0011000); /* 64 KB on it is nobody's */
	assert_nameless(k, 0xffffffffc0101000);
	kallsyms__free(k);
}

static void assert_module(struct kallsyms *k, uint64_t address, const char *name,
			  const char *module)
{
	struct kernel_function f;

	assert_int_equal(kallsyms__find(k, address, &f), 0);
	assert_string_equal(f.name, name);
	if (module)
		assert_string_equal(f.module, module);
	else
		assert_null(f.module);
}

static void functions_have_the_name_of_their_module(void **state)
{
	struct kallsyms *k = table_of(SMALL);

	(void)state;
	assert_module(k, 0xffffffff81000110, "do_work", NULL);
	assert_module(k, 0xffffffffc0000000, "mod_a", "[one]");
	assert_module(k, 0xffffffffc0001000, "mod_b", "[two]");
	assert_module(k, 0xffffffffc0300010, "bpf_prog_0123456789abcdef_f", "[bpf]");
	assert_function(k, 0xffffffffc0300010, "bpf_prog_0123456789abcdef_f", 0xffffffffc0300000,
			0x200);
	/* programs can be long */
	assert_module(k, 0xffffffffc0320000, "bpf_trampoline_6442", "[bpf]");
	assert_module(k, 0xffffffffc0400020, "ftrace_trampoline", "[ftrace]");
	assert_function(k, 0xffffffffc0400020, "ftrace_trampoline", 0xffffffffc0400000, 0);
	assert_module(k, 0xffffffffc0400040, "kprobe_insn_page", "[kprobes]");
	kallsyms__free(k);
}

/* A program that lies where several had been: nothing of theirs is a name of it. */
static void added_code_replaces_the_functions_it_covers(void **state)
{
	static const char before[] = "ffffffffc0300100 t bpf_prog_of_before\t[bpf]\n"
				     "ffffffffc0300300 t bpf_prog_behind\t[bpf]\n";
	static const char large[] = "ffffffffc0300080 t bpf_prog_large\t[bpf]\n"
				    "ffffffffc0300280 a end\t[bpf]\n";
	static const char inside[] = "ffffffffc0300140 t bpf_prog_inside\t[bpf]\n"
				     "ffffffffc0300180 a end\t[bpf]\n";
	static const char odd[] = "ffffffffc0300340 a end\t[bpf]\n"
				  "ffffffffc0300400 t bpf_prog_odd\t[bpf]\n"
				  "ffffffffc0300400 a end\t[bpf]\n"
				  "ffffffff81000110 a end\n";
	struct kallsyms *k = table_of(SMALL);
	struct kernel_function f;

	(void)state;
	kallsyms__add(k, before, strlen(before));
	assert_module(k, 0xffffffffc0300210, "bpf_trampoline_6442", "[bpf]");
	kallsyms__add(k, large, strlen(large));
	assert_function(k, 0xffffffffc0300010, "bpf_prog_0123456789abcdef_f", 0xffffffffc0300000,
			0x80);
	assert_function(k, 0xffffffffc0300110, "bpf_prog_large", 0xffffffffc0300080, 0x200);
	assert_module(k, 0xffffffffc0300210, "bpf_prog_large", "[bpf]");
	assert_int_equal(kallsyms__find(k, 0xffffffffc0300280, &f), -ENOENT);
	assert_module(k, 0xffffffffc0300310, "bpf_prog_behind", "[bpf]");
	/* several at once: the last one counts */
	kallsyms__add(k, inside, strlen(inside));
	kallsyms__add(k, large, strlen(large));
	kallsyms__add(k, inside, strlen(inside));
	assert_module(k, 0xffffffffc0300130, "bpf_prog_large", "[bpf]");
	assert_module(k, 0xffffffffc0300150, "bpf_prog_inside", "[bpf]");
	assert_int_equal(kallsyms__find(k, 0xffffffffc0300190, &f), -ENOENT);
	/* ends that end nothing remove nothing */
	kallsyms__add(k, odd, strlen(odd));
	assert_module(k, 0xffffffffc0300310, "bpf_prog_behind", "[bpf]");
	assert_module(k, 0xffffffffc0300410, "bpf_prog_odd", "[bpf]");
	assert_module(k, 0xffffffff81000110, "do_work", NULL);
	kallsyms__free(k);
}

/* Tags as they must not be; and so many that they have no numbers. */
static void module_tags_are_refused_if_malformed_or_too_many(void **state)
{
	struct kallsyms *k = kallsyms__new();
	char line[128];

	(void)state;
	snprintf(line, sizeof(line), "1000 t f\t[%065d]\n", 0);
	assert_int_equal(kallsyms__add(k, line, strlen(line)), 0);
	assert_int_equal(kallsyms__add(k, "1000 t f\t[a b]\n", 15), 0);
	assert_int_equal(kallsyms__malformed(k), 2);
	assert_int_equal(kallsyms__add(k, "1000 t f\t[__builtin__]\n", 23), 0);
	assert_module(k, 0x1000, "f", "[__builtin__]");
	assert_false(kallsyms__left(k));
	for (unsigned int i = 0; i < 70000; i++) {
		snprintf(line, sizeof(line), "%x t f%u\t[m%u]\n", 0x2000 + i * 16, i, i);
		assert_int_equal(kallsyms__add(k, line, strlen(line)), 0);
	}
	assert_module(k, 0x2000 + 60000 * 16, "f60000", "[m60000]");
	assert_int_equal(kallsyms__malformed(k), 2);
	assert_true(kallsyms__left(k));
	kallsyms__free(k);
}

static void text_may_be_added_in_pieces_and_after_lookups(void **state)
{
	struct kallsyms *k = kallsyms__new();

	(void)state;
	assert_true(kallsyms__empty(k));
	assert_nameless(k, 0xffffffff81000000);
	for (const char *p = SMALL; *p;) {
		const char *end = strchr(p, '\n') + 1;

		assert_int_equal(kallsyms__add(k, p, (size_t)(end - p)), 0);
		p = end;
	}
	assert_function(k, 0xffffffff81000110, "do_work", 0xffffffff81000110, 0xf0);
	/* Text that comes after a look-up counts as well, also without its last newline. */
	assert_int_equal(kallsyms__add(k, "ffffffff81000180 t cut_in", 25), 0);
	assert_function(k, 0xffffffff81000110, "do_work", 0xffffffff81000110, 0x70);
	assert_function(k, 0xffffffff81000180, "cut_in", 0xffffffff81000180, 0x80);
	assert_int_equal(kallsyms__malformed(k), 0);
	kallsyms__free(k);
}

/* One by one, in no order, looked up in between: the same in the end as all at once. */
static void lines_added_in_any_order_give_the_same_table(void **state)
{
	struct kallsyms *all = table_of(SMALL), *k = kallsyms__new();
	struct kernel_function f, expected;
	const char *lines[64];
	size_t count = 0;

	(void)state;
	assert_non_null(k);
	for (const char *p = SMALL; *p; p = strchr(p, '\n') + 1)
		lines[count++] = p;
	for (size_t i = 0; i < count; i++) {
		const char *line = lines[(i * 11 + 5) % count];

		assert_int_equal(kallsyms__add(k, line, strcspn(line, "\n") + 1), 0);
		(void)kallsyms__find(k, 0xffffffff81000480, &f);
	}
	for (uint64_t address = 0xffffffff81000000; address < 0xffffffffc0500000;
	     address += address == 0xffffffff81005000 ? 0x3effb000 : 8) {
		int err = kallsyms__find(all, address, &expected);

		assert_int_equal(kallsyms__find(k, address, &f), err);
		if (err)
			continue;
		assert_string_equal(f.name, expected.name);
		assert_int_equal(f.address, expected.address);
		assert_int_equal(f.size, expected.size);
	}
	kallsyms__free(all);
	kallsyms__free(k);
}

static void text_begins_at_the_kernels_own_stext(void **state)
{
	struct kallsyms *k = table_of(SMALL), *none = table_of("1000 t f\n1000 t _stext\t[m]\n");
	uint64_t address = 1;

	(void)state;
	assert_int_equal(kallsyms__text_start(k, &address), 0);
	assert_int_equal(address, 0xffffffff81000000);
	assert_int_equal(kallsyms__text_start(none, &address), -ENOENT);
	assert_int_equal(address, 0xffffffff81000000);
	kallsyms__free(k);
	kallsyms__free(none);
}

static void a_table_of_zero_addresses_is_hidden(void **state)
{
	struct kallsyms *k = table_of("0000000000000000 T _text\n0000000000000000 T do_work\n");
	struct kallsyms *junk = table_of("nonsense\n\n");

	(void)state;
	assert_true(kallsyms__hidden(k));
	assert_true(kallsyms__empty(k));
	assert_nameless(k, 0);
	assert_nameless(k, 0xffffffff81000000);
	assert_int_equal(kallsyms__add(k, "1000 T f\n", 9), 0);
	assert_false(kallsyms__hidden(k));
	assert_false(kallsyms__hidden(junk));
	kallsyms__free(k);
	kallsyms__free(junk);
}

static void malformed_lines_are_counted_and_skipped(void **state)
{
	static const char *const lines[] = {
		"T do_work",
		" ffffffff81000000 T a",
		"ffffffff81000000",
		"ffffffff81000000 ",
		"ffffffff81000000 T",
		"ffffffff81000000 T ",
		"ffffffff81000000  x",
		"ffffffff81000000 T a b",
		"1ffffffff81000000 T too_many_digits",
		"ffffffff81000000 T a [x",
		"ffffffff81000000 T a []",
		"ffffffff81000000 ? a",
		"ffffffff81000000 T a\x01",
		"0xffffffff81000000 T a",
		"ffffffff81000000 TT a",
	};
	struct kallsyms *k = kallsyms__new();
	size_t count = sizeof(lines) / sizeof(lines[0]);
	char longest[700];

	(void)state;
	for (size_t i = 0; i < count; i++) {
		/* A copy of exactly its size, so that a read past the end is seen. */
		_cleanup_free_ char *copy = malloc(strlen(lines[i]));

		memcpy(copy, lines[i], strlen(lines[i]));
		assert_int_equal(kallsyms__add(k, copy, strlen(lines[i])), 0);
		assert_int_equal(kallsyms__malformed(k), i + 1);
	}
	snprintf(longest, sizeof(longest), "ffffffff81000000 T %0600d\n", 0);
	assert_int_equal(kallsyms__add(k, longest, strlen(longest)), 0);
	assert_int_equal(kallsyms__malformed(k), count + 1);
	assert_true(kallsyms__empty(k));
	assert_int_equal(kallsyms__add(k, "1000 T good\n", 12), 0);
	assert_function(k, 0x1000, "good", 0x1000, 0);
	kallsyms__free(k);
}

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void functions_from_mutated_text_contain_their_address(void **state)
{
	uint64_t seed = 0x2545f4914f6cdd1d;

	(void)state;
	for (int round = 0; round < 3000; round++) {
		size_t size = 1 + next_random(&seed) % (sizeof(SMALL) - 1);
		_cleanup_free_ char *copy = malloc(size);
		struct kallsyms *k = kallsyms__new();

		memcpy(copy, SMALL, size);
		for (uint64_t n = next_random(&seed) % 20; n; n--)
			copy[next_random(&seed) % size] = (char)next_random(&seed);
		assert_int_equal(kallsyms__add(k, copy, size), 0);
		for (int i = 0; i < 20; i++) {
			struct kernel_function f;
			uint64_t address = 0xffffffff81000000 + next_random(&seed) % 0x5000;

			if (!kallsyms__find(k, address, &f)) {
				assert_true(f.address <= address && *f.name);
				assert_true(!f.size || address - f.address < f.size);
			}
		}
		kallsyms__free(k);
	}
}

/* ---- the live kernel ------------------------------------------------------------------------- */

static char *read_live(size_t *size)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/kallsyms", "re");
	size_t capacity = 64 << 20;
	char *text = malloc(capacity);

	assert_non_null(text);
	*size = file ? fread(text, 1, capacity - 1, file) : 0;
	text[*size] = '\0';
	return text;
}

/*
 * At the very start of a function, the answer begins there, and has the line's name unless the
 * address has several. Marks, and code outside of the kernel's text, are not found.
 */
static void check_each_line(struct kallsyms *k, char *text)
{
	size_t lines = 0, requested = 0, found = 0, same_name = 0;
	char *rest = text;

	for (char *line; (line = strsep(&rest, "\n"));) {
		char type, name[600];
		unsigned long long address;
		struct kernel_function f;

		if (sscanf(line, "%llx %c %599s", &address, &type, name) != 3 || !address ||
		    !strchr("Tt", type) || lines++ % 7)
			continue;
		requested++;
		if (kallsyms__find(k, address, &f))
			continue;
		assert_int_equal(f.address, address);
		found++;
		same_name += !strcmp(f.name, name);
	}
	print_message("%zu of %zu found, %zu with the same name\n", found, requested, same_name);
	assert_true(requested > 1000);
	assert_true(found > requested / 10 * 9);
	assert_true(same_name > found / 10 * 9);
}

static void functions_of_the_live_kernel_are_found_by_address(void **state)
{
	static const char *const known[] = {"schedule", "vfs_read", "do_exit", NULL};
	size_t size, found = 0;
	_cleanup_free_ char *text = read_live(&size);
	struct kallsyms *k = kallsyms__new();

	(void)state;
	assert_int_equal(kallsyms__add(k, text, size), 0);
	if (!size || kallsyms__hidden(k)) {
		kallsyms__free(k);
		print_message("skipped: this kernel shows no symbols to this user\n");
		skip();
	}
	assert_int_equal(kallsyms__malformed(k), 0);
	for (int i = 0; known[i]; i++) {
		char pattern[64];
		const char *line;
		struct kernel_function f;

		snprintf(pattern, sizeof(pattern), " T %s\n", known[i]);
		line = strstr(text, pattern);
		if (!line)
			continue;
		assert_int_equal(kallsyms__find(k, strtoull(line - 16, NULL, 16) + 1, &f), 0);
		assert_string_equal(f.name, known[i]);
		assert_true(f.size > 16);
		found++;
	}
	assert_true(found > 0);
	check_each_line(k, text);
	kallsyms__free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_in_a_function_have_its_name_and_size),
		cmocka_unit_test(addresses_outside_of_functions_have_no_name),
		cmocka_unit_test(a_modules_last_function_covers_a_limited_range),
		cmocka_unit_test(functions_have_the_name_of_their_module),
		cmocka_unit_test(module_tags_are_refused_if_malformed_or_too_many),
		cmocka_unit_test(text_may_be_added_in_pieces_and_after_lookups),
		cmocka_unit_test(lines_added_in_any_order_give_the_same_table),
		cmocka_unit_test(added_code_replaces_the_functions_it_covers),
		cmocka_unit_test(text_begins_at_the_kernels_own_stext),
		cmocka_unit_test(a_table_of_zero_addresses_is_hidden),
		cmocka_unit_test(malformed_lines_are_counted_and_skipped),
		cmocka_unit_test(functions_from_mutated_text_contain_their_address),
		cmocka_unit_test(functions_of_the_live_kernel_are_found_by_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
