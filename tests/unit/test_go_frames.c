/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names, lines and inlined calls of Go code, in a program that the machine's own Go made. Three judges:
 * what the program's runtime says of its own instructions, the inline chains of its DWARF, and the
 * same program stripped, which must give the same.
 */
#include "unit.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "elf/elf_file.h"
#include "elf/elf_symbols.h"
#include "elf/gopclntab.h"
#include "elf/gopclntab_open.h"
#include "symbolize/dwarf.h"
#include "symbolize/module_private.h"
#include "symbolize/module.h"

#include "unit/go_program.h"

/* As module.c has them: none if there is no function, or it has no name. */
static size_t go_frames(struct gopclntab *t, uint64_t address, struct symbol_frame *frames,
			uint64_t *until)
{
	size_t number;
	int count;

	if (gopclntab__find(t, address, &number))
		return 0;
	count = gopclntab__frames(t, number, address, frames, until);
	return count > 0 && frames[count - 1].function[0] ? count : 0;
}

#define STEP	13 /* bytes between two instructions that are requested */
#define XSTR(n) STR(n)
#define STR(n)	#n

/*
 * Prints "address line name file" for its own instructions, all that follow each other. Without packages but `runtime`, since
 * each costs seconds of compiling.
 */
static const char SOURCE[] =
	"package main\n"
	"import \"runtime\"\n"
	"func inner(n int) int { if n > 100 { return n * 3 }; return n }\n"
	"func outer(n int) int { return inner(n) + inner(n + 1) }\n"
	"type T[K comparable] struct{ m map[K]int }\n"
	"//go:noinline\n"
	"func (t *T[K]) Do(k K) int { t.m[k]++; return outer(t.m[k]) }\n"
	"func main() {\n"
	"	(&T[string]{m: map[string]int{}}).Do(\"\")\n"
	"	pc, _, _, _ := runtime.Caller(0)\n"
	"	for runtime.FuncForPC(pc - STEP) != nil { pc -= STEP }\n"
	"	for ; runtime.FuncForPC(pc) != nil; pc += STEP {\n"
	"		f, _ := runtime.CallersFrames([]uintptr{pc + 1}).Next()\n"
	"		if f.Function == \"\" { continue }\n"
	"		print(pc, \" \", f.Line, \" \", f.Function, \" \", f.File, \"\\n\")\n"
	"	}\n"
	"}\n"
	"const STEP = " XSTR(STEP) "\n";

static void setup(void)
{
	make_go_module(SOURCE);
	run(GO "go build -o exe . && strip -o stripped exe && go build -buildmode=pie -o pie . && "
	       "go build -buildmode=pie -ldflags='-s -w' -o pie-stripped .");
}

struct opened {
	struct go_file go;
	uint64_t start, end; /* of the text */
};

static void open_table(const char *name, struct opened *o)
{
	struct go_function first, last;

	assert_int_equal(open_go_file(name, &o->go), 0);
	assert_int_equal(gopclntab__function(o->go.table, 0, &first), 0);
	assert_int_equal(gopclntab__function(o->go.table, gopclntab__count(o->go.table) - 1, &last),
			 0);
	o->start = first.start;
	o->end = last.end;
}

static void close_table(struct opened *o)
{
	close_go_file(&o->go);
}

/* The runtime prints type arguments as "[...]". */
static bool is_printed_as(const char *name, const char *printed)
{
	const char *from = strchr(name, '['), *to = strrchr(name, ']');
	char text[4096];

	if (!from || !to || to < from)
		return !strcmp(name, printed);
	snprintf(text, sizeof(text), "%.*s[...]%s", (int)(from - name), name, to + 1);
	return !strcmp(text, printed);
}

static bool begins_function(const struct gopclntab *t, uint64_t address)
{
	struct go_function function;
	size_t number;

	return !gopclntab__find(t, address, &number) &&
	       !gopclntab__function(t, number, &function) && function.start == address;
}

