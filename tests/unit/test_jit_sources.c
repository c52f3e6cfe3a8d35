/* SPDX-License-Identifier: BSD-2-Clause */
/* JIT files over windows: times of the TSC, records that come late, files that are none. */
#include "unit.h"
#undef fail /* ours has arguments */

#include <sysprof/meta_keys.h>

#include "base/cleanup.h"
#include "jit/jitdump.h"
#include "jit/names/jit_names.h"
#include "jit/names/jit_sources.h"
#include "tenants/outside_books.h"

#include "unit/forge_jitdump.h"

#define S   1000000000ull
#define GHZ 3ull /* of the TSC */
#define M0  (100 * S)
#define T0  (5000 * S)

static struct jit_sources *s; /* of the running test */
static struct dump d;

static void set_up(void)
{
	s = jit_sources__new();
	d.size = 0;
}

static void tear_down(void)
{
	jit_sources__free(s);
}

static void report_anchor(uint64_t monotonic, uint64_t tsc, uint32_t epoch, bool new_epoch)
{
	struct clock_anchor_event e = {
		.header = {.size = sizeof(e),
			   .type = EVENT_CLOCK_ANCHOR,
			   .flags = new_epoch ? EVENT_NEW_EPOCH : 0,
			   .time = monotonic},
		.tsc = tsc,
		.monotonic = monotonic,
		.epoch = epoch,
	};

	assert_int_equal(jit_sources__event(s, &e.header), 0);
}

static void report_file_of(uint32_t file, uint32_t user, enum jit_file_kind kind,
			   enum jit_file_state state)
{
	_cleanup_free_ struct jit_file_event *e = calloc(1, sizeof(*e) + 32);

	e->header = (struct event_header){.size = sizeof(*e) + 32, .type = EVENT_JIT_FILE};
	e->pid = 10;
	e->file = file;
	e->user = user;
	e->kind = kind;
	e->state = state;
	strcpy(e->path, "/tmp/jit-10.dump");
	assert_int_equal(jit_sources__event(s, &e->header), 0);
}

static void report_file(uint32_t file, enum jit_file_kind kind, enum jit_file_state state)
{
	report_file_of(file, 0, kind, state);
}

static void report_bytes_at(uint32_t file, uint64_t after, uint64_t before, const void *bytes,
			    size_t size)
{
	_cleanup_free_ struct jit_bytes_event *e = calloc(1, sizeof(*e) + size);

	e->header = (struct event_header){.size = sizeof(*e) + size, .type = EVENT_JIT_BYTES};
	e->after = after;
	e->before = before;
	e->file = file;
	e->size = size;
	memcpy(e->bytes, bytes, size);
	assert_int_equal(jit_sources__event(s, &e->header), 0);
}

static void report_bytes(uint32_t file, const void *bytes, size_t size)
{
	report_bytes_at(file, M0, M0 + 10 * S, bytes, size);
}

static void report_dump(void)
{
	report_bytes(1, d.bytes, d.size);
}

/* File 1, of user 0, is followed. */
static void follow(enum jit_file_kind kind)
{
	report_file(1, kind, JIT_FILE_STATE_FOLLOWED);
}

static void settle(void)
{
	assert_int_equal(jit_sources__settle(s), 0);
}

/* Lines for so many different functions. */
static void report_lines(uint32_t file, unsigned int count)
{
	char line[64];

	for (unsigned int i = 0; i < count; i++) {
		int size = snprintf(line, sizeof(line), "%x 10 name%u\n", 0x1000 + i * 16, i);

		report_bytes(file, line, size);
	}
}

/* The same of a new map of a user. */
static void report_map(uint32_t file, uint32_t user, unsigned int lines)
{
	report_file_of(file, user, JIT_FILE_MAP, JIT_FILE_STATE_FOLLOWED);
	report_lines(file, lines);
}

