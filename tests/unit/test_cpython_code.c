/* SPDX-License-Identifier: BSD-2-Clause */
/* Code objects of CPython: names of all kinds of characters, line tables, and code that is gone. */
#include "unit.h"
#include "base/cleanup.h"
#include "forge_cpython.h"
#include "runtimes/python/code.h"
#include "runtimes/python/cpython.h"
#include "runtimes/python/layout.h"

static const uint32_t versions[] = {0x030b02f0, 0x030c01f0, 0x030d05f0, 0x030e0af0, 0x030f02f0};
#define VERSIONS (sizeof(versions) / sizeof(*versions))

#define LEAF	 (FORGED_CODE + 3 * 0x200)

static struct forged *new_program(uint32_t version)
{
	struct forged *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_true(forged_program(f, version));
	return f;
}

static uint64_t word_of(const struct forged *f, uint32_t offset)
{
	uint64_t value;

	memcpy(&value, f->bytes + offset, sizeof(value));
	return value;
}

static struct cpython_identity identity_of(const struct forged *f, uint32_t code)
{
	struct target_memory m = forged_memory((struct forged *)f);
	struct cpython_identity identity;

	assert_int_equal(cpython_identity__of_head(&f->py, &m, f->bytes + code, &identity), 0);
	return identity;
}

static enum code_state read_code(struct forged *f, uint32_t code,
				 const struct cpython_identity *identity,
				 struct managed_function *function)
{
	struct target_memory m = {.read = forged_read,
				  .context = f,
				  .bytes_left = CPYTHON_CODE_SPENT,
				  .reads_left = CPYTHON_CODE_READS};

	*function = (struct managed_function){};
	return cpython_code__read(&f->py, &m, forged_address(code), identity, function);
}

/* As above, of a code object as it is now. */
static enum code_state read_now(struct forged *f, uint32_t code, struct managed_function *function)
{
	struct cpython_identity identity = identity_of(f, code);

	return read_code(f, code, &identity, function);
}

TEST(code_objects_have_a_name_a_file_and_lines)
{
	for (size_t v = 0; v < VERSIONS; v++) {
		_cleanup_free_ struct forged *f = new_program(versions[v]);
		_cleanup_(managed_function__fini) struct managed_function c = {};

		assert_int_equal(read_now(f, LEAF, &c), CODE_STATE_CONFIRMED);
		assert_string_equal(c.name, "leaf");
		assert_string_equal(c.file, "/opt/app.py");
		assert_int_equal(c.line, 30);
		assert_int_equal(managed_function__row(&c, 0)->line, 30);
		assert_int_equal(managed_function__row(&c, 3)->line, 30);
		assert_int_equal(managed_function__row(&c, 4)->line, 31);
		assert_int_equal(managed_function__row(&c, 8)->line, 0); /* has none */
		assert_int_equal(managed_function__row(&c, 12)->line, 35);
		assert_int_equal(managed_function__row(&c, 16)->line, 0); /* behind */
	}
}

/* ---- text -------------------------------------------------------------------------------------- */

static void assert_text(struct forged *f, uint32_t str, const char *expected)
{
	struct target_memory m = forged_memory(f);
	char text[64];

	assert_int_equal(cpython_str__read(&f->py, &m, forged_address(str), text, sizeof(text)), 0);
	assert_string_equal(text, expected);
}

TEST(strings_of_every_width_become_printable_utf_8)
{
	static const uint8_t latin[] = {'g', 0xe9, 'n', 0xff};
	static const uint16_t two[] = {0x65e5, 'a', 0x20ac, 0xd800, 0};
	static const uint32_t four[] = {0x1f40d, 0x110000, 'z', UINT32_MAX};

	for (size_t v = 0; v < VERSIONS; v++) {
		_cleanup_free_ struct forged *f = new_program(versions[v]);

		assert_text(f, forged_str(f, ""), "");
		assert_text(f, forged_str(f, "a\nb\033[m"), "a\\x0ab\\x1b[m");
		assert_text(f, forged_str_of(f, "a\0b", 3, 1, true), "a\\x00b");
		assert_text(f, forged_str_of(f, latin, 4, 1, false), "g\u00e9n\u00ff");
		assert_text(f, forged_str_of(f, two, 5, 2, false),
			    "\u65e5a\u20ac\\xed\\xa0\\x80\\x00");
		assert_text(f, forged_str_of(f, four, 4, 4, false), "\U0001f40d\ufffdz\ufffd");
	}
}

