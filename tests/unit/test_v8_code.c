/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of V8's bytecodes, and the functions in its code, out of a forged heap. */
#include "unit.h"
#include "runtimes/v8/answers.h"
#include "runtimes/v8/code.h"
#include "runtimes/v8/heap.h"
#include "runtimes/v8/layout.h"
#include "runtimes/v8/lines.h"
#include "runtimes/v8/v8.h"
#include "unit/v8_support.h"

static struct managed_function function;

/* ---- tables ---------------------------------------------------------------------------------- */

struct table {
	unsigned char bytes[256];
	size_t size;
	enum v8_position_encoding encoding;
	int64_t code, word;
};

static void put_varint(struct table *t, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		t->bytes[t->size++] = value | 0x80;
	t->bytes[t->size++] = value;
}

static uint64_t zigzag(int64_t value)
{
	return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

static struct table table_of(enum v8_position_encoding encoding)
{
	return (struct table){.encoding = encoding, .code = -1};
}

/* A position, as V8 keeps it: in which inlined function, and where in the source. */
static uint64_t position(uint32_t inlining, uint32_t source)
{
	return (uint64_t)inlining << 31 | (uint64_t)(source + 1) << 1;
}

static void put_entry(struct table *t, int64_t code, uint64_t word, bool is_statement)
{
	int64_t delta = code - t->code;

	if (t->encoding == V8_POSITIONS_BREAKABLE)
		put_varint(t, (uint64_t)delta << 2 | 2 | is_statement);
	else
		put_varint(t, zigzag(is_statement ? delta : -delta - 1));
	put_varint(t, zigzag((int64_t)word - t->word));
	t->code = code;
	t->word = word;
}

TEST(positions_decode_to_the_entries_written)
{
	static const struct {
		int64_t code;
		uint32_t inlining, source;
	} ENTRIES[] = {{-1, 0, 3}, {0, 0, 70}, {300, 5, 4}, {100000, 65535, 0x3ffffffd}};

	for (enum v8_position_encoding e = V8_POSITIONS_ZIGZAG; e <= V8_POSITIONS_BREAKABLE; e++) {
		struct table t = table_of(e);
		struct v8_positions p;

		for (size_t i = 0; i < 4; i++)
			put_entry(&t, ENTRIES[i].code,
				  position(ENTRIES[i].inlining, ENTRIES[i].source), !(i % 2));
		v8_positions__init(&p, e, t.bytes, t.size);
		for (size_t i = 0; i < 4; i++) {
			assert_true(v8_positions__next(&p));
			assert_int_equal(p.code, ENTRIES[i].code);
			assert_int_equal(v8_position__inlining(p.word), ENTRIES[i].inlining);
			assert_int_equal(v8_position__source(p.word), ENTRIES[i].source);
		}
		assert_false(v8_positions__next(&p));
		/* cut short anywhere, it ends */
		for (size_t size = 0; size < t.size; size++) {
			v8_positions__init(&p, e, t.bytes, size);
			for (unsigned int i = 0; v8_positions__next(&p); i++)
				assert_in_range(i, 0, 3);
		}
	}
}

TEST(damaged_positions_end_and_never_go_back)
{
	unsigned char endless[64];
	struct v8_positions p;

	memset(endless, 0xff, sizeof(endless));
	for (enum v8_position_encoding e = V8_POSITIONS_UNKNOWN; e <= V8_POSITIONS_BREAKABLE; e++) {
		v8_positions__init(&p, e, endless, sizeof(endless));
		assert_false(v8_positions__next(&p));
		v8_positions__init(&p, e, NULL, 0);
		assert_false(v8_positions__next(&p));
		/* as far as a word goes, and back: offsets never fall */
		for (unsigned int first = 0; first < 256; first++) {
			unsigned char bytes[40];
			int64_t last = -1;

			for (size_t i = 0; i < sizeof(bytes); i++)
				bytes[i] = first * (i + 1);
			v8_positions__init(&p, e, bytes, sizeof(bytes));
			while (v8_positions__next(&p)) {
				assert_true(p.code >= last && p.code <= UINT32_MAX);
				assert_true(v8_position__source(p.word) >= -1);
				last = p.code;
			}
		}
	}
}

/* ---- lines ----------------------------------------------------------------------------------- */

static uint64_t bytecode_array(struct v8_heap *h, const struct table *t)
{
	uint64_t array = v8_heap_object(h, h->layout.type_bytecode_array, 128);

	v8_heap_word(h, array, h->layout.bytecode_positions, v8_heap_bytes(h, t->bytes, t->size));
	return array;
}

static uint64_t some_script(struct v8_heap *h)
{
	return v8_heap_script(h, v8_heap_string(h, "one\ntwo\nthree\nfour\n"),
			      v8_heap_string(h, "/a.js"), 7);
}

static uint64_t some_sfi(struct v8_heap *h, uint64_t data, uint64_t script, const char *name)
{
	return v8_heap_sfi(h, data, v8_heap_scope(h, v8_heap_string(h, name), 0, 4), script, 1);
}

static struct table some_table(const struct v8_heap *h)
{
	struct table t = table_of(h->layout.encoding);

	put_entry(&t, 0, position(0, 1), true);
	put_entry(&t, 5, position(0, 6), false);
	put_entry(&t, 5, position(0, 9), false);
	put_entry(&t, 9, position(0, 1000), false);
	return t;
}

TEST(bytecode_offsets_have_lines_and_columns)
{
	for (enum v8_version v = 0; v < V8_VERSIONS; v++) {
		struct v8_heap *h = v8_heap_fresh(v);
		struct table t = some_table(h);
		uint64_t array = bytecode_array(h, &t), script = some_script(h), found;
		uint64_t data = v8_heap_object(h, h->layout.type_interpreter_data, 32), sfi;
		uint32_t line, column;

		v8_heap_word(h, data, 8, array);
		sfi = some_sfi(h, data, script, "f");
		assert_int_equal(v8_lines__read(&h->reader, sfi, &function), 0);
		assert_int_equal(v8_lines__bytecode_array(&h->reader, sfi, &found), 0);
		assert_true(found == array);
		assert_int_equal(function.rows.count, 4);
		assert_int_equal(managed_function__row(&function, 0)->line, 1);
		assert_int_equal(managed_function__row(&function, 4)->column, 2);
		assert_int_equal(managed_function__row(&function, 5)->line, 3);
		assert_int_equal(managed_function__row(&function, 8)->column, 2);
		assert_int_equal(managed_function__row(&function, 9)->line, 0);
		assert_int_equal(v8_lines__place(&h->reader, sfi, 14, &line, &column), 0);
		assert_int_equal(line, 4);
		assert_int_equal(column, 1);
	}
}

static void assert_rows(struct v8_heap *h, uint64_t sfi, size_t count)
{
	assert_int_equal(v8_lines__read(&h->reader, sfi, &function), 0);
	assert_int_equal(function.rows.count, count);
}

TEST(functions_without_readable_positions_have_no_rows)
{
	struct v8_heap *h = v8_heap_fresh(V8_NODE_20);
	struct table t = some_table(h);
	uint64_t array = bytecode_array(h, &t), script = some_script(h), found;
	uint64_t sfi = some_sfi(h, array, script, "f"), ring;

	assert_rows(h, sfi, 4);
	/* not made without a request; not even that */
	v8_heap_word(h, array, h->layout.bytecode_positions, v8_heap_object(h, ODDBALL, 48));
	assert_rows(h, sfi, 0);
	v8_heap_word(h, array, h->layout.bytecode_positions, SMI(0));
	assert_rows(h, sfi, 0);
	/* a length of 2 GB, and one that is more than there is */
	ring = v8_heap_bytes(h, t.bytes, t.size);
	v8_heap_word(h, array, h->layout.bytecode_positions, ring);
	v8_heap_word(h, ring, 8, SMI(INT32_MAX));
	assert_rows(h, sfi, 0);
	v8_heap_word(h, ring, 8, SMI(1 << 20));
	assert_rows(h, sfi, 0);
	/* a ring of links, and bytecodes that are gone */
	ring = v8_heap_object(h, h->layout.type_interpreter_data, 32);
	v8_heap_word(h, ring, 8, ring);
	for (int i = 0; i < 2; i++) {
		sfi = some_sfi(h, i ? SMI(1) : ring, script, "f");
		assert_rows(h, sfi, 0);
		assert_int_equal(v8_lines__bytecode_array(&h->reader, sfi, &found), 0);
		assert_int_equal(found, 0);
	}
	h->layout.encoding = V8_POSITIONS_UNKNOWN;
	assert_int_equal(v8_lines__read(&h->reader, sfi, &function), -ENOTSUP);
}

TEST(rows_beyond_the_limit_are_left_out)
{
	static unsigned char bytes[40000];
	struct v8_heap *h = v8_heap_fresh(V8_NODE_20);
	uint64_t array = v8_heap_object(h, h->layout.type_bytecode_array, 128);

	for (size_t i = 0; i < sizeof(bytes); i += 2)
		bytes[i] = 2;
	v8_heap_word(h, array, h->layout.bytecode_positions,
		     v8_heap_bytes(h, bytes, sizeof(bytes)));
	assert_int_equal(
		v8_lines__read(&h->reader, some_sfi(h, array, some_script(h), "f"), &function), 0);
	assert_int_equal(function.rows.count, MANAGED_ROWS_MAX);
}

/* ---- code ------------------------------------------------------------------------------------ */

struct made {
	uint64_t start, code; /* of instructions; the Code, tagged */
	uint64_t deopt, inlining;
	uint64_t sfi, script;
};

/* Code of some size and kind, with a table of positions. */
static struct made make_code(struct v8_heap *h, unsigned int above_baseline, uint32_t size,
			     const struct table *t)
{
	const struct v8_layout *l = &h->layout;
	uint64_t stream, code = v8_heap_object(h, l->type_code, 80);
	struct made m = {.script = some_script(h)};

	stream = v8_heap_space(h, 64 + l->code_more + size, 64);
	m.start = stream + 64;
	stream = m.start - l->stream_start + 1;
	m.start += l->code_more;
	m.code = code = l->code_more ? stream : code;
	v8_heap_word(h, stream, 0, v8_heap_map(h, l->type_instruction_stream));
	m.start = (m.start + 63) & ~63ull;
	if (!l->code_more) {
		v8_heap_word(h, stream, 8, code);
		v8_heap_word(h, code, l->code_start, m.start);
	}
	v8_heap_u32(h, code, l->code_size, size);
	v8_heap_u32(h, code, l->code_flags, l->kind_baseline + above_baseline);
	if (t)
		v8_heap_word(h, code, l->code_positions, v8_heap_bytes(h, t->bytes, t->size));
	return m;
}

static uint64_t wrapped(struct v8_heap *h, uint64_t sfi)
{
	uint64_t wrapper;

	if (h->layout.type_sfi_wrapper <= 0)
		return sfi;
	wrapper = v8_heap_object(h, h->layout.type_sfi_wrapper, 16);
	v8_heap_word(h, wrapper, 8, sfi);
	return wrapper;
}

static void put_inlining(struct v8_heap *h, uint64_t array, unsigned int id, uint64_t where,
			 int32_t literal)
{
	v8_heap_word(h, array, 16 + 16 * (id - 1), where);
	v8_heap_u32(h, array, 16 + 16 * (id - 1) + 8, literal);
}

/* Into its function "outer" 1 is inlined, and 2 into that: at 8 outer calls something, at 16 that function 2. */
static struct made make_optimized(struct v8_heap *h, unsigned int above_baseline, uint64_t *middle,
				  uint64_t *inner)
{
	const struct v8_layout *l = &h->layout;
	struct table t = table_of(l->encoding);
	uint64_t deopt[16] = {}, literals[2], nothing[8] = {};
	struct made m;

	put_entry(&t, 8, position(0, 1), false);
	put_entry(&t, 16, position(2, 4), false);
	m = make_code(h, above_baseline, 200, &t);
	m.sfi = some_sfi(h, 0, m.script, "outer");
	*middle = some_sfi(h, 0, m.script, "middle");
	*inner = some_sfi(h, 0, m.script, "inner");
	literals[0] = *middle;
	literals[1] = wrapped(h, *inner) | (l->type_sfi_wrapper > 0 ? 0 : 2);
	m.inlining = v8_heap_bytes(h, nothing, 32);
	put_inlining(h, m.inlining, 1, position(0, 8), 0);
	put_inlining(h, m.inlining, 2, position(1, 14), 1);
	deopt[l->deopt_count] = SMI(2);
	deopt[l->deopt_sfi] = wrapped(h, m.sfi);
	deopt[l->deopt_literals] = v8_heap_array(h, literals, 2);
	deopt[l->deopt_inlining] = m.inlining;
	m.deopt = v8_heap_array(h, deopt, 16);
	v8_heap_word(h, m.code, l->code_deopt, m.deopt);
	return m;
}

static struct v8_chain chain;

/* "POSITION@FUNCTION …", innermost first, as 0: outer, 1: middle, 2: inner; what is known of it. */
static const char *chain_text(int err, const uint64_t *functions)
{
	static char text[128];
	size_t size = 0;

	text[0] = '\0';
	for (size_t i = 0; !err && i < chain.count; i++) {
		size_t n = 0;

		while (n < 3 && functions[n] != chain.at[i].sfi)
			n++;
		size += (size_t)snprintf(text + size, sizeof(text) - size, "%s%d@%zu", i ? " " : "",
					 (int)chain.at[i].position, n);
	}
	snprintf(text + size, sizeof(text) - size, "%s%s%s%s", err ? strerrorname_np(-err) : "",
		 !err && chain.is_blind ? " blind" : "", !err && chain.is_cut ? " cut" : "",
		 !err && chain.is_deoptimized ? " deoptimized" : "");
	return text;
}

TEST(an_address_within_code_finds_it_and_its_owner)
{
	for (enum v8_version v = 0; v < V8_VERSIONS; v++) {
		struct v8_heap *h = v8_heap_fresh(v);
		struct v8_code code;
		struct made first = make_code(h, 0, 100, NULL),
			    second = make_code(h, 9, 100000, NULL);
		struct table t = some_table(h);
		uint64_t array = bytecode_array(h, &t), sfi = some_sfi(h, array, first.script, "f");

		v8_heap_word(h, first.code, h->layout.code_deopt, array);
		assert_int_equal(v8_code__at(&h->reader, first.start, &code), 0);
		assert_int_equal(code.kind, V8_CODE_BASELINE);
		assert_true(code.start == first.start && code.size == 100);
		assert_true(code.bytecode_array == array && !code.sfi);
		assert_int_equal(v8_code__at(&h->reader, first.start + 99, &code), 0);
		assert_int_equal(v8_code__owner(&h->reader, &code, sfi), V8_OWNER_SAME);
		assert_int_equal(v8_code__owner(&h->reader, &code,
						some_sfi(h, bytecode_array(h, &t), 0, "g")),
				 V8_OWNER_OTHER);
		assert_int_equal(v8_code__owner(&h->reader, &code, some_sfi(h, SMI(1), 0, "g")),
				 V8_OWNER_UNKNOWN);
		v8_heap_refill(h);
		assert_int_equal(v8_code__at(&h->reader, second.start + 99999, &code), 0);
		assert_int_equal(code.kind, V8_CODE_OTHER);
		assert_true(code.start == second.start);
		/* between the two, behind the second, before the first: there was code of the heap nearby */
		assert_int_equal(v8_code__at(&h->reader, first.start + 100, &code), -ENODATA);
		assert_int_equal(v8_code__at(&h->reader, second.start + 100000, &code), -ENODATA);
		assert_int_equal(v8_code__at(&h->reader, first.start - 65, &code), -ENODATA);
		/* nowhere, and where none was ever seen */
		assert_int_equal(v8_code__at(&h->reader, second.start + (1 << 22), &code), -ENOENT);
		assert_int_equal(v8_code__at(&h->reader, 0, &code), -ENOENT);
		assert_int_equal(v8_code__at(&h->reader, 64, &code), -ENOENT);
		assert_int_equal(v8_code__at(&h->reader, ~0ull, &code), -ENOENT);
		/* not what the header says it is */
		v8_heap_word(h, first.code, h->layout.code_more ? 0 : h->layout.code_start,
			     first.start + 64);
		assert_int_equal(v8_code__at(&h->reader, first.start + 9, &code), -ENODATA);
		h->layout.has_code = false;
		assert_int_equal(v8_code__at(&h->reader, first.start, &code), -ENOTSUP);
	}
}

TEST(code_is_searched_only_up_to_its_largest_size)
{
	struct v8_heap *h = v8_heap_fresh(V8_NODE_24);
	struct made m = make_code(h, 2, 600000, NULL);
	struct v8_code code;

	assert_int_equal(v8_code__at(&h->reader, m.start + V8_CODE_MAX - 64, &code), 0);
	assert_int_equal(v8_code__at(&h->reader, m.start + V8_CODE_MAX + 64, &code), -ENODATA);
	assert_in_range(h->reads, 0, 200);
}

#define CHAIN(at, expected)                                                                        \
	assert_string_equal(                                                                       \
		chain_text(v8_code__chain(&h->reader, &code, m.start + (at), &chain), functions),  \
		expected)

TEST(inlined_functions_are_a_chain_from_inner_to_outer)
{
	/* 1 in 2, in itself, in one that is not there; a literal that is none */
	static const struct {
		uint64_t in;
		int32_t literal;
	} BAD[] = {{2, 0}, {1, 0}, {9, 0}, {0, 2}, {0, INT32_MIN}};

	for (enum v8_version v = 0; v < V8_VERSIONS; v++) {
		struct v8_heap *h = v8_heap_fresh(v);
		uint64_t functions[3];
		struct made m = make_optimized(h, 2, &functions[1], &functions[2]);
		struct v8_code code;

		functions[0] = m.sfi;
		assert_int_equal(v8_code__at(&h->reader, m.start + 20, &code), 0);
		assert_int_equal(code.kind, V8_CODE_TURBOFAN);
		assert_true(code.sfi == m.sfi);
		assert_int_equal(code.inlined, 2);
		assert_int_equal(v8_code__owner(&h->reader, &code, m.sfi), V8_OWNER_SAME);
		assert_int_equal(v8_code__owner(&h->reader, &code, functions[1]), V8_OWNER_OTHER);
		CHAIN(10, "1@0");
		CHAIN(17, "4@2 14@1 8@0");
		/* V8 has given it up: the address is one of its exits */
		v8_heap_put(h, m.start + 18, 0, "\x41\xff\x55\xd0", 4);
		CHAIN(17, "-1@0 blind deoptimized");
		v8_heap_put(h, m.start + 18, 0, "\x90\x90\x90\x90", 4);
		/* before the first entry, nothing is known */
		CHAIN(8, "-1@0 blind");
		CHAIN(0, "ENODATA");
		/* itself */
		put_inlining(h, m.inlining, 2, position(1, 14), -1);
		CHAIN(17, "4@0 14@1 8@0");
		for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
			put_inlining(h, m.inlining, 1, position(BAD[i].in, 8), BAD[i].literal);
			CHAIN(17, "EAGAIN");
		}
		v8_heap_word(h, m.inlining, 8, SMI(16));
		CHAIN(17, "EAGAIN");
	}
}

