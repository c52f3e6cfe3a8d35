/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a reader answers about methods of HotSpot's: of forged memory, as it was at the sample and as it is no more:
 * testdata/code_answers.txt. Here: limits, and what is listed.
 */
#include "text_cases.h"
#include "base/clocks.h"
#include "hotspot_image.h"
#include "runtimes/hotspot/answers.h"
#include "runtimes/hotspot/heap.h"
#include "runtimes/hotspot/hotspot.h"
#include "runtimes/hotspot/known.h"
#include "runtimes/hotspot/layout.h"
#include "runtimes/place/code_functions.h"
#include "stream/event_decode.h"

#define LIMIT	     (1u << 20)
#define CONST_METHOD 0xa0 /* of a method of the image's */

/* The JVM of the running test, what is found of it, and the answers. */
static struct scene {
	struct hotspot_image image;
	struct hotspot_found found;
	struct target_memory memory;
	struct code_answers answers;
	struct code_question asked;
	uint64_t reads; /* of the last question */
} * s;

static void tear_down(void)
{
	if (!s)
		return;
	java_runtime.memory->fini(&s->found);
	code_answers__fini(&s->answers);
	free(s);
	s = NULL;
}

static void given(bool is_moved)
{
	struct hotspot_found *f;

	tear_down();
	s = calloc(1, sizeof(*s));
	assert_non_null(s);
	f = &s->found;
	image_init(&s->image, is_moved);
	s->memory = image_memory(&s->image);
	assert_int_equal(hotspot_layout__read(&f->layout, &s->memory, s->image.exports), 0);
	assert_int_equal(hotspot_code__read(&f->code, &f->layout, &s->memory), 0);
	f->is_read = true;
	s->answers = (struct code_answers){.pid = 10, .limit = LIMIT};
}

static void put(uint64_t at, uint64_t value, size_t size)
{
	image_put(&s->image, at, value, size);
}

static int request(const struct code_question *q)
{
	return java_runtime.memory->answer(&s->found, &s->answers, &s->memory, q);
}

static uint64_t compiled_blob(void)
{
	return image_code_of(IMAGE_COMPILED) - IMAGE_HEADER;
}

#define METHOD (IMAGE_BASE + IMAGE_METHODS)

/* Of what returns to `offset` in the method. */
static struct code_question about_code(uint64_t offset)
{
	return (struct code_question){
		.kind = FRAME_NOTE_HOTSPOT_CODE,
		.function = compiled_blob(),
		.check = (uint64_t)IMAGE_COMPILE_ID << 32 | (uint32_t)METHOD,
		.address = image_code_of(IMAGE_COMPILED) + offset - 1,
	};
}

static struct code_question about_method(void)
{
	return (struct code_question){
		.kind = FRAME_NOTE_HOTSPOT, .function = METHOD, .check = METHOD + CONST_METHOD};
}

static void put_function(FILE *out, const struct code_function_event *e)
{
	static const char before[] = "void a.b.Outer.", behind[] = "(int, java.lang.String[][])";
	const char *name = code_function__name(e), *end = strstr(name, behind);

	if (e->state != CODE_STATE_CONFIRMED)
		fputs(e->state == CODE_STATE_STALE ? " stale" : " unknown", out);
	if (!strncmp(name, before, strlen(before)) && end && !end[strlen(behind)])
		fprintf(out, " %.*s(…)", (int)(end - name - strlen(before)), name + strlen(before));
	else
		fprintf(out, "%s%s", *name ? " " : "", name);
	if (*code_function__file(e))
		fprintf(out, " %s:%u",
			strcmp(code_function__file(e), "a/b/Outer.java") ? code_function__file(e)
									 : "…",
			e->line);
	if (e->header.flags & EVENT_DOUBTFUL)
		fputs(" doubtful", out);
}

static void put_call(FILE *out, const struct code_call *call)
{
	const bool is_run = call->function == s->image.method,
		   is_inlined = call->function == s->image.inlined;

	fputs(call->function == image_code_of(IMAGE_STUBS) - IMAGE_HEADER ? " stub"
	      : is_run							  ? " run"
	      : is_inlined						  ? " call"
									  : " code",
	      out);
	if (is_run || is_inlined)
		assert_int_equal(call->check, call->function + CONST_METHOD);
	else if (call->function == s->asked.function)
		assert_int_equal(call->check, s->asked.check);
	if (call->line)
		fprintf(out, ":%u", call->line);
}

