/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames of runtimes: where they stand in a stack, and which names they get of what was read when. */

#include <errno.h>

#include "unit.h"
#include "managed_support.h"

static const struct frame_note v8[] = {
	{.frame = 0, .kind = FRAME_NOTE_V8, .place = 111, .function = 0x501},
	{.frame = 2, .kind = FRAME_NOTE_V8, .place = 101, .function = 0x601}, /* not a place */
};

TEST(runtime_frames_replace_the_native_ones)
{
	begin();
	noted_sample(4, v8, COUNT(v8));
	report(FRAME_NOTE_V8, 0x501, 0, CODE_STATE_CONFIRMED, "inner", 10);
	report(FRAME_NOTE_V8, 0x601, 0, CODE_STATE_CONFIRMED, "outer", 30);
	noted_sample(4, v8, COUNT(v8));
	finish();
	/* the second row covers offset 11; of compiled code no line is known */
	assert_string_equal(lines_of(0), "[prog] outer [prog] inner:11");
	assert_string_equal(lines_of(1), "[prog] outer [prog] inner:11");
	assert_string_equal(counted(), "V8 4 0 0 0");
}

TEST(compiled_code_shows_its_inlined_calls)
{
	begin();
	noted_sample(4, v8, COUNT(v8));
	report(FRAME_NOTE_V8, 0x601, 0, CODE_STATE_CONFIRMED, "outer", 30);
	report(FRAME_NOTE_V8, 0x701, 0, CODE_STATE_CONFIRMED, "inlined", 40);
	report_chain(FRAME_NOTE_V8, CODE_STATE_CONFIRMED, 0x601, MADE + 0x30,
		     CHAIN({.function = 0x701, .line = 44}, {.function = 0x601, .line = 33}));
	finish();
	assert_string_equal(lines_of(0), "[prog] outer:33 inlined:44 [prog] [V8]");
}

/* Where the thread was in optimized code, which has something inlined; and a builtin without a frame, called by such code. */
TEST(the_innermost_note_names_the_code_or_its_caller)
{
	const struct frame_note leaf = {.kind = FRAME_NOTE_V8, .function = 0x601};

	begin();
	noted_sample(2, &leaf, 1);
	report(FRAME_NOTE_V8, 0x601, 0, CODE_STATE_CONFIRMED, "outer", 30);
	noted_sample(2, &leaf, 1);
	unmap_and_map_made();
	noted_sample(2, &leaf, 1);
	report_chain(FRAME_NOTE_V8, CODE_STATE_INFERRED, 0x601, 0x10010,
		     CHAIN({.function = 0x601}));
	finish();
	assert_string_equal(lines_of(0), "[prog] outer [prog]");
	assert_string_equal(lines_of(1), "[prog] outer [prog]");
	assert_string_equal(lines_of(2), "0x10020 outer?");
}

/* Two loops: the inner one runs a and b, the outer one main. Frames 1 and 3 are loops, 2 is a callback in between. */
static const struct frame_note python[] = {
	{.frame = 0, .kind = FRAME_NOTE_PYTHON, .place = 100, .function = 0xa0, .check = 1},
	{.frame = 0, .kind = FRAME_NOTE_PYTHON, .place = 110, .function = 0xb0, .check = 1},
	{.frame = 1, .kind = FRAME_NOTE_PYTHON, .place = 125, .function = 0xc0, .check = 1},
	{.frame = 1, .kind = FRAME_NOTE_PYTHON_LOOP, .place = 0},
	{.frame = 3, .kind = FRAME_NOTE_PYTHON_LOOP, .place = 1},
};

static void report_python(void)
{
	report(FRAME_NOTE_PYTHON, 0xa0, 1, CODE_STATE_CONFIRMED, "a", 10);
	report(FRAME_NOTE_PYTHON, 0xb0, 1, CODE_STATE_CONFIRMED, "b", 20);
	report(FRAME_NOTE_PYTHON, 0xc0, 1, CODE_STATE_CONFIRMED, "main", 30);
}

TEST(python_frames_stand_where_their_loops_are)
{
	begin();
	noted_sample(5, python, COUNT(python));
	report_python();
	finish();
	assert_string_equal(lines_of(0), "[prog] main:32 0x50030 b:21 a:10 [prog]");
}

