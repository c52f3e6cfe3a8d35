/* SPDX-License-Identifier: BSD-2-Clause */
/* CPython's memory, forged for each version: layouts, threads, stacks, the GIL; and what lies. */
#include "unit.h"
#include "base/cleanup.h"
#include "forge_cpython.h"
#include "runtimes/python/cpython.h"
#include "models/cpython_merge.h"
#include "models/cpython_walk.h"
#include "runtimes/python/find.h"
#include "runtimes/python/layout.h"
#include "runtimes/python/thread.h"

#define FRAMES 64
#define GROUPS 16

static const uint32_t versions[] = {0x030b02f0, 0x030c01f0, 0x030d05f0, 0x030e0af0, 0x030f02f0};
#define VERSIONS (sizeof(versions) / sizeof(*versions))

struct walked {
	struct cpython_frame frames[FRAMES];
	struct cpython_group groups[GROUPS];
	struct cpython_stack stack;
};

static void walk_with(struct forged *f, struct walked *w, size_t frames, struct target_memory *m)
{
	w->stack = (struct cpython_stack){.frames = w->frames,
					  .frames_max = frames,
					  .groups = w->groups,
					  .groups_max = GROUPS,
					  .passed_max = 1000};
	cpython__walk(&f->py, m, forged_address(FORGED_THREAD), &w->stack);
}

static void walk(struct forged *f, struct walked *w, size_t frames)
{
	struct target_memory m = forged_memory(f);

	walk_with(f, w, frames, &m);
}

static struct forged *new_program(uint32_t version)
{
	struct forged *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_true(forged_program(f, version));
	return f;
}

/* ---- layouts ---------------------------------------------------------------------------------- */

TEST(old_and_unreleased_versions_are_not_supported)
{
	struct cpython_layout l;

	assert_int_equal(cpython_layout__of_version(0x030a0df0, &l), CPYTHON_TOO_OLD);
	assert_int_equal(cpython_layout__of_version(0x030d00f0, &l), CPYTHON_BAD_TABLE);
	assert_int_equal(cpython_layout__of_version(0x030b07f0, &l), CPYTHON_OK);
	assert_int_equal(l.code_bytecode, 184);
	assert_true(cpython_version__is_known(0x030f00c1)); /* a release candidate */
	assert_false(cpython_version__is_known(0x030f00b1));
	assert_false(cpython_version__is_known(0x031000f0));
	for (int i = 0; i < CPYTHON_VERDICTS; i++)
		assert_true(cpython_verdict__text(i)[0]);
	assert_string_equal(cpython_verdict__text(99), "");
}

TEST(a_sound_table_gives_the_layout)
{
	uint8_t table[CPYTHON_TABLE_MAX];
	struct cpython_layout l;
	uint32_t version;

	forged_table(table, 0x030d05f0);
	assert_true(cpython_table__is(table, sizeof(table), &version));
	assert_int_equal(version, 0x030d05f0);
	assert_int_equal(cpython_layout__of_table(table, sizeof(table), 0, &l), CPYTHON_OK);
	assert_int_equal(l.gil_locked, 16);
	assert_int_equal(l.gil_holder, 8);
	assert_int_equal(l.tss_key, 2160);
	assert_int_equal(l.code_version, 92);
	assert_int_equal(l.str_other, 56);
	assert_int_equal(cpython_layout__of_table(table, sizeof(table), 1, &l),
			 CPYTHON_UNKNOWN_VERSION);
	assert_int_equal(cpython_layout__of_table(table, 500, 0, &l), CPYTHON_BAD_TABLE);
	table[16] = 1;
	assert_int_equal(cpython_layout__of_table(table, sizeof(table), 0, &l),
			 CPYTHON_FREE_THREADED);
	table[11] = 2;
	assert_int_equal(cpython_layout__of_table(table, sizeof(table), 0, &l), CPYTHON_BAD_TABLE);
}