static void put_chain(FILE *out, const struct code_chain_event *chain)
{
	assert_int_equal(chain->header.type, EVENT_CODE_CHAIN);
	assert_int_equal(chain->function, s->asked.function);
	assert_int_equal(chain->address, s->asked.address);
	fputs(chain->state == CODE_STATE_STALE	    ? "stale "
	      : chain->state == CODE_STATE_INFERRED ? "inferred "
	      : chain->state == CODE_STATE_UNKNOWN  ? "unknown "
						    : "",
	      out);
	fputs("chain", out);
	for (uint32_t i = 0; i < chain->call_count; i++)
		put_call(out, &chain->calls[i]);
}

/* The answers from `at` on: "method NAME FILE:LINE", "code NAME", "chain CALL:LINE …". */
static void put_answers(FILE *out, size_t at)
{
	const struct event_header *event;
	const struct code_function_event *f;
	const size_t begin = at;

	for (; at < s->answers.bytes.count; at += event->size) {
		event = (const void *)(s->answers.bytes.data + at);
		f = (const void *)event;
		fputs(at > begin ? "; " : "", out);
		assert_int_equal(event_check(event, s->answers.bytes.count - at), 0);
		if (event->type != EVENT_CODE_FUNCTION) {
			put_chain(out, (const void *)event);
			continue;
		}
		fputs(f->kind == FRAME_NOTE_HOTSPOT ? "method" : "code", out);
		put_function(out, f);
	}
	if (begin == s->answers.bytes.count)
		fputs("nothing", out);
}

/* ---- changes of the memory -------------------------------------------------------------------- */

/* Over the method's own name, without another length. */
static void rename_method(char last)
{
	uint8_t *at = memmem(s->image.bytes + (s->image.method - IMAGE_BASE), 0x200, "ru", 2);

	assert_non_null(at);
	at[2] = last;
}

/* While it is read another one comes to lie there. */
static int change_while_reading(void *context, void *to, size_t size, uint64_t address)
{
	struct hotspot_image *i = context;
	int err = image_read(i, to, size, address);

	if (address == i->inlined + CONST_METHOD)
		image_put(i, compiled_blob() - IMAGE_BASE + 72, IMAGE_COMPILE_ID + 1, 4);
	return err;
}

/* While it is read its class is unloaded. */
static int unload_while_reading(void *context, void *to, size_t size, uint64_t address)
{
	struct hotspot_image *i = context;
	int err = image_read(i, to, size, address);

	if (address == i->method + CONST_METHOD && image_word(i, IMAGE_UNLOADS) == 5) {
		put(IMAGE_UNLOADS, 6, 8);
		rename_method('b');
	}
	return err;
}

#define RETURN (image_code_of(IMAGE_STUBS) + 0x40)

static void set_call_return(uint64_t value)
{
	struct hotspot_layout *l = &s->found.layout;

	put(IMAGE_STATICS + 64, value, 8);
	l->known[HOTSPOT_CALL_STUB_RETURN] = true;
	l->at[HOTSPOT_CALL_STUB_RETURN] = IMAGE_BASE + IMAGE_STATICS + 64;
	s->found.code.call_return = value;
}

/* Named places of the image, and what a step writes there. */
static bool take_change(const char *name, char *words)
{
	const uint64_t blob = compiled_blob() - IMAGE_BASE, method = s->image.method - IMAGE_BASE;
	const struct {
		const char *name;
		uint64_t at, value;
		size_t size;
	} changes[] = {
		{"unload", IMAGE_UNLOADS, 6, 8},
		{"no-counters", IMAGE_PERF, 0, 4}, /* -XX:-UsePerfData */
		{"compile-id", blob + 72, text_number(&words, 10), 4},
		{"free", blob - IMAGE_BLOCK + 8, 0, 1},
		{"use", blob - IMAGE_BLOCK + 8, 1, 1},
		{"unmap", IMAGE_MAP + IMAGE_COMPILED, 0xff, 1},
		{"replace", method + 8, s->image.inlined + CONST_METHOD, 8},
		{"redefine", method + CONST_METHOD + 16, 3, 2}, /* its name is the pool's third */
		{"circle", IMAGE_DEBUG + 32 + 4, 4 + 1, 1},
		{"no-circle", IMAGE_DEBUG + 32 + 4, 1 + 1, 1},
		{"no-method", IMAGE_DEBUG + 0x80 + 8, 0x1234567, 8},
		{"stub-id", image_code_of(IMAGE_STUBS) - IMAGE_HEADER - IMAGE_BASE + 72, 0x99, 4},
	};

	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		if (strcmp(name, changes[i].name))
			continue;
		put(changes[i].at, changes[i].value, changes[i].size);
		return true;
	}
	return false;
}