/* What was there at that time; NULL: nothing that is known. */
static const char *name_in(struct jit_code *code, struct jit_history *history, uint64_t time)
{
	struct jit_answer answer = jit_history__at(history, time, jit_code__same_function, code);

	jit_history__fini(history);
	return answer.entry == JIT_NO_ENTRY ? NULL : jit_code__name(code, answer.entry);
}

static const char *name_at(uint32_t file, uint64_t address, uint64_t time)
{
	struct jit_code *code = jit_sources__get(s, file)->code;
	struct jit_history history = {};

	assert_int_equal(jit_timeline__histories(jit_code__timeline(code), &address, 1, &history),
			 0);
	return name_in(code, &history, time);
}

static void assert_begins(uint64_t address, uint64_t time, const char *name)
{
	assert_null(name_at(1, address, time - 1000));
	assert_non_null(name_at(1, address, time + 1000));
	assert_string_equal(name_at(1, address, time + 1000), name);
}

/*
 * An hour of sleep: the TSC goes on, CLOCK_MONOTONIC does not. A stamp from just before it belongs on
 * the line from before, one from just after it on that from after: not on a line through both.
 */
TEST(tsc_times_are_right_before_and_after_a_suspend)
{
	uint64_t sleep = 3600 * S * GHZ;

	for (uint64_t i = 0; i < 5; i++)
		report_anchor(M0 + i * S, T0 + i * S * GHZ, 0, false);
	for (uint64_t i = 5; i < 8; i++)
		report_anchor(M0 + i * S, T0 + sleep + i * S * GHZ, 1, i == 5);
	follow(JIT_FILE_DUMP);
	put_header(&d, 1);
	put_load(&d, T0 + S * GHZ / 2, 0x1000, 32, "early");
	put_load(&d, T0 + 4 * S * GHZ + 3 * S * GHZ / 4, 0x2000, 32, "falls asleep");
	put_load(&d, T0 + sleep + 5 * S * GHZ + S * GHZ / 4, 0x3000, 32, "wakes up");
	put_load(&d, T0 + sleep + 9 * S * GHZ, 0x4000, 32, "late");
	report_dump();
	settle();
	assert_begins(0x1000, M0 + S / 2, "early");
	assert_begins(0x2000, M0 + 4 * S + 3 * S / 4, "falls asleep");
	assert_begins(0x3000, M0 + 5 * S + S / 4, "wakes up");
	assert_begins(0x4000, M0 + 9 * S, "late");
}

/* No anchor has a TSC: it is not known when the code was there. */
TEST(without_a_tsc_code_begins_at_the_earliest_time)
{
	report_anchor(M0, 0, 0, false);
	follow(JIT_FILE_DUMP);
	put_header(&d, 1);
	put_load(&d, T0, 0x1000, 32, "f");
	report_dump();
	settle();
	assert_null(name_at(1, 0x1010, M0));
	assert_string_equal(name_at(1, 0x1010, M0 + 1), "f");
}

/* The clock of its process, by an event. */
TEST(dump_times_are_corrected_by_the_process_clock)
{
	struct jit_clock_event e = {
		.header = {.size = sizeof(e), .type = EVENT_JIT_CLOCK},
		.file = 1,
		.known = 1,
		.ahead = 1000 * (int64_t)S,
	};

	assert_int_equal(jit_sources__event(s, &e.header), 0);
	follow(JIT_FILE_DUMP);
	assert_int_equal(jit_sources__event(s, &e.header), 0);
	put_header(&d, 0);
	put_load(&d, M0 + 1001 * S, 0x1000, 32, "f");
	report_dump();
	settle();
	assert_begins(0x1000, M0 + S, "f");
}