/* What is no str, and one that is longer than there is room, or memory, for. */
TEST(invalid_strings_are_refused_and_long_ones_cut)
{
	_cleanup_free_ struct forged *f = new_program(versions[4]);
	const struct cpython_layout *l = &f->py.layout;
	uint32_t str = forged_str(f, "0123456789");
	struct target_memory m = forged_memory(f);
	uint64_t spent = m.bytes_left;
	char text[8];

	assert_int_equal(cpython_str__read(&f->py, &m, forged_address(str), text, sizeof(text)), 0);
	assert_string_equal(text, "0123456");
	forged_word(f, str + l->str_length, UINT64_C(1) << 30);
	assert_int_equal(cpython_str__read(&f->py, &m, forged_address(str), text, sizeof(text)), 0);
	assert_string_equal(text, "0123456");
	assert_true(spent - m.bytes_left < 200);
	forged_put(f, str + l->str_state, 0, 4);
	assert_int_equal(cpython_str__read(&f->py, &m, forged_address(str), text, 8), -EBADMSG);
	forged_put(f, str + l->str_state, 3 << 2 | 1 << 5, 4);
	assert_int_equal(cpython_str__read(&f->py, &m, forged_address(str), text, 8), -EBADMSG);
	forged_put(f, str + l->str_state, 2 << 2 | 3 << 5, 4);
	assert_int_equal(cpython_str__read(&f->py, &m, forged_address(str), text, 8), -EBADMSG);
	forged_word(f, str, 0);
	assert_int_equal(cpython_str__read(&f->py, &m, forged_address(str), text, 8), -ESTALE);
	assert_string_equal(text, "");
	forged_word(f, str, UINT64_C(0x7f12deadbee0));
	assert_int_equal(cpython_str__read(&f->py, &m, forged_address(str), text, 8), -ESTALE);
	assert_int_equal(cpython_str__read(&f->py, &m, 16, text, 8), -ENODATA);
}

TEST(zero_and_pointers_are_counts_of_dead_objects)
{
	assert_true(cpython_object__is_alive(1));
	assert_true(cpython_object__is_alive(999999999));		/* immortal, 3.11 */
	assert_true(cpython_object__is_alive(UINT32_MAX));		/* 3.12 */
	assert_true(cpython_object__is_alive(3ull << 30 | 5ull << 48)); /* 3.14, with flags */
	assert_false(cpython_object__is_alive(0));
	assert_false(cpython_object__is_alive(UINT64_C(0x7f8812345670)));
	assert_false(cpython_object__is_alive(UINT64_C(0x5500000000)));
}

/* ---- lines ------------------------------------------------------------------------------------- */

static void read_table(struct managed_function *f, const void *table, size_t size)
{
	*f = (struct managed_function){};
	assert_int_equal(cpython_lines__read(table, size, 100, f), 0);
}

#define ENTRY(kind, units) (0x80 | (kind) << 3 | ((units)-1))

TEST(line_entries_of_every_kind_are_decoded)
{
	/* each kind: short, line +0, +1, +2, without columns, long, none, back by 70, and the same line once more */
	static const uint8_t table[] = {ENTRY(0, 1),
					1,
					ENTRY(9, 8),
					2,
					ENTRY(10, 1),
					1,
					2,
					ENTRY(11, 2),
					1,
					2,
					ENTRY(12, 1),
					1,
					2,
					ENTRY(13, 1),
					0x06,
					ENTRY(14, 1),
					0x50,
					0x01,
					0x41,
					1,
					2,
					3,
					ENTRY(15, 1),
					ENTRY(13, 1),
					0x4d,
					0x02,
					ENTRY(13, 1),
					0};
	static const struct managed_row expected[] = {{0, 100, 0},  {20, 101, 0}, {24, 103, 0},
						      {26, 106, 0}, {28, 146, 0}, {30, 0, 0},
						      {32, 76, 0},  {36, 0, 0}};
	_cleanup_(managed_function__fini) struct managed_function f = {};

	read_table(&f, table, sizeof(table));
	assert_int_equal(f.rows.count, sizeof(expected) / sizeof(*expected));
	for (size_t i = 0; i < f.rows.count; i++) {
		assert_int_equal(f.rows.data[i].offset, expected[i].offset);
		assert_int_equal(f.rows.data[i].line, expected[i].line);
	}
}

