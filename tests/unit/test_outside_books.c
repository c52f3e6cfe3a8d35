/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The books of the outside: from the place that leaves something out, by the stream, into the profile and every format. And the
 * table of all sentences about limits in docs/SECURITY.md, which --print prints.
 */
#include "document_table.h"
#include "export_support.h"

#include "base/clocks.h"
#include "base/io.h"
#include "formats/out/describe.h"
#include "formats/out/report.h"
#include "stream/event_decode.h"
#include "stream/meta.h"
#include "profile/figures.h"
#include "tenants/outside_books.h"
#include "unwind/build_budget.h"
#include "world/profile_symbols.h"
#include "world/recorder.h"

/* ---- the books ------------------------------------------------------------------------------- */

TEST(rows_add_up)
{
	struct outside_books *b = outside_books__new();
	uint64_t before = monotonic_ns();
	struct outside_row row;

	outside_books__add(NULL, 1, OUTSIDE_FILES, OUTSIDE_BY_USER, 1);
	assert_false(outside_books__take(b, &row));
	outside_books__add(b, 1, OUTSIDE_FILES, OUTSIDE_BY_USER, 2);
	outside_books__add(b, 1, OUTSIDE_FILES, OUTSIDE_BY_ALL, 1);
	outside_books__add(b, 1, OUTSIDE_FILES, OUTSIDE_BY_USER, 3);
	outside_books__add(b, 2, OUTSIDE_FILES, OUTSIDE_BY_USER, 0);
	assert_true(outside_books__take(b, &row));
	assert_int_equal(row.user, 1);
	assert_int_equal(row.thing, OUTSIDE_FILES);
	assert_int_equal(row.reason, OUTSIDE_BY_USER);
	assert_int_equal(row.count, 5);
	assert_true(row.since >= before && row.since <= monotonic_ns());
	assert_true(outside_books__take(b, &row));
	assert_int_equal(row.reason, OUTSIDE_BY_ALL);
	assert_int_equal(row.count, 1);
	assert_false(outside_books__take(b, &row));
	/* reported rows are not reported again, later ones are */
	outside_books__add(b, 1, OUTSIDE_FILES, OUTSIDE_BY_USER, 7);
	assert_true(outside_books__take(b, &row));
	assert_int_equal(row.count, 7);
	assert_false(outside_books__take(b, &row));
	outside_books__free(b);
}

/* However many users there are: those with rows of their own keep them, all others have one. */
TEST(users_are_bounded)
{
	struct outside_books *b = outside_books__new();
	uint64_t others = 0, own = 0, unknown = 0;
	struct outside_row row;
	size_t rows = 0;

	for (uint32_t user = 0; user < 5000; user++)
		outside_books__add(b, user, OUTSIDE_TABLES, OUTSIDE_BY_ITSELF, 1);
	outside_books__add(b, OUTSIDE_USER_UNKNOWN, OUTSIDE_TABLES, OUTSIDE_BY_ITSELF, 1);
	outside_books__add(b, 3, OUTSIDE_TABLES, OUTSIDE_BY_ITSELF, 1);
	for (; outside_books__take(b, &row); rows++) {
		others += row.user == OUTSIDE_USER_OTHERS ? row.count : 0;
		unknown += row.user == OUTSIDE_USER_UNKNOWN ? row.count : 0;
		own += row.user < OUTSIDE_USERS_MAX ? row.count : 0;
	}
	assert_int_equal(rows, OUTSIDE_USERS_MAX + 2);
	assert_int_equal(own, OUTSIDE_USERS_MAX + 1);
	assert_int_equal(unknown, 1);
	assert_int_equal(others, 5000 - OUTSIDE_USERS_MAX);
	outside_books__free(b);
}

TEST(users_are_those_of_processes)
{
	struct outside_books *b = outside_books__new();

	assert_int_equal(outside_books__user_of(b, getpid()), getuid());
	assert_int_equal(outside_books__user_of(b, getpid()), getuid());
	assert_int_equal(outside_books__user_of(b, 0x3ffffff), OUTSIDE_USER_UNKNOWN);
	assert_int_equal(outside_books__user_of(NULL, getpid()), OUTSIDE_USER_UNKNOWN);
	outside_books__free(b);
}

