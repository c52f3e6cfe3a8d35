/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests of jit_file: a file that is written in a directory of its own, and the events about it. To be included
 * after cmocka.h.
 */
#ifndef TESTS_UNIT_JIT_FILE_SUPPORT_H
#define TESTS_UNIT_JIT_FILE_SUPPORT_H

#include "base/clocks.h"
#include "base/io.h"
#include "base/vec.h"
#include "jit/follow/jit_file.h"
#include "jit/follow/jit_follower.h"

#define NUMBER	  7
#define PATIENCE  50000000ull
#define FILENAME  "map"
#define TICK	  11000000ull /* ns: what the kernel's coarse clock may be behind, and a little */

#define TWO_LINES "2000 10 g\n3000 10 h\n"

static char directory[] = "/tmp/sysprof-test-jit-file-XXXXXX";

static const struct jit_signs NO_SIGNS;
static const struct jit_signs MODIFIED = {.modified = true};
static const struct jit_signs OPENED = {.opened = true, .modified = true};
static const struct jit_signs CLOSED = {.opened = true, .modified = true, .closed = true};

static inline void make_directory(void)
{
	assert_true(mkdtemp(directory) && !chdir(directory));
}

static inline void remove_directory(void)
{
	unlink(FILENAME);
	assert_false(chdir("/") || rmdir(directory));
}

/* ---- what is reported ---------------------------------------------------------------------------- */

struct report {
	uint64_t after, before;
	uint32_t flags;
	size_t first, size; /* in bytes */
};

struct received {
	VEC(struct report) pieces;
	VEC(char) bytes;
	unsigned int states;
	struct jit_file_event state; /* the last one */
	char path[PATH_MAX];	     /* its */
	struct jit_clock_event clock;
	int refusal; /* what receive_event() returns */
};

/* Of the running test. */
static struct followed {
	struct jit_file file;
	struct received received;
	uint64_t began, read_at; /* before the last reading, and behind it */
} f = {.file.fd = -1};

static inline void receive_state(struct received *h, const struct event_header *event)
{
	const struct jit_file_event *e = (const void *)event;

	assert_true(event->size > sizeof(*e));
	assert_int_equal(((const char *)event)[event->size - 1], 0);
	assert_int_equal(e->file, NUMBER);
	h->state = *e;
	snprintf(h->path, sizeof(h->path), "%s", e->path);
	h->states++;
}

static inline void check_order(const struct received *h, const struct report *new)
{
	const struct report *last = h->pieces.count ? &h->pieces.data[h->pieces.count - 1]
						    : &(struct report){};

	assert_true(new->after <= new->before);
	assert_true(new->before >= last->before);
	assert_true(new->after >= last->after);
	/* moments of two readings do not overlap: jit/jit_timeline.h */
	if (new->after != last->after)
		assert_true(new->after >= last->before);
}

static inline void receive_bytes(struct received *h, const struct event_header *event)
{
	const struct jit_bytes_event *e = (const void *)event;
	struct report report = {.after = e->after,
				.before = e->before,
				.flags = e->flags,
				.first = h->bytes.count,
				.size = e->size};

	assert_int_equal(e->file, NUMBER);
	assert_true(e->size <= event->size - sizeof(*e));
	for (size_t i = e->size; i < event->size - sizeof(*e); i++)
		assert_int_equal(e->bytes[i], 0);
	assert_true(e->before == UINT64_MAX || e->before <= event->time);
	check_order(h, &report);
	assert_int_equal(vec_push(&h->pieces, report), 0);
	assert_int_equal(vec_reserve(&h->bytes, h->bytes.count + e->size), 0);
	if (e->size)
		memcpy(h->bytes.data + h->bytes.count, e->bytes, e->size);
	h->bytes.count += e->size;
}

static inline int receive_event(void *context, struct event_header *event)
{
	struct received *h = context;

	if (h->refusal)
		return h->refusal;
	assert_true(event->size <= EVENT_SIZE_MAX);
	assert_int_equal(event->size % EVENT_ALIGN, 0);
	if (event->type == EVENT_JIT_FILE)
		receive_state(h, event);
	else if (event->type == EVENT_JIT_CLOCK)
		h->clock = *(const struct jit_clock_event *)event;
	else
		receive_bytes(h, event);
	return 0;
}

static inline void forget_received(void)
{
	f.received.pieces.count = f.received.bytes.count = 0;
	f.received.states = 0;
}

/* The bytes since the last forget_received(), of all pieces. */
static inline void assert_bytes(const char *wanted)
{
	if (f.received.bytes.count != strlen(wanted) ||
	    (f.received.bytes.count &&
	     memcmp(f.received.bytes.data, wanted, f.received.bytes.count)))
		fail_msg("told was \"%.*s\", wanted is \"%s\"", (int)f.received.bytes.count,
			 f.received.bytes.count ? f.received.bytes.data : "", wanted);
}

