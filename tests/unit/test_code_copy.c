/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of functions of Python from what the kernel copies of them. */
#include "unit.h"
#include "base/cleanup.h"
#include "forge_cpython.h"
#include "runtimes/answers.h"
#include "runtimes/python/code.h"
#include "runtimes/python/cpython.h"
#include "runtimes/python/layout.h"
#include "stream/event_decode.h"

static const uint32_t versions[] = {0x030b02f0, 0x030c01f0, 0x030d05f0, 0x030e0af0, 0x030f02f0};
#define VERSIONS (sizeof(versions) / sizeof(*versions))

#define LEAF	 (FORGED_CODE + 3 * 0x200)

struct copied {
	struct forged f;
	union {
		struct code_copy_event copy;
		char bytes[sizeof(struct code_copy_event) + CODE_COPY_TABLE];
	};
	struct code_answers answers;
};

static uint64_t check_of(struct forged *f, uint32_t code)
{
	struct target_memory m = forged_memory(f);
	struct cpython_identity identity;

	assert_int_equal(cpython_identity__of_head(&f->py, &m, f->bytes + code, &identity), 0);
	return (uint64_t)identity.version << 32 | identity.firstline;
}

static struct copied *new_copy(uint32_t version)
{
	struct copied *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	assert_true(forged_program(&c->f, version));
	assert_true(forged_copy(&c->f, &c->f.py.layout, forged_address(LEAF), check_of(&c->f, LEAF),
				&c->copy));
	assert_int_equal(event_check(&c->copy.header, sizeof(c->bytes)), 0);
	c->answers = (struct code_answers){.pid = 1, .limit = EVENT_SIZE_MAX};
	return c;
}

static void free_copy(struct copied *c)
{
	code_answers__fini(&c->answers);
	free(c);
}

static int report(struct copied *c)
{
	c->answers.bytes.count = 0;
	return forged_read_copy(&c->answers, &c->copy, &c->f.py.layout);
}

TEST(a_copied_function_is_reported_with_name_and_rows)
{
	for (size_t v = 0; v < VERSIONS; v++) {
		struct copied *c = new_copy(versions[v]);
		const struct code_function_event *e;

		assert_int_equal(report(c), 0);
		e = (const struct code_function_event *)c->answers.bytes.data;
		assert_int_equal(event_check(&e->header, c->answers.bytes.count), 0);
		assert_int_equal(e->header.size, c->answers.bytes.count);
		assert_int_equal(e->pid, 1);
		assert_int_equal(e->kind, FRAME_NOTE_PYTHON);
		assert_int_equal(e->state, CODE_STATE_CONFIRMED);
		assert_int_equal(e->function, forged_address(LEAF));
		assert_int_equal(e->check, c->copy.check);
		assert_int_equal(e->line, 30);
		assert_int_equal(e->base, c->f.py.layout.code_bytecode);
		assert_true(e->row_count > 2);
		assert_string_equal((const char *)&e->rows[e->row_count], "leaf");
		assert_string_equal((const char *)&e->rows[e->row_count] + sizeof("leaf"),
				    "/opt/app.py");
		free_copy(c);
	}
}

TEST(a_truncated_copy_reports_no_function)
{
	for (size_t v = 0; v < VERSIONS; v++) {
		struct copied *c = new_copy(versions[v]);
		uint16_t *const sizes[] = {&c->copy.head_size, &c->copy.name_size,
					   &c->copy.file_size, &c->copy.lines_size};
		const uint32_t ascii = c->f.py.layout.str_ascii;
		const uint16_t enough[] = {c->f.py.layout.code_linetable + 8,
					   ascii + sizeof("leaf") - 1,
					   ascii + sizeof("/opt/app.py") - 1, c->copy.lines_size};

		/* what follows one object in memory is another one */
		for (size_t i = 0; i < 4; i++)
			*sizes[i] = enough[i];
		for (size_t i = 0; i < 4; i++) {
			uint16_t was = *sizes[i];

			for (*sizes[i] = 0; *sizes[i] < enough[i]; ++*sizes[i])
				assert_int_equal(report(c), -ENODATA);
			assert_int_equal(report(c), 0);
			*sizes[i] = was;
		}
		free_copy(c);
	}
}

/* Nor is what is of another function, or has no end. */
TEST(copies_with_a_bad_check_or_name_are_refused)
{
	struct copied *c = new_copy(versions[2]);
	struct cpython_layout *l = &c->f.py.layout;
	uint64_t length = UINT64_MAX;

	c->copy.check++;
	assert_int_equal(report(c), -ENODATA);
	c->copy.check--;
	assert_int_equal(report(c), 0);
	memset(c->copy.name_bytes, 0, 8); /* its name is gone */
	assert_int_equal(report(c), -ENODATA);
	memset(c->copy.name_bytes, 1, 1);
	assert_int_equal(report(c), 0);
	memcpy(c->copy.name_bytes + l->str_length, &length, sizeof(length));
	assert_int_equal(report(c), -ENODATA);
	free_copy(c);
}

/* A hash of 3.11 that could not be read is none. */
TEST(a_wrong_or_missing_name_hash_is_refused)
{
	struct copied *c = new_copy(versions[0]);

	c->copy.hash_at += 0x1000; /* of another str than that of its qualified name */
	forged_word(&c->f, LEAF + c->f.py.layout.code_name, c->copy.hash_at - 24);
	memcpy(c->copy.head, c->f.bytes + LEAF, c->copy.head_size);
	assert_int_equal(report(c), 0);
	c->copy.hash++;
	assert_int_equal(report(c), -ENODATA);
	c->copy.hash--;
	c->copy.hash_at = 0;
	assert_int_equal(report(c), -ENODATA);
	free_copy(c);
}

/* A layout that a reader has made up. */
TEST(a_layout_with_a_huge_offset_is_unsound)
{
	for (size_t v = 0; v < VERSIONS; v++) {
		struct copied *c = new_copy(versions[v]);
		struct cpython_layout *l = &c->f.py.layout;
		uint32_t *const fields[] = {&l->code_firstline,
					    &l->code_filename,
					    &l->code_qualname,
					    &l->code_linetable,
					    &l->code_bytecode,
					    &l->str_length,
					    &l->str_state,
					    &l->str_ascii,
					    &l->str_other,
					    &l->str_hash,
					    &l->bytes_size,
					    &l->bytes_data,
					    l->code_version ? &l->code_version : &l->code_name};

		assert_true(cpython_layout__is_sound(l));
		for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
			uint32_t was = *fields[i];

			*fields[i] = UINT32_MAX - 7;
			assert_false(cpython_layout__is_sound(l));
			assert_int_equal(report(c), -ENODATA);
			*fields[i] = was;
		}
		assert_int_equal(report(c), 0);
		free_copy(c);
	}
}
