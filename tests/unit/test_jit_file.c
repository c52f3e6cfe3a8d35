/* SPDX-License-Identifier: BSD-2-Clause */
/* A file that grows, is emptied, is written anew and is replaced: what is told of it, and of when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clocks.h"
#include "base/io.h"
#include "base/vec.h"
#include "jitwatch/jit_file.h"

#define NUMBER	 7
#define PATIENCE 50000000ull
#define FILENAME "map"
#define TICK	 11000000ull /* ns: what the kernel's coarse clock may be behind, and a little */

static char directory[] = "/tmp/sysprof-test-jit-file-XXXXXX";

static const struct jit_signs NO_SIGNS;
static const struct jit_signs MODIFIED = {.modified = true};
static const struct jit_signs OPENED = {.opened = true, .modified = true};
static const struct jit_signs CLOSED = {.opened = true, .modified = true, .closed = true};

static int make_directory(void **state)
{
	(void)state;
	return mkdtemp(directory) ? chdir(directory) : -1;
}

static int remove_directory(void **state)
{
	(void)state;
	unlink(FILENAME);
	return chdir("/") || rmdir(directory);
}

/* ---- what is told ---------------------------------------------------------------------------- */

struct told {
	uint64_t after, before;
	uint32_t flags;
	size_t first, size; /* in bytes */
};

struct heard {
	VEC(struct told) pieces;
	VEC(char) bytes;
	unsigned int states;
	struct jit_file_event state; /* the last one */
	char path[PATH_MAX];	     /* its */
	int refusal;		     /* what push returns */
};

static void hear_state(struct heard *h, const struct event_header *event)
{
	const struct jit_file_event *e = (const void *)event;

	assert_true(event->size > sizeof(*e));
	assert_int_equal(((const char *)event)[event->size - 1], 0);
	assert_int_equal(e->file, NUMBER);
	h->state = *e;
	snprintf(h->path, sizeof(h->path), "%s", e->path);
	h->states++;
}

static void check_order(const struct heard *h, const struct told *new)
{
	const struct told *last = h->pieces.count ? &h->pieces.data[h->pieces.count - 1]
						  : &(struct told){};

	assert_true(new->after <= new->before);
	assert_true(new->before >= last->before);
	assert_true(new->after >= last->after);
	/* moments of two readings do not overlap: jit/jit_timeline.h */
	if (new->after != last->after)
		assert_true(new->after >= last->before);
}

static void hear_bytes(struct heard *h, const struct event_header *event)
{
	const struct jit_bytes_event *e = (const void *)event;
	struct told told = {.after = e->after,
			    .before = e->before,
			    .flags = e->flags,
			    .first = h->bytes.count,
			    .size = e->size};

	assert_int_equal(e->file, NUMBER);
	assert_true(e->size <= event->size - sizeof(*e));
	for (size_t i = e->size; i < event->size - sizeof(*e); i++)
		assert_int_equal(e->bytes[i], 0);
	assert_true(e->before == UINT64_MAX || e->before <= event->time);
	check_order(h, &told);
	assert_int_equal(vec_push(&h->pieces, told), 0);
	assert_int_equal(vec_reserve(&h->bytes, h->bytes.count + e->size), 0);
	if (e->size)
		memcpy(h->bytes.data + h->bytes.count, e->bytes, e->size);
	h->bytes.count += e->size;
}

static int push(void *context, struct event_header *event)
{
	struct heard *h = context;

	if (h->refusal)
		return h->refusal;
	assert_true(event->size <= EVENT_SIZE_MAX);
	assert_int_equal(event->size % EVENT_ALIGN, 0);
	if (event->type == EVENT_JIT_FILE)
		hear_state(h, event);
	else
		hear_bytes(h, event);
	return 0;
}

static void forget(struct heard *h)
{
	h->pieces.count = h->bytes.count = 0;
	h->states = 0;
}

/* The bytes since the last forget(), of all pieces. */
static void assert_bytes(const struct heard *h, const char *wanted)
{
	if (h->bytes.count != strlen(wanted) ||
	    (h->bytes.count && memcmp(h->bytes.data, wanted, h->bytes.count)))
		fail_msg("told was \"%.*s\", wanted is \"%s\"", (int)h->bytes.count,
			 h->bytes.count ? h->bytes.data : "", wanted);
}

static const struct told *piece_at(const struct heard *h, size_t i)
{
	assert_true(i < h->pieces.count);
	return &h->pieces.data[i];
}

