/* SPDX-License-Identifier: BSD-2-Clause */
/* What a reader answers about methods of HotSpot's: of forged memory, as it was at the sample and as it is no more. */
#include "unit.h"
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
#define BASE	     32u  /* its size */

/* The JVM of the running test, what is found of it, and the answers. */
static struct scene {
	struct hotspot_image image;
	struct hotspot_found found;
	struct target_memory memory;
	struct code_answers answers;
} * s;

static int tear_down(void **state)
{
	(void)state;
	if (!s)
		return 0;
	java_runtime.memory->fini(&s->found);
	code_answers__fini(&s->answers);
	free(s);
	s = NULL;
	return 0;
}

static void given(bool is_moved)
{
	struct hotspot_found *f;

	tear_down(NULL);
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
	if (e->state != CODE_STATE_CONFIRMED)
		fputs(e->state == CODE_STATE_STALE ? " stale" : " unknown", out);
	if (*code_function__name(e))
		fprintf(out, " %s", code_function__name(e));
	if (*code_function__file(e))
		fprintf(out, " %s:%u", code_function__file(e), e->line);
	if (e->header.flags & EVENT_DOUBTFUL)
		fputs(" doubtful", out);
}

static void put_call(FILE *out, const struct code_call *call)
{
	const bool is_code = call->function == compiled_blob();

	fprintf(out, " %s",
		is_code							      ? "code"
		: call->function == image_code_of(IMAGE_STUBS) - IMAGE_HEADER ? "stub"
		: call->function == s->image.method			      ? "run"
		: call->function == s->image.inlined			      ? "call"
									      : "code");
	if (call->function == s->image.method || call->function == s->image.inlined)
		assert_int_equal(call->check, call->function + CONST_METHOD);
	if (call->line)
		fprintf(out, ":%u", call->line);
}

static const char *put_event(FILE *out, const struct event_header *event, size_t left)
{
	const struct code_chain_event *chain = (const void *)event;

	assert_int_equal(event_check(event, left), 0);
	if (event->type == EVENT_CODE_FUNCTION) {
		const struct code_function_event *f = (const void *)event;

		fputs(f->kind == FRAME_NOTE_HOTSPOT ? "method" : "code", out);
		put_function(out, f);
	} else {
		assert_int_equal(event->type, EVENT_CODE_CHAIN);
		fputs(chain->state == CODE_STATE_STALE	    ? "stale "
		      : chain->state == CODE_STATE_INFERRED ? "inferred "
		      : chain->state == CODE_STATE_UNKNOWN  ? "unknown "
							    : "",
		      out);
		fputs("chain", out);
		for (uint32_t i = 0; i < chain->call_count; i++)
			put_call(out, &chain->calls[i]);
	}
	return "\n";
}

/* The answers from `at` on as text, an event a line: "method NAME FILE:LINE", "code NAME", "chain CALL:LINE …". */
static void assert_answers_from(size_t at, const char *expected)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	const char *between = "";

	for (const struct event_header *event; at < s->answers.bytes.count; at += event->size) {
		event = (const void *)(s->answers.bytes.data + at);
		fputs(between, out);
		between = put_event(out, event, s->answers.bytes.count - at);
	}
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
}

/* Of a question, what is answered to it alone. */
static void assert_answer(const struct code_question *q, const char *expected)
{
	size_t at = s->answers.bytes.count;

	assert_int_equal(request(q), 0);
	assert_answers_from(at, expected);
}

#define RUN "void a.b.Outer.run(int, java.lang.String[][])"
#define RUB "void a.b.Outer.rub(int, java.lang.String[][])"

/* ---- interpreted ----------------------------------------------------------------------------- */

TEST(an_interpreted_method_has_its_name_file_and_lines)
{
	static const struct {
		uint32_t at, line;
	} ROWS[] = {{7, 10}, {8, 13}, {19, 300}, {20, 0}}; /* the last is behind the bytecode */

	for (int is_moved = 0; is_moved < 2; is_moved++) {
		struct code_question q = about_method();
		const struct code_function_event *e;

		given(is_moved);
		assert_answer(&q, "method " RUN " a/b/Outer.java:10 doubtful");
		e = (const void *)s->answers.bytes.data;
		for (size_t i = 0; i < 4; i++)
			assert_int_equal(code_function__row(e, BASE + ROWS[i].at)->line,
					 ROWS[i].line);
		assert_null(code_function__row(e, 0)); /* it is being entered */
	}
}

TEST(a_replaced_or_unmapped_method_is_stale)
{
	struct code_question q = about_method();

	given(false);
	put(s->image.method - IMAGE_BASE + 8, s->image.inlined + CONST_METHOD, 8);
	assert_answer(&q, "method stale doubtful");
	q.function = 0x7fff00001000; /* not there */
	assert_answer(&q, "method stale doubtful");
	s->found.is_read = false;
	assert_answer(&q, "method unknown doubtful");
}