TEST(late_records_are_put_at_their_times)
{
	size_t size;

	follow(JIT_FILE_DUMP);
	put_header(&d, 0);
	put_load(&d, 2 * S, 0x1000, 32, "second");
	report_dump();
	settle();
	assert_null(name_at(1, 0x1010, S + 1));
	assert_string_equal(name_at(1, 0x1010, 3 * S), "second");
	size = d.size;
	put_load(&d, S, 0x1000, 32, "first");
	put_load(&d, 3 * S, 0x1000, 32, "third");
	put_move(&d, 4 * S, 0x1000, 0x5000, 32);
	report_bytes(1, d.bytes + size, d.size - size);
	settle();
	settle();
	assert_string_equal(name_at(1, 0x1010, S + 1), "first");
	assert_string_equal(name_at(1, 0x1010, 2 * S + 1), "second");
	assert_string_equal(name_at(1, 0x1010, 3 * S + 1), "third");
	assert_string_equal(name_at(1, 0x5010, 4 * S + 1), "third");
	assert_null(name_at(1, 0x1010, 4 * S + 1));
}

TEST(lines_of_a_perf_map_can_span_two_windows)
{
	static const char one[] = "1000 100 one\n2000 10 tw", two[] = "o\n";

	follow(JIT_FILE_MAP);
	report_bytes(1, one, strlen(one));
	settle();
	assert_string_equal(name_at(1, 0x1010, M0 + 2 * S), "one");
	assert_null(name_at(1, 0x2001, M0 + 2 * S));
	report_bytes(1, two, strlen(two));
	settle();
	assert_string_equal(name_at(1, 0x2001, M0 + 2 * S), "two");
}

TEST(links_and_invalid_dumps_have_their_states)
{
	assert_null(jit_sources__get(s, 0));
	assert_null(jit_sources__get(s, 7));
	report_bytes(7, "x", 1);
	report_file(2, JIT_FILE_MAP, JIT_FILE_STATE_LINK);
	assert_null(jit_sources__get(s, 2)->code);
	assert_int_equal(jit_sources__get(s, 2)->state, JIT_FILE_STATE_LINK);
	report_bytes(2, "x", 1);
	report_file(3, JIT_FILE_DUMP, JIT_FILE_STATE_FOLLOWED);
	report_bytes(3, "this is no jitdump, however long it is, and whatever it says", 60);
	assert_int_equal(jit_sources__get(s, 3)->state, JIT_FILE_STATE_BAD);
	report_file(4000000000u, JIT_FILE_MAP,
		    JIT_FILE_STATE_FOLLOWED); /* of a damaged recording */
	assert_non_null(jit_sources__get(s, 4000000000u));
	settle();
}

TEST(files_that_are_not_kept_are_forgotten)
{
	for (uint32_t file = 1; file < 200000; file++) {
		const uint32_t living[] = {7, file, 3};

		report_file(file, JIT_FILE_MAP, JIT_FILE_STATE_FOLLOWED);
		report_bytes(file, "1000 100 x\n", 11);
		if (file % 100)
			continue;
		jit_sources__keep(s, living, 3, file - 50);
		assert_null(jit_sources__get(s, file - 50));
	}
	assert_non_null(jit_sources__get(s, 3));
	assert_non_null(jit_sources__get(s, 7));
	assert_null(jit_sources__get(s, 100));
	assert_non_null(jit_sources__get(s, 199999));
	settle();
	assert_string_equal(name_at(7, 0x1010, M0 + 2 * S), "x");
}

static enum jit_file_state left_of(uint32_t file)
{
	return jit_sources__get(s, file)->left;
}

static size_t count_of(uint32_t file)
{
	return jit_timeline__count(jit_code__timeline(jit_sources__get(s, file)->code));
}

/* Of these files' code. */
static uint64_t memory_of(uint32_t first, uint32_t last)
{
	uint64_t sum = 0;

	for (uint32_t file = first; file <= last; file++)
		sum += jit_sources__get(s, file)->memory;
	return sum;
}

#define MANY 20000

/* How many of these functions have a name, which is their own. */
static unsigned int named(uint32_t file, unsigned int from, unsigned int to)
{
	static uint64_t addresses[MANY];
	static struct jit_history histories[MANY];
	struct jit_code *code = jit_sources__get(s, file)->code;
	unsigned int count = 0;
	char name[32];

	assert_in_range(to - from, 1, MANY);
	for (unsigned int i = from; i < to; i++)
		addresses[i - from] = 0x1000 + i * 16;
	memset(histories, 0, sizeof(histories));
	assert_int_equal(
		jit_timeline__histories(jit_code__timeline(code), addresses, to - from, histories),
		0);
	for (unsigned int i = from; i < to; i++) {
		const char *found = name_in(code, &histories[i - from], M0 + 2 * S);

		snprintf(name, sizeof(name), "name%u", i);
		assert_true(!found || !strcmp(found, name));
		count += found != NULL;
	}
	return count;
}

