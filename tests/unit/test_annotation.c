/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines and instructions with samples: testdata/annotation.txt; sums of random profiles, beside the report. */
#include "export_support.h"
#include "text_cases.h"

#include <sysprof/profile_code.h>

#include "base/json_writer.h"
#include "formats/out/annotation.h"
#include "formats/out/annotation_code.h"
#include "formats/out/firefox_code.h"
#include "formats/out/html_code.h"
#include "formats/out/report.h"
#include "formats/out/report_rows.h"

#define FIB_C "/src/fib.c"
#define MIN_H "/src/min.h"

static const char fib_c[] = "#include \"min.h\"\n"
			    "\n"
			    "int fib(int n)\n"
			    "{\n"
			    "\tint a = n;\n"
			    "\tif (min(a, 1))\n"
			    "\t\treturn fib(a);\n"
			    "\treturn 1;\n"
			    "}\n"
			    "\n"
			    "/*\n"
			    " * a\n"
			    " * long\n"
			    " * comment\n"
			    " * before\n"
			    " * another\n"
			    " * function\n"
			    " */\n"
			    "int main(void) { return fib(3); }\n";

static const uint8_t fib_code[] = {
	0x55,			      /* 0: push rbp */
	0x48, 0x89, 0xe5,	      /* 1: mov rbp, rsp */
	0x8b, 0x45, 0xfc,	      /* 4: mov eax, [rbp - 4] */
	0x39, 0xd0,		      /* 7: cmp eax, edx */
	0x0f, 0x4f, 0xc2,	      /* 9: cmovg eax, edx */
	0xe8, 0xef, 0xff, 0xff, 0xff, /* c: call fib */
	0x5d, 0xc3,		      /* 11: pop rbp; ret */
};

static const uint8_t main_code[] = {0x90, 0x31, 0xc0, 0x8b, 0x45, 0xfc, 0x90, 0xc3};

static struct function_id function(struct fixture *f, const char *name, uint64_t address,
				   uint32_t definition_line)
{
	struct profile_function function = {
		.name = text(f, name),
		.dso = f->program,
		.address = address ? address : PROFILE_UNKNOWN_ADDRESS,
		.definition_file = definition_line ? text(f, FIB_C) : (struct string_id){0},
		.definition_line = definition_line,
	};

	return profile_builder__function(f->b, &function);
}

static void add_code(struct fixture *f, uint64_t address, const uint8_t *bytes, uint32_t size,
		     const struct profile_code_row *rows, size_t count)
{
	const struct profile_code code = {.dso = f->program,
					  .machine = CODE_MACHINE_X86_64,
					  .address = address,
					  .size = size,
					  .bytes = bytes};

	profile_builder__add_code(f->b, &code, rows, count);
}