/* Any value that is out of its place is refused, or changes an offset that has no others to be compared with. */
TEST(implausible_offsets_are_refused_or_harmless)
{
	static const uint64_t values[] = {UINT64_MAX, UINT64_C(1) << 40, 3, 0x7fffffff};

	for (size_t v = 2; v < VERSIONS; v++) {
		uint8_t table[CPYTHON_TABLE_MAX];
		struct cpython_layout l;
		int refused = 0;

		for (size_t at = 24; at < 888; at += 8) {
			for (size_t i = 0; i < 4; i++) {
				forged_table(table, versions[v]);
				memcpy(table + at, &values[i], 8);
				if (cpython_layout__of_table(table, sizeof(table), 0, &l))
					refused++;
				else
					assert_true(l.frame_size <= CPYTHON_FRAME_MAX &&
						    l.frame_previous + 8 <= l.frame_size &&
						    l.code_linetable + 8 <= CPYTHON_HEAD_MAX);
			}
		}
		assert_true(refused > 75);
	}
}

/* ---- finding it -------------------------------------------------------------------------------- */

TEST(the_interpreter_is_found_by_its_table)
{
	for (size_t v = 2; v < VERSIONS; v++) {
		_cleanup_free_ struct forged *f = new_program(versions[v]);
		struct target_memory m = forged_memory(f);
		const struct cpython_symbols s = {.runtime = FORGED_RUNTIME};
		const struct cpython_image image = {.symbols = &s, .bias = FORGED_BASE};
		struct cpython py;

		assert_int_equal(cpython__find(&image, &m, &py), CPYTHON_OK);
		assert_int_equal(py.runtime, f->py.runtime);
		assert_int_equal(py.version, versions[v]);
		assert_memory_equal(&py.layout, &f->py.layout, sizeof(py.layout));
	}
}

/* 3.11 and 3.12 by Py_Version, by their section's size, or not at all. */
TEST(versions_without_a_table_are_found_by_symbols)
{
	_cleanup_free_ struct forged *f = new_program(versions[0]);
	struct target_memory m = forged_memory(f);
	struct cpython_symbols s = {.runtime = 0x100, .version_word = 0x1f00, .code_type = 0x7100};
	const struct cpython_image image = {.symbols = &s, .bias = forged_address(0) - 0x100};
	struct cpython py;

	forged_word(f, 0x1f00 - 0x100, 0x030c01f0);
	assert_int_equal(cpython__find(&image, &m, &py), CPYTHON_OK);
	assert_int_equal(cpython_minor(py.version), 12);
	assert_int_equal(py.code_type, f->py.code_type);
	forged_word(f, 0x1f00 - 0x100, 0x030a01f0);
	assert_int_equal(cpython__find(&image, &m, &py), CPYTHON_TOO_OLD);
	s.version_word = 0;
	assert_int_equal(cpython__find(&image, &m, &py), CPYTHON_TOO_OLD);
	s.runtime_size = 0x28b20;
	assert_int_equal(cpython__find(&image, &m, &py),
			 CPYTHON_TOO_OLD); /* it exports, but not that */
	s.code_type = 0;
	assert_int_equal(cpython__find(&image, &m, &py), CPYTHON_OK);
	assert_int_equal(cpython_minor(py.version), 11);
	s.runtime_size = 0x704a8;
	assert_int_equal(cpython__find(&image, &m, &py), CPYTHON_OK);
	assert_int_equal(cpython_minor(py.version), 12);
	s.runtime_size = 0x50000;
	assert_int_equal(cpython__find(&image, &m, &py), CPYTHON_NO_VERSION);
	s.runtime = 0x200000;
	assert_int_equal(cpython__find(&image, &m, &py), CPYTHON_UNREADABLE);
}