static inline const struct report *piece_at(size_t i)
{
	assert_true(i < f.received.pieces.count);
	return &f.received.pieces.data[i];
}

/* One appended piece, and no snapshot. */
static inline const struct report *the_piece(const char *wanted)
{
	assert_bytes(wanted);
	assert_int_equal(f.received.pieces.count, 1);
	assert_int_equal(f.received.pieces.data[0].flags, 0);
	return &f.received.pieces.data[0];
}

/* One snapshot that begins and ends, of a single moment. */
static inline const struct report *the_snapshot(const char *wanted)
{
	const struct report *first, *last;

	assert_bytes(wanted);
	first = piece_at(0);
	last = piece_at(f.received.pieces.count - 1);
	assert_true(first->flags & JIT_SNAPSHOT_BEGIN);
	assert_true(last->flags & JIT_SNAPSHOT_END);
	for (size_t i = 0; i < f.received.pieces.count; i++) {
		const struct report *p = piece_at(i);

		assert_int_equal(p->after, first->after);
		assert_int_equal(p->before, first->before);
		assert_true(i == 0 || !(p->flags & JIT_SNAPSHOT_BEGIN));
		assert_true(p == last || !(p->flags & JIT_SNAPSHOT_END));
	}
	return first;
}

/* ---- the file -------------------------------------------------------------------------------- */

static inline void write_map_with(int flags, const char *text)
{
	int fd = open(FILENAME, O_WRONLY | O_CLOEXEC | flags, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, text, strlen(text)), 0);
	close(fd);
}

static inline void write_new_map(const char *text)
{
	unlink(FILENAME);
	write_map_with(O_CREAT | O_EXCL, text);
}

static inline void rewrite_map(const char *text)
{
	write_map_with(O_TRUNC, text);
}

static inline void append_to_map(const char *text)
{
	write_map_with(O_APPEND, text);
}

static inline void sleep_ns(uint64_t ns)
{
	usleep(ns / 1000);
}

static inline int read_as(const struct jit_signs *signs, bool settle)
{
	int more;

	f.began = monotonic_ns();
	more = jit_file__read(&f.file, signs, settle);
	f.read_at = monotonic_ns();
	return more;
}

/* To the end. */
static inline void read_all(const struct jit_signs *signs)
{
	assert_int_equal(read_as(signs, false), 0);
}

/* The same, and once more when a line that came alone need not be held any more. */
static inline void read_held(const struct jit_signs *signs)
{
	read_all(signs);
	while (jit_file__wakes_at(&f.file) > monotonic_ns())
		sleep_ns(1000000);
	read_all(&NO_SIGNS);
}

/* `state` is what was found; as if last written at `modified`. */
static inline void begin_as(enum jit_file_kind kind, enum jit_file_state state, uint64_t modified)
{
	const struct jit_owner owner = {.pid = 4711, .own_pid = 11, .start = 815};
	const struct jit_file_sink sink = {receive_event, &f.received};
	struct jit_found found = {.state = state, .modified = modified, .path = "/tmp/" FILENAME};

	f = (struct followed){};
	found.fd = open(FILENAME, O_RDONLY | O_CLOEXEC);
	assert_true(found.fd >= 0);
	assert_int_equal(fstat(found.fd, &found.st), 0);
	assert_int_equal(
		jit_file__begin(&f.file, NUMBER, kind, &owner, &found, monotonic_ns(), &sink), 0);
	assert_int_equal(found.fd, -1);
}

/* A map that was there before, and is read. */
static inline void begin_map(const char *text)
{
	write_new_map(text);
	begin_as(JIT_FILE_MAP, JIT_FILE_STATE_FOLLOWED, 0);
	assert_int_equal(jit_file__wakes_at(&f.file), 0);
	read_all(&NO_SIGNS);
	forget_received();
}

static inline void end_map(void)
{
	jit_file__close(&f.file);
	assert_int_equal(f.file.fd, -1);
	jit_file__close(&f.file);
	vec_free(&f.received.pieces);
	vec_free(&f.received.bytes);
	unlink(FILENAME);
}

/* Whether what is waited for since then is over: something else had the CPU for so long, and the test begins again. */
static inline bool was_stopped(uint64_t since)
{
	if (monotonic_ns() < since + PATIENCE)
		return false;
	end_map();
	return true;
}

/* By the file's time, which is that of the kernel's last tick. */
static inline uint64_t last_write(void)
{
	uint64_t real = realtime_ns(), now = monotonic_ns();
	struct stat st;

	assert_int_equal(stat(FILENAME, &st), 0);
	return st.st_mtim.tv_sec * 1000000000ull + (uint64_t)st.st_mtim.tv_nsec - (real - now);
}

static inline void end_test(void)
{
	end_map();
}

#endif