/* fib is code of its own, with min inlined; it is inlined into main; a part of it, without code, is cold. */
static void build_fib(struct fixture *f)
{
	static const uint64_t offsets[] = {0x4, 0x4, 0x7, 0xf, 0x11};
	struct location_id main_, call, cold, inlined, at[5];
	struct function_id fib, min, in_main;
	struct thread_id thread;
	unsigned int ms = 1;

	fixture__init(f, 50);
	function(f, "ns::find(int (*)(int)) const", 0x401400, 0);
	function(f, "(anonymous)", 0x401410, 0);
	f->process = add_process(f, 42, "fixture", 0, 0);
	thread = add_thread(f, f->process, 42, true, "fixture", 0);
	main_ = add_location(f, f->program, 0x1101);
	inlined = add_location(f, f->program, 0x1103);
	call = add_location(f, f->program, 0x1210);
	cold = add_location(f, f->program, 0x1304);
	for (int i = 0; i < 5; i++) {
		at[i] = add_location(f, f->program, 0x1200 + offsets[i]);
		add_sample(f, thread, ms++, STACK(f, main_, at[i]), 1, "fixture");
		add_sample(f, thread, ms++, STACK(f, main_, call, call, at[i]), 1, "fixture");
	}
	add_sample(f, thread, ms++, STACK(f, main_, cold), 1, "fixture");
	add_sample(f, thread, ms++, STACK(f, inlined), 1, "fixture");
	add_sample(f, thread, ms++, STACK(f, main_), 1, "fixture");
	NAME(f, main_, {"main", FIB_C, 19, 19, 0, 0x401100, 0, NULL});
	NAME(f, inlined, {"fib", FIB_C, 5, 3, 0, 0x401200, 0, NULL},
	     {"main", FIB_C, 19, 19, 0, 0x401100, 0, NULL});
	NAME(f, call, {"fib", FIB_C, 7, 3, 0, 0x401200, 0, NULL});
	NAME(f, cold, {"fib.cold", FIB_C, 8, 3, 0, 0x401300, 0, NULL});
	NAME(f, at[0], {"fib", FIB_C, 5, 3, 0, 0x401200, 0, NULL});
	NAME(f, at[2], {"min", MIN_H, 2, 0, 0, 0, 0, NULL},
	     {"fib", FIB_C, 6, 3, 0, 0x401200, 0, NULL});
	NAME(f, at[3], {"fib", FIB_C, 7, 3, 0, 0x401200, 0, NULL});
	NAME(f, at[4], {"fib", FIB_C, 9, 3, 0, 0x401200, 0, NULL});
	fib = function(f, "fib", 0x401200, 3);
	min = function(f, "min", 0, 0);
	in_main = function(f, "main", 0x401100, 19);
	add_code(f, 0x1200, fib_code, sizeof(fib_code),
		 (struct profile_code_row[]){
			 {.offset = 0, .function = fib, .file = text(f, FIB_C), .line = 4},
			 {.offset = 4, .function = fib, .file = text(f, FIB_C), .line = 5},
			 {.offset = 7, 1, min, text(f, MIN_H), 2, 0},
			 {.offset = 12, .function = fib, .file = text(f, FIB_C), .line = 7},
			 {.offset = 17, .function = fib, .file = text(f, FIB_C), .line = 9}},
		 5);
	add_code(f, 0x1100, main_code, sizeof(main_code),
		 (struct profile_code_row[]){
			 {.offset = 0, .function = in_main, .file = text(f, FIB_C), .line = 19},
			 {.offset = 3, 1, fib, text(f, FIB_C), 5, 0},
			 {.offset = 6, .function = in_main, .file = text(f, FIB_C), .line = 19}},
		 3);
	profile_builder__add_source(f->b, &(struct profile_source){.path = text(f, FIB_C),
								   .state = SOURCE_CHANGED,
								   .size = sizeof(fib_c) - 1,
								   .text = fib_c});
	add_books(f, 0, 13, 37, 0);
}

/* What is to be annotated, and words of options. Without the head of all reports. */
static void annotate(FILE *out, char *input)
{
	const char *what = text_word(&input), *head;
	const struct report_options options = {
		.shape = REPORT_ANNOTATION,
		.annotate = what,
		.assembly = text_has(input, "asm"),
		.syntax = text_has(input, "att") ? SYNTAX_ATT : SYNTAX_INTEL,
		.whole_source = text_has(input, "source"),
		.json = text_has(input, "json"),
		.color = text_has(input, "color"),
	};
	_cleanup_fixture_ struct fixture f;
	_cleanup_free_ char *data = NULL;
	struct export_request request = {};
	size_t size;
	int err;

	build_fib(&f);
	request.profile = finish(&f);
	request.out = open_memstream(&data, &size);
	err = report_write(&request, &options);
	fclose(request.out);
	head = strstr(data, options.json ? "\"annotation\"" : "# function");
	if (err)
		text_put_error(out, err);
	else
		fputs(head, out);
}

/* The library, its debug id or a dot, the start, the size, and "whole": an answer to the Firefox Profiler. */
static void answer_asm(FILE *out, char *input)
{
	struct firefox_code_request request = {.name = text_word(&input),
					       .debug_id = text_word(&input)};
	_cleanup_fixture_ struct fixture f;
	_cleanup_free_ char *data = NULL;
	const char *why;
	struct json_writer w;
	FILE *json;
	size_t size;

	if (!strcmp(request.debug_id, "."))
		request.debug_id = NULL;
	request.address = text_number(&input, 16);
	request.size = text_number(&input, 16);
	request.whole = text_has(input, "whole");
	build_fib(&f);
	json = open_memstream(&data, &size);
	json_writer__init(&w, json);
	json_begin_object(&w);
	why = firefox_code(finish(&f), &request, &w);
	json_end_object(&w);
	assert_int_equal(json_writer__finish(&w), 0);
	fclose(json);
	fputs(why ?: data, out);
	if (why)
		assert_string_equal(data, "{}");
}

/* ---- the page -------------------------------------------------------------------------------- */