/* One appended piece, and no snapshot. */
static const struct told *the_piece(const struct heard *h, const char *wanted)
{
	assert_bytes(h, wanted);
	assert_int_equal(h->pieces.count, 1);
	assert_int_equal(h->pieces.data[0].flags, 0);
	return &h->pieces.data[0];
}

/* One snapshot that begins and ends, of a single moment. */
static const struct told *the_snapshot(const struct heard *h, const char *wanted)
{
	const struct told *first, *last;

	assert_bytes(h, wanted);
	first = piece_at(h, 0);
	last = piece_at(h, h->pieces.count - 1);
	assert_true(first->flags & JIT_SNAPSHOT_BEGIN);
	assert_true(last->flags & JIT_SNAPSHOT_END);
	for (size_t i = 0; i < h->pieces.count; i++) {
		const struct told *p = piece_at(h, i);

		assert_int_equal(p->after, first->after);
		assert_int_equal(p->before, first->before);
		assert_true(i == 0 || !(p->flags & JIT_SNAPSHOT_BEGIN));
		assert_true(p == last || !(p->flags & JIT_SNAPSHOT_END));
	}
	return first;
}

/* ---- the file -------------------------------------------------------------------------------- */

static void write_with(int flags, const char *text)
{
	int fd = open(FILENAME, O_WRONLY | O_CLOEXEC | flags, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, text, strlen(text)), 0);
	close(fd);
}

static void write_new(const char *text)
{
	unlink(FILENAME);
	write_with(O_CREAT | O_EXCL, text);
}

static void rewrite(const char *text)
{
	write_with(O_TRUNC, text);
}

static void append(const char *text)
{
	write_with(O_APPEND, text);
}

static void sleep_ns(uint64_t ns)
{
	usleep(ns / 1000);
}

struct followed {
	struct jit_file file;
	struct heard heard;
	uint64_t began, read_at; /* before the last reading, and behind it */
};

static int read_as(struct followed *f, const struct jit_signs *signs, bool settle)
{
	const struct jit_file_sink sink = {push, &f->heard};
	int more;

	f->began = monotonic_ns();
	more = jit_file__read(&f->file, signs, settle, &sink);
	f->read_at = monotonic_ns();
	return more;
}

/* To the end. */
static void read_all(struct followed *f, const struct jit_signs *signs)
{
	assert_int_equal(read_as(f, signs, false), 0);
}

/* The same, and once more when a line that came alone need not be held any more. */
static void read_held(struct followed *f, const struct jit_signs *signs)
{
	read_all(f, signs);
	while (jit_file__wakes_at(&f->file) > monotonic_ns())
		sleep_ns(1000000);
	read_all(f, &NO_SIGNS);
}

/* `state` is what was found; as if last written at `modified`. */
static void begin_as(struct followed *f, enum jit_file_kind kind, enum jit_file_state state,
		     uint64_t modified)
{
	const struct jit_owner owner = {.pid = 4711, .own_pid = 11, .start = 815};
	const struct jit_file_sink sink = {push, &f->heard};
	struct jit_found found = {.state = state, .modified = modified, .path = "/tmp/" FILENAME};

	*f = (struct followed){};
	found.fd = open(FILENAME, O_RDONLY | O_CLOEXEC);
	assert_true(found.fd >= 0);
	assert_int_equal(fstat(found.fd, &found.st), 0);
	assert_int_equal(
		jit_file__begin(&f->file, NUMBER, kind, &owner, &found, monotonic_ns(), &sink), 0);
	assert_int_equal(found.fd, -1);
}

/* A map that was there before, and is read. */
static void begin(struct followed *f, const char *text)
{
	write_new(text);
	begin_as(f, JIT_FILE_MAP, JIT_FILE_STATE_FOLLOWED, 0);
	assert_int_equal(jit_file__wakes_at(&f->file), 0);
	read_all(f, &NO_SIGNS);
	forget(&f->heard);
}

static void end(struct followed *f)
{
	jit_file__close(&f->file);
	assert_int_equal(f->file.fd, -1);
	jit_file__close(&f->file);
	vec_free(&f->heard.pieces);
	vec_free(&f->heard.bytes);
	unlink(FILENAME);
}

/* ---- it is found ----------------------------------------------------------------------------- */

