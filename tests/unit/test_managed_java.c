/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames of HotSpot's: which methods they are, and how sure that is. */

#include "unit.h"
#include "managed_support.h"

static uint32_t reported_sure; /* of inlined functions, where it is inferred */

#define BLOB  0x7f0000001000
#define CHECK (77ull << 32 | 0x5678)

/* An interpreted leaf in compiled code, which returns to 0x40 of its blob, above the interpreter's own stub. */
static const struct frame_note java[] = {
	{.frame = 0, .kind = FRAME_NOTE_HOTSPOT, .place = 111, .function = 0xa00, .check = 0xb00},
	{.frame = 1,
	 .kind = FRAME_NOTE_HOTSPOT_CODE,
	 .place = 0x40,
	 .function = BLOB,
	 .check = CHECK},
	{.frame = 3, .kind = FRAME_NOTE_HOTSPOT_CODE, .place = 8, .function = BLOB + 0x1000},
};

static void report_code(uint64_t blob, uint64_t check, uint64_t address, enum code_state state,
			const struct code_call *calls, size_t count)
{
	struct code_call all[CALLS_MAX] = {};

	for (size_t i = 0; i < count; i++)
		all[i] = calls[i];
	all[count] = (struct code_call){.function = blob, .check = check, .line = reported_sure};
	report_chain(FRAME_NOTE_HOTSPOT_CODE, state, blob, address, all);
}

static const struct code_call java_calls[] = {
	{.function = 0xc00, .check = 0xd00, .line = 44},
	{.function = 0xe00, .check = 0xf00, .line = 33},
};

static void report_java(void)
{
	report(FRAME_NOTE_HOTSPOT, 0xa00, 0xb00, CODE_STATE_CONFIRMED, "leaf", 10);
	report(FRAME_NOTE_HOTSPOT, 0xc00, 0xd00, CODE_STATE_CONFIRMED, "int a.B.inlined(int)", 40);
	report(FRAME_NOTE_HOTSPOT, 0xe00, 0xf00, CODE_STATE_CONFIRMED, "outer", 30);
}

static void report_java_code(void)
{
	report_code(BLOB, CHECK, BLOB + 0x40 - 1, CODE_STATE_CONFIRMED, java_calls,
		    COUNT(java_calls));
	report(FRAME_NOTE_HOTSPOT_CODE, BLOB + 0x1000, 0, CODE_STATE_CONFIRMED, "[stub]", 0);
	report_code(BLOB + 0x1000, 0, BLOB + 0x1000 + 8 - 1, CODE_STATE_CONFIRMED, NULL, 0);
}

static const char *full_name_of(const char *name)
{
	for (size_t i = 1; i < ev.p->function_count; i++)
		if (!strcmp(str(ev.p->functions[i].name), name))
			return str(ev.p->functions[i].full_name);
	return NULL;
}

TEST(java_frames_are_named_in_earlier_and_later_samples)
{
	begin();
	noted_sample(5, java, COUNT(java));
	report_java();
	report_java_code();
	noted_sample(5, java, COUNT(java));
	finish();
	assert_string_equal(lines_of(0), "[prog] [stub] 0x50030 outer:33 a.B.inlined:44 leaf:11");
	assert_string_equal(lines_of(1), "[prog] [stub] 0x50030 outer:33 a.B.inlined:44 leaf:11");
	assert_string_equal(full_name_of("a.B.inlined"), "int a.B.inlined(int)");
	assert_string_equal(full_name_of("outer"), "");
}

static enum code_tier tier_of(const char *name)
{
	for (size_t i = 1; i < ev.p->location_count; i++) {
		const struct profile_location *l = &ev.p->locations[i];
		const struct profile_line *line = &ev.p->lines[l->first_line];

		if (l->line_count && !strcmp(str(ev.p->functions[line->function.v].name), name))
			return l->tier;
	}
	return CODE_TIER_COUNT;
}

/* Compiled and interpreted, a method is one function; code of HotSpot's own is distinguished by its tier. */
TEST(a_method_is_one_function_compiled_or_interpreted)
{
	const struct frame_note notes[] = {
		{.frame = 0,
		 .kind = FRAME_NOTE_HOTSPOT,
		 .place = 100,
		 .function = 0xc00,
		 .check = 0xd00},
		java[1],
		java[2],
	};
	size_t functions = 0, dsos = 0;

	begin();
	report_java();
	report_java_code();
	noted_sample(5, notes, COUNT(notes));
	finish();
	assert_string_equal(lines_of(0),
			    "[prog] [stub] 0x50030 outer:33 a.B.inlined:44 a.B.inlined:40");
	for (size_t i = 1; i < ev.p->function_count; i++)
		functions += !strcmp(str(ev.p->functions[i].name), "a.B.inlined");
	for (size_t i = 1; i < ev.p->dso_count; i++)
		dsos += !strcmp(str(ev.p->dsos[i].name), "[HotSpot]");
	assert_int_equal(functions, 1);
	assert_int_equal(dsos, 1);
	assert_int_equal(tier_of("[stub]"), CODE_TIER_STUB);
}