static uint64_t page_number(const char **at)
{
	uint64_t value = 0;

	for (unsigned int shift = 0;; shift += 7) {
		unsigned char byte = (unsigned char)*(*at)++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
}

struct page_reader {
	const char *at;
	const char *strings[200];
};

static const char *page_string(struct page_reader *r)
{
	uint64_t number = page_number(&r->at);

	assert_in_range(number, 0, 199);
	return r->strings[number];
}

static cJSON *read_page_words(struct page_reader *r)
{
	size_t size = page_number(&r->at);
	cJSON *words = cJSON_ParseWithLength(r->at, size);
	const cJSON *strings = cJSON_GetObjectItemCaseSensitive(words, "strings");

	assert_non_null(strings);
	r->at += size;
	for (int i = 0; i < cJSON_GetNumberValue(strings); i++) {
		r->strings[i] = r->at;
		r->at += strlen(r->at) + 1;
	}
	return words;
}

/* Columns become lines: size, text and jump of each instruction; then the rows. */
static void print_page_code(FILE *out, struct page_reader *r)
{
	const char *module = page_string(r), *problem = page_string(r);
	uint64_t address = page_number(&r->at), count = page_number(&r->at),
		 rows = page_number(&r->at), sizes[32], texts[32];

	assert_in_range(count, 1, 32);
	fprintf(out, "code %s %" PRIx64 " %s\n", module, address, *problem ? problem : "-");
	for (uint64_t i = 0; i < count; i++)
		sizes[i] = page_number(&r->at);
	for (uint64_t i = 0; i < count; i++)
		texts[i] = page_number(&r->at);
	for (uint64_t i = 0; i < count; i++)
		fprintf(out, "%" PRIu64 " %s, jump %" PRIu64 "\n", sizes[i], r->strings[texts[i]],
			page_number(&r->at));
	for (uint64_t i = 0; i < rows; i++) {
		uint64_t behind = page_number(&r->at), depth = page_number(&r->at), line;
		const char *name = page_string(r), *file = page_string(r);

		line = page_number(&r->at);
		fprintf(out, "row +%" PRIu64 " depth %" PRIu64 " %s %s %+" PRId64 "\n", behind,
			depth, name, file, (int64_t)(line >> 1) ^ -(int64_t)(line & 1));
	}
}

static void print_page_source(FILE *out, struct page_reader *r)
{
	const char *path = page_string(r), *state = page_string(r);
	uint64_t is_changed = page_number(&r->at);

	fprintf(out, "source %s %s %" PRIu64 "\n", path, state, is_changed);
	for (uint64_t spans = page_number(&r->at); spans; spans--) {
		uint64_t first = page_number(&r->at), size = page_number(&r->at);

		fprintf(out, "from line %" PRIu64 ": %" PRIu64 " bytes, %.*s\n", first, size,
			(int)strcspn(r->at, "\n"), r->at);
		r->at += size;
	}
}

static char *bytes_of(const struct page_code *code, size_t *size)
{
	char *data = NULL;
	FILE *page = open_memstream(&data, size);

	assert_non_null(code);
	assert_int_equal(page_code__write(code, page), 0);
	fclose(page);
	return data;
}

/* What the page has of the code and sources, and the place of each location. */
static void write_page(FILE *out, char *input)
{
	_cleanup_fixture_ struct fixture f;
	_cleanup_free_ char *data = NULL;
	struct page_reader r = {};
	const struct profile *p;
	struct page_code *code;
	cJSON *words;
	size_t size;

	(void)input;
	build_fib(&f);
	p = finish(&f);
	code = page_code__new(p);
	data = bytes_of(code, &size);
	r.at = data;
	words = read_page_words(&r);
	for (int i = 0; i < cJSON_GetNumberValue(cJSON_GetObjectItem(words, "codes")); i++)
		print_page_code(out, &r);
	for (int i = 0; i < cJSON_GetNumberValue(cJSON_GetObjectItem(words, "sources")); i++)
		print_page_source(out, &r);
	assert_ptr_equal(r.at, data + size);
	for (size_t i = 1; i < p->location_count; i++) {
		struct page_place place = page_code__place(code, &p->locations[i]);

		fprintf(out, "%" PRIx64 ": code %" PRIu32 ", instruction %" PRIu32 "\n",
			p->locations[i].address, place.code, place.instruction);
	}
	page_code__free(code);
	cJSON_Delete(words);
}

/* ---- sums ------------------------------------------------------------------------------------ */

static uint64_t sum_of_instructions(const struct annotation *a)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < a->copies.count; i++) {
		_cleanup_(annotation_code__fini) struct annotation_code code;

		assert_int_equal(annotation_code__init(&code, a, &a->copies.data[i], SYNTAX_INTEL),
				 0);
		for (size_t k = 0; k < code.text.count; k++)
			sum += code.counts[k].self;
		if (code.problem)
			sum += a->copies.data[i].counts.self;
	}
	return sum;
}