TEST(the_chain_of_maglev_code_is_blind_without_positions)
{
	struct v8_heap *h = v8_heap_fresh(V8_NODE_26);
	uint64_t functions[3];
	struct made m = make_optimized(h, 1, &functions[1], &functions[2]);
	struct v8_code code;

	functions[0] = m.sfi;
	assert_int_equal(v8_code__at(&h->reader, m.start + 20, &code), 0);
	assert_int_equal(code.kind, V8_CODE_MAGLEV);
	CHAIN(17, "4@2 14@1 8@0");
	/* without any positions */
	v8_heap_word(h, m.code, h->layout.code_positions, v8_heap_bytes(h, "", 0));
	assert_int_equal(v8_code__at(&h->reader, m.start + 20, &code), 0);
	CHAIN(17, "-1@0 blind");
	/* deoptimization data that is none */
	v8_heap_word(h, m.code, h->layout.code_deopt, h->meta_map);
	assert_int_equal(v8_code__at(&h->reader, m.start + 20, &code), 0);
	assert_int_equal(code.sfi, 0);
	assert_int_equal(v8_code__owner(&h->reader, &code, m.sfi), V8_OWNER_UNKNOWN);
	CHAIN(17, "ENODATA");
}

TEST(an_inlined_function_is_sent_once_in_an_answer)
{
	struct v8_heap *h = v8_heap_fresh(V8_NODE_24);
	uint64_t middle, inner;
	struct made m = make_optimized(h, 2, &middle, &inner);
	const struct code_question q = {
		.kind = FRAME_NOTE_V8, .function = m.sfi, .address = m.start + 17};
	struct found_runtimes process = {};
	struct code_answers answers = {.limit = 1u << 20, .found = &process};
	struct v8_found found = {.is_read = true, .layout = h->layout, .trust.state = V8_TRUSTED};
	size_t first;

	v8_reader__init(&found.reader, &found.layout, h->scripts);
	found.reader.memory = &h->memory;
	found.reported = calloc(V8_FUNCTIONS_REPORTED, sizeof(*found.reported));
	assert_non_null(found.reported);
	assert_int_equal(v8_answers__function(&answers, &found, &q), 0);
	assert_int_equal(answers.methods.count, 2);
	first = answers.bytes.count;
	assert_int_equal(v8_answers__function(&answers, &found, &q), 0);
	assert_int_equal(answers.methods.count, 2);
	assert_int_equal(answers.bytes.count - first,
			 sizeof(struct code_chain_event) + 3 * sizeof(struct code_call));
	code_answers__fini(&answers);
	free(found.reported);
}