/* Cut anywhere, it gives what is whole, and an end. */
TEST(damaged_line_tables_end_in_a_single_row)
{
	static const uint8_t endless[] = {ENTRY(14, 1), 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f};
	static const uint8_t below[] = {ENTRY(13, 1), 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x3f};
	static const uint8_t no_start[] = {0x01, 0x02};
	struct managed_function f;

	read_table(&f, "", 0);
	assert_int_equal(f.rows.count, 1);
	assert_int_equal(f.rows.data[0].line, 0);
	managed_function__fini(&f);
	read_table(&f, no_start, sizeof(no_start));
	assert_int_equal(f.rows.count, 1);
	managed_function__fini(&f);
	for (size_t size = 1; size <= sizeof(endless); size++) {
		read_table(&f, endless, size);
		assert_int_equal(f.rows.count, 1);
		managed_function__fini(&f);
	}
	read_table(&f, below, sizeof(below));
	assert_int_equal(f.rows.data[0].line, 0);
	managed_function__fini(&f);
}

TEST(rows_beyond_the_limit_have_no_line)
{
	size_t size = 2 * CPYTHON_LINETABLE_MAX;
	_cleanup_free_ uint8_t *table = malloc(size);
	_cleanup_(managed_function__fini) struct managed_function f = {};

	assert_non_null(table);
	for (size_t i = 0; i < size; i += 2) {
		table[i] = ENTRY(13, 8);
		table[i + 1] = 2;
	}
	read_table(&f, table, size);
	assert_int_equal(f.rows.count, MANAGED_ROWS_MAX);
	assert_int_equal(f.rows.data[MANAGED_ROWS_MAX - 1].line, 0);
	for (size_t i = 1; i < f.rows.count; i++)
		assert_true(f.rows.data[i].offset > f.rows.data[i - 1].offset);
}

/* A linetable that claims a gigabyte. */
TEST(code_with_an_oversized_line_table_is_stale)
{
	_cleanup_free_ struct forged *f = new_program(versions[2]);
	const struct cpython_layout *l = &f->py.layout;
	uint32_t table = word_of(f, LEAF + l->code_linetable) - FORGED_BASE;
	_cleanup_(managed_function__fini) struct managed_function c = {};

	forged_word(f, table + l->bytes_size, UINT64_C(1) << 30);
	assert_int_equal(read_now(f, LEAF, &c), CODE_STATE_STALE); /* so much memory is not there */
	assert_string_equal(c.name, "");
	assert_int_equal(c.rows.count, 0);
}

/* ---- sureness ---------------------------------------------------------------------------------- */

/* Whatever word of the identity has changed, the code is another. */
TEST(a_changed_word_of_the_identity_makes_code_stale)
{
	for (size_t v = 0; v < VERSIONS; v++) {
		_cleanup_free_ struct forged *f = new_program(versions[v]);
		const struct cpython_layout *l = &f->py.layout;
		const struct cpython_identity identity = identity_of(f, LEAF);
		const uint32_t fields[] = {
			l->code_firstline, l->code_filename, l->code_qualname, l->code_linetable, 8,
			l->code_version};
		size_t count = l->code_version ? 6 : 5;
		struct managed_function c;

		for (size_t i = 0; i < count; i++) {
			uint32_t at = LEAF + fields[i];
			uint64_t was = word_of(f, at);

			forged_word(f, at, was + 16);
			assert_int_equal(read_code(f, LEAF, &identity, &c), CODE_STATE_STALE);
			assert_string_equal(c.name, "");
			managed_function__fini(&c);
			forged_word(f, at, was);
		}
		assert_int_equal(read_code(f, LEAF, &identity, &c), CODE_STATE_CONFIRMED);
		managed_function__fini(&c);
	}
}