TEST(files_of_a_user_share_one_limit_on_memory)
{
	uint64_t sum;

	jit_sources__limit(s, 1 << 20, 3 << 20);
	for (uint32_t file = 1; file <= 10; file++)
		report_file_of(file, file <= 9 ? 1000 : 2000, JIT_FILE_MAP,
			       JIT_FILE_STATE_FOLLOWED);
	for (uint32_t file = 1; file <= 9; file++)
		report_lines(file, 5000);
	report_lines(10, 5000);
	sum = memory_of(1, 9);
	assert_true(sum <= (1 << 20) + 4096);
	/* the largest give way, and say so; the newest code has its names, and what is left is right */
	assert_int_equal(left_of(1), JIT_FILE_STATE_USER_LIMIT);
	assert_in_range(named(1, 0, 5000), 1, 4999);
	for (uint32_t file = 1; file <= 9; file++) {
		assert_int_equal(jit_sources__get(s, file)->state, JIT_FILE_STATE_FOLLOWED);
		assert_true(named(file, 4900, 5000) > 0);
	}
	assert_int_equal(named(9, 4990, 5000), 10);
	assert_int_equal(left_of(10), JIT_FILE_STATE_NONE);
	assert_int_equal(count_of(10), 5000);
	assert_true(sum + memory_of(10, 10) <= 2 << 20);
	/* a forgotten file makes room */
	jit_sources__keep(s, (const uint32_t[]){10}, 1, 10);
	report_map(11, 1000, 5000);
	assert_int_equal(left_of(11), JIT_FILE_STATE_NONE);
	assert_int_equal(named(11, 0, 5000), 5000);
}

/*
 * The profile names the user, once for a file that two processes have, and no user whose files were
 * kept. Files beyond the number of files that are kept have no user.
 */
TEST(left_out_names_are_counted_once_for_their_user)
{
	struct profile_builder *b = profile_builder__new();
	struct jit_process processes[4] = {};
	const struct profile *p;

	jit_sources__limit(s, 1 << 20, 3 << 20);
	for (uint32_t file = 1; file <= 9; file++) {
		report_map(file, 1000, 5000);
	}
	for (uint32_t file = 1; file < 9; file++)
		jit_sources__get(s, file)->left = JIT_FILE_STATE_NONE;
	jit_sources__get(s, 9)->left = JIT_FILE_STATE_USER_LIMIT;
	for (uint32_t file = 10; file <= 65537; file++)
		report_file_of(file, 2000, JIT_FILE_MAP, JIT_FILE_STATE_LINK);
	for (uint32_t i = 0; i < 4; i++) {
		const struct profile_process process = {.pid = 1 + i};

		processes[i].id = profile_builder__process(b, &process);
		processes[i].files[JIT_FILE_MAP] = (const uint32_t[]){1, 9, 9, 65537}[i];
	}
	profile_builder__session(b)->end = 1;
	assert_int_equal(name_jit_code(b, s, processes, 4), 0);
	assert_int_equal(profile_builder__finish(b, &p, NULL, 0), 0);
	assert_int_equal(p->outside_count, 2);
	assert_int_equal(p->outside[0].user, 1000);
	assert_int_equal(p->outside[0].thing, OUTSIDE_JIT_NAMES);
	assert_int_equal(p->outside[0].reason, OUTSIDE_BY_USER);
	assert_int_equal(p->outside[0].count, 1);
	assert_int_equal(p->outside[1].user, OUTSIDE_USER_OTHERS);
	assert_int_equal(p->outside[1].thing, OUTSIDE_JIT_NAMES);
	assert_int_equal(p->outside[1].reason, OUTSIDE_BY_ALL);
	assert_int_equal(p->outside[1].count, 1);
	profile_builder__free(b);
}