static void found_test(void **state)
{
	struct followed f;

	(void)state;
	write_new("1000 10 f\n2000 10 to");
	begin_as(&f, JIT_FILE_MAP, JIT_FILE_STATE_FOLLOWED, 0);
	assert_int_equal(f.heard.states, 1);
	assert_int_equal(f.heard.state.pid, 4711);
	assert_int_equal(f.heard.state.process_start, 815);
	assert_int_equal(f.heard.state.kind, JIT_FILE_MAP);
	assert_int_equal(f.heard.state.state, JIT_FILE_STATE_FOLLOWED);
	assert_string_equal(f.heard.path, "/tmp/" FILENAME);
	assert_int_equal(f.heard.pieces.count, 0);
	read_all(&f, &NO_SIGNS);
	/* of unknown age, whatever the caller knows */
	assert_int_equal(the_piece(&f.heard, "1000 10 f\n2000 10 to")->after, 0);
	assert_in_range(f.heard.pieces.data[0].before, f.began, f.read_at);
	forget(&f.heard);
	read_all(&f, &NO_SIGNS);
	assert_int_equal(f.heard.pieces.count + f.heard.states, 0);
	end(&f);
}

/* Every length of path has its NUL, and fits. */
static void path_test(void **state)
{
	const struct jit_owner owner = {.pid = 1};
	struct heard heard = {};
	const struct jit_file_sink sink = {push, &heard};

	(void)state;
	for (size_t length = 0; length < PATH_MAX; length += length < 20 ? 1 : 509) {
		struct jit_found found = {.fd = -1, .state = JIT_FILE_STATE_LINK};
		struct jit_file f;

		memset(found.path, 'x', length);
		assert_int_equal(
			jit_file__begin(&f, NUMBER, JIT_FILE_MAP, &owner, &found, 1, &sink), 0);
		assert_string_equal(heard.path, found.path);
	}
}

/* What is not to be read is told once. */
static void not_followed_test(void **state)
{
	const struct jit_owner owner = {.pid = 4711};
	struct jit_found found = {.fd = -1, .state = JIT_FILE_STATE_NOT_REGULAR, .path = "/p"};
	struct followed f = {};
	const struct jit_file_sink sink = {push, &f.heard};

	(void)state;
	assert_int_equal(jit_file__begin(&f.file, NUMBER, JIT_FILE_MAP, &owner, &found, 5, &sink),
			 0);
	assert_int_equal(f.heard.state.state, JIT_FILE_STATE_NOT_REGULAR);
	assert_int_equal(jit_file__wakes_at(&f.file), 0);
	read_all(&f, &CLOSED);
	assert_int_equal(read_as(&f, &CLOSED, true), 0);
	assert_int_equal(f.heard.pieces.count, 0);
	assert_int_equal(f.heard.states, 1);
	end(&f);
}

/* It may be half written: it is waited for, a while, or until it is closed. */
static void found_young_test(void **state)
{
	struct followed f;

	(void)state;
	write_new("");
	begin_as(&f, JIT_FILE_MAP, JIT_FILE_STATE_FOLLOWED, 0);
	append("1000 10 f\n");
	read_all(&f, &MODIFIED);
	assert_int_equal(f.heard.pieces.count, 0);
	assert_in_range(jit_file__wakes_at(&f.file), f.began, f.began + PATIENCE);
	sleep_ns(PATIENCE);
	assert_true(jit_file__wakes_at(&f.file) <= monotonic_ns());
	append("2000 10 g\n");
	read_all(&f, &NO_SIGNS);
	assert_int_equal(the_piece(&f.heard, "1000 10 f\n2000 10 g\n")->after, 0);
	assert_int_equal(jit_file__wakes_at(&f.file), 0);
	end(&f);

	write_new("1000 10 f\n");
	begin_as(&f, JIT_FILE_MAP, JIT_FILE_STATE_FOLLOWED, monotonic_ns());
	read_all(&f, &MODIFIED);
	assert_int_equal(f.heard.pieces.count, 0);
	read_all(&f, &CLOSED);
	assert_int_equal(the_piece(&f.heard, "1000 10 f\n")->after, 0);
	end(&f);

	write_new("1000 10 f\n");
	begin_as(&f, JIT_FILE_MAP, JIT_FILE_STATE_FOLLOWED, monotonic_ns());
	assert_int_equal(read_as(&f, &NO_SIGNS, true), 0);
	assert_int_equal(the_piece(&f.heard, "1000 10 f\n")->after, 0);
	end(&f);

	/* a dump tells its times itself */
	write_new("");
	begin_as(&f, JIT_FILE_DUMP, JIT_FILE_STATE_FOLLOWED, monotonic_ns());
	assert_int_equal(f.heard.state.kind, JIT_FILE_DUMP);
	assert_int_equal(jit_file__wakes_at(&f.file), 0);
	append("bytes");
	read_all(&f, &MODIFIED);
	the_piece(&f.heard, "bytes");
	end(&f);
}

