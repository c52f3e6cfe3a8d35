/* SPDX-License-Identifier: BSD-2-Clause */
/* A file that is found and grows: the events about it, and their times. */
#include "unit.h"
#include "jit/follow/jit_file.h"
#include "unit/jit_file_support.h"

/* ---- it is found ----------------------------------------------------------------------------- */

TEST(a_found_map_is_reported_and_read_once)
{
	write_new_map("1000 10 f\n2000 10 to");
	begin_as(JIT_FILE_MAP, JIT_FILE_STATE_FOLLOWED, 0);
	assert_int_equal(f.received.states, 1);
	assert_int_equal(f.received.state.pid, 4711);
	assert_int_equal(f.received.state.process_start, 815);
	assert_int_equal(f.received.state.kind, JIT_FILE_MAP);
	assert_int_equal(f.received.state.state, JIT_FILE_STATE_FOLLOWED);
	assert_string_equal(f.received.path, "/tmp/" FILENAME);
	assert_int_equal(f.received.pieces.count, 0);
	read_all(&NO_SIGNS);
	/* of unknown age, whatever the caller reports */
	assert_int_equal(the_piece("1000 10 f\n2000 10 to")->after, 0);
	assert_in_range(f.received.pieces.data[0].before, f.began, f.read_at);
	forget_received();
	read_all(&NO_SIGNS);
	assert_int_equal(f.received.pieces.count + f.received.states, 0);
}

/* Every length of path has its NUL, and fits. */
TEST(a_path_of_any_length_is_reported_whole)
{
	const struct jit_owner owner = {.pid = 1};
	struct received received = {};
	const struct jit_file_sink sink = {receive_event, &received};

	for (size_t length = 0; length < PATH_MAX; length += length < 20 ? 1 : 509) {
		struct jit_found found = {.fd = -1, .state = JIT_FILE_STATE_LINK};
		struct jit_file f;

		memset(found.path, 'x', length);
		assert_int_equal(
			jit_file__begin(&f, NUMBER, JIT_FILE_MAP, &owner, &found, 1, &sink), 0);
		assert_string_equal(received.path, found.path);
	}
}

TEST(a_file_that_is_not_followed_is_reported_once)
{
	const struct jit_owner owner = {.pid = 4711};
	struct jit_found found = {.fd = -1, .state = JIT_FILE_STATE_NOT_REGULAR, .path = "/p"};
	const struct jit_file_sink sink = {receive_event, &f.received};

	assert_int_equal(jit_file__begin(&f.file, NUMBER, JIT_FILE_MAP, &owner, &found, 5, &sink),
			 0);
	assert_int_equal(f.received.state.state, JIT_FILE_STATE_NOT_REGULAR);
	assert_int_equal(jit_file__wakes_at(&f.file), 0);
	read_all(&CLOSED);
	assert_int_equal(read_as(&CLOSED, true), 0);
	assert_int_equal(f.received.pieces.count, 0);
	assert_int_equal(f.received.states, 1);
}

/* It may be half written: it is waited for, a while, or until it is closed. */
TEST(a_young_map_is_read_later_or_once_closed)
{
	uint64_t began;

	do {
		began = monotonic_ns();
		write_new_map("");
		begin_as(JIT_FILE_MAP, JIT_FILE_STATE_FOLLOWED, 0);
		append_to_map("1000 10 f\n");
		read_all(&MODIFIED);
	} while (was_stopped(began));
	assert_int_equal(f.received.pieces.count, 0);
	assert_in_range(jit_file__wakes_at(&f.file), f.began, f.began + PATIENCE);
	sleep_ns(PATIENCE);
	assert_true(jit_file__wakes_at(&f.file) <= monotonic_ns());
	append_to_map("2000 10 g\n");
	read_all(&NO_SIGNS);
	assert_int_equal(the_piece("1000 10 f\n2000 10 g\n")->after, 0);
	assert_int_equal(jit_file__wakes_at(&f.file), 0);
	end_map();

	do {
		began = monotonic_ns();
		write_new_map("1000 10 f\n");
		begin_as(JIT_FILE_MAP, JIT_FILE_STATE_FOLLOWED, monotonic_ns());
		read_all(&MODIFIED);
	} while (was_stopped(began));
	assert_int_equal(f.received.pieces.count, 0);
	read_all(&CLOSED);
	assert_int_equal(the_piece("1000 10 f\n")->after, 0);
	end_map();

	write_new_map("1000 10 f\n");
	begin_as(JIT_FILE_MAP, JIT_FILE_STATE_FOLLOWED, monotonic_ns());
	assert_int_equal(read_as(&NO_SIGNS, true), 0);
	assert_int_equal(the_piece("1000 10 f\n")->after, 0);
	end_map();

	/* a dump has its own times */
	write_new_map("");
	begin_as(JIT_FILE_DUMP, JIT_FILE_STATE_FOLLOWED, monotonic_ns());
	assert_int_equal(f.received.state.kind, JIT_FILE_DUMP);
	assert_int_equal(jit_file__wakes_at(&f.file), 0);
	append_to_map("bytes");
	read_all(&MODIFIED);
	the_piece("bytes");
}