TEST(a_cut_chain_keeps_its_outermost_function)
{
	static uint64_t zeros[2 * 100];
	struct v8_heap *h = v8_heap_fresh(V8_NODE_20);
	struct table t = table_of(h->layout.encoding);
	uint64_t middle, inner, array;
	struct made m = make_optimized(h, 2, &middle, &inner);
	struct v8_code code;

	put_entry(&t, 8, position(100, 1), false);
	array = v8_heap_bytes(h, zeros, sizeof(zeros));
	for (uint32_t id = 1; id <= 100; id++)
		put_inlining(h, array, id, position(id - 1, 2), 0);
	v8_heap_word(h, m.deopt, 16 + 8 * h->layout.deopt_inlining, array);
	v8_heap_word(h, m.code, h->layout.code_positions, v8_heap_bytes(h, t.bytes, t.size));
	assert_int_equal(v8_code__at(&h->reader, m.start + 20, &code), 0);
	assert_int_equal(v8_code__chain(&h->reader, &code, m.start + 17, &chain), 0);
	assert_int_equal(chain.count, V8_INLINED_MAX);
	assert_true(chain.is_cut);
	assert_true(chain.at[chain.count - 1].sfi == m.sfi);
	assert_int_equal(chain.at[chain.count - 1].position, -1);
}