TEST(an_oversized_record_is_in_the_books_once)
{
	struct jit_process process = {};

	report_file_of(1, 1000, JIT_FILE_DUMP, JIT_FILE_STATE_FOLLOWED);
	put_header(&d, 0);
	put_load(&d, M0 + S, 0x1000, 32, "f");
	put32(&d, 0);
	put32(&d, JITDUMP_RECORD_MAX + 1);
	put64(&d, M0 + S);
	report_dump();
	process.files[JIT_FILE_DUMP] = 1;
	for (int window = 0; window < 2; window++) {
		struct profile_builder *b = profile_builder__new();
		const struct profile_process of_window = {.pid = 1};
		const struct profile *p;

		process.id = profile_builder__process(b, &of_window);
		profile_builder__session(b)->end = 1;
		assert_int_equal(name_jit_code(b, s, &process, 1), 0);
		assert_int_equal(profile_builder__finish(b, &p, NULL, 0), 0);
		assert_int_equal(p->outside_count, window ? 0 : 1);
		if (!window) {
			assert_int_equal(p->outside[0].user, 1000);
			assert_int_equal(p->outside[0].thing, OUTSIDE_JIT_RECORDS);
			assert_int_equal(p->outside[0].reason, OUTSIDE_BY_ITSELF);
			assert_int_equal(p->outside[0].count, 1);
		}
		profile_builder__free(b);
	}
}

#define LARGE (1u << 20)

/* A dump with so many functions of a mebibyte, and a process with a sample in each of them. */
static struct jit_process sample_large(struct profile_builder *b, uint32_t file, uint32_t count)
{
	_cleanup_free_ unsigned char *code = malloc(LARGE);
	const struct profile_process process = {.pid = file};
	const struct dso_id jit = profile_builder__dso(
		b, &(struct profile_dso){.kind = DSO_JIT,
					 .name = profile_builder__string(b, "[jit]")});
	struct jit_process made = {.id = profile_builder__process(b, &process)};
	struct thread_id thread = profile_builder__thread(b, made.id, file, true,
							  (struct string_id){}, M0);

	memset(code, 0x90, LARGE); /* zeros are no code */
	made.files[JIT_FILE_DUMP] = file;
	report_file_of(file, 1000, JIT_FILE_DUMP, JIT_FILE_STATE_FOLLOWED);
	put_header(&d, 0);
	for (uint32_t i = 0; i < count; i++) {
		struct profile_sample sample = {
			.kind = SAMPLE_CPU, .time = M0 + 2 * S + i, .weight = 1};

		put_load_head(&d, M0 + S, (i + 1) * UINT64_C(0x1000000), LARGE, "f");
		report_bytes(file, d.bytes, d.size);
		report_bytes(file, code, LARGE);
		d.size = 0;
		sample.stack = profile_builder__stack(
			b, sample.stack,
			profile_builder__location(b, jit, (i + 1) * UINT64_C(0x1000000), made.id,
						  CATEGORY_USER));
		profile_builder__sample(b, thread, &sample);
	}
	return made;
}

/* Each of the dumps is within its own limit. */
TEST(a_profile_has_64_mebibytes_of_machine_code)
{
	struct profile_builder *b = profile_builder__new();
	struct jit_process processes[2];
	const struct profile *p;

	jit_sources__limit(s, UINT64_C(1) << 30, UINT64_C(1) << 30);
	jit_sources__keep_text(s);
	processes[0] = sample_large(b, 1, 33);
	processes[1] = sample_large(b, 2, 33);
	profile_builder__session(b)->start = M0;
	profile_builder__session(b)->end = M0 + 9 * S;
	assert_int_equal(name_jit_code(b, s, processes, 2), 0);
	assert_int_equal(profile_builder__finish(b, &p, NULL, 0), 0);
	assert_int_equal(p->code_count, 64);
	assert_string_equal(profile__meta(p, META_JIT_CODE_LEFT_OUT), "2 of 66 functions");
	profile_builder__free(b);
}