TEST(an_unknown_version_is_accepted_if_stacks_make_sense)
{
	_cleanup_free_ struct forged *f = new_program(0x030f02f0);
	struct target_memory m = forged_memory(f);
	const struct cpython_symbols s = {.runtime = FORGED_RUNTIME};
	const struct cpython_image image = {.symbols = &s, .bias = FORGED_BASE};
	struct cpython py;

	forged_put(f, 8, 0x031001f0, 4);
	assert_int_equal(cpython__find(&image, &m, &py), CPYTHON_OK);
	assert_int_equal(cpython_minor(py.version), 16);
	forged_word(f, FORGED_THREAD + f->py.layout.thread_frame, 0); /* no frame yet */
	assert_int_equal(cpython__find(&image, &m, &py), CPYTHON_NOT_STARTED);
	forged_word(f, FORGED_THREAD + f->py.layout.thread_frame, forged_address(FORGED_TEXT));
	assert_int_equal(cpython__find(&image, &m, &py), CPYTHON_UNKNOWN_VERSION);
}

/* ---- threads ----------------------------------------------------------------------------------- */

TEST(the_thread_word_leads_to_the_thread_state)
{
	for (size_t v = 0; v < VERSIONS; v++) {
		_cleanup_free_ struct forged *f = new_program(versions[v]);
		struct target_memory m = forged_memory(f);
		const struct cpython_image image = {.symbols = &(struct cpython_symbols){}};
		struct cpython_thread_word word;
		uint64_t thread;

		assert_int_equal(cpython_thread_word__find(&f->py, &image, &m, &word), CPYTHON_OK);
		assert_int_equal(word.hops, 1);
		assert_int_equal(word.offset[0], f->py.layout.tss_key ? 0x310 + 40 : -0x28);
		assert_int_equal(
			cpython_thread_word__state(&word, &m, forged_address(FORGED_FS), &thread),
			0);
		assert_int_equal(thread, forged_address(FORGED_THREAD));
		assert_int_equal(cpython_thread_word__state(&word, &m, 8, &thread), 0);
		assert_int_equal(thread, 0);
		/* musl: the third word is another thread */
		forged_word(f, FORGED_FS + 0x10, forged_address(0x100));
		assert_int_equal(cpython_thread_word__find(&f->py, &image, &m, &word),
				 CPYTHON_OTHER_LIBC);
		forged_word(f, FORGED_INTERPRETER + f->py.layout.interp_threads, 0);
		assert_int_equal(cpython_thread_word__find(&f->py, &image, &m, &word),
				 CPYTHON_NOT_STARTED);
	}
}

TEST(a_large_tss_key_takes_two_hops)
{
	_cleanup_free_ struct forged *f = new_program(versions[0]);
	struct target_memory m = forged_memory(f);
	const struct cpython_image image = {.symbols = &(struct cpython_symbols){}};
	uint32_t key = FORGED_RUNTIME + f->py.layout.tss_key;
	struct cpython_thread_word word;

	forged_put(f, key + 4, 41, 4);
	assert_int_equal(cpython_thread_word__find(&f->py, &image, &m, &word),
			 CPYTHON_THREADS_UNKNOWN);
	forged_word(f, FORGED_FS + 0x510 + 8, forged_address(0xf000));
	forged_word(f, 0xf000 + 16 * 9 + 8, forged_address(FORGED_THREAD));
	assert_int_equal(cpython_thread_word__find(&f->py, &image, &m, &word), CPYTHON_OK);
	assert_int_equal(word.hops, 2);
	forged_put(f, key + 4, 5000, 4);
	assert_int_equal(cpython_thread_word__find(&f->py, &image, &m, &word),
			 CPYTHON_THREADS_UNKNOWN);
	forged_put(f, key, 0, 4);
	assert_int_equal(cpython_thread_word__find(&f->py, &image, &m, &word), CPYTHON_NOT_STARTED);
}

