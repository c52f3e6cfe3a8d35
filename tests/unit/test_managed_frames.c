/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames of runtimes: where they stand in a stack, which names they get of what was read when, and how sure that is. */

#include "text_cases.h"
#include "managed_support.h"

/* ---- testdata/managed_frames.txt ------------------------------------------------------------- */

static const struct {
	const char *name;
	uint8_t kind;
} kinds[] = {
	{"v8", FRAME_NOTE_V8},
	{"python", FRAME_NOTE_PYTHON},
	{"loop", FRAME_NOTE_PYTHON_LOOP},
	{"java", FRAME_NOTE_HOTSPOT},
	{"code", FRAME_NOTE_HOTSPOT_CODE},
	{"wasm", FRAME_NOTE_V8_WASM},
	{"frame", FRAME_NOTE_V8_FRAME},
};

/* Notes and steps that stories share: Java is an interpreted method in compiled code, above a stub; Python has two loops. */
static const struct {
	const char *name, *text;
} shared[] = {
	{"f", "0:v8:111:501"},
	{"leaf", "0:java:111:a00/b00"},
	{"compiled", "1:code:64:1000/4d00005678"},
	{"stub", "3:code:8:2000"},
	{"inner", "0:python:100:a0/1 0:python:110:b0/1 1:python:125:c0/1"},
	{"loops", "1:loop:0:0 3:loop:1:0"},
	{"name-python",
	 "report python a0/1 a 10; report python b0/1 b 20; report python c0/1 main 30"},
	{"name-java", "report java a00/b00 leaf 10; report java c00/d00 int_a.B.inlined(int) 40; "
		      "report java e00/f00 outer 30"},
	{"name-code", "chain code 1000 103f confirmed c00/d00:44 e00/f00:33 1000/4d00005678; "
		      "report code 2000 [stub] 0; chain code 2000 2007 confirmed 2000"},
};

static const char *find_shared(const char *name)
{
	for (size_t i = 0; i < COUNT(shared); i++)
		if (!strcmp(shared[i].name, name))
			return shared[i].text;
	return NULL;
}

static uint8_t kind_named(const char *name, size_t size)
{
	for (size_t i = 0; i < COUNT(kinds); i++)
		if (strlen(kinds[i].name) == size && !memcmp(kinds[i].name, name, size))
			return kinds[i].kind;
	fail_msg("no kind '%s'", name);
	return 0;
}

/* "FUNCTION" or "FUNCTION/CHECK", in hexadecimal. */
static char *scan_function(const char *text, uint64_t *function, uint64_t *check)
{
	char *end;

	*function = strtoull(text, &end, 16);
	*check = *end == '/' ? strtoull(end + 1, &end, 16) : 0;
	return end;
}

/* "FRAME:KIND:PLACE:FUNCTION" */
static struct frame_note scan_note(const char *text)
{
	struct frame_note note = {};
	const char *kind = strchr(text, ':') + 1, *place = strchr(kind, ':') + 1;
	uint64_t function, check;

	scan_function(strchr(place, ':') + 1, &function, &check);
	note.frame = (uint16_t)strtoul(text, NULL, 10);
	note.kind = kind_named(kind, (size_t)(place - 1 - kind));
	note.place = (uint32_t)strtoul(place, NULL, 10);
	note.function = function;
	note.check = check;
	return note;
}

static size_t scan_notes(char *words, struct frame_note *notes)
{
	size_t count = 0;

	for (const char *word; *(word = text_word(&words));) {
		char copy[128] = "";

		if (strchr(word, ':'))
			notes[count++] = scan_note(word);
		else
			count += scan_notes(strcpy(copy, find_shared(word) ?: "?"), notes + count);
	}
	return count;
}

static void step_sample(char *words)
{
	struct frame_note notes[NOTES_MAX];
	unsigned int frames = (unsigned int)strtoul(text_word(&words), NULL, 10);

	noted_sample(frames, notes, scan_notes(words, notes));
}

/* "KIND FUNCTION NAME LINE": NAME "stale" is a function that is none any more. */
static void step_report(char *words)
{
	const char *kind = text_word(&words), *function = text_word(&words);
	char *name = text_word(&words);
	bool stale = !strcmp(name, "stale");
	uint64_t address, check;

	scan_function(function, &address, &check);
	for (char *at = name; (at = strchr(at, '_'));)
		*at = ' ';
	report(kind_named(kind, strlen(kind)), address, check,
	       stale ? CODE_STATE_STALE : CODE_STATE_CONFIRMED, stale ? "" : name,
	       (uint32_t)strtoul(words, NULL, 10));
}