/* ---- the table ------------------------------------------------------------------------------- */

static void begin_request(void)
{
	code_answers__fini(&s->answers);
	java_runtime.memory->begin(&s->found, &s->memory);
}

/* What it takes: only what shows that it is the same, its place and surroundings, or all of it. */
static void put_reads(FILE *out)
{
	fputs(s->reads <= 3 ? "known: " : s->reads <= 10 ? "looked at: " : "read: ", out);
}

static void ask(FILE *out, const char *what, char *words)
{
	const size_t at = s->answers.bytes.count;
	const uint64_t stub = image_code_of(IMAGE_STUBS) - IMAGE_HEADER, reads = s->image.reads;
	struct code_question q =
		!strcmp(what, "method") ? about_method()
		: !strcmp(what, "code")
			? about_code(text_option(words, "at=", 0))
			: (struct code_question){.kind = FRAME_NOTE_HOTSPOT_CODE,
						 .function = stub,
						 .address = stub + IMAGE_HEADER + 4};

	q.check += text_option(words, "check+", 0) + (text_option(words, "id+", 0) << 32);
	q.address += text_option(words, "address+", 0);
	q.function += text_option(words, "function+", 0);
	q.function = text_has(words, "elsewhere") ? 0x7fff00001000 : q.function;
	q.check = text_has(words, "without-id") ? (uint32_t)q.check : q.check;
	q.time = text_has(words, "now")	    ? monotonic_ns()
		 : text_has(words, "later") ? UINT64_MAX
					    : 0;
	q.is_answered = text_has(words, "again");
	s->asked = q;
	assert_int_equal(request(&q), 0);
	s->reads = s->image.reads - reads;
	if (text_has(words, "counted"))
		put_reads(out);
	put_answers(out, at);
}

/* Of the first answer. */
static void put_lines(FILE *out, char *words)
{
	const struct code_function_event *e = (const void *)s->answers.bytes.data;
	const struct code_row *row;

	fputs("lines", out);
	for (const char *word; *(word = text_word(&words));) {
		row = code_function__row(e, (uint32_t)strtoul(word, NULL, 10));
		fprintf(out, " %d", row ? (int)row->line : -1);
	}
}

static bool take_step(FILE *out, const char *name, char *words)
{
	if (!strcmp(name, "jvm"))
		given(text_has(words, "moved"));
	else if (!strcmp(name, "request"))
		begin_request();
	else if (!strcmp(name, "method") || !strcmp(name, "code") || !strcmp(name, "stub"))
		ask(out, name, words);
	else if (!strcmp(name, "lines"))
		put_lines(out, words);
	else if (!strcmp(name, "rename"))
		rename_method(*words);
	else if (!strcmp(name, "unread"))
		s->found.is_read = false;
	else if (!strcmp(name, "while-reading"))
		s->memory.read = !strcmp(words, "replace")  ? change_while_reading
				 : !strcmp(words, "unload") ? unload_while_reading
							    : image_read;
	else if (!strcmp(name, "stored"))
		fprintf(out, "%zu nmethods, %zu methods answered", s->found.known.nmethods.count,
			s->answers.methods.count);
	else
		return take_change(name, words);
	return true;
}

static void run_steps(FILE *out, char *input)
{
	text_run_steps(out, input, take_step);
}

static const struct text_verb verbs[] = {{"answers", run_steps}, {}};

TEXT_TABLE("code_answers", verbs, NULL, tear_down);

/* ---- limits ---------------------------------------------------------------------------------- */

/* The reads of one question, in a request of its own; its events are in s->answers. */
static uint64_t count_reads(const struct code_question *q)
{
	uint64_t reads;

	begin_request();
	reads = s->image.reads;
	assert_int_equal(request(q), 0);
	return s->image.reads - reads;
}