/* Which a function has, and where it runs. */
TEST(python_functions_belong_to_their_source_files)
{
	unsigned int found = 0;

	begin();
	noted_sample(5, python, COUNT(python));
	report_python();
	finish();
	for (size_t i = 1; i < ev.p->location_count; i++) {
		const struct profile_location *l = &ev.p->locations[i];
		const struct profile_dso *dso = &ev.p->dsos[l->dso.v];

		if (dso->kind != DSO_RUNTIME)
			continue;
		assert_int_equal(ev.p->functions[ev.p->lines[l->first_line].function.v].dso.v,
				 l->dso.v);
		assert_true(dso->is_interpreted);
		assert_string_equal(profile__string(ev.p, dso->name), "app");
		found++;
	}
	assert_int_equal(found, 3);
}

TEST(python_frames_without_loops_are_kept)
{
	begin();
	/* the native walk ended early: nothing, or the inner loop alone, was met */
	noted_sample(1, python, 3);
	noted_sample(2, python, 4);
	report_python();
	finish();
	assert_string_equal(lines_of(0), "main:32 b:21 a:10 [prog]");
	assert_string_equal(lines_of(1), "main:32 b:21 a:10 [prog]");
}

/* The outermost frames of the inner loop, and what is behind it, had no room. */
TEST(truncated_python_chains_are_marked)
{
	const struct frame_note cut[] = {
		python[0],
		{.frame = 0, .kind = FRAME_NOTE_PYTHON},
		{.frame = 1, .kind = FRAME_NOTE_PYTHON_LOOP, .place = 0},
	};

	begin();
	noted_sample(5, cut, COUNT(cut));
	noted_sample(5, cut + 1, 1); /* not one of them was sound */
	report_python();
	finish();
	assert_string_equal(lines_of(0), "[prog] [prog] 0x50030 [truncated] a:10 [prog]");
	assert_string_equal(lines_of(1), "[truncated] [prog] [prog] 0x50030 [prog] [prog]");
}

TEST(python_frames_without_a_function_are_left_out)
{
	const struct frame_note shim[] = {
		python[0],
		{.frame = 0, .kind = FRAME_NOTE_PYTHON, .place = 200, .function = 0xd0},
		python[1],
	};

	begin();
	noted_sample(1, shim, COUNT(shim));
	report_python();
	finish();
	assert_string_equal(lines_of(0), "b:21 a:10 [prog]");
}

static void fork_to(uint32_t child)
{
	fork_(who, who, child, child);
	who = child;
	ev.now += MS;
}

TEST(children_begin_with_the_names_of_their_parents)
{
	begin();
	noted_sample(1, python, 1);
	report(FRAME_NOTE_PYTHON, 0xa0, 1, CODE_STATE_CONFIRMED, "a", 10);
	report(FRAME_NOTE_PYTHON, 0xc0, 1, CODE_STATE_STALE, "", 0);
	fork_to(11);
	noted_sample(1, python, 3);
	fork_to(12);
	noted_sample(1, python, 3);
	/* the parent has such a function now: its child may have had another one, and says what it has */
	who = 10;
	report(FRAME_NOTE_PYTHON, 0xb0, 1, CODE_STATE_CONFIRMED, "b", 20);
	who = 12;
	report(FRAME_NOTE_PYTHON, 0xb0, 1, CODE_STATE_CONFIRMED, "own", 40);
	report(FRAME_NOTE_PYTHON, 0xa0, 1, CODE_STATE_STALE, "", 0);
	/* another program */
	comm(12, 12, "next", EVENT_COMM_EXEC);
	map(12, 0x10000, 0x1000, 0, "/prog", 0);
	noted_sample(1, python, 3);
	finish();
	who = 11;
	assert_string_equal(lines_of(0), "[CPython] b:21? a:10 [prog]");
	who = 12;
	assert_string_equal(lines_of(0), "[CPython] own:41 a:10 [prog]");
	nth_life = 1;
	assert_string_equal(lines_of(0), "[CPython] [CPython] [CPython] [prog]");
}