/* Since the sample a class was unloaded, or it cannot be known: it may have been another method. */
TEST(a_possible_class_unload_makes_a_method_doubtful)
{
	struct code_question q = about_method();

	given(true);
	q.time = monotonic_ns(); /* before the first look */
	assert_answer(&q, "method " RUN " a/b/Outer.java:10 doubtful");
	q.time = monotonic_ns();
	assert_answer(&q, "method " RUN " a/b/Outer.java:10");
	put(IMAGE_UNLOADS, 6, 8);
	assert_answer(&q, "method " RUN " a/b/Outer.java:10 doubtful");
	given(true);
	put(IMAGE_PERF, 0, 4); /* -XX:-UsePerfData */
	java_runtime.memory->begin(&s->found, &s->memory);
	q.time = monotonic_ns();
	assert_answer(&q, "method " RUN " a/b/Outer.java:10 doubtful");
	q.is_answered = 1; /* what has not changed has to do */
	assert_answer(&q, "method " RUN " a/b/Outer.java:10");
}

/* ---- compiled -------------------------------------------------------------------------------- */

TEST(compiled_code_has_a_chain_of_inlined_methods)
{
	for (int is_moved = 0; is_moved < 2; is_moved++) {
		struct code_question q = about_code(0x40);

		given(is_moved);
		assert_answer(&q, "method long a.W$$Lambda.call() doubtful\n"
				  "method " RUN " a/b/Outer.java:10 doubtful\n"
				  "chain call:300 run:10 code"); /* indexes 9 and 3 */
		/* elsewhere nothing is inlined; reported methods are not reported again */
		q = about_code(0x60);
		assert_answer(&q, "inferred chain run code");
	}
}

TEST(a_chain_is_of_its_code_and_address)
{
	struct code_question q = about_code(0x60);
	const struct code_chain_event *e;

	given(true);
	s->answers.limit = LIMIT;
	assert_int_equal(request(&q), 0);
	e = (const void *)(s->answers.bytes.data +
			   ((struct event_header *)s->answers.bytes.data)->size);
	assert_int_equal(e->function, q.function);
	assert_int_equal(e->address, q.address);
	assert_int_equal(e->calls[1].check, q.check);
}

static void assert_stale(const struct code_question *q)
{
	assert_answer(q, "stale chain code");
	assert_int_equal(
		((struct code_call *)(s->answers.bytes.data + s->answers.bytes.count))[-1].check,
		q->check);
}

TEST(freed_or_replaced_code_is_stale)
{
	struct code_question q = about_code(0x40), other = q;
	uint32_t blob = compiled_blob() - IMAGE_BASE;

	given(true);
	other.check += UINT64_C(1) << 32;
	assert_stale(&other);
	other = q;
	other.check++;
	assert_stale(&other);
	other = q;
	other.address += 0x10000;
	assert_stale(&other);
	other = q;
	other.function += 128;
	assert_stale(&other);
	put(blob - IMAGE_BLOCK + 8, 0, 1); /* freed */
	assert_stale(&q);
	put(blob - IMAGE_BLOCK + 8, 1, 1);
	put(blob + 72, IMAGE_COMPILE_ID + 1, 4);
	assert_stale(&q);
	s->image.bytes[IMAGE_MAP + IMAGE_COMPILED] = 0xff;
	assert_stale(&q);
}

/* While it is read another one comes to lie there: neither its methods nor a chain are reported. */
static int change_while_reading(void *context, void *to, size_t size, uint64_t address)
{
	struct hotspot_image *i = context;
	int err = image_read(i, to, size, address);

	if (address == i->inlined + CONST_METHOD)
		image_put(i, compiled_blob() - IMAGE_BASE + 72, IMAGE_COMPILE_ID + 1, 4);
	return err;
}

TEST(code_replaced_during_its_reading_is_not_reported)
{
	struct code_question q = about_code(0x40);

	given(true);
	s->memory.read = change_while_reading;
	assert_int_equal(request(&q), 0);
	assert_int_equal(s->answers.bytes.count, 0);
	assert_int_equal(s->answers.methods.count, 0);
}

/* Of scopes that lead in circles, and one whose method is none. */
TEST(bad_scopes_leave_the_compiled_method_or_nothing)
{
	struct code_question q = about_code(0x40);

	given(true);
	s->image.bytes[IMAGE_DEBUG + 32 + 4] = 4 + 1;
	assert_answer(&q, "method " RUN " a/b/Outer.java:10 doubtful\ninferred chain run code");
	s->image.bytes[IMAGE_DEBUG + 32 + 4] = 1 + 1;
	put(IMAGE_DEBUG + 0x80 + 8, 0x1234567, 8);
	assert_answer(&q, "");
}