/* 3.15, by the instructions: of an executable, of a library, of one with an offset in the GOT. */
TEST(instructions_lead_to_the_tls_variable)
{
	static const uint8_t of_program[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x64, 0x48, 0x8b,
					     0x04, 0x25, 0xd8, 0xff, 0xff, 0xff, 0xc3};
	static const uint8_t of_library[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5,
					     0x48, 0x8d, 0x3d, 0xf1, 0x01, 0,	 0,    0xe8,
					     1,	   2,	 3,    4,    0x5d, 0x48, 0x8b, 0x80,
					     0x28, 0,	 0,    0,    0xc3};
	static const uint8_t by_got[] = {0x48, 0x8b, 0x05, 0xf9, 0x01, 0,
					 0,    0x64, 0x48, 0x8b, 0x00, 0xc3};
	_cleanup_free_ struct forged *f = new_program(0x030f02f0);
	struct target_memory m = forged_memory(f);
	struct cpython_symbols s = {.gilstate = 0x1000, .gilstate_size = sizeof(of_program)};
	const struct cpython_image image = {.symbols = &s, .bias = FORGED_BASE};
	struct cpython_thread_word word;

	memcpy(s.gilstate_code, of_program, sizeof(of_program));
	assert_int_equal(cpython_thread_word__find(&f->py, &image, &m, &word), CPYTHON_OK);
	assert_int_equal(word.offset[0], -0x28);

	/* without the word below the block nothing but the code leads there */
	forged_word(f, FORGED_FS - 0x28, 0);
	forged_word(f, 0x1200, 3); /* module */
	forged_word(f, FORGED_FS + 8, forged_address(0xf000));
	forged_word(f, 0xf000 + 3 * 16, forged_address(0xf800));
	forged_word(f, 0xf800 + 0x28, forged_address(FORGED_THREAD));
	memcpy(s.gilstate_code, of_library, sizeof(of_library));
	s.gilstate_size = sizeof(of_library);
	assert_int_equal(cpython_thread_word__find(&f->py, &image, &m, &word), CPYTHON_OK);
	assert_int_equal(word.hops, 3);
	assert_int_equal(word.offset[1], 48);
	assert_int_equal(word.offset[2], 0x28);
	/* code that is not known: by comparison, through the DTV as well */
	s.gilstate_code[4] = 0xcc;
	assert_int_equal(cpython_thread_word__find(&f->py, &image, &m, &word), CPYTHON_OK);
	assert_int_equal(word.hops, 3);
	/* two words that are equal now, and not always: not now */
	forged_word(f, 0xf800 + 0x30, forged_address(FORGED_THREAD));
	assert_int_equal(cpython_thread_word__find(&f->py, &image, &m, &word), CPYTHON_NOT_STARTED);

	forged_word(f, FORGED_FS - 0x40, forged_address(FORGED_THREAD));
	forged_word(f, 0x1200, -0x40);
	memcpy(s.gilstate_code, by_got, sizeof(by_got));
	s.gilstate_size = sizeof(by_got);
	assert_int_equal(cpython_thread_word__find(&f->py, &image, &m, &word), CPYTHON_OK);
	assert_int_equal(word.offset[0], -0x40);
}

/* Lists that lead in circles. */
static int count_thread(void *context, const struct cpython_thread *thread)
{
	++*(uint32_t *)context;
	return 0;
}

TEST(a_circle_of_threads_ends_at_the_limit)
{
	_cleanup_free_ struct forged *f = new_program(versions[3]);
	struct target_memory m = forged_memory(f);
	uint32_t count = 0;

	forged_word(f, FORGED_THREAD + f->py.layout.thread_next, forged_address(FORGED_THREAD));
	forged_word(f, FORGED_INTERPRETER + f->py.layout.interp_next,
		    forged_address(FORGED_INTERPRETER));
	assert_int_equal(cpython__each_thread(&f->py, &m, count_thread, &count), 0);
	assert_int_equal(count, CPYTHON_THREADS_MAX);
	m.reads_left = 100;
	assert_int_equal(cpython__each_thread(&f->py, &m, count_thread, &count), -EDQUOT);
}