/* The functions of a parent that is gone are kept for its children, and for no longer; of ancestors, some generations back. */
TEST(names_of_dead_parents_are_kept_for_living_children)
{
	const uint64_t later = LIFE_GRACE_NS + S;

	begin();
	noted_sample(1, python, 1);
	report(FRAME_NOTE_PYTHON, 0xa0, 1, CODE_STATE_CONFIRMED, "a", 10);
	for (uint32_t child = 11; child <= 10 + CODE_KIN_MAX; child++) {
		uint32_t parent = who;

		fork_to(child);
		exit_(parent, parent);
	}
	ev.now += later;
	noted_sample(1, python, 1);
	next_window();
	world__forget(ev.world, NULL, NULL);
	noted_sample(1, python, 1);
	assert_true(code_functions__bytes(world__code(ev.world)) > 0);
	fork_to(who + 1);
	noted_sample(1, python, 1);
	exit_(who - 1, who - 1);
	ev.now += later;
	noted_sample(1, python, 1);
	next_window();
	world__forget(ev.world, NULL, NULL);
	assert_int_equal(code_functions__bytes(world__code(ev.world)), 0);
	noted_sample(1, python, 1);
	finish();
	assert_string_equal(lines_of(0), "[CPython] [prog]");
	ev.p = ev.profiles[1];
	assert_string_equal(lines_of(0), "[CPython] [prog]");
	who--;
	assert_string_equal(lines_of(0), "a:10 [prog]");
	ev.p = ev.profiles[0];
	assert_string_equal(lines_of(0), "a:10 [prog]");
}

/* What the notes say of the GIL is added up by thread, with the CPU time of the samples that held it. */
TEST(gil_states_of_samples_are_summed_by_thread)
{
	static const enum gil_state states[] = {GIL_UNKNOWN, GIL_RELEASED, GIL_WAITING,
						GIL_HELD,    GIL_HELD,	   GIL_UNKNOWN};
	struct frame_note note = python[0];

	begin();
	noted_sample(1, &note, 1); /* it was not read */
	note.flags = FRAME_NOTE_GIL_KNOWN;
	noted_sample(1, &note, 1);
	note.flags = FRAME_NOTE_GIL_KNOWN | FRAME_NOTE_GIL_WAITS;
	noted_sample(1, &note, 1);
	note.flags = FRAME_NOTE_GIL_KNOWN | FRAME_NOTE_GIL_HELD;
	noted_sample(1, &note, 1);
	noted_sample(1, &note, 1);
	note.flags = FRAME_NOTE_GIL_HELD;
	noted_sample(1, &note, 1);
	finish();
	assert_int_equal(ev.p->gil_count, 1);
	for (size_t i = 0; i < COUNT(states); i++)
		assert_int_equal(profile_samples__gil(&thread_of(10, 0)->samples[SAMPLE_CPU], i),
				 states[i]);
	assert_int_equal(ev.p->gils[0].samples, 4);
	assert_int_equal(ev.p->gils[0].held, 2);
	assert_int_equal(ev.p->gils[0].waiting, 1);
	assert_int_equal(ev.p->gils[0].held_time, 2 * MS);
	assert_int_equal(ev.p->threads[ev.p->gils[0].thread.v].tid, 10);
}

/* A process whose Python is not read is reported, with what helps, until it is read after all. */
TEST(unread_python_is_reported_with_the_reason)
{
	struct code_runtime_event e = {.pid = 10, .kind = FRAME_NOTE_PYTHON};
	const struct jit_process *process;
	size_t count;

	begin();
	noted_sample(1, NULL, 0);
	e.header = header(0);
	e.header.type = EVENT_CODE_RUNTIME;
	e.header.size = sizeof(e);
	e.state = CODE_RUNTIME_STATE_COUNT;
	assert_int_equal(event_check(&e.header, sizeof(e)), -EBADMSG);
	e.state = CODE_RUNTIME_FREE_THREADED;
	assert_int_equal(event_check(&e.header, sizeof(e)), 0);
	assert_int_equal(event_decode(&e.header, &ev.h), 0);
	assert_int_equal(recorder__close(ev.recorder, 0), 0);
	process = recorder__jit_processes(ev.recorder, &count);
	assert_int_equal(count, 1);
	assert_int_equal(process->refused, CODE_RUNTIME_FREE_THREADED);
	assert_non_null(process->runtime);
	finish();
}