/* A sentence for each row that there can be, of the size that is promised. */
TEST(every_row_has_words)
{
	static const char *const things[] = {
#define X(id, name, unit, text) text,
		OUTSIDE_THINGS(X)
#undef X
	};
	static const char *const reasons[] = {
#define X(id, name, waited, text) text,
		OUTSIDE_REASONS(X)
#undef X
	};
	char text[OUTSIDE_TEXT_SIZE];

	for (uint8_t thing = 0; thing < OUTSIDE_THING_COUNT; thing++) {
		for (uint8_t reason = 0; reason < OUTSIDE_REASON_COUNT; reason++) {
			const struct outside_row row = {OUTSIDE_USER_UNKNOWN, thing, reason,
							UINT64_MAX, 0};

			outside_row__describe(text, sizeof(text), &row);
			assert_true(strlen(text) < sizeof(text) - 1);
			assert_non_null(strstr(text, things[thing]));
			assert_non_null(strstr(text, reasons[reason]));
			assert_non_null(strstr(text, outside_things[thing].unit));
		}
	}
	outside_user__describe(text, sizeof(text), 1000);
	assert_string_equal(text, "user 1000");
	outside_user__describe(text, sizeof(text), 4026532567u);
	assert_string_equal(text, "user namespace 4026532567");
	outside_user__describe(text, sizeof(text), OUTSIDE_USER_OTHERS);
	assert_string_equal(text, "other users");
}

/* ---- the stream ------------------------------------------------------------------------------ */

/* An event_push_fn whose context is a handler. */
static int decode(void *context, struct event_header *event)
{
	return event_decode(event, context);
}

TEST(events_become_rows)
{
	struct outside_books *b = outside_books__new();
	_cleanup_(profile_symbols__fini) struct profile_symbols symbols = {};
	struct event_handler handler;
	const struct profile *p;
	_cleanup_fixture_ struct fixture f = {};

	fixture__init(&f, 1000);
	profile_symbols__init(&symbols, f.b);
	handler = profile_symbols__handler(&symbols);
	for (int i = 0; i < 3; i++) {
		outside_books__add(b, 9, OUTSIDE_SYMBOLS, OUTSIDE_BY_USER, 2);
		outside_books__add(b, 8, OUTSIDE_SYMBOLS, OUTSIDE_BY_USER, 1);
		assert_int_equal(outside_books__report(b, decode, &handler, AT(5)), 0);
	}
	p = finish(&f);
	assert_int_equal(p->outside_count, 2);
	assert_int_equal(p->outside[0].user, 8);
	assert_int_equal(p->outside[0].count, 3);
	assert_int_equal(p->outside[1].user, 9);
	assert_int_equal(p->outside[1].count, 6);
	assert_true(p->outside[1].since >= p->start && p->outside[1].since <= p->end);
	outside_books__free(b);
}

/* ---- the profile ----------------------------------------------------------------------------- */

static void add(struct fixture *f, uint32_t user, unsigned int thing, unsigned int reason,
		uint64_t count, uint64_t since)
{
	const struct profile_outside row = {user, (uint8_t)thing, (uint8_t)reason, count, since};

	profile_builder__outside(f->b, &row);
}

TEST(strangers_rows_are_bounded)
{
	const struct profile *p;
	_cleanup_fixture_ struct fixture f = {};
	uint64_t sum = 0;

	fixture__init(&f, 1000);
	add(&f, 1, OUTSIDE_THING_COUNT, 0, 1, AT(1)); /* of a newer recorder */
	add(&f, 1, 0, OUTSIDE_REASON_COUNT, 1, AT(1));
	add(&f, 1, 0, 0, 0, AT(1));
	for (uint32_t i = 0; i < 100000; i++)
		add(&f, i * 7919, i % OUTSIDE_THING_COUNT, i % OUTSIDE_REASON_COUNT, 1,
		    i % 2 ? 0 : UINT64_MAX);
	p = finish(&f); /* which checks that they are in order, and of this session */
	assert_true(p->outside_count <=
		    (OUTSIDE_USERS_MAX + 3) * OUTSIDE_THING_COUNT * OUTSIDE_REASON_COUNT);
	for (size_t i = 0; i < p->outside_count; i++)
		sum += p->outside[i].count;
	assert_int_equal(sum, 100000);
}

TEST(counts_saturate)
{
	const struct profile *p;
	_cleanup_fixture_ struct fixture f = {};

	fixture__init(&f, 1000);
	add(&f, 1, OUTSIDE_FILES, OUTSIDE_BY_USER, UINT64_MAX - 1, AT(2));
	add(&f, 1, OUTSIDE_FILES, OUTSIDE_BY_USER, UINT64_MAX - 1, AT(1));
	p = finish(&f);
	assert_int_equal(p->outside_count, 1);
	assert_true(p->outside[0].count == UINT64_MAX);
}