/* ---- stacks ------------------------------------------------------------------------------------ */

TEST(each_interpreter_loop_has_its_frames_and_anchor)
{
	for (size_t v = 0; v < VERSIONS; v++) {
		_cleanup_free_ struct forged *f = new_program(versions[v]);
		bool own = f->py.layout.has_own_anchors;
		struct walked w;

		for (int known = 0; known < 2; known++) {
			f->py.code_type = known ? forged_address(FORGED_TYPE) : 0;
			walk(f, &w, FRAMES);
			assert_int_equal(w.stack.end, CPYTHON_END_ROOT);
			assert_int_equal(w.stack.frame_count, 4);
			assert_int_equal(w.stack.group_count, FORGED_LOOPS);
		}
		assert_int_equal(w.frames[0].code, forged_address(FORGED_CODE + 3 * 0x200));
		assert_int_equal(w.frames[0].identity.firstline, 30);
		if (f->py.layout.code_version)
			assert_int_equal(w.frames[0].identity.version, 4);
		else
			assert_int_not_equal(w.frames[0].identity.version,
					     w.frames[1].identity.version);
		assert_int_equal(w.frames[0].instruction, f->py.layout.code_bytecode + 12);
		for (uint32_t i = 0; i < FORGED_LOOPS; i++) {
			assert_int_equal(w.groups[i].first, 2 * i);
			assert_int_equal(w.groups[i].count, 2);
			assert_int_equal(w.groups[i].anchor,
					 forged_address(FORGED_CFRAMES + 0x40 + 0x100 * i +
							(own ? 0x40 : 0)));
		}
	}
}

/* At the limit the group's anchor is still looked for, and nothing behind it. */
TEST(at_the_frame_limit_the_group_keeps_its_anchor)
{
	for (size_t v = 0; v < VERSIONS; v++) {
		_cleanup_free_ struct forged *f = new_program(versions[v]);
		struct walked w;

		walk(f, &w, 1);
		assert_int_equal(w.stack.end, CPYTHON_END_LIMIT);
		assert_int_equal(w.stack.frame_count, 1);
		assert_int_equal(w.stack.group_count, 1);
		assert_int_equal(w.groups[0].count, 1);
		assert_true(w.groups[0].anchor != 0);
		walk(f, &w, 0);
		assert_int_equal(w.stack.frame_count, 0);
	}
}

TEST(the_base_frame_of_a_thread_is_left_out)
{
	_cleanup_free_ struct forged *f = new_program(0x030f02f0);
	struct walked w;

	/* nothing but the frame that every thread of 3.15 has */
	forged_word(f, FORGED_THREAD + f->py.layout.thread_frame,
		    forged_address(FORGED_THREAD + 0x400));
	walk(f, &w, FRAMES);
	assert_int_equal(w.stack.end, CPYTHON_END_ROOT);
	assert_int_equal(w.stack.frame_count + w.stack.group_count, 0);
}

/* A frame of no function is left out; a function whose name is its file's is not. */
TEST(init_shims_are_not_counted_as_frames)
{
	_cleanup_free_ struct forged *f = new_program(versions[3]);
	const struct cpython_layout *l = &f->py.layout;
	uint32_t inner = FORGED_CODE + 2 * 0x200;
	uint64_t name;
	struct walked w;

	memcpy(&name, f->bytes + inner + l->code_qualname, 8);
	forged_word(f, inner + l->code_filename, name);
	walk(f, &w, FRAMES);
	assert_int_equal(w.stack.frame_count, 4);
	forged_put(f, inner + l->code_firsttraceable, 5, 4); /* its frame is at unit 4 */
	walk(f, &w, FRAMES);
	assert_int_equal(w.stack.frame_count, 3);
	assert_int_equal(w.groups[0].count, 1);
}