/* Older than the process, it may be its own after all: once it is written to. */
TEST(an_outdated_map_is_followed_after_a_write)
{
	static const struct jit_signs ONLY_OPENED = {.opened = true};

	write_new_map("1000 10 old\n");
	begin_as(JIT_FILE_MAP, JIT_FILE_STATE_OUTDATED, 0);
	assert_int_equal(f.received.state.state, JIT_FILE_STATE_OUTDATED);
	read_all(&ONLY_OPENED);
	assert_int_equal(read_as(&NO_SIGNS, true), 0);
	assert_int_equal(f.received.pieces.count, 0);
	assert_int_equal(f.received.states, 1);
	rewrite_map("1000 10 new\n");
	read_all(&CLOSED);
	assert_int_equal(f.received.states, 2);
	assert_int_equal(f.received.state.state, JIT_FILE_STATE_FOLLOWED);
	assert_string_equal(f.received.path, "");
	the_piece("1000 10 new\n");
	forget_received();
	append_to_map("2000 10 more\n");
	read_held(&MODIFIED);
	the_piece("2000 10 more\n");
}

/* ---- it grows -------------------------------------------------------------------------------- */

/* Several lines: readings and glances give all times. */
TEST(appended_lines_have_the_times_of_readings_and_glances)
{
	uint64_t began, ended;

	begin_map("1000 10 f\n");
	began = f.began;
	ended = f.read_at;
	append_to_map(TWO_LINES);
	read_all(&MODIFIED);
	assert_in_range(the_piece(TWO_LINES)->after, began, ended);
	assert_in_range(f.received.pieces.data[0].before, f.began, f.read_at);
	forget_received();
	sleep_ns(1000000);
	began = monotonic_ns();
	jit_file__glance(&f.file);
	ended = monotonic_ns();
	append_to_map(TWO_LINES);
	jit_file__glance(&f.file); /* it is too late now */
	read_all(&MODIFIED);
	assert_in_range(the_piece(TWO_LINES)->after, began, ended);
	forget_received();
	began = f.began;
	append_to_map(TWO_LINES);
	read_all(&MODIFIED);
	assert_true(the_piece(TWO_LINES)->after >= began);
}

/* A glance says nothing of a file that is as long as it was, and was written to. */
TEST(a_glance_at_a_rewritten_file_gives_no_time)
{
	uint64_t silent;

	begin_map("1000 10 f\n");
	append_to_map(TWO_LINES);
	read_all(&MODIFIED);
	silent = f.read_at;
	sleep_ns(TICK);
	rewrite_map("1000 10 x\n2000 10 y\n3000 10 z\n");
	jit_file__glance(&f.file);
	assert_true(f.file.silent <= silent);
	forget_received();
	read_all(&CLOSED);
	assert_true(the_snapshot("1000 10 x\n2000 10 y\n3000 10 z\n")->after <= silent);
}

TEST(torn_lines_are_joined_across_readings)
{
	begin_map("0 1 f\n");
	append_to_map("1000 10 fi");
	read_all(&MODIFIED);
	assert_int_equal(read_as(&MODIFIED, true), 0);
	append_to_map("rst\n2000 10 second\n3000 1");
	read_all(&MODIFIED);
	append_to_map("0 third\n");
	read_held(&MODIFIED);
	assert_bytes("1000 10 first\n2000 10 second\n3000 10 third\n");
	for (size_t i = 0; i < f.received.pieces.count; i++)
		assert_int_equal(f.received.pieces.data[i].flags, 0);
}

TEST(a_single_line_is_as_old_as_the_file)
{
	unsigned int close = 0;

	begin_map("1000 10 f\n");
	read_all(&MODIFIED);
	for (int i = 0; i < 10; i++) {
		uint64_t silent = f.began, began, ended, seen;
		const struct report *report;

		sleep_ns(30000000);
		began = monotonic_ns();
		append_to_map("2000 10 g\n");
		ended = monotonic_ns();
		sleep_ns(i * 10000000);
		seen = monotonic_ns();
		read_held(&MODIFIED);
		report = the_piece("2000 10 g\n");
		assert_true(report->after >= silent && report->after <= ended);
		assert_true(report->before >= seen);
		close += report->after + TICK >= began;
		forget_received();
	}
	/* it is as old as the last reading where the clocks could not be compared, and older where the tick was late */
	assert_true(close >= 5);
}

/* Of the file's time, as a write leaves it that is under way: it has its time, and no bytes yet. */
static void begin_write(void)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_NOW}};

	sleep_ns(TICK);
	assert_int_equal(utimensat(AT_FDCWD, FILENAME, times, 0), 0);
}

