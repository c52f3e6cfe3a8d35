/* SPDX-License-Identifier: BSD-2-Clause */
/* What a reader answers about functions of V8, whose memory another one may have by then: out of a forged heap. */
#include "unit.h"
#include "runtimes/place/code_functions.h"
#include "runtimes/v8/function.h"
#include "runtimes/v8/heap.h"
#include "runtimes/v8/layout.h"
#include "runtimes/v8/runtime.h"
#include "runtimes/v8/v8.h"
#include "stream/event_decode.h"
#include "unit/v8_support.h"

#define LITERAL 3u
#define UNIQUE	7u
#define SCRIPT	9u
#define FIRST	14u /* where the functions are in the source */
#define SECOND	3u

struct scene {
	struct v8_heap heap;
	struct v8_found found;
	struct target_memory memory;
	struct found_runtimes process; /* it has no code in files */
	struct code_answers answers;
	uint64_t script, name, scope, sfi;
};

/* Objects lie in pages of their own: what is read of one is not read with another. */
static void next_page(struct v8_heap *h)
{
	v8_heap_space(h, TARGET_PAGE, 8);
}

/* Of one instruction, from that place in the source. */
static uint64_t bytecodes(struct v8_heap *h, uint32_t source)
{
	const unsigned char first = h->layout.encoding == V8_POSITIONS_BREAKABLE ? 1 << 2 : 1 << 1;
	const unsigned char positions[] = {first, (source + 1) << 2};
	uint64_t array = v8_heap_object(h, h->layout.type_bytecode_array, 80);

	next_page(h);
	v8_heap_word(h, array, h->layout.bytecode_positions,
		     v8_heap_bytes(h, positions, sizeof(positions)));
	next_page(h);
	return array;
}

static struct scene *open_scene(enum v8_version version)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct v8_heap *h = &s->heap;

	assert_non_null(s);
	v8_heap__init(h, version);
	s->found.is_read = true;
	s->found.layout = h->layout;
	s->memory = h->memory;
	v8_reader__init(&s->found.reader, &s->found.layout, h->scripts);
	s->found.trust.state = V8_TRUSTED;
	s->found.reported = calloc(V8_FUNCTIONS_REPORTED, sizeof(*s->found.reported));
	assert_non_null(s->found.reported);
	s->answers = (struct code_answers){.pid = 10, .limit = 1u << 20, .found = &s->process};
	s->script = v8_heap_script(h, v8_heap_string(h, "function first() {}"),
				   v8_heap_string(h, "app.js"), SCRIPT);
	next_page(h);
	s->name = v8_heap_string(h, "first");
	next_page(h);
	s->scope = v8_heap_scope(h, s->name, 0, FIRST);
	next_page(h);
	s->sfi = v8_heap_sfi(h, bytecodes(h, FIRST), s->scope, s->script, LITERAL);
	next_page(h);
	if (h->layout.sfi_unique_id > 0)
		v8_heap_u32(h, s->sfi, h->layout.sfi_unique_id, UNIQUE);
	return s;
}

static void close_scene(struct scene *s)
{
	code_answers__fini(&s->answers);
	free(s->found.reported);
	v8_heap__fini(&s->heap);
	free(s);
}

static uint64_t number_of(const struct scene *s)
{
	return (uint64_t)(s->found.layout.sfi_unique_id > 0 ? UNIQUE : SCRIPT) << 32 | LITERAL;
}

/* The answer, or NULL. */
static const struct code_function_event *request(struct scene *s, uint64_t check, bool is_answered)
{
	const struct code_question q = {.kind = FRAME_NOTE_V8,
					.function = s->sfi,
					.check = check,
					.is_answered = is_answered};
	const struct code_function_event *e;

	s->answers.bytes.count = 0;
	assert_int_equal(node_runtime.memory->answer(&s->found, &s->answers, &s->memory, &q), 0);
	if (!s->answers.bytes.count)
		return NULL;
	e = (const void *)s->answers.bytes.data;
	assert_int_equal(event_check(&e->header, s->answers.bytes.count), 0);
	assert_int_equal(e->header.size, s->answers.bytes.count);
	assert_true(e->function == s->sfi && e->check == check);
	return e;
}