/* Users come and go; those that stay are charged with what they had. */
TEST(a_user_stays_charged_while_others_come_and_go)
{
	jit_sources__limit(s, 1 << 20, 8 << 20);
	report_file_of(1, 2000, JIT_FILE_MAP, JIT_FILE_STATE_FOLLOWED);
	while (jit_sources__get(s, 1)->memory < 900 << 10)
		report_lines(1, 200);
	for (uint32_t file = 2; file < 2000; file++) {
		report_map(file, 10000 + file, 2);
		jit_sources__keep(s, (const uint32_t[]){1}, 1, file);
	}
	for (uint32_t file = 2; file < 2000; file++)
		assert_null(jit_sources__get(s, file));
	report_file_of(2000, 2000, JIT_FILE_MAP, JIT_FILE_STATE_FOLLOWED);
	report_file_of(2001, 3000, JIT_FILE_MAP, JIT_FILE_STATE_FOLLOWED);
	for (int i = 0; i < 40; i++) {
		report_lines(2000, 200);
		report_lines(2001, 200);
		if (left_of(1) != JIT_FILE_STATE_NONE)
			break;
	}
	assert_int_equal(left_of(1), JIT_FILE_STATE_USER_LIMIT);
	assert_int_equal(left_of(2001), JIT_FILE_STATE_NONE);
}

/* All users together: the one with the most gives way. */
TEST(the_total_limit_evicts_names_of_large_users)
{
	jit_sources__limit(s, 1 << 20, 3 << 20);
	report_map(1, 1001, 500);
	for (uint32_t file = 2; file <= 20; file++) {
		report_map(file, 1000 + file, 5000);
		assert_true(memory_of(1, file) <= 3 << 20);
	}
	assert_int_equal(left_of(1), JIT_FILE_STATE_NONE);
	assert_int_equal(named(1, 0, 500), 500);
	assert_int_equal(left_of(2), JIT_FILE_STATE_LIMIT);
	assert_true(named(20, 4900, 5000) == 100);
}

static void report_line(uint32_t file, uint64_t time, const char *line)
{
	report_bytes_at(file, time, time + 5, line, strlen(line));
}

/* Bytes that could not be kept: what there was is in doubt, half a line is none, and the next line is one. */
TEST(lost_bytes_end_earlier_names_and_a_half_line)
{
	struct jit_bytes_event lost = {
		.header = {.size = sizeof(lost), .type = EVENT_JIT_BYTES},
		.after = M0 + 2 * S,
		.before = M0 + 3 * S,
		.file = 1,
		.flags = JIT_BYTES_LOST,
	};

	follow(JIT_FILE_MAP);
	report_line(1, M0, "1000 100 before\n2000 1");
	assert_int_equal(jit_sources__event(s, &lost.header), 0);
	report_line(1, M0 + 4 * S, "1000 100 is_half_a_line\n3000 100 after\n");
	assert_int_equal(left_of(1), JIT_FILE_STATE_TOO_BIG);
	assert_string_equal(name_at(1, 0x1010, M0 + S), "before");
	assert_null(name_at(1, 0x1010, M0 + 5 * S));
	assert_null(name_at(1, 0x2010, M0 + 5 * S));
	assert_string_equal(name_at(1, 0x3010, M0 + 5 * S), "after");
}

/*
 * Weeks of a process whose code comes and goes at the same addresses, with a name of its own each time: windows end, and
 * it takes no more memory than at first. What was sampled in a window has its name, and nothing is left out.
 */