static void assert_sums(const struct profile *p, const struct report_row *row)
{
	struct annotation a;
	uint64_t lines = 0, copies = 0;

	assert_int_equal(annotation__init(&a, p, row->name), 0);
	for (size_t i = 0; i < a.lines.count; i++)
		lines += a.lines.data[i].counts.self;
	for (size_t i = 0; i < a.copies.count; i++)
		copies += a.copies.data[i].counts.self;
	assert_int_equal(lines, a.counts.self);
	assert_int_equal(copies, a.counts.self);
	assert_int_equal(sum_of_instructions(&a), a.counts.self);
	assert_true(a.counts.self >= row->self && a.counts.total >= row->total);
	annotation__fini(&a);
}

TEST(lines_copies_and_instructions_add_up)
{
	_cleanup_fixture_ struct fixture f;
	_cleanup_free_ struct report_row *rows = NULL;
	const struct profile *p;
	size_t count;

	build_fib(&f);
	p = finish(&f);
	assert_int_equal(report_rows(p, REPORT_FUNCTION, &rows, &count), 0);
	assert_int_equal(count, 4);
	for (size_t i = 0; i < count; i++)
		assert_sums(p, &rows[i]);
}

/* A line is that of the report, where its name and file are unique. */
TEST(lines_are_those_of_the_report)
{
	_cleanup_fixture_ struct fixture f;
	_cleanup_free_ struct report_row *rows = NULL;
	struct annotation a;
	const struct profile *p;
	size_t count, found = 0;

	build_fib(&f);
	p = finish(&f);
	assert_int_equal(annotation__init(&a, p, "fib"), 0);
	assert_int_equal(report_rows(p, REPORT_LINE, &rows, &count), 0);
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < a.lines.count && !strncmp(rows[i].name, "fib", 3); k++) {
			const struct annotation_line *line = &a.lines.data[k];

			if (line->line != rows[i].line)
				continue;
			assert_string_equal(profile__string(p, line->file), rows[i].place);
			assert_int_equal(line->counts.self, rows[i].self);
			assert_int_equal(line->counts.total, rows[i].total);
			found++;
		}
	assert_int_equal(found, 5);
	annotation__fini(&a);
}

/* ---- several sources of one path ------------------------------------------------------------- */

struct named_code {
	enum dso_kind kind;
	uint8_t root;
	const char *name; /* of its source "/a.c" */
};

static void assert_names(const uint8_t *roots, size_t root_count, const struct named_code *codes,
			 size_t count)
{
	_cleanup_fixture_ struct fixture f;
	struct string_id path;
	struct dso_id dsos[8];
	const struct profile *p;
	char name[SOURCE_NAME_SIZE];

	fixture__init(&f, 10);
	path = text(&f, "/a.c");
	for (size_t i = 0; i < count; i++) {
		dsos[i] = profile_builder__dso(f.b, &(struct profile_dso){.kind = codes[i].kind,
									  .path = text(&f, "/x"),
									  .inode = i + 1});
		profile_builder__source_root(f.b, dsos[i], codes[i].root);
	}
	for (size_t i = 0; i < root_count; i++)
		profile_builder__add_source(
			f.b, &(struct profile_source){
				     .path = path, .root = roots[i], .size = 1, .text = "a"});
	p = finish(&f);
	for (size_t i = 0; i < count; i++)
		assert_string_equal(source_name(p, dsos[i], path, name), codes[i].name);
}

#define ASSERT_NAMES(roots, ...)                                                                   \
	assert_names((const uint8_t[]){roots}, sizeof((const uint8_t[]){roots}),                   \
		     (const struct named_code[]){__VA_ARGS__},                                     \
		     sizeof((const struct named_code[]){__VA_ARGS__}) / sizeof(struct named_code))
#define ROOTS(...) __VA_ARGS__