TEST(functions_that_could_not_be_read_have_no_name)
{
	begin();
	noted_sample(5, python, COUNT(python));
	report(FRAME_NOTE_PYTHON, 0xa0, 1, CODE_STATE_STALE, "", 0);
	report(FRAME_NOTE_PYTHON, 0xb0, 2, CODE_STATE_CONFIRMED, "another", 20); /* other words */
	finish();
	assert_string_equal(lines_of(0), "[prog] [CPython] 0x50030 [CPython] [CPython] [prog]");
	assert_string_equal(counted(), "CPython 3 0 1 2");
}

TEST(samples_between_two_functions_are_doubtful)
{
	begin();
	noted_sample(4, v8, 1);
	report(FRAME_NOTE_V8, 0x501, 0, CODE_STATE_CONFIRMED, "first", 10);
	noted_sample(4, v8, 1); /* it may be the next one already */
	report(FRAME_NOTE_V8, 0x501, 0, CODE_STATE_CONFIRMED, "second", 50);
	noted_sample(4, v8, 1);
	finish();
	assert_string_equal(lines_of(0), "[prog] 0x50030 [prog] first:11");
	assert_string_equal(lines_of(1), "[prog] 0x50030 [prog] first:11?");
	assert_string_equal(lines_of(2), "[prog] 0x50030 [prog] second:51");
	assert_string_equal(counted(), "V8 3 1 0 0");
}

/* Functions that have had one address, each with the number that it alone has. */
static const struct frame_note numbered[] = {
	{.kind = FRAME_NOTE_V8, .place = 111, .function = 0x501, .check = 7},
	{.kind = FRAME_NOTE_V8, .place = 111, .function = 0x501, .check = 8},
	{.kind = FRAME_NOTE_V8, .place = 111, .function = 0x501, .check = 9},
};

TEST(numbers_distinguish_functions_at_one_address)
{
	begin();
	for (size_t i = 0; i < 3; i++)
		noted_sample(2, &numbered[i], 1);
	report(FRAME_NOTE_V8, 0x501, 7, CODE_STATE_CONFIRMED, "first", 10);
	report(FRAME_NOTE_V8, 0x501, 8, CODE_STATE_CONFIRMED, "second", 50);
	report(FRAME_NOTE_V8, 0x501, 9, CODE_STATE_STALE, "", 0);
	for (size_t i = 0; i < 3; i++)
		noted_sample(2, &numbered[i], 1);
	finish();
	for (size_t i = 0; i < 6; i += 3) {
		assert_string_equal(lines_of(i), "[prog] first:11");
		assert_string_equal(lines_of(i + 1), "[prog] second:51");
		assert_string_equal(lines_of(i + 2), "[prog] [V8]");
	}
	assert_string_equal(counted(), "V8 6 0 2 0");
}

/* One function, read again and again: what is said of it changes, but not which one it is. */
TEST(a_number_reported_again_updates_the_same_function)
{
	begin();
	noted_sample(2, numbered, 1);
	report(FRAME_NOTE_V8, 0x501, 7, CODE_STATE_STALE, "", 0); /* while it was moved */
	noted_sample(2, numbered, 1);
	report(FRAME_NOTE_V8, 0x501, 7, CODE_STATE_CONFIRMED, "first", 10);
	reported_line_offset = 5; /* other rows of the same function */
	report(FRAME_NOTE_V8, 0x501, 7, CODE_STATE_CONFIRMED, "first", 10);
	reported_line_offset = 0;
	noted_sample(2, numbered, 1);
	report(FRAME_NOTE_V8, 0x501, 7, CODE_STATE_STALE, "", 0);
	finish();
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(lines_of(i), "[prog] first:16");
	assert_string_equal(counted(), "V8 3 0 0 0");
}

/* Two isolates count for themselves; or the process lies. */
TEST(a_number_of_two_functions_is_doubtful)
{
	begin();
	noted_sample(2, numbered, 1);
	report(FRAME_NOTE_V8, 0x501, 7, CODE_STATE_CONFIRMED, "first", 10);
	report(FRAME_NOTE_V8, 0x501, 7, CODE_STATE_CONFIRMED, "other", 50);
	noted_sample(2, numbered, 1);
	finish();
	assert_string_equal(lines_of(0), "[prog] other:51?");
	assert_string_equal(lines_of(1), "[prog] other:51?");
	assert_string_equal(counted(), "V8 2 2 0 0");
}