/* ---- every format ---------------------------------------------------------------------------- */

#define ROW                                                                                        \
	"user 1000: 3 files left (files that are kept as copies in memory): over what a user may " \
	"have"

static const struct profile *with_a_row(struct fixture *f)
{
	struct thread_id thread;

	fixture__init(f, 1000);
	f->process = add_process(f, 42, "fixture", 0, 0);
	thread = add_thread(f, f->process, 42, true, "fixture", 0);
	add_sample(f, thread, 1, STACK(f, add_location(f, f->program, 0x100)), 1, "fixture");
	add(f, 1000, OUTSIDE_FILE_COPIES, OUTSIDE_BY_USER, 3, AT(2));
	return finish(f);
}

static const cJSON *element(const cJSON *array, int i)
{
	const cJSON *found = cJSON_GetArrayItem(array, i);

	assert_non_null(found);
	return found;
}

/* The array "outside", as the report and the formats of DevTools have it. */
static void assert_row(const cJSON *outside)
{
	const cJSON *row = element(outside, 0);

	assert_int_equal(cJSON_GetArraySize(outside), 1);
	assert_true(number(row, "user") == 1000 && number(row, "count") == 3);
	assert_string_equal(string(row, "what"), "file-copies");
	assert_string_equal(string(row, "reason"), "user");
	assert_string_equal(string(row, "unit"), "files");
	assert_string_equal(string(row, "text"), ROW);
}

TEST(report_shows_it)
{
	const struct report_options options = {.json = true};
	struct export_request request = {};
	_cleanup_fixture_ struct fixture f = {};
	char *data = NULL, *text;
	size_t size;
	_cleanup_cjson_ cJSON *json = NULL;

	request.profile = with_a_row(&f);
	text = export_text(&text_exporter, request.profile, NULL);
	assert_non_null(strstr(text, "# left out   " ROW "\n"));
	free(text);
	request.out = open_memstream(&data, &size);
	assert_int_equal(report_write(&request, &options), 0);
	fclose(request.out);
	json = cJSON_Parse(data);
	assert_row(get(get(json, "summary"), "outside"));
	free(data);
}

TEST(firefox_shows_it)
{
	const cJSON *section, *entry, *marker, *schema;
	bool reported = false, marked = false, described = false;
	_cleanup_fixture_ struct fixture f = {};
	cJSON *file = export_json(&firefox_exporter, with_a_row(&f), NULL);

	cJSON_ArrayForEach (section, get(get(file, "meta"), "extra"))
		cJSON_ArrayForEach (entry, get(section, "entries"))
			reported |= !strcmp(string(entry, "label"), "Left outside") &&
				    !strcmp(string(entry, "value"), ROW);
	cJSON_ArrayForEach (marker, get(get(element(get(file, "threads"), 0), "markers"), "data"))
		marked |= !strcmp(string(marker, "type"), "LeftOut") &&
			  !strcmp(string(marker, "text"), ROW);
	cJSON_ArrayForEach (schema, get(get(file, "meta"), "markerSchema"))
		described |= !strcmp(string(schema, "name"), "LeftOut");
	assert_true(reported && marked && described);
	cJSON_Delete(file);
}

static int note_comment(void *context, const char *text)
{
	*(bool *)context |= !strcmp(text, "left outside: " ROW);
	return 0;
}

TEST(other_formats_show_it)
{
	bool commented = false;
	_cleanup_fixture_ struct fixture f = {};
	const struct profile *p = with_a_row(&f);
	cJSON *cpuprofile = export_json(&cpuprofile_exporter, p, NULL);
	cJSON *trace = export_json(&trace_exporter, p, NULL);

	assert_row(get(get(get(cpuprofile, "$sysprof"), "recording"), "outside"));
	assert_row(get(get(get(get(trace, "metadata"), "$sysprof"), "recording"), "outside"));
	assert_int_equal(export_comments(p, note_comment, &commented), 0); /* of pprof */
	assert_true(commented);
	cJSON_Delete(cpuprofile);
	cJSON_Delete(trace);
}