TEST(reading_a_damaged_heap_stays_within_limits)
{
	static const uint64_t words[] = {0, 1, ~0ull, SMI(INT32_MAX), SMI(-1), HEAP_BASE + 1};

	for (enum v8_version v = 0; v < V8_VERSIONS; v++) {
		struct v8_heap *h = v8_heap_fresh(v);
		uint64_t middle, inner;
		struct made m = make_optimized(h, 2, &middle, &inner);

		for (size_t at = 64; at < h->used; at += 8) {
			for (size_t i = 0; i < 7; i++) {
				uint64_t before, put = i < 6 ? words[i] : m.code;
				struct v8_code code;

				memcpy(&before, h->bytes + at, 8);
				memcpy(h->bytes + at, &put, 8);
				v8_reader__init(&h->reader, &h->layout, h->scripts);
				h->reader.memory = &h->memory;
				v8_heap_refill(h);
				if (!v8_code__at(&h->reader, m.start + 20, &code)) {
					v8_code__owner(&h->reader, &code, m.sfi);
					if (!v8_code__chain(&h->reader, &code, m.start + 17,
							    &chain))
						assert_in_range(chain.count, 1, V8_INLINED_MAX);
				}
				v8_lines__read(&h->reader, m.sfi, &function);
				assert_in_range(h->reads, 0, 4000);
				memcpy(h->bytes + at, &before, 8);
			}
		}
	}
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Bytecodes 0 to 3 are prefixes; 10 has one operand that is widened, 11 none, 12 two bytes that are not. */
static size_t put_sizes(unsigned char *to)
{
	enum { COUNT = 150 };

	for (unsigned int scale = 0; scale < 3; scale++) {
		unsigned char *row = to + scale * COUNT;
		unsigned int wide = 1 << scale;

		memset(row, 1, COUNT);
		row[5] = 1 + wide;
		row[6] = 1 + 2 * wide;
		row[7] = 1 + 3 * wide;
		row[10] = 1 + wide;
		row[12] = 3;
	}
	return (size_t)3 * COUNT;
}

TEST(the_bytecode_size_table_is_found_by_its_content)
{
	unsigned char bytes[1000];
	struct v8_bytecodes table;
	size_t size;

	memset(bytes, 1, sizeof(bytes)); /* what it begins with is everywhere, nearly */
	size = 100 + put_sizes(bytes + 100);
	assert_true(v8_bytecodes__find(bytes, sizeof(bytes), &table));
	assert_int_equal(table.count, 150);
	assert_int_equal(table.size[2][7], 13);
	assert_false(v8_bytecodes__find(bytes, size - 1, &table));
	assert_int_equal(table.count, 0);
	bytes[100 + 150 + 77] = 2; /* then the third row would have 3 */
	assert_false(v8_bytecodes__find(bytes, sizeof(bytes), &table));
	bytes[100 + 150 + 77] = 1;
	assert_true(v8_bytecodes__find(bytes, sizeof(bytes), &table));
	assert_int_equal(v8_bytecodes__length(&table, (unsigned char[]){10, 0}, 2), 2);
	assert_int_equal(v8_bytecodes__length(&table, (unsigned char[]){10}, 1), 0);
	assert_int_equal(v8_bytecodes__length(&table, (unsigned char[]){0, 10, 0, 0}, 4), 4);
	assert_int_equal(v8_bytecodes__length(&table, (unsigned char[]){1, 10, 0, 0, 0, 0}, 6), 6);
	assert_int_equal(v8_bytecodes__length(&table, (unsigned char[]){3, 10, 0, 0, 0, 0}, 6), 6);
	assert_int_equal(v8_bytecodes__length(&table, (unsigned char[]){0}, 1), 0);
	assert_int_equal(v8_bytecodes__length(&table, (unsigned char[]){150}, 1), 0);
	assert_int_equal(v8_bytecodes__length(&table, bytes, 0), 0);
}

/* Bytecodes at 0, 2, 3, 7 and 10, whose code has 4, 8, 200, 4 and 4 bytes, behind an entry of 20. */
static struct made make_baseline(struct v8_heap *h, uint64_t *sfi)
{
	static const unsigned char bytecodes[] = {10, 0, 11, 0, 10, 0, 0, 12, 0, 0, 11};
	const struct v8_layout *l = &h->layout;
	struct table positions = table_of(l->encoding), sizes = {};
	uint64_t array;
	struct made m;

	put_entry(&positions, 0, position(0, 1), true);
	put_entry(&positions, 3, position(0, 6), false);
	put_entry(&positions, 10, position(0, 9), false);
	array = bytecode_array(h, &positions);
	v8_heap_word(h, array, 8, SMI(sizeof(bytecodes)));
	v8_heap_put(h, array, l->bytecodes, bytecodes, sizeof(bytecodes));
	for (size_t i = 0; i < 6; i++)
		put_varint(&sizes, (const unsigned char[]){20, 4, 8, 200, 4, 4}[i]);
	m = make_code(h, 0, 400, &sizes);
	v8_heap_word(h, m.code, l->code_deopt, array);
	*sfi = some_sfi(h, array, m.script, "baseline");
	return m;
}

TEST(baseline_addresses_have_positions_of_their_bytecodes)
{
	/* offset, position in the script; -1: none */
	static const int expected[][2] = {{0, -1},  {19, -1}, {20, 1},	{23, 1},  {31, 1},  {32, 6},
					  {231, 6}, {232, 6}, {236, 9}, {239, 9}, {240, -1}};
	unsigned char bytes[500];
	struct v8_bytecodes table;

	memset(bytes, 0, sizeof(bytes));
	put_sizes(bytes);
	assert_true(v8_bytecodes__find(bytes, sizeof(bytes), &table));
	for (enum v8_version v = 0; v < V8_VERSIONS; v++) {
		struct v8_heap *h = v8_heap_fresh(v);
		uint64_t sfi;
		struct made m = make_baseline(h, &sfi);

		for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
			int err;

			v8_heap_refill(h);
			err = v8_place__chain(&h->reader, &table, sfi, m.start + expected[i][0],
					      i % 2, &chain);
			assert_int_equal(err, expected[i][1] < 0 ? -ENODATA : 0);
			if (err)
				continue;
			assert_int_equal(chain.count, 1);
			assert_true(chain.at[0].sfi == sfi && !chain.is_blind);
			assert_int_equal(chain.at[0].position, expected[i][1]);
		}
		/* without the table nothing is reported, nor of a function without bytecodes */
		assert_int_equal(v8_place__chain(&h->reader, &(struct v8_bytecodes){}, sfi,
						 m.start + 32, false, &chain),
				 -ENODATA);
		sfi = some_sfi(h, SMI(1), m.script, "other");
		assert_int_equal(
			v8_place__chain(&h->reader, &table, sfi, m.start + 32, false, &chain),
			-ENODATA);
	}
}