TEST(names_and_lines_are_those_of_the_go_runtime)
{
	struct symbol_frame frames[GO_MAX_FRAMES];
	char line[8192], path[512];
	size_t compared = 0, inlined = 0;
	struct opened o;
	FILE *answers;

	open_table("stripped", &o);
	run("./exe 2>answers");
	scratch_path("answers", path, sizeof(path));
	answers = fopen(path, "re");
	assert_non_null(answers);
	while (fgets(line, sizeof(line), answers)) {
		unsigned long long address;
		unsigned int number;
		int name_at, name_end, file_at;
		uint64_t until = UINT64_MAX;
		size_t count;

		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%llu %u %n", &address, &number, &name_at) != 2)
			fail_msg("cannot read %s", line);
		/* type arguments have spaces; files of this program have none */
		name_end = strrchr(line, ' ') - line;
		file_at = name_end + 1;
		line[name_end] = '\0';
		if (begins_function(o.go.table, address + 1))
			continue; /* the request is for that function: it is a return address */
		count = go_frames(o.go.table, address, frames, &until);
		assert_true(count > 0);
		if (!is_printed_as(frames[0].function, line + name_at) ||
		    frames[0].line != number ||
		    strcmp(frames[0].file ? frames[0].file : "?", line + file_at))
			fail_msg("%llx is %s %s:%u, not %s %s:%u", address, line + name_at,
				 line + file_at, number, frames[0].function,
				 frames[0].file ? frames[0].file : "?", frames[0].line);
		compared++;
		inlined += count > 1;
	}
	fclose(answers);
	assert_true(compared > (o.end - o.start) / STEP * 9 / 10);
	assert_true(inlined > compared / 20);
	close_table(&o);
}

struct agreement {
	size_t all, same, inlined;
};

static bool is_generated(const char *file)
{
	return file && strstr(file, "<autogenerated>");
}

/* Type arguments are in the DWARF, and in the table from Go 1.21 on. */
static bool is_same_level(const struct symbol_frame *go, const struct dwarf_frame *dwarf)
{
	const char *name = dwarf->linkage ? dwarf->linkage : dwarf->name;

	if (!name || (strcmp(name, go->function) && !is_printed_as(name, go->function)))
		return false;
	if (is_generated(go->file)) /* the DWARF has no line for some of these */
		return go->line == 1;
	return go->line == dwarf->where.line && go->file && dwarf->where.file &&
	       !strcmp(go->file, dwarf->where.file);
}

static void compare(struct opened *o, struct dwarf_reader *reader, uint64_t address,
		    struct agreement *a)
{
	struct symbol_frame frames[GO_MAX_FRAMES];
	const struct dwarf_frame *dwarf;
	uint64_t until = UINT64_MAX;
	size_t count = go_frames(o->go.table, address, frames, &until);
	struct dwarf_chain chain;
	bool same;

	assert_int_equal(dwarf_reader__resolve(reader, address, &chain), 0);
	if (!chain.count) /* between two functions */
		return;
	dwarf = chain.frames;
	same = count == chain.count;
	for (size_t i = 0; same && i < count; i++)
		same = is_same_level(&frames[i], &dwarf[i]);
	if (!same && a->all - a->same < 3)
		print_message("%llx: %s %s:%u, DWARF: %s %s:%u\n", (unsigned long long)address,
			      frames[0].function, frames[0].file, frames[0].line,
			      dwarf[0].name ? dwarf[0].name : "?",
			      dwarf[0].where.file ? dwarf[0].where.file : "?", dwarf[0].where.line);
	a->all++;
	a->same += same;
	a->inlined += count > 1;
}

/* All but what the DWARF of Go 1.19 gets wrong, 12 of 40,000. */
TEST(inline_chains_agree_with_the_dwarf)
{
	static const char *const programs[] = {"exe", "pie"};

	for (size_t i = 0; i < 2; i++) {
		struct dwarf_options options = {.alt_fd = -1, .memory_limit = 1 << 30};
		struct agreement a = {};
		struct dwarf_reader *reader;
		struct opened o;

		open_table(programs[i], &o);
		assert_int_equal(dwarf_reader__open(o.go.fd, &options, &reader), 0);
		for (uint64_t address = o.start; address < o.end; address += STEP)
			compare(&o, reader, address, &a);
		assert_true(a.all > 20000 && a.inlined > a.all / 20);
		assert_true(a.all - a.same <= a.all / 1000);
		dwarf_reader__free(reader);
		close_table(&o);
	}
}

/* ---- the whole way --------------------------------------------------------------------------- */

struct reported {
	VEC(char *) lines;
};

static int push(void *context, size_t index, const struct symbol_result *result)
{
	struct reported *t = context;
	char text[8192];

	for (size_t i = 0; i < result->frame_count; i++) {
		const struct symbol_frame *f = &result->frames[i];

		snprintf(text, sizeof(text), "%zu %s %s:%u %s:%u", index, f->function,
			 f->file ? f->file : "?", f->line,
			 f->definition_file ? f->definition_file : "?", f->definition_line);
		assert_int_equal(vec_push(&t->lines, strdup(text)), 0);
	}
	return 0;
}