/* Other code by now, or no answer: never the name of what lies there. */
TEST(replaced_code_does_not_get_the_new_name)
{
	begin();
	noted_sample(5, java, COUNT(java));
	report_java();
	report_code(BLOB, CHECK + (1ull << 32), BLOB + 0x40 - 1, CODE_STATE_CONFIRMED, java_calls,
		    2);
	report_code(BLOB, CHECK, BLOB + 0x40, CODE_STATE_CONFIRMED, java_calls, 2); /* elsewhere */
	report_code(BLOB, CHECK, BLOB + 0x40 - 1, CODE_STATE_STALE, NULL, 0);
	report(FRAME_NOTE_HOTSPOT, 0xa00, 0xb08, CODE_STATE_CONFIRMED, "redefined", 10);
	finish();
	assert_string_equal(lines_of(0), "[prog] [HotSpot] 0x50030 [HotSpot] leaf:11");
}

/* Events about code stay right after it is gone; its methods are those of that time. */
TEST(names_of_code_outlive_it_but_are_doubtful)
{
	begin();
	report_java();
	report_java_code();
	report(FRAME_NOTE_HOTSPOT, 0xc00, 0xd00, CODE_STATE_CONFIRMED, "another", 40);
	noted_sample(5, java, COUNT(java));
	report_code(BLOB, CHECK, BLOB + 0x40 - 1, CODE_STATE_STALE, NULL, 0);
	noted_sample(5, java, COUNT(java));
	finish();
	assert_string_equal(lines_of(0), "[prog] [stub] 0x50030 outer:33? a.B.inlined:44? leaf:11");
	assert_string_equal(lines_of(1), "[prog] [stub] 0x50030 outer:33? a.B.inlined:44? leaf:11");
}

/*
 * Code without a note: what a stack copy was walked through, or from before the JVM was found. Pieces of code that last as long as
 * the process name it, the smallest first.
 */
TEST(code_without_notes_is_named_by_its_smallest_piece)
{
	begin();
	noted_sample(3, NULL, 0);
	report(FRAME_NOTE_HOTSPOT_CODE, MADE, 0x800, CODE_STATE_CONFIRMED, "[stubs]", 0);
	report(FRAME_NOTE_HOTSPOT_CODE, MADE + 0x2f, 2, CODE_STATE_CONFIRMED, "[call stub]", 0);
	finish();
	assert_string_equal(lines_of(0), "[call stub] [prog] [prog]");
	assert_int_equal(tier_of("[call stub]"), CODE_TIER_STUB);
	assert_int_equal(ev.p->runtime_count, 0);
}

TEST(beyond_a_small_piece_the_larger_one_names_code)
{
	begin();
	noted_sample(3, NULL, 0);
	report(FRAME_NOTE_HOTSPOT_CODE, MADE, 0x800, CODE_STATE_CONFIRMED, "[stubs]", 0);
	report(FRAME_NOTE_HOTSPOT_CODE, MADE + 0x2f, 1, CODE_STATE_CONFIRMED, "[call stub]", 0);
	finish();
	assert_string_equal(lines_of(0), "[stubs] [prog] [prog]");
}

static void follow_map(void)
{
	struct {
		struct jit_file_event e;
		char path[24];
	} f = {.e = {.pid = 10, .file = 1, .kind = JIT_FILE_MAP}, .path = "/tmp/perf-10.map"};

	f.e.header = header(0);
	f.e.header.type = EVENT_JIT_FILE;
	f.e.header.size = sizeof(f);
	while (!jit_file_state_is_followed(f.e.state))
		f.e.state++;
	assert_int_equal(event_decode(&f.e.header, &ev.h), 0);
	ev.now += MS;
}

/* A map has less than the notes of Java. */
TEST(a_map_does_not_replace_notes_of_java)
{
	begin();
	report_java();
	report_java_code();
	follow_map();
	noted_sample(5, java, COUNT(java));
	finish();
	assert_string_equal(lines_of(0), "[prog] [stub] 0x50030 outer:33 a.B.inlined:44 leaf:11");
}