/* Older than the process, it may be its own after all: once it is written to. */
static void outdated_test(void **state)
{
	static const struct jit_signs ONLY_OPENED = {.opened = true};
	struct followed f;

	(void)state;
	write_new("1000 10 old\n");
	begin_as(&f, JIT_FILE_MAP, JIT_FILE_STATE_OUTDATED, 0);
	assert_int_equal(f.heard.state.state, JIT_FILE_STATE_OUTDATED);
	read_all(&f, &ONLY_OPENED);
	assert_int_equal(read_as(&f, &NO_SIGNS, true), 0);
	assert_int_equal(f.heard.pieces.count, 0);
	assert_int_equal(f.heard.states, 1);
	rewrite("1000 10 new\n");
	read_all(&f, &CLOSED);
	assert_int_equal(f.heard.states, 2);
	assert_int_equal(f.heard.state.state, JIT_FILE_STATE_FOLLOWED);
	assert_string_equal(f.heard.path, "");
	the_piece(&f.heard, "1000 10 new\n");
	forget(&f.heard);
	append("2000 10 more\n");
	read_held(&f, &MODIFIED);
	the_piece(&f.heard, "2000 10 more\n");
	end(&f);
}

/* ---- it grows -------------------------------------------------------------------------------- */

static const char TWO_LINES[] = "2000 10 g\n3000 10 h\n";

/* Of several lines all is known that readings and glances tell. */
static void appended_test(void **state)
{
	uint64_t began, ended;
	struct followed f;

	(void)state;
	begin(&f, "1000 10 f\n");
	began = f.began;
	ended = f.read_at;
	append(TWO_LINES);
	read_all(&f, &MODIFIED);
	assert_in_range(the_piece(&f.heard, TWO_LINES)->after, began, ended);
	assert_in_range(f.heard.pieces.data[0].before, f.began, f.read_at);
	forget(&f.heard);
	sleep_ns(1000000);
	began = monotonic_ns();
	jit_file__glance(&f.file);
	ended = monotonic_ns();
	append(TWO_LINES);
	jit_file__glance(&f.file); /* it is too late now */
	read_all(&f, &MODIFIED);
	assert_in_range(the_piece(&f.heard, TWO_LINES)->after, began, ended);
	forget(&f.heard);
	began = f.began;
	append(TWO_LINES);
	read_all(&f, &MODIFIED);
	assert_true(the_piece(&f.heard, TWO_LINES)->after >= began);
	end(&f);
}

/* A glance says nothing of a file that is as long as it was, and was written to. */
static void glance_at_rewriting_test(void **state)
{
	struct followed f;
	uint64_t silent;

	(void)state;
	begin(&f, "1000 10 f\n");
	append(TWO_LINES);
	read_all(&f, &MODIFIED);
	silent = f.read_at;
	sleep_ns(TICK);
	rewrite("1000 10 x\n2000 10 y\n3000 10 z\n");
	jit_file__glance(&f.file);
	assert_true(f.file.silent <= silent);
	forget(&f.heard);
	read_all(&f, &CLOSED);
	assert_true(the_snapshot(&f.heard, "1000 10 x\n2000 10 y\n3000 10 z\n")->after <= silent);
	end(&f);
}

static void torn_test(void **state)
{
	struct followed f;

	(void)state;
	begin(&f, "0 1 f\n");
	append("1000 10 fi");
	read_all(&f, &MODIFIED);
	assert_int_equal(read_as(&f, &MODIFIED, true), 0);
	append("rst\n2000 10 second\n3000 1");
	read_all(&f, &MODIFIED);
	append("0 third\n");
	read_held(&f, &MODIFIED);
	assert_bytes(&f.heard, "1000 10 first\n2000 10 second\n3000 10 third\n");
	for (size_t i = 0; i < f.heard.pieces.count; i++)
		assert_int_equal(f.heard.pieces.data[i].flags, 0);
	end(&f);
}

/* A line that is the last write is as old as the file. */
static void single_line_test(void **state)
{
	unsigned int close = 0;
	struct followed f;

	(void)state;
	begin(&f, "1000 10 f\n");
	read_all(&f, &MODIFIED);
	for (int i = 0; i < 10; i++) {
		uint64_t silent = f.began, began, ended, seen;
		const struct told *told;

		sleep_ns(30000000);
		began = monotonic_ns();
		append("2000 10 g\n");
		ended = monotonic_ns();
		sleep_ns(i * 10000000);
		seen = monotonic_ns();
		read_held(&f, &MODIFIED);
		told = the_piece(&f.heard, "2000 10 g\n");
		assert_true(told->after >= silent && told->after <= ended);
		assert_true(told->before >= seen);
		close += told->after + TICK >= began;
		forget(&f.heard);
	}
	/* where the clocks could not be compared, it is as old as the last reading */
	assert_true(close >= 8);
	end(&f);
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
	append(text);
	assert_int_equal(utimensat(AT_FDCWD, FILENAME, times, 0), 0);
}