/* "KIND FUNCTION ADDRESS STATE CALL…", a call as FUNCTION:LINE. */
static void step_chain(char *words)
{
	const char *kind = text_word(&words), *of = text_word(&words), *at = text_word(&words);
	const char *state = text_word(&words);
	struct code_call calls[CALLS_MAX] = {};
	uint64_t function, check;

	for (size_t i = 0; *words; i++) {
		const char *line;

		line = scan_function(text_word(&words), &function, &check);
		calls[i] = (struct code_call){.function = function, .check = check};
		if (*line)
			calls[i].line = (uint32_t)strtoul(line + 1, NULL, 10);
	}
	scan_function(of, &function, &check);
	report_chain(kind_named(kind, strlen(kind)),
		     !strcmp(state, "inferred") ? CODE_STATE_INFERRED
		     : !strcmp(state, "stale")	? CODE_STATE_STALE
						: CODE_STATE_CONFIRMED,
		     function, strtoull(at, NULL, 16), calls);
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

static void fork_to(uint32_t child)
{
	fork_(who, who, child, child);
	who = child;
	ev.now += MS;
}

static bool take_step(FILE *out, const char *name, char *words)
{
	char copy[256];

	if (!strcmp(name, "sample"))
		step_sample(words);
	else if (!strcmp(name, "report"))
		step_report(words);
	else if (!strcmp(name, "chain"))
		step_chain(words);
	else if (!strcmp(name, "doubtful") || !strcmp(name, "sure"))
		reported_flags = *name == 'd' ? EVENT_DOUBTFUL : 0;
	else if (!strcmp(name, "rows"))
		reported_line_offset = (uint32_t)strtoul(words, NULL, 10);
	else if (!strcmp(name, "made"))
		unmap_and_map_made();
	else if (!strcmp(name, "follow-map"))
		follow_map();
	else if (!strcmp(name, "later"))
		ev.now += strtoul(words, NULL, 10) * S;
	else if (!strcmp(name, "window"))
		next_window(), world__forget(ev.world, NULL, NULL);
	else if (!strcmp(name, "fork"))
		fork_to((uint32_t)strtoul(words, NULL, 10));
	else if (!strcmp(name, "exit"))
		exit_((uint32_t)strtoul(words, NULL, 10), (uint32_t)strtoul(words, NULL, 10));
	else if (!strcmp(name, "of"))
		who = (uint32_t)strtoul(words, NULL, 10);
	else if (!strcmp(name, "exec"))
		comm(who, who, "next", EVENT_COMM_EXEC), map(who, 0x10000, 0x1000, 0, "/prog", 0);
	else if (find_shared(name))
		text_run_steps(out, strcpy(copy, find_shared(name)), take_step);
	else
		return false;
	return true;
}

static void put_profile(FILE *out)
{
	for (size_t i = 1; i < ev.p->thread_count; i++) {
		const struct profile_thread *t = &ev.p->threads[i];

		for (size_t k = 0; k < t->samples[SAMPLE_CPU].count; k++) {
			if (t->tid != 10)
				fprintf(out, "%u: ", t->tid);
			fprintf(out, "%s\n", lines_of_thread(t, k));
		}
	}
	for (size_t i = 1; i < ev.p->dso_count; i++)
		for (size_t k = 1; k < i && ev.p->dsos[i].kind == DSO_RUNTIME; k++)
			assert_string_not_equal(str(ev.p->dsos[i].name), str(ev.p->dsos[k].name));
	for (size_t i = 1; i < ev.p->function_count; i++)
		if (*str(ev.p->functions[i].full_name))
			fprintf(out, "%s: %s\n", str(ev.p->functions[i].name),
				str(ev.p->functions[i].full_name));
	for (size_t i = 0; i < ev.p->runtime_count; i++) {
		const struct profile_runtime *r = &ev.p->runtimes[i];

		fprintf(out, "%s %llu", str(r->name), (unsigned long long)r->frames);
		if (r->ambiguous + r->stale + r->unknown)
			fprintf(out, ", ambiguous %llu, stale %llu, unknown %llu",
				(unsigned long long)r->ambiguous, (unsigned long long)r->stale,
				(unsigned long long)r->unknown);
		fputc('\n', out);
	}
}

/* A story of a process, and its profiles. */
static void run_story(FILE *out, char *input)
{
	char *text = NULL;
	size_t size;
	FILE *of_profile = open_memstream(&text, &size);

	set_up();
	begin();
	reported_flags = 0;
	reported_line_offset = 0;
	for (char *line = input, *next; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		text_run_steps(out, line, take_step);
	}
	finish();
	for (size_t i = 0; i <= ev.windows; i++) {
		const struct profile *last = ev.p;

		if (i < ev.windows)
			ev.p = ev.profiles[i];
		put_profile(of_profile);
		if (i < ev.windows)
			fputs("----\n", of_profile);
		ev.p = last;
	}
	fclose(of_profile);
	if (size)
		text[size - 1] = '\0';
	fputs(text, out);
	free(text);
	tear_down();
}

static const struct text_verb verbs[] = {{"story", run_story}, {}};

TEXT_TABLE("managed_frames", verbs, NULL, NULL);

/* ---- more than stacks ------------------------------------------------------------------------ */

static const struct frame_note python[] = {
	{.frame = 0, .kind = FRAME_NOTE_PYTHON, .place = 100, .function = 0xa0, .check = 1},
	{.frame = 0, .kind = FRAME_NOTE_PYTHON, .place = 110, .function = 0xb0, .check = 1},
	{.frame = 1, .kind = FRAME_NOTE_PYTHON, .place = 125, .function = 0xc0, .check = 1},
	{.frame = 1, .kind = FRAME_NOTE_PYTHON_LOOP, .place = 0},
	{.frame = 3, .kind = FRAME_NOTE_PYTHON_LOOP, .place = 1},
};

/* Which a function has, and where it runs. */
TEST(python_functions_belong_to_their_source_files)
{
	unsigned int found = 0;

	begin();
	noted_sample(5, python, COUNT(python));
	report(FRAME_NOTE_PYTHON, 0xa0, 1, CODE_STATE_CONFIRMED, "a", 10);
	report(FRAME_NOTE_PYTHON, 0xb0, 1, CODE_STATE_CONFIRMED, "b", 20);
	report(FRAME_NOTE_PYTHON, 0xc0, 1, CODE_STATE_CONFIRMED, "main", 30);
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

EACH_TEST_WITH(set_up, tear_down);