/* A list of methods that is all the same one is no more than others: what is kept of it counts. */
TEST(a_longer_list_of_methods_adds_to_known_bytes)
{
	struct code_question q = about_code(0x40);
	size_t bytes;

	given(true);
	put(IMAGE_DEBUG + 0x80 + 8, s->image.method, 8);
	count_reads(&q);
	bytes = s->found.known.bytes;
	assert_int_equal(s->found.known.nmethods.data[0].debug.named.count, 2);
	s->found.known.nmethods.data[0].debug.scopes[5] = 3 + 1;
	put(IMAGE_DEBUG + 0x80 + 16, s->image.method, 8);
	assert_in_range(count_reads(&q), 3, 5); /* looked at again */
	assert_int_equal(s->found.known.nmethods.data[0].debug.named.count, 3);
	assert_true(s->found.known.bytes > bytes);
}

TEST(the_methods_stored_of_a_process_are_limited)
{
	struct code_question q = about_method();
	size_t most = 0;

	given(true);
	for (int i = 0; i < 5000; i++) {
		put(IMAGE_UNLOADS, 7 + i, 8);
		s->memory = image_memory(&s->image);
		count_reads(&q);
		most = s->found.known.bytes > most ? s->found.known.bytes : most;
	}
	assert_in_range(most, HOTSPOT_KNOWN_MAX, HOTSPOT_KNOWN_MAX + 4096);
	assert_string_equal(code_function__name((const void *)s->answers.bytes.data),
			    "void a.b.Outer.run(int, java.lang.String[][])");
}

TEST(many_processes_share_a_limit_of_stored_methods)
{
	struct code_question q = about_method();
	struct scene *all[64];
	size_t bytes = 0;

	for (int k = 0; k < 64; k++) {
		given(true);
		for (int i = 0; i < 600; i++) {
			put(IMAGE_UNLOADS, 7 + i, 8);
			s->memory = image_memory(&s->image);
			count_reads(&q);
		}
		bytes += s->found.known.bytes;
		all[k] = s;
		s = NULL;
	}
	assert_in_range(bytes, HOTSPOT_KNOWN_ALL, HOTSPOT_KNOWN_ALL + 64 * HOTSPOT_KNOWN_FEW);
	for (int k = 0; k < 64; k++) {
		s = all[k];
		tear_down();
	}
	the_methods_stored_of_a_process_are_limited(state); /* all was given back */
}

/* That which Java returns to. */
TEST(the_call_stub_has_a_name_of_its_own)
{
	const uint64_t blob = image_code_of(IMAGE_STUBS) - IMAGE_HEADER;
	const struct code_question q = {
		.kind = FRAME_NOTE_HOTSPOT_CODE, .function = blob, .address = RETURN - 1};
	const struct code_function_event *f;
	const struct code_chain_event *e;

	given(true);
	set_call_return(RETURN);
	assert_int_equal(request(&q), 0);
	f = (const void *)s->answers.bytes.data;
	e = (const void *)(s->answers.bytes.data + f->header.size);
	assert_string_equal(code_function__name(f), "[call stub]");
	assert_int_equal(e->function, blob);
	assert_int_equal(e->call_count, 1);
	assert_int_equal(e->calls[0].function, f->function);
	assert_int_equal(e->calls[0].check, f->check);
}

static void assert_piece(size_t *at, uint64_t start, uint64_t size, const char *name)
{
	const struct code_function_event *f = (const void *)(s->answers.bytes.data + *at);

	assert_true(*at < s->answers.bytes.count);
	assert_int_equal(f->kind, FRAME_NOTE_HOTSPOT_CODE);
	assert_int_equal(f->function, start);
	assert_int_equal(f->check, size);
	assert_string_equal(code_function__name(f), name);
	*at += f->header.size;
}