/* The file's time is that of the next line already. */
static void write_under_way_test(void **state)
{
	static const char *const behind[] = {"3000 10 h\n", TWO_LINES, ""};
	uint64_t silent, written;
	struct followed f;

	(void)state;
	for (size_t i = 0; i < sizeof(behind) / sizeof(behind[0]); i++) {
		begin(&f, "1000 10 f\n");
		silent = f.read_at;
		append("2000 10 g\n");
		written = monotonic_ns();
		begin_write();
		read_all(&f, &MODIFIED);
		assert_int_equal(f.heard.pieces.count, 0);
		assert_in_range(jit_file__wakes_at(&f.file), f.began, f.read_at + PATIENCE);
		if (*behind[i]) {
			end_write(behind[i]);
			read_held(&f, &MODIFIED);
			assert_int_equal(f.heard.pieces.count, 2);
			assert_true(piece_at(&f.heard, 1)->after >= f.heard.pieces.data[0].before);
		} else { /* how it ends is not waited for */
			assert_int_equal(read_as(&f, &NO_SIGNS, true), 0);
			the_piece(&f.heard, "2000 10 g\n");
		}
		assert_true(f.heard.pieces.data[0].after <= silent);
		assert_true(f.heard.pieces.data[0].before >= written);
		assert_int_equal(jit_file__wakes_at(&f.file), 0);
		end(&f);
	}
}

/* It is told at once when the next one has a time of its own. */
static void next_line_test(void **state)
{
	struct followed f;
	uint64_t began;

	(void)state;
	begin(&f, "1000 10 f\n");
	sleep_ns(TICK);
	began = monotonic_ns();
	append("2000 10 g\n");
	read_all(&f, &MODIFIED);
	assert_int_equal(f.heard.pieces.count, 0);
	sleep_ns(TICK);
	append("3000 10 h\n");
	read_all(&f, &MODIFIED);
	assert_true(the_piece(&f.heard, "2000 10 g\n")->after + TICK >= began);
	/* what is held when it is written anew is told before that */
	rewrite("");
	read_all(&f, &CLOSED);
	assert_bytes(&f.heard, TWO_LINES);
	assert_int_equal(f.heard.pieces.count, 3);
	assert_int_equal(f.heard.pieces.data[1].flags, 0);
	assert_int_equal(f.heard.pieces.data[2].flags, JIT_SNAPSHOT_BEGIN | JIT_SNAPSHOT_END);
	end(&f);
}

/* Set by hand, the file's time is told as it is. */
static void exact_time_test(void **state)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};
	uint64_t real, wanted;
	const struct told *told;
	struct followed f;
	int64_t offset;

	(void)state;
	begin(&f, "1000 10 f\n");
	read_all(&f, &MODIFIED);
	sleep_ns(40000000);
	append("2000 10 g\n");
	assert_true(jit_clock_offset(&offset));
	wanted = monotonic_ns() - 20000000;
	real = wanted + offset;
	times[1] = (struct timespec){.tv_sec = real / 1000000000, .tv_nsec = real % 1000000000};
	assert_int_equal(utimensat(AT_FDCWD, FILENAME, times, 0), 0);
	read_held(&f, &MODIFIED);
	told = the_piece(&f.heard, "2000 10 g\n");
	assert_in_range(told->after, wanted - 100000, wanted + 100000);
	forget(&f.heard);
	/* older than the last reading, or of two lines, it says nothing */
	append("3000 10 h\n");
	assert_int_equal(utimensat(AT_FDCWD, FILENAME, times, 0), 0);
	real = f.began;
	read_held(&f, &MODIFIED);
	assert_true(the_piece(&f.heard, "3000 10 h\n")->after >= real);
	forget(&f.heard);
	/* nor does it of what is to come */
	append("4000 10 i\n");
	times[1].tv_sec += 3600;
	assert_int_equal(utimensat(AT_FDCWD, FILENAME, times, 0), 0);
	real = f.read_at;
	read_all(&f, &MODIFIED);
	assert_true(the_piece(&f.heard, "4000 10 i\n")->after <= real);
	forget(&f.heard);
	real = f.read_at;
	sleep_ns(30000000);
	append(TWO_LINES);
	read_all(&f, &MODIFIED);
	assert_true(the_piece(&f.heard, TWO_LINES)->after <= real);
	end(&f);
}