TEST(the_chain_of_a_leaf_address_is_blind)
{
	static const struct {
		bool is_caller, is_leaf; /* the frame is the caller's */
		unsigned int at;
		const char *expected;
	} CASES[] = {
		{false, true, 16, "-1@0 blind"},
		{true, true, 2, "-1@0 -1@3 blind"}, /* or it has the memory of other code since */
		{true, false, 16, "-1@3 blind"},
		{false, false, 16, "4@2 14@1 8@0"},
	};
	const struct v8_bytecodes none = {};

	for (enum v8_version v = 0; v < V8_VERSIONS; v++) {
		struct v8_heap *h = v8_heap_fresh(v);
		uint64_t functions[3], other;
		struct made m = make_optimized(h, 2, &functions[1], &functions[2]);

		functions[0] = m.sfi;
		other = some_sfi(h, 0, m.script, "caller");
		for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
			int err = v8_place__chain(&h->reader, &none,
						  CASES[i].is_caller ? other : m.sfi,
						  m.start + CASES[i].at, CASES[i].is_leaf, &chain);

			assert_string_equal(chain_text(err, functions), CASES[i].expected);
		}
	}
}

static void free_function(void)
{
	managed_function__fini(&function);
}

ALL_TESTS_WITH(NULL, free_function);