/* Of code that has been at one address, of functions that have been at one: inlined are functions with numbers, too. */
TEST(chains_have_the_functions_with_their_numbers)
{
	const struct frame_note notes[] = {
		{.frame = 2, .kind = FRAME_NOTE_V8, .function = 0x501, .check = 7},
		{.frame = 2, .kind = FRAME_NOTE_V8, .function = 0x501, .check = 8},
	};

	begin();
	noted_sample(4, &notes[0], 1);
	noted_sample(4, &notes[1], 1);
	report(FRAME_NOTE_V8, 0x501, 7, CODE_STATE_CONFIRMED, "first", 10);
	report(FRAME_NOTE_V8, 0x501, 8, CODE_STATE_CONFIRMED, "second", 50);
	report(FRAME_NOTE_V8, 0x701, 5, CODE_STATE_CONFIRMED, "inlined", 40);
	report(FRAME_NOTE_V8, 0x701, 6, CODE_STATE_CONFIRMED, "another", 60);
	for (uint64_t check = 7; check < 9; check++)
		report_chain(FRAME_NOTE_V8, CODE_STATE_CONFIRMED, 0x501, MADE + 0x30,
			     CHAIN({0x701, check - 2, .line = 44}, {0x501, check, .line = 33}));
	finish();
	assert_string_equal(lines_of(0), "[prog] first:33 inlined:44 [prog] [prog]");
	assert_string_equal(lines_of(1), "[prog] second:33 another:44 [prog] [prog]");
	assert_string_equal(counted(), "V8 2 0 0 0");
}

TEST(names_outlive_a_window)
{
	begin();
	noted_sample(4, v8, 1);
	report(FRAME_NOTE_V8, 0x501, 0, CODE_STATE_CONFIRMED, "first", 10);
	next_window();
	world__forget(ev.world, NULL, NULL);
	noted_sample(4, v8, 1);
	/* another program: what was reported is not about it */
	comm(10, 10, "next", EVENT_COMM_EXEC);
	map(10, 0x10000, 0x1000, 0, "/prog", 0);
	noted_sample(4, v8, 1);
	finish();
	assert_string_equal(lines_of(0), "[prog] 0x50030 [prog] first:11");
	nth_life = 1;
	assert_string_equal(lines_of(0), "[prog] [unknown] [prog] [V8]");
}

TEST(events_with_invalid_frame_notes_are_refused)
{
	const struct frame_note wrong[] = {
		{.frame = 4, .kind = FRAME_NOTE_V8},
		{.frame = 0, .kind = FRAME_NOTE_COUNT},
		{.frame = 0, .kind = FRAME_NOTE_NONE},
		{.frame = FRAME_NOTES_MAX, .kind = FRAME_NOTE_PYTHON},
	};

	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct {
			struct sample_event e;
			__u64 frames[4];
			struct frame_note note;
		} s = {.e.header = {.size = sizeof(s), .type = EVENT_SAMPLE},
		       .e.user_frames = 4,
		       .e.notes = 1};

		for (unsigned int k = 0; k < 4; k++)
			s.frames[k] = frame_pack(FRAME_IP, 0x10000);
		s.note = wrong[i];
		assert_int_equal(event_check(&s.e.header, sizeof(s)), -EBADMSG);
		s.note = (struct frame_note){.frame = 3, .kind = FRAME_NOTE_V8};
		assert_int_equal(event_check(&s.e.header, sizeof(s)), 0);
		s.e.notes = 2;
		assert_int_equal(event_check(&s.e.header, sizeof(s)), -EBADMSG);
	}
}

/* ---- WebAssembly ----------------------------------------------------------------------------- */

/* The function number `number` of the module of instance 0x901 is at the address. */
static void report_wasm(uint64_t address, uint32_t number, enum code_state state)
{
	report_chain(FRAME_NOTE_V8_WASM, state, 0x901, address,
		     CHAIN({.function = 0x901, .check = number + 1u}, {.function = 0x901}));
}