/* ---- what was read already ------------------------------------------------------------------- */

/* The reads of one question, in a request of its own; its events are in s->answers. */
static uint64_t count_reads(const struct code_question *q)
{
	uint64_t reads;

	code_answers__fini(&s->answers);
	java_runtime.memory->begin(&s->found, &s->memory);
	reads = s->image.reads;
	assert_int_equal(request(q), 0);
	return s->image.reads - reads;
}

/* Over the method's own name, without another length. */
static void rename_method(char last)
{
	uint8_t *at = memmem(s->image.bytes + (s->image.method - IMAGE_BASE), 0x200, "ru", 2);

	assert_non_null(at);
	at[2] = last;
}

/* Of the first answer, which is of a method or code that is there. */
static void assert_name(const char *name)
{
	const struct code_function_event *e = (const void *)s->answers.bytes.data;

	assert_int_equal(e->header.type, EVENT_CODE_FUNCTION);
	assert_int_equal(e->state, CODE_STATE_CONFIRMED);
	assert_string_equal(code_function__name(e), name);
}

static void assert_read(const struct code_question *q, const char *name)
{
	assert_true(count_reads(q) > 4);
	assert_name(name);
}

/* It is known: only what shows that it is the same is read. */
static void assert_known(const struct code_question *q, const char *name)
{
	assert_true(count_reads(q) <= 3);
	assert_name(name);
}

#define READS_ELSEWHERE 10 /* where it is, what lies ahead, and the calls at the places around it */

TEST(code_that_was_read_is_not_read_again)
{
	for (int is_moved = 0; is_moved < 2; is_moved++) {
		struct code_question described = about_code(0x40), other = about_code(0x20);
		size_t bytes;

		given(is_moved);
		assert_true(count_reads(&described) > 20);
		bytes = s->answers.bytes.count;
		rename_method('b'); /* cannot be: it would be another class's */
		assert_true(count_reads(&described) <= 2);
		assert_int_equal(s->answers.bytes.count, bytes);
		assert_true(count_reads(&other) <= READS_ELSEWHERE);
		other = about_code(0x60);
		assert_true(count_reads(&other) <= READS_ELSEWHERE);
		assert_name(RUN);
		/* unloaded classes are not those of its methods */
		put(IMAGE_UNLOADS, 6, 8);
		assert_true(count_reads(&other) <= READS_ELSEWHERE);
		assert_name(RUN);
	}
}