TEST(memory_of_a_perf_map_is_bounded_over_windows)
{
	uint64_t most = 0, memory;
	char line[80];

	jit_sources__limit(s, 1 << 20, 1 << 20);
	follow(JIT_FILE_MAP);
	report_line(1, 1, "100000 100 since_the_start\n");
	for (uint64_t i = 1; i <= 300000; i++) {
		snprintf(line, sizeof(line), "%llx 40 a_function_of_some_length_%llu\n",
			 (unsigned long long)(0x1000 + i % 64 * 0x40), (unsigned long long)i);
		report_line(1, 10 * i, line);
		if (i % 1000)
			continue;
		settle();
		snprintf(line, sizeof(line), "a_function_of_some_length_%llu",
			 (unsigned long long)i - 900);
		assert_string_equal(name_at(1, 0x1010 + (i - 900) % 64 * 0x40, 10 * (i - 900) + 9),
				    line);
		assert_string_equal(name_at(1, 0x100010, 10 * i), "since_the_start");
		assert_int_equal(left_of(1), JIT_FILE_STATE_NONE);
		assert_int_equal(jit_sources__forget(s, 10 * (i - 1)), 0);
		memory = memory_of(1, 1);
		most = memory > most ? memory : most;
	}
	assert_true(most < 1 << 19);
}

/* More living code than there is room for; when most of it is freed, all of what comes has names again. */
TEST(freed_code_makes_room_for_new_names)
{
	char line[80];

	jit_sources__limit(s, 1 << 20, 1 << 20);
	follow(JIT_FILE_MAP);
	report_lines(1, MANY);
	assert_int_equal(left_of(1), JIT_FILE_STATE_USER_LIMIT);
	assert_in_range(named(1, 0, MANY), 1000, MANY - 1000);
	assert_int_equal(named(1, MANY - 10, MANY), 10);
	/* all of it is overwritten */
	snprintf(line, sizeof(line), "0 1000000 all\n");
	report_line(1, M0 + 2 * S, line);
	assert_int_equal(jit_sources__forget(s, M0 + 3 * S), 0);
	assert_int_equal(left_of(1), JIT_FILE_STATE_NONE);
	for (int i = 0; i < 1000; i++) {
		snprintf(line, sizeof(line), "%x 10 new%d\n", 0x1000 + i * 16, i);
		report_line(1, M0 + 4 * S, line);
	}
	for (int i = 0; i < 1000; i++) {
		snprintf(line, sizeof(line), "new%d", i);
		assert_string_equal(name_at(1, 0x1000 + i * 16, M0 + 5 * S), line);
	}
	assert_int_equal(left_of(1), JIT_FILE_STATE_NONE);
}

/* The same of a jitdump, where code moves: what was loaded windows ago is moved now, and has its name. */
TEST(moved_code_of_early_windows_keeps_its_name)
{
	uint64_t most = 0, memory, time = S;
	char name[40];

	follow(JIT_FILE_DUMP);
	put_header(&d, 0);
	put_load(&d, time, 0x100000, 32, "old");
	report_dump();
	for (int i = 1; i <= 40000; i++) {
		d.size = 0;
		time += 1000;
		snprintf(name, sizeof(name), "a_function_of_some_length_%d", i);
		put_load(&d, time, 0x1000 + i % 50 * 64, 32, name);
		if (i % 2000 == 500)
			put_move(&d, time + 1, 0x100000 + i / 2000 * 64, 0x100040 + i / 2000 * 64,
				 32);
		report_dump();
		if (i % 2000)
			continue;
		settle();
		assert_string_equal(name_at(1, 0x1000 + i % 50 * 64, time + 1), name);
		assert_string_equal(name_at(1, 0x100000 + i / 2000 * 64, time + 1), "old");
		assert_null(name_at(1, 0x100000 + i / 2000 * 64 - 64, time + 1));
		assert_int_equal(jit_sources__forget(s, time - 100000), 0);
		memory = memory_of(1, 1);
		most = memory > most ? memory : most;
	}
	assert_true(most < 1 << 20);
	/* the horizon was a hundred functions ago */
	settle();
	assert_string_equal(name_at(1, 0x1000 + 39950 % 50 * 64, time - 50 * 1000 + 10),
			    "a_function_of_some_length_39950");
}

EACH_TEST_WITH(set_up, tear_down);
