/* SPDX-License-Identifier: BSD-2-Clause */
/* Names that others write and what is read from them: of JIT code, Java methods, programs, source files. */
#include "text_cases.h"

#include "base/cleanup.h"
#include "formats/out/exporters.h"
#include "jit/jit_name.h"
#include "jit/perf_map.h"
#include "live/proc/exec_name.h"
#include "live/proc/command_line.h"
#include "runtimes/java_name.h"
#include "symbolize/demangle.h"
#include "symbolize/dwarf_sources.h"
#include "symbolize/memo.h"
#include "symbolize/module_private.h"
#include "symbolize/dwarf_private.h"

/* Any part of a name is a name, and nothing outside of it is read. */
static void parse_parts_of_jit_name(const char *name, size_t size)
{
	for (size_t start = 0; start <= size; start++) {
		for (size_t end = start; end <= size; end++) {
			_cleanup_free_ char *part = malloc(end - start ?: 1);
			struct jit_name parsed;

			memcpy(part, name + start, end - start);
			parsed = jit_name_parse(part, end - start);
			assert_true(parsed.function.size > 0);
			assert_true(parsed.tier < CODE_TIER_COUNT);
		}
	}
}

static void parse_jit_name(FILE *out, char *input)
{
	const struct jit_name n = jit_name_parse(input, text_size);

	fprintf(out, "%.*s", (int)n.function.size, n.function.text);
	if (n.file.size || n.line || n.column)
		fprintf(out, " | %.*s:%u:%u", (int)n.file.size, n.file.text, n.line, n.column);
	if (n.tier != CODE_TIER_NONE)
		fprintf(out, " | %s", code_tier_text(n.tier));
	parse_parts_of_jit_name(input, text_size);
}

static void parse_java_name(FILE *out, char *input)
{
	static struct java_name name;

	if (java_name__parse(&name, input, text_size))
		fprintf(out, "%s | %s", name.brief, name.full);
	else
		fputs("no method", out);
}

/* Class, method and signature. The result is a name that is read back. */
static void full_java_name(FILE *out, char *input)
{
	const struct java_method m = {strsep(&input, "|"), strsep(&input, "|"), input};
	static struct java_name name;
	char full[256], small[8];

	java_name__full(full, sizeof(full), &m);
	java_name__full(small, sizeof(small), &m);
	assert_memory_equal(small, full, strlen(small));
	assert_int_equal(strlen(small), strlen(full) < sizeof(small) ? strlen(full) : 7);
	fputs(full, out);
	if (!java_name__parse(&name, full, strlen(full)))
		return;
	assert_string_equal(name.full, full);
	fprintf(out, " | %s", name.brief);
}

TEST(what_does_not_fit_or_is_no_text_is_no_java_method)
{
	static struct java_name name;
	_cleanup_free_ char *text = malloc(JAVA_NAME_MAX + 64);

	memset(text, 'a', JAVA_NAME_MAX + 64);
	memcpy(text, "int a.", 6);
	text[JAVA_NAME_MAX - 3] = '(';
	assert_true(java_name__parse(&name, text, JAVA_NAME_MAX - 1));
	assert_false(java_name__parse(&name, text, JAVA_NAME_MAX));
	text[20] = '\0';
	assert_false(java_name__parse(&name, text, JAVA_NAME_MAX - 1));
}

/* The executable, the thread's name, and words of the command line that each end with '|'. */
static void choose_exec_name(FILE *out, char *input)
{
	const char *exe = strsep(&input, "|"), *comm = strsep(&input, "|");
	const size_t size = strlen(input);
	char name[PROC_COMM_SIZE];

	for (char *at = input; (at = strchr(at, '|')); at++)
		*at = '\0';
	exec_name__choose(exe, comm, input, size, name);
	fputs(name, out);
}

/* The size of the buffer, the directory, which may not be there, and the name. */
static void join_source_path(FILE *out, char *input)
{
	char buffer[64];
	const size_t limit = strtoul(strsep(&input, "|"), NULL, 10);
	const char *name = strrchr(input, '|');
	const char *directory = name ? strsep(&input, "|") : NULL;
	int err = source_path(directory, input, buffer, limit);

	err ? text_put_error(out, err) : (void)fputs(buffer, out);
}

TEST(equal_texts_of_different_keys_are_kept_once)
{
	struct memo *m = memo__new();
	char places[1000];
	const char *first;

	assert_non_null(m);
	assert_null(memo__get(m, &places[0]));
	first = memo__put(m, &places[0], "text");
	assert_string_equal(first, "text");
	for (size_t i = 1; i < sizeof(places); i++)
		assert_ptr_equal(memo__put(m, &places[i], i % 2 ? "text" : "other") == first,
				 i % 2);
	assert_ptr_equal(memo__get(m, &places[0]), first);
	assert_ptr_equal(memo__get(m, &places[999]), first);
	assert_string_equal(memo__get(m, &places[998]), "other");
	memo__free(m);
	memo__free(NULL);
}

/* Words with a space between them, each of which becomes a NUL; a tab becomes a space. */
static void find_subject(FILE *out, char *input)
{
	char subject[COMMAND_SUBJECT_SIZE] = "", *words = strstr(input, ": ") + 2;
	const size_t size = strlen(words) + 1;
	_cleanup_free_ char *text = malloc(size); /* ends where it ends, for ASan to guard */

	words[-2] = '\0';
	for (size_t i = 0; i < size; i++)
		text[i] = words[i] == ' ' ? '\0' : words[i] == '\t' ? ' ' : words[i];
	fputs(command_line__subject(input, text, size, subject) ? subject : "none", out);
}

static void is_interpreter(FILE *out, char *input)
{
	fputs(command_is_interpreter(input) ? "yes" : "no", out);
}

static void demangle_name(FILE *out, char *input)
{
	char buffer[DEMANGLED_SIZE];
	size_t length = demangle(input, buffer, sizeof(buffer));

	assert_int_equal(length, strlen(buffer));
	fputs(buffer, out);
}

static void parse_map_line(FILE *out, char *input)
{
	struct perf_map_entry entry;

	if (perf_map_parse_line(input, text_size, &entry))
		fprintf(out, "%llx..%llx %.*s", (unsigned long long)entry.start,
			(unsigned long long)entry.end, (int)entry.name_size, entry.name);
	else
		fputs("refused", out);
}

static void find_exporter(FILE *out, char *input)
{
	const char *why = NULL;
	const struct exporter *exporter = exporter_for_path(input, &why);

	assert_true(!exporter == !!why);
	fputs(exporter ? exporter->name : "none", out);
}

static const struct text_verb verbs[] = {
	{"jit", parse_jit_name},
	{"java", parse_java_name},
	{"java method", full_java_name},
	{"program", choose_exec_name},
	{"source", join_source_path},
	{"command line", find_subject},
	{"interpreter", is_interpreter},
	{"demangle", demangle_name},
	{"perf map", parse_map_line},
	{"exporter", find_exporter},
	{},
};

TEXT_TABLE("names", verbs, NULL, NULL);