/* Two programs of one name in a page would have one text. */
TEST(other_sources_of_one_path_have_other_names)
{
	ASSERT_NAMES(ROOTS(0, 1), {DSO_FILE, 0, "/a.c"}, {DSO_FILE, 1, "/a.c (root directory 2)"},
		     {DSO_FILE, SOURCE_ROOT_NONE, "/a.c (unknown root directory)"},
		     {DSO_RUNTIME, 0, "/a.c (script)"});
	ASSERT_NAMES(ROOTS(2), {DSO_FILE, 0, "/a.c (root directory 1)"}, {DSO_FILE, 2, "/a.c"});
	ASSERT_NAMES(ROOTS(SOURCE_ROOT_SCRIPTS), {DSO_JIT, 0, "/a.c"},
		     {DSO_FILE, 0, "/a.c (root directory 1)"});
	ASSERT_NAMES(ROOTS(SOURCE_ROOT_ALL), {DSO_JIT, 0, "/a.c"}, {DSO_FILE, 3, "/a.c"});
}

/* Of two files with a sample each. Which path has the lower number differs when a recording is read again. */
static char *page_of_two_files(bool is_read_again, size_t *size)
{
	static const char *const paths[] = {"/a.c", "/b.c"};
	_cleanup_fixture_ struct fixture f;
	struct thread_id thread;
	struct page_code *code;
	char *data;

	fixture__init(&f, 10);
	f.process = add_process(&f, 42, "fixture", 0, 0);
	thread = add_thread(&f, f.process, 42, true, "fixture", 0);
	text(&f, paths[is_read_again]);
	for (unsigned int i = 0; i < 2; i++) {
		struct location_id at = add_location(&f, f.program, 0x1200 + i);

		add_sample(&f, thread, 1 + i, STACK(&f, at), 1, "fixture");
		NAME(&f, at, {"run", paths[i], 1, 1, 0, 0x401200, 0, NULL});
		profile_builder__add_source(f.b,
					    &(struct profile_source){.path = text(&f, paths[i]),
								     .root = SOURCE_ROOT_ALL,
								     .size = 4,
								     .text = paths[i]});
	}
	code = page_code__new(finish(&f));
	data = bytes_of(code, size);
	page_code__free(code);
	return data;
}

TEST(sources_in_a_page_are_not_in_the_order_of_their_numbers)
{
	size_t size, size_again;
	_cleanup_free_ char *data = page_of_two_files(false, &size);
	_cleanup_free_ char *again = page_of_two_files(true, &size_again);

	assert_non_null(memmem(data, size, "/b.c", 4));
	assert_int_equal(size, size_again);
	assert_memory_equal(data, again, size);
}

/* Two programs, of two roots. */
static void assert_files(uint8_t source_root, const char *source, size_t count)
{
	_cleanup_fixture_ struct fixture f;
	struct location_id at[2];
	struct annotation a;
	struct thread_id thread;

	fixture__init(&f, 50);
	f.process = add_process(&f, 42, "fixture", 0, 0);
	thread = add_thread(&f, f.process, 42, true, "fixture", 0);
	for (int i = 0; i < 2; i++) {
		struct dso_id dso = i ? f.libc : f.program;

		profile_builder__source_root(f.b, dso, (uint8_t)i);
		at[i] = add_location(&f, dso, 0x1200);
		add_sample(&f, thread, 1 + i, STACK(&f, at[i]), 1, "fixture");
		NAME(&f, at[i], {"fib", FIB_C, 5, 3, 0, 0x401200, 0, NULL});
	}
	profile_builder__add_source(f.b, &(struct profile_source){.path = text(&f, source),
								  .root = source_root,
								  .size = sizeof(fib_c) - 1,
								  .text = fib_c});
	assert_int_equal(annotation__init(&a, finish(&f), "fib"), 0);
	assert_int_equal(a.lines.count, count);
	annotation__fini(&a);
}

TEST(lines_of_one_source_are_in_one_table)
{
	assert_files(SOURCE_ROOT_ALL, FIB_C, 1);
	assert_files(0, FIB_C, 2);
	assert_files(1, FIB_C, 2);
	assert_files(0, "/another.c", 1); /* there is none */
}

static const struct text_verb verbs[] = {
	{"annotate", annotate}, {"asm", answer_asm}, {"page", write_page}, {}};

TEXT_TABLE("annotation", verbs, NULL, NULL);