/* ... and ends. The time stays. */
static void end_write(const char *text)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};
	struct stat st;

	assert_int_equal(stat(FILENAME, &st), 0);
	times[1] = st.st_mtim;
	append_to_map(text);
	assert_int_equal(utimensat(AT_FDCWD, FILENAME, times, 0), 0);
}

/* The file's time is that of the next line already. */
TEST(a_line_is_not_dated_by_the_next_write)
{
	static const char *const behind[] = {"3000 10 h\n", TWO_LINES, ""};
	uint64_t silent, written;

	for (size_t i = 0; i < sizeof(behind) / sizeof(behind[0]); i++) {
		do {
			begin_map("1000 10 f\n");
			silent = f.read_at;
			append_to_map("2000 10 g\n");
			written = monotonic_ns();
			begin_write();
			read_all(&MODIFIED);
		} while (was_stopped(last_write()));
		assert_int_equal(f.received.pieces.count, 0);
		assert_in_range(jit_file__wakes_at(&f.file), f.began, f.read_at + PATIENCE);
		if (*behind[i]) {
			end_write(behind[i]);
			read_held(&MODIFIED);
			assert_int_equal(f.received.pieces.count, 2);
			assert_true(piece_at(1)->after >= f.received.pieces.data[0].before);
		} else { /* how it ends is not waited for */
			assert_int_equal(read_as(&NO_SIGNS, true), 0);
			the_piece("2000 10 g\n");
		}
		assert_true(f.received.pieces.data[0].after <= silent);
		assert_true(f.received.pieces.data[0].before >= written);
		assert_int_equal(jit_file__wakes_at(&f.file), 0);
		end_map();
	}
}

TEST(a_held_line_is_reported_with_the_next_one)
{
	uint64_t silent;

	do {
		begin_map("1000 10 f\n");
		silent = f.read_at;
		sleep_ns(10 * TICK);
		append_to_map("2000 10 g\n");
		read_all(&MODIFIED);
	} while (was_stopped(last_write()));
	assert_int_equal(f.received.pieces.count, 0);
	sleep_ns(TICK);
	append_to_map("3000 10 h\n");
	read_all(&MODIFIED);
	assert_true(the_piece("2000 10 g\n")->after > silent);
	/* bytes that are held when it is written anew are reported before that */
	rewrite_map("");
	read_all(&CLOSED);
	assert_bytes(TWO_LINES);
	assert_int_equal(f.received.pieces.count, 3);
	assert_int_equal(f.received.pieces.data[1].flags, 0);
	assert_int_equal(f.received.pieces.data[2].flags, JIT_SNAPSHOT_BEGIN | JIT_SNAPSHOT_END);
}

TEST(a_plausible_modification_time_is_reported_exactly)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};
	uint64_t real, wanted;
	const struct report *report;
	int64_t offset;

	begin_map("1000 10 f\n");
	read_all(&MODIFIED);
	sleep_ns(40000000);
	append_to_map("2000 10 g\n");
	assert_true(jit_clock_offset(&offset));
	wanted = monotonic_ns() - 20000000;
	real = wanted + offset;
	times[1] = (struct timespec){.tv_sec = real / 1000000000, .tv_nsec = real % 1000000000};
	assert_int_equal(utimensat(AT_FDCWD, FILENAME, times, 0), 0);
	read_held(&MODIFIED);
	report = the_piece("2000 10 g\n");
	assert_in_range(report->after, wanted - 100000, wanted + 100000);
	forget_received();
	/* older than the last reading, or of two lines, it says nothing */
	append_to_map("3000 10 h\n");
	assert_int_equal(utimensat(AT_FDCWD, FILENAME, times, 0), 0);
	real = f.began;
	read_held(&MODIFIED);
	assert_true(the_piece("3000 10 h\n")->after >= real);
	forget_received();
	/* nor does it of what is to come */
	append_to_map("4000 10 i\n");
	times[1].tv_sec += 3600;
	assert_int_equal(utimensat(AT_FDCWD, FILENAME, times, 0), 0);
	real = f.read_at;
	read_all(&MODIFIED);
	assert_true(the_piece("4000 10 i\n")->after <= real);
	forget_received();
	real = f.read_at;
	sleep_ns(30000000);
	append_to_map(TWO_LINES);
	read_all(&MODIFIED);
	assert_true(the_piece(TWO_LINES)->after <= real);
}

TEST(a_file_that_is_only_opened_reports_nothing_new)
{
	static const struct jit_signs LOOKED_AT = {.opened = true};

	begin_map("1000 10 f\n");
	read_all(&LOOKED_AT);
	read_all(&NO_SIGNS);
	assert_int_equal(f.received.pieces.count, 0);
	assert_int_equal(jit_file__wakes_at(&f.file), 0);
	append_to_map("2000 10 g\n");
	read_held(&CLOSED); /* opened for each line */
	the_piece("2000 10 g\n");
}

EACH_TEST_WITH(NULL, end_test);
ALL_TESTS_WITH(make_directory, remove_directory);