/* Somebody only looks at it. */
static void looked_at_test(void **state)
{
	static const struct jit_signs LOOKED_AT = {.opened = true};
	struct followed f;

	(void)state;
	begin(&f, "1000 10 f\n");
	read_all(&f, &LOOKED_AT);
	read_all(&f, &NO_SIGNS);
	assert_int_equal(f.heard.pieces.count, 0);
	assert_int_equal(jit_file__wakes_at(&f.file), 0);
	append("2000 10 g\n");
	read_held(&f, &CLOSED); /* opened for each line */
	the_piece(&f.heard, "2000 10 g\n");
	end(&f);
}

/* ---- it is written anew ---------------------------------------------------------------------- */

static void snapshot_test(void **state)
{
	uint64_t listed_from, listed_to, closed;
	const struct told *told;
	struct followed f;
	int fd;

	(void)state;
	begin(&f, "1000 10 f\n2000 10 g\n");
	listed_from = f.began;
	listed_to = f.read_at;
	sleep_ns(1000000);
	read_all(&f, &NO_SIGNS); /* all the code was still what was there then */
	fd = open(FILENAME, O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(write(fd, "1000 10 ", 8), 8);
	read_all(&f, &OPENED);
	assert_int_equal(f.heard.pieces.count, 0);
	assert_in_range(jit_file__wakes_at(&f.file), f.began, f.read_at + PATIENCE);
	assert_int_equal(write(fd, "new\n", 4), 4);
	close(fd);
	closed = monotonic_ns();
	read_all(&f, &CLOSED);
	told = the_snapshot(&f.heard, "1000 10 new\n");
	assert_in_range(told->after, listed_from, listed_to);
	assert_in_range(told->before, closed, f.read_at);
	assert_int_equal(jit_file__wakes_at(&f.file), 0);
	forget(&f.heard);
	/* the next one's time begins with the last */
	listed_from = closed;
	listed_to = f.read_at;
	rewrite("7000 10 next\n");
	read_all(&f, &CLOSED);
	assert_in_range(the_snapshot(&f.heard, "7000 10 next\n")->after, listed_from, listed_to);
	forget(&f.heard);
	/* and it is appended to, which the next one has to follow */
	append("8000 10 added\n");
	read_held(&f, &CLOSED);
	the_piece(&f.heard, "8000 10 added\n");
	listed_from = f.began;
	listed_to = f.read_at;
	forget(&f.heard);
	rewrite("9000 10 last\n");
	read_all(&f, &CLOSED);
	assert_in_range(the_snapshot(&f.heard, "9000 10 last\n")->after, listed_from, listed_to);
	end(&f);
}

static void emptied_test(void **state)
{
	struct followed f;

	(void)state;
	begin(&f, "1000 10 f\n");
	rewrite("");
	read_all(&f, &CLOSED);
	the_snapshot(&f.heard, "");
	forget(&f.heard);
	append("1000 10 g\n");
	read_held(&f, &CLOSED);
	the_piece(&f.heard, "1000 10 g\n");
	end(&f);
}

/* All in one round: nothing but the bytes tells of it. */
static void replaced_content_test(void **state)
{
	static const char *const contents[] = {
		"1000 20 f\n",		  /* as long */
		"1000 20 f\n2000 10 g\n", /* goes on, appended */
		"3000 20 longer than it was\n",
		"3000 20 longer than it is!\n",
	};
	struct followed f;

	(void)state;
	begin(&f, "1000 10 f\n");
	for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
		rewrite(contents[i]);
		read_held(&f, &CLOSED);
		if (i == 1)
			the_piece(&f.heard, "2000 10 g\n");
		else
			the_snapshot(&f.heard, contents[i]);
		forget(&f.heard);
	}
	end(&f);
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
static void changed_early_test(void **state)
{
	char *old = make_lines(40, 100), *new = make_lines(40, 3);
	struct followed f;

	(void)state;
	begin(&f, old);
	rewrite(new);
	read_all(&f, &CLOSED);
	the_snapshot(&f.heard, new);
	end(&f);
	free(old);
	free(new);
}

/* Emptied and kept open, it is appended to again. */
static void not_closed_test(void **state)
{
	uint64_t listed_from, listed_to;
	struct followed f;
	int fd;

	(void)state;
	begin(&f, "1000 10 f\n2000 10 g\n");
	listed_from = f.began;
	listed_to = f.read_at;
	fd = open(FILENAME, O_WRONLY | O_TRUNC | O_APPEND | O_CLOEXEC);
	read_all(&f, &OPENED);
	assert_int_equal(write(fd, "3000 10 h\n", 10), 10);
	read_all(&f, &MODIFIED);
	assert_int_equal(f.heard.pieces.count, 0);
	sleep_ns(PATIENCE);
	read_all(&f, &NO_SIGNS);
	assert_bytes(&f.heard, "3000 10 h\n");
	assert_int_equal(f.heard.pieces.count, 2);
	assert_int_equal(f.heard.pieces.data[0].size, 0);
	assert_int_equal(f.heard.pieces.data[0].flags, JIT_SNAPSHOT_BEGIN | JIT_SNAPSHOT_END);
	assert_in_range(f.heard.pieces.data[0].after, listed_from, listed_to);
	assert_int_equal(f.heard.pieces.data[1].flags, 0);
	assert_true(f.heard.pieces.data[1].after <= listed_to);
	forget(&f.heard);
	assert_int_equal(write(fd, "4000 10 i\n", 10), 10);
	close(fd);
	read_held(&f, &CLOSED);
	the_piece(&f.heard, "4000 10 i\n");
	end(&f);
}

/* The same after it had been appended to, and glanced at: up to then it had told all. */
static void not_closed_appended_test(void **state)
{
	struct followed f;
	uint64_t glance_from, glance_to;
	int fd;

	(void)state;
	begin(&f, "1000 10 f\n");
	append(TWO_LINES);
	read_all(&f, &MODIFIED);
	sleep_ns(5000000);
	glance_from = monotonic_ns();
	jit_file__glance(&f.file);
	glance_to = monotonic_ns();
	fd = open(FILENAME, O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(write(fd, "3000 10 h\n", 10), 10);
	read_all(&f, &OPENED);
	assert_int_equal(write(fd, "4000 10 i\n", 10), 10);
	sleep_ns(PATIENCE);
	forget(&f.heard);
	read_all(&f, &NO_SIGNS);
	assert_bytes(&f.heard, "3000 10 h\n4000 10 i\n");
	assert_in_range(f.heard.pieces.data[0].after, glance_from, glance_to);
	assert_true(f.heard.pieces.data[1].after >= f.heard.pieces.data[0].after);
	close(fd);
	end(&f);
}

/* Half of it is there when there is no more time. */
static void settled_rewriting_test(void **state)
{
	struct followed f;

	(void)state;
	begin(&f, "1000 10 f\n");
	rewrite("2 1 g\n");
	read_all(&f, &OPENED);
	assert_int_equal(f.heard.pieces.count, 0);
	assert_int_equal(read_as(&f, &NO_SIGNS, true), 0);
	assert_bytes(&f.heard, "2 1 g\n");
	assert_int_equal(piece_at(&f.heard, 0)->flags, JIT_SNAPSHOT_BEGIN | JIT_SNAPSHOT_END);
	end(&f);
}

static void replaced_file_test(void **state)
{
	struct followed f;
	struct stat st;
	int fd;

	(void)state;
	begin(&f, "1000 10 f\n");
	write_new("1000 10 f\n2000 10 another\n");
	fd = open(FILENAME, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(jit_file__replace(&f.file, fd, &st, monotonic_ns(),
					   &(struct jit_file_sink){push, &f.heard}),
			 0);
	assert_int_equal(f.file.fd, fd);
	assert_int_equal(f.file.inode, st.st_ino);
	assert_true(jit_file__wakes_at(&f.file) > 0);
	read_all(&f, &CLOSED);
	the_snapshot(&f.heard, "1000 10 f\n2000 10 another\n");
	end(&f);
}

/* ---- much of it ------------------------------------------------------------------------------ */

/* To the end; how many readings it took. */
static unsigned int read_much(struct followed *f, const struct jit_signs *signs)
{
	unsigned int count = 1;

	while (read_as(f, signs, false) == 1) {
		signs = &NO_SIGNS;
		count++;
	}
	return count;
}

static void big_test(void **state)
{
	enum { LINES = 250000 }; /* 6 MB */
	char *text = make_lines(LINES, LINES);
	struct followed f;
	uint64_t silent;

	(void)state;
	write_new(text);
	begin_as(&f, JIT_FILE_MAP, JIT_FILE_STATE_FOLLOWED, 0);
	assert_int_equal(read_much(&f, &NO_SIGNS), 2);
	assert_bytes(&f.heard, text);
	for (size_t i = 0; i < f.heard.pieces.count; i++) {
		assert_int_equal(f.heard.pieces.data[i].flags, 0);
		assert_int_equal(f.heard.pieces.data[i].after, 0);
	}
	/* what is read in two rounds was written since the last that came to the end */
	forget(&f.heard);
	silent = f.read_at;
	append(text);
	assert_int_equal(read_much(&f, &MODIFIED), 2);
	assert_bytes(&f.heard, text);
	for (size_t i = 0; i < f.heard.pieces.count; i++)
		assert_int_equal(f.heard.pieces.data[i].after, f.heard.pieces.data[0].after);
	assert_true(f.heard.pieces.data[0].after <= silent);
	/* a snapshot is read in one */
	forget(&f.heard);
	rewrite(text);
	assert_int_equal(read_much(&f, &CLOSED), 1);
	the_snapshot(&f.heard, text);
	end(&f);
	free(text);
}

/* Where nothing was written there are only zeros, which are not told. */
static void hole_test(void **state)
{
	static const char LINE[] = "2000 10 g\n";
	struct followed f;

	(void)state;
	begin(&f, "1000 10 f\n");
	assert_int_equal(truncate(FILENAME, 10 << 20), 0);
	append(LINE);
	while (read_as(&f, &MODIFIED, false) == 1)
		;
	assert_true(f.heard.bytes.count < EVENT_SIZE_MAX);
	assert_true(f.heard.bytes.count >= strlen(LINE));
	assert_memory_equal(f.heard.bytes.data + f.heard.bytes.count - strlen(LINE), LINE,
			    strlen(LINE));
	end(&f);
}

/* ---- it ends --------------------------------------------------------------------------------- */

static void refused_test(void **state)
{
	const struct jit_owner owner = {.pid = 1};
	struct jit_found found = {.fd = -1};
	struct followed f;
	struct jit_file other;

	(void)state;
	begin(&f, "1000 10 f\n");
	append(TWO_LINES);
	f.heard.refusal = -ENOSPC;
	assert_int_equal(read_as(&f, &MODIFIED, false), -ENOSPC);
	rewrite("");
	assert_int_equal(read_as(&f, &CLOSED, false), -ENOSPC);
	assert_int_equal(jit_file__give_up(&f.file, &(struct jit_file_sink){push, &f.heard}),
			 -ENOSPC);
	assert_int_equal(jit_file__begin(&other, NUMBER, JIT_FILE_MAP, &owner, &found, 1,
					 &(struct jit_file_sink){push, &f.heard}),
			 -ENOSPC);
	end(&f);
}

/* From the last reading on everything is in doubt. */
static void give_up_test(void **state)
{
	struct followed f;
	uint64_t silent;

	(void)state;
	begin(&f, "1000 10 f\n");
	silent = f.read_at;
	append(TWO_LINES);
	assert_int_equal(jit_file__give_up(&f.file, &(struct jit_file_sink){push, &f.heard}), 0);
	assert_int_equal(the_snapshot(&f.heard, "")->before, UINT64_MAX);
	assert_true(f.heard.pieces.data[0].after <= silent);
	assert_int_equal(f.heard.state.state, JIT_FILE_STATE_TOO_BIG);
	forget(&f.heard);
	read_all(&f, &CLOSED);
	assert_int_equal(f.heard.pieces.count + f.heard.states, 0);
	end(&f);
	/* a dump tells its times itself */
	write_new("bytes");
	begin_as(&f, JIT_FILE_DUMP, JIT_FILE_STATE_FOLLOWED, 0);
	forget(&f.heard);
	assert_int_equal(jit_file__give_up(&f.file, &(struct jit_file_sink){push, &f.heard}), 0);
	assert_int_equal(f.heard.pieces.count + f.heard.states, 0);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found_test),
		cmocka_unit_test(path_test),
		cmocka_unit_test(not_followed_test),
		cmocka_unit_test(found_young_test),
		cmocka_unit_test(outdated_test),
		cmocka_unit_test(appended_test),
		cmocka_unit_test(glance_at_rewriting_test),
		cmocka_unit_test(torn_test),
		cmocka_unit_test(single_line_test),
		cmocka_unit_test(write_under_way_test),
		cmocka_unit_test(next_line_test),
		cmocka_unit_test(exact_time_test),
		cmocka_unit_test(looked_at_test),
		cmocka_unit_test(snapshot_test),
		cmocka_unit_test(emptied_test),
		cmocka_unit_test(replaced_content_test),
		cmocka_unit_test(changed_early_test),
		cmocka_unit_test(not_closed_test),
		cmocka_unit_test(not_closed_appended_test),
		cmocka_unit_test(settled_rewriting_test),
		cmocka_unit_test(replaced_file_test),
		cmocka_unit_test(big_test),
		cmocka_unit_test(hole_test),
		cmocka_unit_test(refused_test),
		cmocka_unit_test(give_up_test),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