/* 3.11 has no version: another function's name, at the same address, has another hash. */
TEST(renamed_code_without_a_version_is_stale)
{
	_cleanup_free_ struct forged *f = new_program(versions[0]);
	const struct cpython_layout *l = &f->py.layout;
	const struct cpython_identity identity = identity_of(f, LEAF);
	uint32_t name = word_of(f, LEAF + l->code_name) - FORGED_BASE;
	struct managed_function c;

	assert_int_equal(l->code_version, 0);
	forged_word(f, name + l->str_hash, word_of(f, name + l->str_hash) + 1);
	assert_int_equal(read_code(f, LEAF, &identity, &c), CODE_STATE_STALE);
	managed_function__fini(&c);
	assert_int_equal(read_now(f, LEAF, &c), CODE_STATE_CONFIRMED);
	managed_function__fini(&c);
	/* a name that is not there has none */
	forged_word(f, LEAF + l->code_name, 8);
	assert_int_not_equal(read_code(f, LEAF, &identity, &c), CODE_STATE_CONFIRMED);
	managed_function__fini(&c);
}

TEST(code_with_a_dead_object_is_stale)
{
	for (size_t v = 0; v < VERSIONS; v++) {
		_cleanup_free_ struct forged *f = new_program(versions[v]);
		const struct cpython_layout *l = &f->py.layout;
		const uint32_t objects[] = {LEAF, word_of(f, LEAF + l->code_qualname) - FORGED_BASE,
					    word_of(f, LEAF + l->code_filename) - FORGED_BASE,
					    word_of(f, LEAF + l->code_linetable) - FORGED_BASE};
		struct managed_function c;

		for (size_t i = 0; i < 4; i++) {
			forged_word(f, objects[i], forged_address(0x4000)); /* a free list's link */
			assert_int_equal(read_now(f, LEAF, &c), CODE_STATE_STALE);
			managed_function__fini(&c);
			forged_word(f, objects[i], 1);
		}
		assert_int_equal(read_now(f, LEAF, &c), CODE_STATE_CONFIRMED);
		managed_function__fini(&c);
	}
}

/* It becomes another while it is read: the n-th read is of what comes after. */
struct changing {
	struct forged *f;
	uint32_t reads, until, at;
	uint64_t value;
};

static int read_changing(void *context, void *to, size_t size, uint64_t address)
{
	struct changing *c = context;

	if (c->reads++ == c->until)
		forged_word(c->f, c->at, c->value);
	return forged_read(c->f, to, size, address);
}

TEST(code_that_changes_during_the_reading_is_stale)
{
	for (uint32_t until = 0; until < 8; until++) {
		for (int dies = 0; dies < 2; dies++) {
			_cleanup_free_ struct forged *f = new_program(versions[3]);
			struct cpython_identity identity = identity_of(f, LEAF);
			struct changing c = {.f = f,
					     .until = until,
					     .at = dies ? LEAF : LEAF + f->py.layout.code_version,
					     .value = dies ? 0 : 99};
			struct target_memory m = {.read = read_changing,
						  .context = &c,
						  .bytes_left = CPYTHON_CODE_SPENT,
						  .reads_left = CPYTHON_CODE_READS};
			struct managed_function function = {};

			assert_int_equal(cpython_code__read(&f->py, &m, forged_address(LEAF),
							    &identity, &function),
					 CODE_STATE_STALE);
			managed_function__fini(&function);
			assert_int_equal(c.reads, until ? 8 : 1);
		}
	}
}

TEST(code_beyond_the_limit_of_reads_is_unknown)
{
	_cleanup_free_ struct forged *f = new_program(versions[3]);
	struct cpython_identity identity = identity_of(f, LEAF);

	for (uint32_t reads = 0; reads < 8; reads++) {
		struct target_memory m = {.read = forged_read,
					  .context = f,
					  .bytes_left = CPYTHON_CODE_SPENT,
					  .reads_left = reads};
		_cleanup_(managed_function__fini) struct managed_function function = {};

		assert_int_equal(
			cpython_code__read(&f->py, &m, forged_address(LEAF), &identity, &function),
			CODE_STATE_UNKNOWN);
		assert_string_equal(function.name, "");
	}
}