static struct reported resolve(const char *name, bool symbols_only, struct module_report *report)
{
	VEC(uint64_t) offsets = {};
	struct module_files files = {
		.kind = DSO_FILE, .debug_fd = -1, .alt_fd = -1, .symbols_only = symbols_only};
	struct reported reported = {};
	struct opened o;

	open_table(name, &o);
	files.elf_fd = o.go.fd;
	for (uint64_t address = o.start; address < o.end; address += 40 * STEP) {
		uint64_t offset;

		assert_int_equal(elf_file__offset_of_address(o.go.file, address, &offset), 0);
		assert_int_equal(vec_push(&offsets, offset), 0);
	}
	assert_int_equal(
		module_resolve(&files, offsets.data, offsets.count, push, &reported, report), 0);
	assert_int_equal(report->state, SYMBOL_STATE_RESOLVED);
	assert_int_equal(report->addresses, offsets.count);
	vec_free(&offsets);
	close_table(&o);
	return reported;
}

static void free_reported(struct reported *reported)
{
	for (size_t i = 0; i < reported->lines.count; i++)
		free(reported->lines.data[i]);
	vec_free(&reported->lines);
}

static bool has_most_lines(const struct module_report *report)
{
	return report->with_lines > report->addresses * 9 / 10;
}

static void assert_same(const char *whole, const char *stripped)
{
	struct module_report report = {}, stripped_report = {}, only_report = {};
	struct reported a = resolve(whole, false, &report);
	struct reported b = resolve(stripped, false, &stripped_report);
	struct reported c = resolve(stripped, true, &only_report);

	assert_true(has_most_lines(&report) && has_most_lines(&stripped_report));
	assert_int_equal(report.dwarf, DWARF_STATE_NONE); /* was not needed */
	assert_int_equal(stripped_report.dwarf, DWARF_STATE_NONE);
	assert_int_equal(a.lines.count, b.lines.count);
	assert_int_equal(a.lines.count, c.lines.count);
	assert_true(report.with_symbol && !stripped_report.with_symbol);
	for (size_t i = 0; i < a.lines.count; i++) {
		assert_string_equal(a.lines.data[i], b.lines.data[i]);
		assert_string_equal(a.lines.data[i], c.lines.data[i]);
	}
	free_reported(&a);
	free_reported(&b);
	free_reported(&c);
}

TEST(stripped_modules_have_the_frames_of_whole_ones)
{
	assert_same("exe", "stripped");
	assert_same("pie", "pie-stripped");
}

static int take_module(void *context, const struct elf_symbol *symbol)
{
	uint64_t *address = context;

	if (strcmp(symbol->name, "runtime.firstmoduledata"))
		return 0;
	*address = symbol->address;
	return 1;
}

/* A copy in which the words of moduledata are not those of any version, from the bounds of the text on. */
static void forge_newer(const char *name, const char *newer)
{
	_cleanup_free_ unsigned char *data = NULL;
	uint64_t address, offset;
	struct opened o;
	size_t size;

	open_table("exe", &o);
	assert_int_equal(elf_file__each_object(o.go.file, false, take_module, &address), 1);
	close_table(&o);
	open_table(name, &o);
	assert_int_equal(elf_file__offset_of_address(o.go.file, address, &offset), 0);
	close_table(&o);
	data = read_scratch(name, &size);
	memset(data + offset + 24 * sizeof(uint64_t), 0, 24 * sizeof(uint64_t));
	write_scratch(newer, data, size);
}

/* The table of a later Go, with moduledata that is not read, gives way to DWARF, or is marked. */
TEST(inlined_calls_of_an_unknown_go_are_those_of_dwarf_or_marked)
{
	struct module_report whole = {}, stripped = {};
	struct reported a, b;

	forge_newer("exe", "newer");
	forge_newer("stripped", "newer-stripped");
	a = resolve("newer", false, &whole);
	b = resolve("newer-stripped", false, &stripped);
	assert_int_equal(whole.dwarf, DWARF_STATE_READ);
	assert_true(has_most_lines(&whole));
	assert_int_equal(stripped.dwarf, DWARF_STATE_GO);
	assert_true(stripped.with_lines && stripped.with_lines < whole.with_lines);
	free_reported(&a);
	free_reported(&b);
}

ALL_TESTS_WITH(setup, remove_scratch);