/* 3.11 and 3.12: the loop's object is linked in before it is filled in. */
TEST(a_torn_stack_restarts_or_gives_no_frames)
{
	for (size_t v = 0; v < VERSIONS; v++) {
		_cleanup_free_ struct forged *f = new_program(versions[v]);
		uint32_t start = FORGED_THREAD + f->py.layout.thread_frame;
		struct walked w;

		if (f->py.layout.has_cframes)
			start = FORGED_CFRAMES + 0x40 + f->py.layout.cframe_frame;
		forged_word(f, start, forged_address(FORGED_TEXT));
		walk(f, &w, FRAMES);
		if (f->py.layout.has_cframes) {
			assert_int_equal(w.stack.end, CPYTHON_END_ROOT);
			assert_true(w.stack.restarted);
			assert_int_equal(w.stack.frame_count, 2);
			assert_int_equal(w.groups[0].count, 2);
			forged_word(f, FORGED_CFRAMES + 0x140 + f->py.layout.cframe_frame,
				    forged_address(FORGED_TEXT));
			walk(f, &w, FRAMES);
		}
		assert_true(w.stack.end == CPYTHON_END_TORN ||
			    w.stack.end == CPYTHON_END_UNREADABLE);
		assert_int_equal(w.stack.frame_count, 0);
	}
}

/* A chain without an end costs what a long one costs, and gives nothing. */
TEST(a_circle_of_frames_is_a_torn_stack)
{
	for (size_t v = 0; v < VERSIONS; v++) {
		_cleanup_free_ struct forged *f = new_program(versions[v]);
		struct target_memory m = forged_memory(f);
		struct walked w;

		forged_word(f, FORGED_FRAMES + f->py.layout.frame_previous,
			    forged_address(FORGED_FRAMES + 3 * 0x80));
		if (f->py.layout.frame_is_entry)
			forged_put(f, FORGED_FRAMES + f->py.layout.frame_is_entry, 0, 1);
		walk_with(f, &w, FRAMES, &m);
		assert_int_equal(w.stack.end, CPYTHON_END_TORN);
		assert_int_equal(w.stack.frame_count, 0);
		assert_true((1u << 20) - m.reads_left < 8 * FRAMES);
	}
}

/* Frames that never repeat: served out of nothing. */
struct endless {
	struct forged *f;
	uint64_t frames;
};

static int read_endless(void *context, void *to, size_t size, uint64_t address)
{
	struct endless *e = context;
	const struct cpython_layout *l = &e->f->py.layout;
	uint64_t next = address + 0x100, code = forged_address(FORGED_CODE);

	if (address >> 40 != 0x11)
		return forged_read(e->f, to, size, address);
	if (size != l->frame_size)
		return -ENODATA;
	memset(to, 0, size);
	memcpy((uint8_t *)to + l->frame_previous, &next, 8);
	memcpy((uint8_t *)to + l->frame_code, &code, 8);
	e->frames++;
	return 0;
}

TEST(reads_of_an_endless_stack_are_bounded)
{
	for (size_t v = 0; v < VERSIONS; v++) {
		_cleanup_free_ struct forged *f = new_program(versions[v]);
		struct endless e = {.f = f};
		struct target_memory m = {.read = read_endless,
					  .context = &e,
					  .bytes_left = UINT64_MAX,
					  .reads_left = UINT32_MAX};
		struct walked w;

		forged_word(f, FORGED_FRAMES + 0x80 + f->py.layout.frame_previous,
			    UINT64_C(0x11) << 40);
		if (f->py.layout.has_own_anchors)
			forged_word(f, FORGED_CFRAMES + 0x80 + f->py.layout.frame_previous,
				    UINT64_C(0x11) << 40);
		walk_with(f, &w, FRAMES, &m);
		assert_int_equal(w.stack.end, CPYTHON_END_LIMIT);
		assert_int_equal(w.stack.frame_count, FRAMES);
		assert_true(e.frames <= 1000 + FRAMES);
	}
}

