/* SPDX-License-Identifier: BSD-2-Clause */
/* A file that is emptied, written anew or replaced, is large, or is given up: the events about it, and their times. */
#include "unit.h"
#include "base/cleanup.h"
#include "jit/follow/jit_file.h"
#include "unit/jit_file_support.h"

/* ---- it is written anew ---------------------------------------------------------------------- */

TEST(a_rewritten_map_is_a_snapshot_since_last_read)
{
	uint64_t listed_from, listed_to, closed;
	const struct report *report;
	int fd;

	begin_map("1000 10 f\n2000 10 g\n");
	listed_from = f.began;
	listed_to = f.read_at;
	sleep_ns(1000000);
	read_all(&NO_SIGNS); /* all the code was still what was there then */
	fd = open(FILENAME, O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(write(fd, "1000 10 ", 8), 8);
	read_all(&OPENED);
	assert_int_equal(f.received.pieces.count, 0);
	assert_in_range(jit_file__wakes_at(&f.file), f.began, f.read_at + PATIENCE);
	assert_int_equal(write(fd, "new\n", 4), 4);
	close(fd);
	closed = monotonic_ns();
	read_all(&CLOSED);
	report = the_snapshot("1000 10 new\n");
	assert_in_range(report->after, listed_from, listed_to);
	assert_in_range(report->before, closed, f.read_at);
	assert_int_equal(jit_file__wakes_at(&f.file), 0);
	forget_received();
	/* the next one's time begins with the last */
	listed_from = closed;
	listed_to = f.read_at;
	rewrite_map("7000 10 next\n");
	read_all(&CLOSED);
	assert_in_range(the_snapshot("7000 10 next\n")->after, listed_from, listed_to);
	forget_received();
	/* and it is appended to, which the next one has to follow */
	append_to_map("8000 10 added\n");
	read_held(&CLOSED);
	the_piece("8000 10 added\n");
	listed_from = f.began;
	listed_to = f.read_at;
	forget_received();
	rewrite_map("9000 10 last\n");
	read_all(&CLOSED);
	assert_in_range(the_snapshot("9000 10 last\n")->after, listed_from, listed_to);
}

TEST(an_emptied_map_is_an_empty_snapshot)
{
	begin_map("1000 10 f\n");
	rewrite_map("");
	read_all(&CLOSED);
	the_snapshot("");
	forget_received();
	append_to_map("1000 10 g\n");
	read_held(&CLOSED);
	the_piece("1000 10 g\n");
}

/* All in one round: only the bytes show it. */
TEST(a_rewriting_between_readings_is_found_by_the_bytes)
{
	static const char *const contents[] = {
		"1000 20 f\n",		  /* as long */
		"1000 20 f\n2000 10 g\n", /* goes on, appended */
		"3000 20 longer than it was\n",
		"3000 20 longer than it is!\n",
	};

	begin_map("1000 10 f\n");
	for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
		rewrite_map(contents[i]);
		read_held(&CLOSED);
		if (i == 1)
			the_piece("2000 10 g\n");
		else
			the_snapshot(contents[i]);
		forget_received();
	}
}

/* A file of `count` lines, of which number `other` has another address. To be freed. */
static char *make_lines(size_t count, size_t other)
{
	char *text = malloc(count * 24 + 1);

	for (size_t i = 0; i < count; i++)
		snprintf(text + i * 24, 25, "%08zx 10 line%07zu\n",
			 i == other ? 0xf0000000 : 0x1000 + i * 16, i);
	return text;
}

/* HotSpot's lines are of one length: a method that was compiled again changes nothing but itself. */
TEST(one_changed_line_of_equal_length_makes_a_snapshot)
{
	_cleanup_free_ char *old = make_lines(40, 100), *new = make_lines(40, 3);

	begin_map(old);
	rewrite_map(new);
	read_all(&CLOSED);
	the_snapshot(new);
	end_map();
}