TEST(wasm_frames_have_the_name_of_their_code)
{
	const struct frame_note notes[] = {
		{.frame = 2, .kind = FRAME_NOTE_V8_WASM, .function = 0x901}};

	begin();
	noted_sample(4, notes, COUNT(notes));
	report(FRAME_NOTE_V8_WASM, 0x901, 5, CODE_STATE_CONFIRMED, "four", 0);
	report(FRAME_NOTE_V8_WASM, 0x901, 6, CODE_STATE_CONFIRMED, "five", 0);
	report_wasm(MADE + 0x30, 4, CODE_STATE_CONFIRMED);
	noted_sample(4, notes, COUNT(notes)); /* it may be the next one already */
	report_wasm(MADE + 0x30, 5, CODE_STATE_CONFIRMED);
	noted_sample(4, notes, COUNT(notes));
	finish();
	assert_string_equal(lines_of(0), "[prog] four [prog] [prog]");
	assert_string_equal(lines_of(1), "[prog] four? [prog] [prog]");
	assert_string_equal(lines_of(2), "[prog] five [prog] [prog]");
	assert_string_equal(counted(), "WebAssembly 3 1 0 0");
}

/* Without an event it is WebAssembly all the same; in a file's code the note says nothing, but for the innermost frame. */
TEST(wasm_frames_without_a_report_show_the_runtime)
{
	const struct frame_note notes[] = {
		{.frame = 0, .kind = FRAME_NOTE_V8_WASM, .function = 0x901},
		{.frame = 1, .kind = FRAME_NOTE_V8_WASM, .function = 0x901},
		{.frame = 2, .kind = FRAME_NOTE_V8_WASM, .function = 0x901}};

	begin();
	noted_sample(4, notes, COUNT(notes));
	finish();
	assert_string_equal(lines_of(0), "[prog] [WebAssembly] [prog] [WebAssembly] [prog]");
	assert_string_equal(counted(), "WebAssembly 2 0 0 2");
}

/* The innermost frame is not made yet: whatever its words are, it is another function of the module that has called it. */
TEST(a_frame_just_entered_from_wasm_is_wasm_too)
{
	const struct frame_note notes[] = {
		{.frame = 0, .kind = FRAME_NOTE_V8, .function = 0x501},
		{.frame = 1, .kind = FRAME_NOTE_V8_WASM, .function = 0x901}};

	begin();
	unmap_and_map_made();
	noted_sample(2, notes, COUNT(notes));
	noted_sample(2, notes + 1, 1);
	report(FRAME_NOTE_V8, 0x501, 0, CODE_STATE_CONFIRMED, "wrong", 10);
	report(FRAME_NOTE_V8_WASM, 0x901, 5, CODE_STATE_CONFIRMED, "four", 0);
	report(FRAME_NOTE_V8_WASM, 0x901, 6, CODE_STATE_CONFIRMED, "five", 0);
	report_wasm(0x10010, 4, CODE_STATE_INFERRED);
	report_wasm(0x10020, 5, CODE_STATE_CONFIRMED);
	finish();
	assert_string_equal(lines_of(0), "five four?");
	assert_string_equal(lines_of(1), "five four?");
}

static void report_type(uint64_t address)
{
	report_chain(FRAME_NOTE_V8_FRAME, CODE_STATE_CONFIRMED, 5, address, CHAIN({.function = 5}));
}

/* The words of a frame in memory without a file are those of a type, but its code is not V8's. */
TEST(a_frame_type_outside_v8_code_is_ignored)
{
	const struct frame_note notes[] = {
		{.frame = 2, .kind = FRAME_NOTE_V8_FRAME, .function = 5}};

	begin();
	noted_sample(4, notes, COUNT(notes));
	report(FRAME_NOTE_V8_FRAME, 5, 0, CODE_STATE_CONFIRMED, "[calls out]", 0);
	report_type(MADE + 0x40);
	finish();
	assert_null(strstr(lines_of(0), "calls out"));
	assert_int_equal(ev.p->runtime_count, 0);
}

/* Other frames of V8's: by their type in its code, by their symbol in a file's. */
TEST(typed_frames_in_v8_code_have_their_types_name)
{
	const struct frame_note notes[] = {
		{.frame = 1, .kind = FRAME_NOTE_V8_FRAME, .function = 5},
		{.frame = 2, .kind = FRAME_NOTE_V8_FRAME, .function = 5}};

	begin();
	noted_sample(4, notes, COUNT(notes));
	report(FRAME_NOTE_V8_FRAME, 5, 0, CODE_STATE_CONFIRMED, "[calls out]", 0);
	report_type(MADE + 0x30);
	finish();
	assert_string_equal(lines_of(0), "[prog] [calls out] [prog] [prog]");
}

EACH_TEST_WITH(set_up, tear_down);