TEST(only_permanent_code_is_listed)
{
	const struct code_question q = {.kind = FRAME_NOTE_HOTSPOT_CODE};

	for (int moved = 0; moved < 2; moved++) {
		uint64_t stubs = image_code_of(IMAGE_STUBS) - IMAGE_HEADER;
		uint64_t bytecode = image_code_of(IMAGE_INTERPRETER) - IMAGE_HEADER;
		const uint32_t after[] = {IMAGE_STUBS + 16, IMAGE_STUBS + 19, IMAGE_STUBS + 24};
		unsigned int whole = 0;
		uint64_t name = 0;
		size_t at = 0;
		int err;

		given(moved);
		set_call_return(RETURN);
		for (unsigned int i = 0; i < 3; i++) {
			uint32_t blob = image_blob(&s->image, after[i], 3, "vtable chunks", 0);

			name = name ? name : image_word(&s->image, blob);
			put(blob, name, 8);
		}
		assert_true(count_reads(&q) < 20);
		assert_piece(&at, bytecode, 24 * 128 - IMAGE_BLOCK, "[Interpreter]");
		assert_piece(&at, stubs, 16 * 128 - IMAGE_BLOCK, "[StubRoutines (1)]");
		assert_piece(&at, stubs + 16 * 128, 6 * 128 - IMAGE_BLOCK, "[vtable chunks]");
		assert_piece(&at, stubs + 24 * 128, 3 * 128 - IMAGE_BLOCK, "[vtable chunks]");
		assert_piece(&at, RETURN - 1, 1, "[call stub]");
		assert_int_equal(at, s->answers.bytes.count);
		for (uint32_t left = 1; left < 40; left++) {
			s->memory.reads_left = left;
			s->answers.bytes.count = s->answers.methods.count = 0;
			err = request(&q);
			assert_true(!err || (err == -EDQUOT && !whole));
			whole += !err;
		}
		assert_in_range(whole, 1, 38);
		s->memory.reads_left = 1000;
		s->answers.bytes.count = 0;
		s->answers.limit = 100;
		assert_int_equal(request(&q), -E2BIG);
	}
}

TEST(answers_are_limited_in_bytes_and_reads)
{
	struct code_question q = about_code(0x40);
	bool is_left = false;

	given(true);
	s->answers.limit = 400; /* for a function, and no more */
	assert_int_equal(request(&q), -E2BIG);
	assert_int_equal(s->answers.bytes.count, 0);
	s->answers.limit = LIMIT;
	for (uint32_t left = 0; left < 40; left++) {
		uint64_t before = s->image.reads;

		s->memory.reads_left = left;
		s->answers.bytes.count = s->answers.methods.count = 0;
		s->memory.left = false;
		assert_int_equal(request(&q), 0);
		assert_true(s->image.reads - before <= left);
		assert_true(left || (s->memory.left && !s->answers.bytes.count));
		is_left |= left && s->memory.left;
	}
	assert_true(is_left);
	s->memory.left = false;
	s->memory.reads_left = 1000;
	assert_int_equal(request(&q), 0);
	assert_false(s->memory.left);
}

/* Code behind the lines that an event has room for has none, and the answer says that it was cut. */
TEST(rows_beyond_the_limit_of_an_event_are_cut)
{
	struct code_answers answers = {.pid = 10};
	const struct code_question q = {.kind = FRAME_NOTE_V8};
	const struct code_function_event *e;
	struct managed_function f = {};

	for (uint32_t i = 0; i < CODE_ROWS_MAX; i++)
		assert_int_equal(vec_push(&f.rows, ((struct managed_row){i, i + 1, 1})), 0);
	e = code_answers__event(&answers, &q, CODE_STATE_CONFIRMED, 0, &f);
	assert_int_equal(e->row_count, CODE_ROWS_MAX);
	assert_int_equal(e->rows[CODE_ROWS_MAX - 1].line, CODE_ROWS_MAX);
	assert_false(answers.is_cut);
	assert_int_equal(vec_push(&f.rows, ((struct managed_row){CODE_ROWS_MAX, 7, 1})), 0);
	e = code_answers__event(&answers, &q, CODE_STATE_CONFIRMED, 0, &f);
	assert_int_equal(e->row_count, CODE_ROWS_MAX);
	assert_int_equal(e->rows[CODE_ROWS_MAX - 2].line, CODE_ROWS_MAX - 1);
	assert_int_equal(e->rows[CODE_ROWS_MAX - 1].line, 0);
	assert_int_equal(event_check(&e->header, e->header.size), 0);
	assert_true(answers.is_cut);
	managed_function__fini(&f);
}

EACH_TEST_WITH(NULL, tear_down);