/* Of others, notes from just before the map was found do not count; later ones name what the map does not. */
TEST(a_new_map_suspends_the_notes_of_v8)
{
	const struct frame_note v8 = {.kind = FRAME_NOTE_V8, .place = 111, .function = 0x501};

	begin();
	report(FRAME_NOTE_V8, 0x501, 0, CODE_STATE_CONFIRMED, "f", 10);
	noted_sample(2, &v8, 1);
	follow_map();
	noted_sample(2, &v8, 1);
	ev.now += 2 * S;
	noted_sample(2, &v8, 1);
	finish();
	assert_string_equal(lines_of(0), "[prog] f:11");
	assert_string_equal(lines_of(1), "[prog] [prog]");
	assert_string_equal(lines_of(2), "[prog] f:11");
}

/* A smaller one, compiled code, a method: none of them is the code at the address. */
TEST(methods_and_distant_pieces_do_not_name_code)
{
	begin();
	noted_sample(3, NULL, 0);
	report(FRAME_NOTE_HOTSPOT_CODE, MADE, 0x20, CODE_STATE_CONFIRMED, "[stubs]", 0);
	report(FRAME_NOTE_HOTSPOT_CODE, MADE, CHECK, CODE_STATE_CONFIRMED, "[method]", 0);
	report(FRAME_NOTE_HOTSPOT, MADE, 0x800, CODE_STATE_CONFIRMED, "[interpreted]", 0);
	finish();
	assert_string_equal(lines_of(0), "0x50030 [prog] [prog]");
}

/* Between two places that the compiler has described: of what is inlined at the next the outermost is sure. */
TEST(inferred_inlined_functions_are_doubtful_unless_sure)
{
	for (reported_sure = 0; reported_sure < 5; reported_sure++) {
		tear_down(state);
		set_up(state);
		begin();
		report_java();
		report_code(BLOB, CHECK, BLOB + 0x40 - 1, CODE_STATE_INFERRED, java_calls,
			    COUNT(java_calls));
		noted_sample(3, java, 2);
		finish();
		assert_string_equal(lines_of(0),
				    reported_sure == 0 ? "0x50030 outer:33? a.B.inlined:44? leaf:11"
				    : reported_sure == 1
					    ? "0x50030 outer:33 a.B.inlined:44? leaf:11"
					    : "0x50030 outer:33 a.B.inlined:44 leaf:11");
	}
	reported_sure = 0;
}

TEST(a_sample_before_a_doubtful_reading_stays_in_doubt)
{
	begin();
	noted_sample(2, java, 1);
	reported_flags = EVENT_DOUBTFUL;
	report(FRAME_NOTE_HOTSPOT, 0xa00, 0xb00, CODE_STATE_CONFIRMED, "leaf", 10);
	reported_flags = 0;
	noted_sample(2, java, 1);
	report(FRAME_NOTE_HOTSPOT, 0xa00, 0xb00, CODE_STATE_CONFIRMED, "leaf", 10);
	noted_sample(2, java, 1);
	finish();
	assert_string_equal(lines_of(0), "[prog] leaf:11?");
	assert_string_equal(lines_of(1), "[prog] leaf:11");
	assert_string_equal(lines_of(2), "[prog] leaf:11");
}

/* What was read when it may have been gone already vouches for nothing that comes later: it may be read so again. */
TEST(doubtful_readings_do_not_confirm_each_other)
{
	begin();
	noted_sample(2, java, 1);
	reported_flags = EVENT_DOUBTFUL;
	report(FRAME_NOTE_HOTSPOT, 0xa00, 0xb00, CODE_STATE_CONFIRMED, "freed", 10);
	noted_sample(2, java, 1);
	report(FRAME_NOTE_HOTSPOT, 0xa00, 0xb00, CODE_STATE_CONFIRMED, "freed", 10);
	reported_flags = 0;
	finish();
	assert_string_equal(lines_of(0), "[prog] freed:11?");
	assert_string_equal(lines_of(1), "[prog] freed:11?");
}

/* A name that is not in doubt stays so where it is read again later, and others have been unloaded since. */
TEST(a_confirmed_name_survives_a_doubtful_reading)
{
	begin();
	noted_sample(2, java, 1);
	report(FRAME_NOTE_HOTSPOT, 0xa00, 0xb00, CODE_STATE_CONFIRMED, "leaf", 10);
	noted_sample(2, java, 1);
	reported_flags = EVENT_DOUBTFUL;
	report(FRAME_NOTE_HOTSPOT, 0xa00, 0xb00, CODE_STATE_CONFIRMED, "leaf", 10);
	reported_flags = 0;
	noted_sample(2, java, 1);
	finish();
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(lines_of(i), "[prog] leaf:11");
}

EACH_TEST_WITH(set_up, tear_down);