static void assert_named(struct scene *s, uint64_t check, const char *name)
{
	const struct code_function_event *e = request(s, check, false);

	assert_non_null(e);
	assert_int_equal(e->state, CODE_STATE_CONFIRMED);
	assert_string_equal(code_function__name(e), name);
	assert_string_equal(code_function__file(e), "app.js");
	assert_int_equal(e->column, FIRST + 1);
	assert_int_equal(e->row_count, s->found.layout.encoding != V8_POSITIONS_UNKNOWN);
}

static void assert_stale(struct scene *s, uint64_t check)
{
	const struct code_function_event *e = request(s, check, false);

	assert_non_null(e);
	assert_int_equal(e->state, CODE_STATE_STALE);
	assert_string_equal(code_function__name(e), "");
}

TEST(a_function_number_needs_its_place_in_the_layout)
{
	for (enum v8_version v = 0; v < V8_VERSIONS; v++) {
		struct scene *s = open_scene(v);
		uint64_t number;

		s->found.reader.memory = &s->heap.memory;
		assert_int_equal(v8_function__number(&s->found.reader, s->sfi, &number), 0);
		assert_true(number == number_of(s));
		/* without a look at V8 its place is unknown */
		s->found.layout.has_number = false;
		assert_int_equal(v8_function__number(&s->found.reader, s->sfi, &number), 0);
		assert_true(!number);
		close_scene(s);
	}
}

TEST(functions_of_an_unknown_version_have_no_number)
{
	struct v8_forged forged = {V8_NODE_26, "_ZN2v88internal7Version6major_E", 15};
	struct scene *s = open_scene(V8_NODE_26);

	assert_true(s->found.layout.has_number);
	v8_layout__fill(&s->found.layout, v8_forged_constant, &forged);
	assert_false(s->found.layout.has_number);
	assert_int_equal(v8_info(&s->found.layout).number, 0);
	/* by its address, as before */
	assert_named(s, 0, "first");
	close_scene(s);
}

/* As the kernel reads it. */
TEST(the_kernel_finds_the_number_by_the_reported_offsets)
{
	for (enum v8_version v = 0; v < V8_VERSIONS; v++) {
		struct scene *s = open_scene(v);
		struct runtime_v8 info = v8_info(&s->found.layout);
		uint64_t words[3] = {}, check = 0;
		uint32_t id = 0;

		if (info.script) {
			v8_heap_read(&s->heap, words, sizeof(words), s->sfi + (int64_t)info.script);
			v8_heap_read(&s->heap, &id, sizeof(id), words[0] + (int64_t)info.script_id);
			check = (uint64_t)id << 32 | words[2] >> 32;
			assert_int_equal(info.number, info.script + RUNTIME_V8_BEFORE_NUMBER);
		} else {
			v8_heap_read(&s->heap, &check, sizeof(check),
				     s->sfi + (int64_t)info.number);
		}
		assert_int_equal(!!info.script, v <= V8_NODE_20);
		assert_true(check == number_of(s));
		close_scene(s);
	}
}

TEST(a_recompiled_function_keeps_its_name)
{
	for (enum v8_version v = 0; v < V8_VERSIONS; v++) {
		struct scene *s = open_scene(v);

		assert_named(s, number_of(s), "first");
		assert_named(s, 0, "first");
		/* compiled anew, or moved by the collector: another object says what it is called */
		v8_heap_word(&s->heap, s->sfi, s->found.layout.sfi_name,
			     v8_heap_scope(&s->heap, s->name, 0, 14));
		assert_named(s, number_of(s), "first");
		/* not compiled yet, when it is inlined: the name itself */
		v8_heap_word(&s->heap, s->sfi, s->found.layout.sfi_name, s->name);
		assert_string_equal(code_function__name(request(s, number_of(s), false)), "first");
		close_scene(s);
	}
}