TEST(code_with_a_new_compile_id_is_read_anew)
{
	struct code_question q = about_code(0x60), next = q;
	uint32_t blob = compiled_blob() - IMAGE_BASE;

	given(true);
	count_reads(&q);
	assert_name(RUN);
	put(blob + 72, IMAGE_COMPILE_ID + 1, 4);
	put(IMAGE_UNLOADS, 6, 8);
	rename_method('b');
	assert_stale(&q);
	next.check += UINT64_C(1) << 32;
	assert_true(count_reads(&next) > 10);
	assert_name(RUB);
	assert_true(count_reads(&next) <= READS_ELSEWHERE);
	assert_name(RUB);
	put(blob - IMAGE_BLOCK + 8, 0, 1);
	assert_stale(&next);
	put(blob - IMAGE_BLOCK + 8, 1, 1);
	s->image.bytes[IMAGE_MAP + IMAGE_COMPILED] = 0xff;
	assert_stale(&next);
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

TEST(unconfirmed_code_is_not_stored)
{
	struct code_question q = about_code(0x40);

	given(true);
	s->memory.read = change_while_reading;
	count_reads(&q);
	assert_int_equal(s->answers.bytes.count, 0);
	s->memory.read = image_read;
	put(compiled_blob() - IMAGE_BASE + 72, IMAGE_COMPILE_ID, 4);
	assert_true(count_reads(&q) > 10);
	assert_int_equal(s->found.known.nmethods.count, 1);
}

/* Without a number of its own it may be another one. */
TEST(code_without_a_compile_id_is_read_each_time)
{
	struct code_question q = about_code(0x60);

	given(true);
	put(compiled_blob() - IMAGE_BASE + 72, 0, 4);
	q.check = (uint32_t)q.check;
	put(IMAGE_PERF, 0, 4); /* nor a count */
	for (int i = 0; i < 2; i++) {
		assert_true(count_reads(&q) > 10);
		assert_name(RUN);
	}
	rename_method('b');
	count_reads(&q);
	assert_name(RUB);
}

TEST(a_method_is_read_again_after_unload_or_redefinition)
{
	struct code_question q = about_method();

	given(true);
	q.time = UINT64_MAX;
	assert_read(&q, RUN);
	assert_known(&q, RUN);
	put(IMAGE_UNLOADS, 6, 8);
	rename_method('b');
	assert_read(&q, RUB);
	assert_known(&q, RUB);
	/* redefined: its name is the third entry of the pool */
	put(s->image.method - IMAGE_BASE + CONST_METHOD + 16, 3, 2);
	assert_read(&q, "void a.b.Outer.(I[[Ljava.lang.String;)V(int, java.lang.String[][])");
}

/*
 * Within one request a class is unloaded, and another one gets its place. What is known of the first is
 * neither the method of a later sample, nor that of code with a number of its own.
 */
TEST(a_class_replaced_within_a_request_is_read_anew)
{
	for (int is_compiled = 0; is_compiled < 2; is_compiled++) {
		struct code_question q = about_method(), next = q;

		given(true);
		java_runtime.memory->begin(&s->found, &s->memory);
		q.time = monotonic_ns();
		assert_answer(&q, "method " RUN " a/b/Outer.java:10");
		put(IMAGE_UNLOADS, 6, 8);
		rename_method('b');
		if (is_compiled)
			next = about_code(0x60);
		next.time = monotonic_ns();
		assert_answer(&next,
			      is_compiled ? "method " RUB
					    " a/b/Outer.java:10 doubtful\ninferred chain run code"
					  : "method " RUB " a/b/Outer.java:10 doubtful");
	}
}

/* The same while a method is read: the name is marked, and not kept for others. */
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

TEST(a_method_read_during_an_unload_is_not_stored)
{
	struct code_question q = about_method();

	given(true);
	java_runtime.memory->begin(&s->found, &s->memory);
	q.time = monotonic_ns();
	s->memory.read = unload_while_reading;
	assert_answer(&q, "method " RUB " a/b/Outer.java:10 doubtful");
	/* one that ran after it, and nothing has changed since */
	rename_method('n');
	q.time = monotonic_ns();
	assert_true(count_reads(&q) > 4);
	assert_answers_from(0, "method " RUN " a/b/Outer.java:10");
}

/* What is left of an unloaded class is there until another one takes its place, which changes no count. */
TEST(a_method_of_an_older_sample_is_not_stored)
{
	struct code_question q = about_method();

	given(true);
	count_reads(&q); /* its class may have gone since the sample */
	assert_name(RUN);
	rename_method('b');
	q.time = UINT64_MAX;
	assert_read(&q, RUB);
	assert_known(&q, RUB);
}

TEST(methods_without_an_unload_count_are_read_each_time)
{
	struct code_question q = about_method();

	given(true);
	put(IMAGE_PERF, 0, 4);
	for (int i = 0; i < 3; i++)
		assert_true(count_reads(&q) > 4);
	rename_method('b');
	count_reads(&q);
	assert_name(RUB);
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
	assert_name(RUN);
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
		tear_down(NULL);
	}
	the_methods_stored_of_a_process_are_limited(state); /* all was given back */
}

TEST(a_stub_has_the_name_of_its_blob)
{
	uint64_t blob = image_code_of(IMAGE_STUBS) - IMAGE_HEADER;
	struct code_question q = {.kind = FRAME_NOTE_HOTSPOT_CODE,
				  .function = blob,
				  .address = blob + IMAGE_HEADER + 4};

	given(true);
	assert_answer(&q, "code [StubRoutines (1)]\nchain stub");
	/* the words that a method has there are of its code; they count if they were noted */
	put(blob - IMAGE_BASE + 72, 0x99, 4);
	q.check = UINT64_C(0x99) << 32;
	assert_answer(&q, "code [StubRoutines (1)]\nchain stub");
	q.check++;
	assert_answer(&q, "stale chain stub");
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

/* That which Java returns to. */
TEST(the_call_stub_has_a_name_of_its_own)
{
	uint64_t blob = image_code_of(IMAGE_STUBS) - IMAGE_HEADER;
	struct code_question q = {
		.kind = FRAME_NOTE_HOTSPOT_CODE, .function = blob, .address = RETURN - 1};
	const struct code_function_event *f;
	const struct code_chain_event *e;

	given(true);
	set_call_return(RETURN);
	assert_answer(&q, "code [call stub]\nchain code");
	f = (const void *)s->answers.bytes.data;
	e = (const void *)(s->answers.bytes.data + f->header.size);
	assert_int_equal(e->function, blob);
	assert_int_equal(e->calls[0].function, f->function);
	assert_int_equal(e->calls[0].check, f->check);
	q.address--;
	assert_answer(&q, "code [StubRoutines (1)]\nchain stub");
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