TEST(silence)
{
	_cleanup_fixture_ struct fixture f = {};
	const struct profile *p = build_profile(&f, "recursion");
	char *firefox = export_text(&firefox_exporter, p, NULL);
	char *text = export_text(&text_exporter, p, NULL);
	cJSON *cpuprofile = export_json(&cpuprofile_exporter, p, NULL);

	assert_null(strstr(firefox, "LeftOut"));
	assert_null(strstr(firefox, "Left outside"));
	assert_null(strstr(text, "left out"));
	assert_null(cJSON_GetObjectItem(get(get(cpuprofile, "$sysprof"), "recording"), "outside"));
	free(firefox);
	free(text);
	cJSON_Delete(cpuprofile);
}

/* ---- docs/SECURITY.md ------------------------------------------------------------------------ */

#define TEXT_OF_STATE(id, text)		[FILE_STATE_##id] = text,
#define TEXT_OF_JIT(id, followed, text) [JIT_FILE_STATE_##id] = text,

static const char *const file_states[] = {FILE_STATES(TEXT_OF_STATE)};
static const char *const jit_states[] = {JIT_FILE_STATES(TEXT_OF_JIT)};

static void print_sentence(FILE *out, const char *text, const char *limit)
{
	fprintf(out, "| \"%s\" | %s |\n", text, limit);
}

static void print_outside(FILE *out)
{
	char text[OUTSIDE_TEXT_SIZE];

	for (unsigned int i = 0; i < OUTSIDE_THING_COUNT; i++) {
		snprintf(text, sizeof(text), "%s left (%s)", outside_things[i].unit,
			 outside_things[i].text);
		print_sentence(out, text, outside_things[i].name);
	}
	for (unsigned int i = 0; i < OUTSIDE_REASON_COUNT; i++) {
		snprintf(text, sizeof(text), "…: %s", outside_reasons[i].text);
		print_sentence(out, text, outside_reasons[i].name);
	}
}

/* Those of files and stacks that a limit is the reason of. */
static void print_states(FILE *out)
{
#define END_TEXT(id) figure_table[FIGURE_ENDS + STACK_END_##id].text
	const struct {
		const char *text, *limit;
	} sentences[] = {
		{END_TEXT(DEPTH), "`--max-depth`: 256 frames, at most 1,024"},
		{END_TEXT(BUDGET), "200 µs of a tick"},
		{END_TEXT(COPY), "64 KB of a stack"},
		{END_TEXT(NO_TABLE), "tables; `--unwind-mem`"},
		{symbol_state_text(SYMBOL_STATE_LEFT), "symbols"},
		{file_states[FILE_STATE_TOO_BIG], "file-copies; 256 MB a file"},
		{file_states[FILE_STATE_NO_FDS], "open-files, and the limit of open files"},
		{file_states[FILE_STATE_NO_ANSWER], "a reader's, see Processes"},
		{file_states[FILE_STATE_BANNED], "a reader's: hangs a user"},
		{file_states[FILE_STATE_OVER_BUDGET], "reader processes, requests to them"},
		{file_states[FILE_STATE_LATE], "time for which the stream waits for requests"},
		{jit_states[JIT_FILE_STATE_TOO_BIG],
		 "jit-files; 512 MB a file, and as much again each 10 min; 16 MB with hard links"},
		{jit_states[JIT_FILE_STATE_TOO_MANY], "jit-files; 1,024 open at a time"},
		{jit_states[JIT_FILE_STATE_USER_LIMIT], "jit-files: bytes of a user"},
		{jit_states[JIT_FILE_STATE_LIMIT], "jit-files: bytes of all; jit-names"},
		{jit_states[JIT_FILE_STATE_HUNG], "a watcher's: hangs a user"},
		{jit_states[JIT_FILE_STATE_NO_READER], "JIT watchers, see Processes"},
		{jit_states[JIT_FILE_STATE_TOO_MANY_OPEN], "jit-files; 4,096 open files"},
	};

	for (size_t i = 0; i < sizeof(sentences) / sizeof(sentences[0]); i++)
		print_sentence(out, sentences[i].text, sentences[i].limit);
	for (enum table_refusal why = TABLE_REFUSAL_INPUT; why < TABLE_REFUSAL_COUNT; why++)
		print_sentence(out, table_refusal_text(why),
			       why < TABLE_REFUSAL_DIED ? "building an unwind table"
							: "a builder's, see Processes");
}

static void print_table(FILE *out)
{
	fprintf(out, "| in the summary | counted as, or limit |\n|---|---|\n");
	print_outside(out);
	print_states(out);
}

DOCUMENT_TABLE(print_table);