/* Emptied and kept open, it is appended to again. */
TEST(a_truncated_map_kept_open_is_reported_after_patience)
{
	uint64_t listed_from, listed_to;
	int fd;

	begin_map("1000 10 f\n2000 10 g\n");
	listed_from = f.began;
	listed_to = f.read_at;
	fd = open(FILENAME, O_WRONLY | O_TRUNC | O_APPEND | O_CLOEXEC);
	read_all(&OPENED);
	assert_int_equal(write(fd, "3000 10 h\n", 10), 10);
	read_all(&MODIFIED);
	assert_int_equal(f.received.pieces.count, 0);
	sleep_ns(PATIENCE);
	read_all(&NO_SIGNS);
	assert_bytes("3000 10 h\n");
	assert_int_equal(f.received.pieces.count, 2);
	assert_int_equal(f.received.pieces.data[0].size, 0);
	assert_int_equal(f.received.pieces.data[0].flags, JIT_SNAPSHOT_BEGIN | JIT_SNAPSHOT_END);
	assert_in_range(f.received.pieces.data[0].after, listed_from, listed_to);
	assert_int_equal(f.received.pieces.data[1].flags, 0);
	assert_true(f.received.pieces.data[1].after <= listed_to);
	forget_received();
	assert_int_equal(write(fd, "4000 10 i\n", 10), 10);
	close(fd);
	read_held(&CLOSED);
	the_piece("4000 10 i\n");
}

