/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's symbols: testdata/kallsyms.txt, hostile text, and the live /proc/kallsyms. */
#include "text_cases.h"

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

static struct kallsyms *table;

static void begin(void)
{
	table = kallsyms__new();
	assert_non_null(table);
}

static void end(void)
{
	kallsyms__free(table);
}

/* A copy of exactly its size, so that a read past the end is seen. */
static void add_text(struct kallsyms *k, const char *text, size_t size)
{
	_cleanup_free_ char *copy = malloc(size ?: 1);

	memcpy(copy, text, size);
	assert_int_equal(kallsyms__add(k, copy, size), 0);
}

static void find(FILE *out, uint64_t address)
{
	struct kernel_function f = {.name = "untouched"};
	int err = kallsyms__find(table, address, &f);

	if (err) {
		assert_string_equal(f.name, "untouched");
		text_put_error(out, err);
		return;
	}
	fprintf(out, "%s %llx", f.name, (unsigned long long)f.address);
	if (f.size)
		fprintf(out, "+%llx", (unsigned long long)f.size);
	if (f.module)
		fprintf(out, " %s", f.module);
}

/* "? ADDRESS…"; or lines, or "small": SMALL. The output is what the table is with them. */
static void find_or_add(FILE *out, char *input)
{
	uint64_t start = 1;
	int err;

	if (*input == '?') {
		for (char *word = strtok(input, "? "); word; word = strtok(NULL, " ")) {
			fputs(ftell(out) ? " | " : "", out);
			find(out, strtoull(word, NULL, 16));
		}
		return;
	}
	if (!strcmp(input, "small"))
		add_text(table, SMALL, strlen(SMALL));
	else
		add_text(table, input, text_size);
	fprintf(out, "%llu malformed", (unsigned long long)kallsyms__malformed(table));
	fputs(kallsyms__empty(table) ? ", empty" : "", out);
	fputs(kallsyms__hidden(table) ? ", hidden" : "", out);
	fputs(kallsyms__left(table) ? ", some left out" : "", out);
	err = kallsyms__text_start(table, &start);
	assert_true(err ? err == -ENOENT && start == 1 : start > 1);
	if (!err)
		fprintf(out, ", text from %llx", (unsigned long long)start);
}

TEST(too_long_tags_and_lines_are_malformed_and_too_many_tags_left_out)
{
	struct kernel_function f;
	char line[700];

	begin();
	snprintf(line, sizeof(line), "1000 t f\t[%065d]\n", 0);
	add_text(table, line, strlen(line));
	snprintf(line, sizeof(line), "ffffffff81000000 T %0600d\n", 0);
	add_text(table, line, strlen(line));
	assert_int_equal(kallsyms__malformed(table), 2);
	assert_true(kallsyms__empty(table));
	for (unsigned int i = 0; i < 70000; i++) {
		snprintf(line, sizeof(line), "%x t f%u\t[m%u]\n", 0x2000 + i * 16, i, i);
		add_text(table, line, strlen(line));
	}
	assert_int_equal(kallsyms__find(table, 0x2000 + 60000 * 16, &f), 0);
	assert_string_equal(f.name, "f60000");
	assert_string_equal(f.module, "[m60000]");
	assert_int_equal(kallsyms__malformed(table), 2);
	assert_true(kallsyms__left(table));
	end();
}

/* An image in order, whose symbol at `late` lies above or below all; two modules after it, the second below. */
static void add_image(struct kallsyms *k, size_t late, const char *late_address)
{
	static const char modules[] = "ffffffffc0000000 t above\t[one]\n"
				      "ffffffff80000010 t below\t[two]\n";
	char line[64];

	for (size_t i = 0; i < 200; i++) {
		snprintf(line, sizeof(line), "ffffffff81%06zx T f%zu\n", i * 16, i);
		if (i == late)
			snprintf(line, sizeof(line), "%s T late\n", late_address);
		add_text(k, line, strlen(line));
	}
	add_text(k, modules, strlen(modules));
}

TEST(symbols_far_from_their_place_are_sorted)
{
	for (size_t late = 0; late < 200; late += 199) {
		struct kallsyms *k = kallsyms__new();
		struct kernel_function f;
		char name[16];

		assert_non_null(k);
		add_image(k, late, late ? "ffffffff80000000" : "ffffffff90000000");
		for (size_t i = 0; i < 200; i++) {
			snprintf(name, sizeof(name), "f%zu", i);
			if (i == late)
				continue;
			assert_int_equal(kallsyms__find(k, 0xffffffff81000000 + i * 16, &f), 0);
			assert_string_equal(f.name, name);
		}
		assert_int_equal(kallsyms__find(k, 0xffffffff80000010, &f), 0);
		assert_string_equal(f.name, "below");
		assert_int_equal(kallsyms__find(k, 0xffffffffc0000000, &f), 0);
		assert_string_equal(f.name, "above");
		assert_int_equal(
			kallsyms__find(k, late ? 0xffffffff80000000 : 0xffffffff90000000, &f), 0);
		assert_string_equal(f.name, "late");
		kallsyms__free(k);
	}
}

/* One by one, in no order, looked up in between: the same in the end as all at once. */
TEST(lines_added_in_any_order_give_the_same_table)
{
	struct kallsyms *all = kallsyms__new(), *k = kallsyms__new();
	struct kernel_function f, expected;
	const char *lines[64];
	size_t count = 0;

	assert_true(all && k);
	add_text(all, SMALL, strlen(SMALL));
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

TEST(functions_from_mutated_text_contain_their_address)
{
	uint64_t seed = 0x2545f4914f6cdd1d;

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

TEST(functions_of_the_live_kernel_are_found_by_address)
{
	static const char *const known[] = {"schedule", "vfs_read", "do_exit", NULL};
	size_t size, found = 0;
	_cleanup_free_ char *text = read_live(&size);
	struct kallsyms *k = kallsyms__new();

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

static const struct text_verb verbs[] = {{"table", find_or_add}, {}};

TEXT_TABLE("kallsyms", verbs, begin, end);