TEST(a_walk_without_reads_left_invents_no_frames)
{
	for (size_t v = 0; v < VERSIONS; v++) {
		_cleanup_free_ struct forged *f = new_program(versions[v]);

		for (uint32_t reads = 0; reads < 12; reads++) {
			struct target_memory m = forged_memory(f);
			struct walked w;

			m.reads_left = reads;
			walk_with(f, &w, FRAMES, &m);
			if (w.stack.end != CPYTHON_END_ROOT)
				assert_true(w.stack.frame_count <= 4);
		}
	}
}

/* ---- the GIL ----------------------------------------------------------------------------------- */

TEST(the_gil_of_the_main_interpreter_is_found)
{
	for (size_t v = 0; v < VERSIONS; v++) {
		_cleanup_free_ struct forged *f = new_program(versions[v]);
		const struct cpython_layout *l = &f->py.layout;
		uint32_t gil = l->interp_gil ? FORGED_GIL : FORGED_RUNTIME;
		uint64_t interpreter = forged_address(FORGED_INTERPRETER), holder;
		struct target_memory m = forged_memory(f);
		struct cpython_main_gil main;
		uint32_t locked;

		forged_word(f, FORGED_RUNTIME + l->interpreters + 8, interpreter);
		assert_int_equal(cpython_gil__of_main(&f->py, &m, &main), 0);
		assert_int_equal(main.address, forged_address(gil) + l->gil_holder);
		assert_int_equal(main.interpreter, l->interp_gil ? interpreter : 0);
		if (l->interp_gil) {
			forged_word(f, FORGED_INTERPRETER + l->interp_gil, 0);
			assert_int_equal(cpython_gil__of_main(&f->py, &m, &main), -ENOENT);
			forged_word(f, FORGED_INTERPRETER + l->interp_gil, forged_address(gil));
		}
		/* as the kernel reads it */
		assert_int_equal(cpython_gil__of_main(&f->py, &m, &main), 0);
		assert_int_equal(target_memory__word(&m, &holder, main.address), 0);
		assert_int_equal(holder, forged_address(FORGED_THREAD));
		assert_int_equal(target_memory__u32(&m, &locked, main.address + sizeof(holder)), 0);
		assert_int_equal(locked, 1);
	}
}

/* ---- merging ----------------------------------------------------------------------------------- */

TEST(a_group_goes_to_the_frame_of_its_anchor)
{
	const struct cpython_native native[] = {
		{0x100, 0x200}, {0x200, 0x400}, {0x400, 0x480}, {0x480, 0x800}, {0x800, 0x900}};
	struct cpython_group groups[] = {{.anchor = 0x210}, {.anchor = 0x7f8}, {.anchor = 0}};
	struct cpython_place places[3];

	cpython__merge(native, 5, groups, 3, places);
	assert_true(places[0].is_loop && places[1].is_loop && !places[2].is_loop);
	assert_int_equal(places[0].frame, 1);
	assert_int_equal(places[1].frame, 3);
	assert_int_equal(places[2].frame, 5);
	/* the unwinder passed it, or ended before it */
	groups[0].anchor = 0x50;
	groups[1].anchor = 0x1000;
	cpython__merge(native, 5, groups, 2, places);
	assert_false(places[0].is_loop || places[1].is_loop);
	assert_int_equal(places[0].frame, 0);
	assert_int_equal(places[1].frame, 5);
	/* two that claim the same frame, and one that would lie farther in than the one before: their order stays */
	groups[0].anchor = groups[1].anchor = 0x410;
	groups[2].anchor = 0x110;
	cpython__merge(native, 5, groups, 3, places);
	assert_true(places[0].is_loop && !places[1].is_loop);
	assert_int_equal(places[0].frame, 2);
	assert_int_equal(places[1].frame, 3);
	assert_int_equal(places[2].frame, 3);
	cpython__merge(NULL, 0, groups, 3, places);
	assert_int_equal(places[2].frame, 0);
}