/* The same after it had been appended to, and glanced at: up to then everything was reported. */
TEST(a_truncation_is_dated_from_the_last_glance)
{
	uint64_t glance_from, glance_to;
	_cleanup_close_ int fd = -1;

	begin_map("1000 10 f\n");
	append_to_map(TWO_LINES);
	read_all(&MODIFIED);
	sleep_ns(5000000);
	glance_from = monotonic_ns();
	jit_file__glance(&f.file);
	glance_to = monotonic_ns();
	fd = open(FILENAME, O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(write(fd, "3000 10 h\n", 10), 10);
	read_all(&OPENED);
	assert_int_equal(write(fd, "4000 10 i\n", 10), 10);
	sleep_ns(PATIENCE);
	forget_received();
	read_all(&NO_SIGNS);
	assert_bytes("3000 10 h\n4000 10 i\n");
	assert_in_range(f.received.pieces.data[0].after, glance_from, glance_to);
	assert_true(f.received.pieces.data[1].after >= f.received.pieces.data[0].after);
}

/* Half of it is there when there is no more time. */
TEST(an_open_rewriting_is_reported_at_the_last_reading)
{
	begin_map("1000 10 f\n");
	rewrite_map("2 1 g\n");
	read_all(&OPENED);
	assert_int_equal(f.received.pieces.count, 0);
	assert_int_equal(read_as(&NO_SIGNS, true), 0);
	assert_bytes("2 1 g\n");
	assert_int_equal(piece_at(0)->flags, JIT_SNAPSHOT_BEGIN | JIT_SNAPSHOT_END);
}

TEST(the_file_that_replaced_a_map_is_a_snapshot)
{
	struct stat st;
	int fd;

	begin_map("1000 10 f\n");
	write_new_map("1000 10 f\n2000 10 another\n");
	fd = open(FILENAME, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(jit_file__replace(&f.file, fd, &st, monotonic_ns()), 0);
	assert_int_equal(f.file.fd, fd);
	assert_int_equal(f.file.inode, st.st_ino);
	assert_true(jit_file__wakes_at(&f.file) > 0);
	read_all(&CLOSED);
	the_snapshot("1000 10 f\n2000 10 another\n");
}

/* ---- much of it ------------------------------------------------------------------------------ */

/* To the end; how many readings it took. */
static unsigned int read_much(const struct jit_signs *signs)
{
	unsigned int count = 1;

	while (read_as(signs, false) == 1) {
		signs = &NO_SIGNS;
		count++;
	}
	return count;
}

TEST(appended_text_is_read_in_rounds_snapshots_whole)
{
	enum { LINES = 250000 }; /* 6 MB */
	_cleanup_free_ char *text = make_lines(LINES, LINES);
	uint64_t silent;

	write_new_map(text);
	begin_as(JIT_FILE_MAP, JIT_FILE_STATE_FOLLOWED, 0);
	assert_int_equal(read_much(&NO_SIGNS), 2);
	assert_bytes(text);
	for (size_t i = 0; i < f.received.pieces.count; i++) {
		assert_int_equal(f.received.pieces.data[i].flags, 0);
		assert_int_equal(f.received.pieces.data[i].after, 0);
	}
	/* what is read in two rounds was written since the last that came to the end */
	forget_received();
	silent = f.read_at;
	append_to_map(text);
	assert_int_equal(read_much(&MODIFIED), 2);
	assert_bytes(text);
	for (size_t i = 0; i < f.received.pieces.count; i++)
		assert_int_equal(f.received.pieces.data[i].after, f.received.pieces.data[0].after);
	assert_true(f.received.pieces.data[0].after <= silent);
	/* a snapshot is read in one */
	forget_received();
	rewrite_map(text);
	assert_int_equal(read_much(&CLOSED), 1);
	the_snapshot(text);
	end_map();
}

/* Where nothing was written there are only zeros, which are not reported. */
TEST(the_line_behind_a_skipped_hole_is_reported)
{
	static const char LINE[] = "2000 10 g\n";

	begin_map("1000 10 f\n");
	assert_int_equal(truncate(FILENAME, 10 << 20), 0);
	append_to_map(LINE);
	while (read_as(&MODIFIED, false) == 1)
		;
	assert_true(f.received.bytes.count < EVENT_SIZE_MAX);
	assert_true(f.received.bytes.count >= strlen(LINE));
	assert_memory_equal(f.received.bytes.data + f.received.bytes.count - strlen(LINE), LINE,
			    strlen(LINE));
}

/* No runtime gives its map a second name, so little is read of such a file. */
TEST(a_map_with_two_links_is_not_read_whole)
{
	const off_t size = 20 << 20;

	for (int names = 1; names <= 2; names++) {
		begin_map("1000 10 f\n");
		if (names > 1)
			assert_int_equal(link(FILENAME, FILENAME ".2"), 0);
		assert_int_equal(truncate(FILENAME, size), 0);
		while (read_as(&MODIFIED, false) == 1 && f.file.state == JIT_FILE_STATE_FOLLOWED)
			;
		assert_int_equal(f.file.state == JIT_FILE_STATE_FOLLOWED, names == 1);
		assert_int_equal(f.file.offset == (uint64_t)size, names == 1);
		end_map();
	}
	assert_int_equal(unlink(FILENAME ".2"), 0);
}

/* ---- it ends --------------------------------------------------------------------------------- */

TEST(an_error_of_the_sink_is_returned)
{
	const struct jit_owner owner = {.pid = 1};
	struct jit_found found = {.fd = -1};
	struct jit_file other;

	begin_map("1000 10 f\n");
	append_to_map(TWO_LINES);
	f.received.refusal = -ENOSPC;
	assert_int_equal(read_as(&MODIFIED, false), -ENOSPC);
	rewrite_map("");
	assert_int_equal(read_as(&CLOSED, false), -ENOSPC);
	assert_int_equal(jit_file__give_up(&f.file, JIT_FILE_STATE_TOO_BIG), -ENOSPC);
	assert_int_equal(jit_file__begin(&other, NUMBER, JIT_FILE_MAP, &owner, &found, 1,
					 &(struct jit_file_sink){receive_event, &f.received}),
			 -ENOSPC);
}

TEST(a_given_up_map_is_doubtful_since_last_read)
{
	uint64_t silent;

	begin_map("1000 10 f\n");
	silent = f.read_at;
	append_to_map(TWO_LINES);
	assert_int_equal(jit_file__give_up(&f.file, JIT_FILE_STATE_USER_LIMIT), 0);
	assert_int_equal(the_snapshot("")->before, UINT64_MAX);
	assert_true(f.received.pieces.data[0].after <= silent);
	assert_int_equal(f.received.state.state, JIT_FILE_STATE_USER_LIMIT);
	forget_received();
	read_all(&CLOSED);
	assert_int_equal(f.received.pieces.count + f.received.states, 0);
	end_map();
	/* a dump has its own times */
	write_new_map("bytes");
	begin_as(JIT_FILE_DUMP, JIT_FILE_STATE_FOLLOWED, 0);
	forget_received();
	assert_int_equal(jit_file__give_up(&f.file, JIT_FILE_STATE_USER_LIMIT), 0);
	assert_int_equal(f.received.pieces.count, 0);
	assert_int_equal(f.received.states, 1);
	assert_int_equal(f.received.state.state, JIT_FILE_STATE_USER_LIMIT);
}

EACH_TEST_WITH(NULL, end_test);
ALL_TESTS_WITH(make_directory, remove_directory);