TEST(a_complete_unchanged_answer_is_not_repeated)
{
	for (enum v8_version v = 0; v < V8_VERSIONS; v++) {
		struct scene *s = open_scene(v);
		uint64_t number = number_of(s);

		assert_non_null(request(s, number, true));
		assert_null(request(s, number, true));
		assert_null(request(s, 0, true));
		assert_named(s, number, "first");
		v8_heap_u32(&s->heap, s->sfi, s->found.layout.sfi_literal_id, LITERAL + 1);
		assert_int_equal(request(s, number, true)->state, CODE_STATE_STALE);
		assert_non_null(request(s, number + 1, true));
		assert_null(request(s, number + 1, true));
		/* without rows */
		v8_heap_word(&s->heap, s->sfi, 8, 0);
		assert_non_null(request(s, number + 1, false));
		assert_non_null(request(s, number + 1, true));
		close_scene(s);
	}
}

TEST(a_function_with_another_number_is_stale)
{
	for (enum v8_version v = 0; v < V8_VERSIONS; v++) {
		struct scene *s = open_scene(v);
		struct v8_heap *h = &s->heap;
		uint64_t number = number_of(s);

		assert_stale(s, number + 1);		       /* in the same script */
		assert_stale(s, number + (UINT64_C(1) << 32)); /* the first one of another */
		assert_named(s, number, "first");
		/* it was first, but is not any more */
		v8_heap_word(h, s->sfi, s->found.layout.sfi_name,
			     v8_heap_scope(h, v8_heap_string(h, "second"), 0, 14));
		v8_heap_u32(h, s->sfi, s->found.layout.sfi_literal_id, LITERAL + 1);
		assert_stale(s, number);
		assert_named(s, number + 1, "second");
		/* nor is it a function */
		v8_heap_word(h, s->sfi, 0, v8_heap_map(h, ONE_BYTE));
		assert_stale(s, number + 1);
		close_scene(s);
	}
}

/* It becomes another one while it is read, before the reading of that number. */
struct changing {
	struct scene *scene;
	uint32_t at;
};

static int read_changing(void *context, void *to, size_t size, uint64_t address)
{
	struct changing *c = context;
	struct v8_heap *h = &c->scene->heap;

	if (h->reads == c->at) {
		v8_heap_word(h, c->scene->sfi, c->scene->found.layout.sfi_name,
			     v8_heap_scope(h, v8_heap_string(h, "second"), 0, SECOND));
		v8_heap_word(h, c->scene->sfi, 8, bytecodes(h, SECOND));
		v8_heap_u32(h, c->scene->sfi, c->scene->found.layout.sfi_literal_id, LITERAL + 1);
	}
	return v8_heap_read(h, to, size, address);
}

TEST(an_answer_is_never_a_mixture_of_two_functions)
{
	for (enum v8_version v = 0; v < V8_VERSIONS; v++) {
		size_t stale = 0, named = 0;

		for (uint32_t at = 0; at < 40; at++) {
			struct scene *s = open_scene(v);
			struct changing c = {s, at};
			const struct code_function_event *e;

			s->memory.read = read_changing;
			s->memory.context = &c;
			e = request(s, number_of(s), false);
			assert_non_null(e);
			if (e->state == CODE_STATE_CONFIRMED) {
				assert_string_equal(code_function__name(e), "first");
				assert_int_equal(e->column, FIRST + 1);
				assert_int_equal(e->row_count, 1);
				assert_int_equal(e->rows[0].column, FIRST + 1);
			}
			named += e->state == CODE_STATE_CONFIRMED;
			stale += e->state == CODE_STATE_STALE;
			close_scene(s);
		}
		assert_true(stale > 2 && named > 2);
		assert_int_equal(stale + named, 40);
	}
}
