/* SPDX-License-Identifier: BSD-2-Clause */
/* The watcher of JIT files: what passes between it and the collector, and what happens if it ends or sends nonsense. */
#include <malloc.h>

#include "unit.h"
#include "base/clocks.h"
#include "base/io.h"
#include "base/vec.h"
#include "failing_call.h"
#include "jit/follow/jit_channel.h"
#include "jit/follow/jit_follower.h"
#include "jit/follow/jit_owner.h"
#include "jit/follow/jit_tail.h"
#include "tenants/outside_books.h"

#define SECOND	 1000000000ull
#define PATIENCE (20 * SECOND)

static char map_path[64];

/* ---- channels -------------------------------------------------------------------------------- */

TEST(a_channel_delivers_all_events_in_order)
{
	struct jit_channels *channels = jit_channels__new();
	struct jit_channel *c = &channels->of[0];
	static char record[60000], received[60000];
	unsigned int reported = 0, got = 0;

	assert_non_null(channels);
	assert_int_equal(jit_channel__take_event(c, received, sizeof(received)), 0);
	/* around the end, several times */
	for (unsigned int i = 0; i < 2000; i++) {
		size_t size = 1 + i * 7919 % sizeof(record);

		memset(record, (int)i, size);
		while (!jit_channel__send_event(c, record, size)) {
			size_t expected = 1 + got * 7919 % sizeof(record);

			assert_int_equal(jit_channel__take_event(c, received, sizeof(received)),
					 expected);
			assert_int_equal((unsigned char)received[0], got % 256);
			assert_int_equal((unsigned char)received[expected - 1], got % 256);
			got++;
		}
		reported++;
	}
	while (jit_channel__take_event(c, received, sizeof(received)) > 0)
		got++;
	assert_int_equal(reported, got);
	jit_channels__free(channels);
}

TEST(invalid_sizes_in_a_channel_are_protocol_errors)
{
	struct jit_channels *channels = jit_channels__new();
	struct jit_channel *c = &channels->of[0];
	char received[64];

	assert_true(jit_channel__send_event(c, "123456789", 9));
	assert_int_equal(jit_channel__take_event(c, received, 8),
			 -EPROTO); /* larger than any event */
	*(uint64_t *)c->event_bytes = UINT64_MAX - 7;
	assert_int_equal(jit_channel__take_event(c, received, sizeof(received)), -EPROTO);
	*(uint64_t *)c->event_bytes = 0;
	assert_int_equal(jit_channel__take_event(c, received, sizeof(received)), -EPROTO);
	*(uint64_t *)c->event_bytes = 40; /* more than was written */
	assert_int_equal(jit_channel__take_event(c, received, sizeof(received)), -EPROTO);
	c->written = 7;
	assert_int_equal(jit_channel__take_event(c, received, sizeof(received)), -EPROTO);
	c->written = UINT64_MAX;
	assert_int_equal(jit_channel__take_event(c, received, sizeof(received)), -EPROTO);
	assert_false(jit_channel__send_event(c, "1", 1));
	jit_channels__free(channels);
}

/* A watcher has its own channel and the sum of all, and no other channel. */
TEST(a_watcher_keeps_only_its_own_channel)
{
	struct jit_channels *channels = jit_channels__new();
	struct jit_channel *own = jit_channels__keep(channels, 3);

	assert_ptr_equal(own, &channels->of[3]);
	assert_true(jit_channel__send_event(own, "1", 1));
	assert_ptr_equal(own->bytes.shared, &channels->bytes_read);
	channels->bytes_read = 1;
	own->event_bytes[JIT_EVENT_BYTES - 1] = 1;
	for (unsigned int i = 0; i < JIT_WATCHERS_MAX; i++)
		assert_int_equal(msync(&channels->of[i], JIT_PAGE, MS_ASYNC), i == 3 ? 0 : -1);
	jit_channels__free(channels);
}

/* ---- the watcher ----------------------------------------------------------------------------- */

struct received {
	unsigned int files; /* that are followed */
	uint32_t last_file;
	enum jit_file_state state;
	VEC(char) bytes;
};

static int receive(void *context, struct event_header *event)
{
	struct received *h = context;

	if (event->type == EVENT_JIT_FILE) {
		const struct jit_file_event *e = (const void *)event;

		h->state = e->state;
		h->files += e->state == JIT_FILE_STATE_FOLLOWED;
		h->last_file = e->file;
	} else {
		const struct jit_bytes_event *e = (const void *)event;

		assert_int_equal(event->type, EVENT_JIT_BYTES);
		assert_int_equal(vec_reserve(&h->bytes, h->bytes.count + e->size), 0);
		if (e->size)
			memcpy(h->bytes.data + h->bytes.count, e->bytes, e->size);
		h->bytes.count += e->size;
	}
	return 0;
}

static bool never_full(void *context, bool settle)
{
	return false;
}

static void refuse_touch(void *context, const struct jit_owner *owner)
{
	assert_null(owner);
}

TEST(files_of_a_denied_user_are_reported_as_hung)
{
	static struct quota bytes, hangs;
	struct received h = {};
	const struct jit_follower_output output = {
		.push = receive, .is_full = never_full, .touch = refuse_touch, .context = &h};
	struct jit_follower *r;
	struct jit_owner owner;

	quota__init(&bytes, QUOTA_JIT_BYTES);
	assert_int_equal(jit_owner__read(getpid(), &owner), 0);
	quota__take(&hangs, owner.user, 1, 0);
	assert_int_equal(jit_follower__new(&output, &bytes, &hangs, &r), 0);
	jit_follower__follow_map(r, &owner);
	assert_int_equal(h.last_file, 1);
	assert_int_equal(h.state, JIT_FILE_STATE_HUNG);
	h.state = JIT_FILE_STATE_FOLLOWED;
	jit_follower__follow_dump(r, getpid(), "/tmp/jit-1.dump", 0, 4096);
	assert_int_equal(h.last_file, 2);
	assert_int_equal(h.state, JIT_FILE_STATE_HUNG);
	assert_int_equal(jit_follower__error(r), 0);
	jit_follower__free(r);
}

static void never_mind(void *context, const struct jit_owner *owner)
{
}

static void become_other(int number)
{
	if (setresuid(60101, 60101, 60101))
		_exit(1);
}

static pid_t start_user(uid_t uid, struct jit_owner *owner)
{
	pid_t child = fork();

	if (!child) {
		signal(SIGUSR1, become_other);
		if (setresuid(uid, 0, 0))
			_exit(1);
		for (;;)
			pause();
	}
	do
		assert_int_equal(jit_owner__read(child, owner), 0);
	while (owner->uid != uid);
	return child;
}

/*
 * A process without a map becomes another user, who has as many already as a user may have: it is
 * reported, and the number of files of that user stays right.
 */
TEST(the_file_limit_applies_to_the_user_after_setuid)
{
	const uint64_t limit = quota_row(QUOTA_JIT_FILES)->user.limit;
	static struct quota bytes, hangs;
	struct received h = {};
	const struct jit_follower_output output = {
		.push = receive, .is_full = never_full, .touch = never_mind, .context = &h};
	struct jit_owner one, other;
	struct jit_follower *r;
	pid_t children[2];

	if (geteuid())
		skip(); /* needs root */
	children[0] = start_user(60100, &one);
	children[1] = start_user(60101, &other);
	quota__init(&bytes, QUOTA_JIT_BYTES);
	assert_int_equal(jit_follower__new(&output, &bytes, &hangs, &r), 0);
	jit_follower__follow_map(r, &one);
	for (uint64_t i = 0; i < limit; i++)
		jit_follower__follow_map(r, &other);
	assert_int_equal(h.last_file, 0);
	assert_int_equal(kill(children[0], SIGUSR1), 0);
	for (uint64_t until = monotonic_ns() + PATIENCE; !h.last_file && monotonic_ns() < until;) {
		usleep(10000);
		jit_follower__look_for_files(r);
	}
	assert_int_equal(h.last_file, 1);
	assert_int_equal(h.state, JIT_FILE_STATE_TOO_MANY);
	/* there is no room for another one */
	jit_follower__follow_map(r, &other);
	assert_int_equal(h.last_file, 2);
	assert_int_equal(h.state, JIT_FILE_STATE_TOO_MANY);
	jit_follower__free(r);
	kill(children[0], SIGKILL);
	kill(children[1], SIGKILL);
}

static void append(const char *text)
{
	int fd = open(map_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, text, strlen(text)), 0);
	close(fd);
}

static void wait_for_bytes(struct jit_tail *t, struct received *h, size_t count)
{
	uint64_t until = monotonic_ns() + PATIENCE;

	while (h->bytes.count < count && monotonic_ns() < until) {
		assert_int_equal(jit_tail__take(t, monotonic_ns(), receive, h), 0);
		usleep(1000);
	}
	assert_int_equal(h->bytes.count, count);
}

static void remove_map(void)
{
	snprintf(map_path, sizeof(map_path), "/tmp/perf-%d.map", getpid());
	unlink(map_path);
}

TEST(lines_appended_to_a_map_are_received)
{
	struct jit_tail *t = NULL;
	struct received h = {};

	append("1000 10 f\n");
	assert_int_equal(jit_tail__new(false, &t), 0);
	assert_int_equal(jit_tail__follow(t, getpid()), 0);
	assert_true(jit_tail__settle(t, PATIENCE));
	wait_for_bytes(t, &h, 10);
	assert_int_equal(h.files, 1);
	append("2000 10 g\n");
	wait_for_bytes(t, &h, 20);
	append("3000 10 h\n");
	assert_true(jit_tail__finish(t, PATIENCE));
	assert_int_equal(jit_tail__take(t, monotonic_ns(), receive, &h), 0);
	assert_int_equal(h.bytes.count, 30);
	assert_memory_equal(h.bytes.data, "1000 10 f\n2000 10 g\n3000 10 h\n", 30);
	jit_tail__free(t);
	vec_free(&h.bytes);
}

/* Nothing is read in a pause, and nothing is lost by it; the end reads what there is, pause or not. */
TEST(a_pause_delays_lines_without_losing_them)
{
	struct jit_tail *t = NULL;
	struct received h = {};

	append("1000 10 f\n");
	assert_int_equal(jit_tail__new(false, &t), 0);
	assert_int_equal(jit_tail__follow(t, getpid()), 0);
	assert_true(jit_tail__settle(t, PATIENCE));
	wait_for_bytes(t, &h, 10);
	jit_tail__pause(t, true);
	usleep(300000); /* a round may be under way */
	append("2000 10 g\n");
	for (int i = 0; i < 30; i++) {
		usleep(10000);
		assert_int_equal(jit_tail__take(t, monotonic_ns(), receive, &h), 0);
	}
	assert_int_equal(h.bytes.count, 10);
	jit_tail__pause(t, false);
	wait_for_bytes(t, &h, 20);
	jit_tail__pause(t, true);
	usleep(300000);
	append("3000 10 h\n");
	assert_true(jit_tail__finish(t, PATIENCE));
	assert_int_equal(jit_tail__take(t, monotonic_ns(), receive, &h), 0);
	assert_int_equal(h.bytes.count, 30);
	assert_memory_equal(h.bytes.data, "1000 10 f\n2000 10 g\n3000 10 h\n", 30);
	jit_tail__free(t);
	vec_free(&h.bytes);
}

/* The watchers of this process are its keeper's children. */
static pid_t find_watcher(void)
{
	char path[96], line[64];
	pid_t pid = getpid();

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
		if (read_line(path, line, sizeof(line)))
			return 0;
		pid = 0;
		for (char *at = line; *at;) /* the last one */
			pid = (pid_t)strtol(at, &at, 10), at += strspn(at, " ");
		if (!pid)
			return 0;
	}
	return pid;
}

/* The next one reads everything again, as a file of another number; after the last one it is said. */
TEST(killed_watchers_are_replaced_up_to_a_limit)
{
	struct jit_tail *t = NULL;
	struct received h = {};
	uint32_t last = 0;

	append("1000 10 f\n");
	assert_int_equal(jit_tail__new(false, &t), 0);
	assert_int_equal(jit_tail__follow(t, getpid()), 0);
	for (unsigned int i = 1; i <= JIT_LINE_FAILURES; i++) {
		wait_for_bytes(t, &h, 10 * i);
		assert_int_equal(h.files, i);
		assert_true(h.last_file > last);
		last = h.last_file;
		/* in the middle of a file its end is that user's hang */
		assert_true(jit_tail__settle(t, PATIENCE));
		assert_int_equal(kill(find_watcher(), SIGKILL), 0);
	}
	for (uint64_t until = monotonic_ns() + PATIENCE;
	     h.state != JIT_FILE_STATE_NO_READER && monotonic_ns() < until;) {
		assert_int_equal(jit_tail__take(t, monotonic_ns(), receive, &h), 0);
		usleep(1000);
	}
	assert_int_equal(h.state, JIT_FILE_STATE_NO_READER);
	assert_int_equal(h.last_file, last);
	/* later ones are reported as that */
	assert_int_equal(jit_tail__follow(t, getppid()), 0);
	assert_int_equal(jit_tail__take(t, monotonic_ns(), receive, &h), 0);
	assert_int_equal(h.last_file, last + 1);
	assert_int_equal(jit_tail__gone(t, getppid()), 0);
	assert_false(jit_tail__settle(t, SECOND / 10));
	assert_false(jit_tail__finish(t, SECOND / 10));
	jit_tail__free(t);
	vec_free(&h.bytes);
}

static void follow_ourselves(void *tail)
{
	if (jit_tail__follow(tail, getpid()))
		abort();
}

TEST(a_watcher_starts_later_after_a_lack_of_memory)
{
	struct jit_tail *t = NULL;
	struct received h = {};

	append("1000 10 f\n");
	assert_int_equal(jit_tail__new(false, &t), 0);
	while_call_fails(SYS_sendmsg, ENOBUFS, follow_ourselves, t);
	wait_for_bytes(t, &h, 10);
	assert_int_equal(h.files, 1);
	jit_tail__free(t);
	vec_free(&h.bytes);
}

/* Numbers of the processes that the keeper has, up to `max`. */
static unsigned int find_watchers(pid_t *watchers, unsigned int max)
{
	char path[96], line[512];
	pid_t keeper = 0;
	unsigned int count = 0;

	for (int i = 0; i < 2; i++) {
		pid_t of = i ? keeper : getpid();

		snprintf(path, sizeof(path), "/proc/%d/task/%d/children", of, of);
		if (read_line(path, line, sizeof(line)))
			return 0;
		for (char *at = line; *at && !i; at += strspn(at, " "))
			keeper = (pid_t)strtol(at, &at, 10); /* the last one */
	}
	for (char *at = line; *at && count < max; at += strspn(at, " "))
		watchers[count++] = (pid_t)strtol(at, &at, 10);
	return count;
}

/* A process of another user, which has a map with one line. */
static pid_t other_user(char *map, size_t size, uid_t uid)
{
	int changed[2], fd;
	pid_t child;
	char byte;

	assert_int_equal(pipe2(changed, O_CLOEXEC), 0);
	child = fork();
	if (!child) {
		if (setgid(uid) || setuid(uid) || write(changed[1], "", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(changed[1]);
	assert_int_equal(read(changed[0], &byte, 1), 1);
	close(changed[0]);
	snprintf(map, size, "/tmp/perf-%d.map", child);
	unlink(map);
	fd = open(map, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, "9000 10 o\n", 10), 0);
	assert_int_equal(fchown(fd, uid, uid), 0);
	close(fd);
	return child;
}

TEST(a_killed_watcher_does_not_affect_other_users)
{
	struct jit_tail *t = NULL;
	struct received h = {};
	pid_t watchers[4], child;
	char map[64];

	if (geteuid())
		skip(); /* needs root */
	append("1000 10 f\n");
	child = other_user(map, sizeof(map), 65534);
	assert_int_equal(jit_tail__new(false, &t), 0);
	assert_int_equal(jit_tail__follow(t, getpid()), 0);
	assert_true(jit_tail__settle(t, PATIENCE));
	assert_int_equal(jit_tail__follow(t, child), 0);
	wait_for_bytes(t, &h, 20);
	assert_int_equal(h.files, 2);
	assert_int_equal(find_watchers(watchers, 4), 2);
	/* the other's map is read again, ours is not; and ours is still read */
	assert_true(jit_tail__settle(t, PATIENCE)); /* it is in the middle of no file */
	assert_int_equal(kill(watchers[1], SIGKILL), 0);
	wait_for_bytes(t, &h, 30);
	append("2000 10 g\n");
	wait_for_bytes(t, &h, 40);
	assert_int_equal(h.files, 3);
	assert_true(jit_tail__finish(t, PATIENCE));
	assert_int_equal(jit_tail__take(t, monotonic_ns(), receive, &h), 0);
	assert_memory_equal(h.bytes.data + 20, "9000 10 o\n2000 10 g\n", 20);
	assert_int_equal(h.bytes.count, 40);
	jit_tail__free(t);
	kill(child, SIGKILL);
	unlink(map);
	vec_free(&h.bytes);
}

/* kB of its own; 0: it is gone. */
static unsigned long memory_of(pid_t pid)
{
	char path[64], line[256];
	unsigned long size = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	status = fopen(path, "re");
	while (status && !size && fgets(line, sizeof(line), status))
		sscanf(line, "RssAnon: %lu kB", &size);
	if (status)
		fclose(status);
	return size;
}

#ifdef __SANITIZE_ADDRESS__ /* it holds back for a while what is freed: the buffer at each size that it had */
#define KEPT_KB 98304
#else
#define KEPT_KB 8192 /* of 24 MB; with some huge pages of 2 MB */
#endif

/*
 * A process that ended in a pause is reported all the same, and the memory for it is given back. The
 * allocator has the program's setting: by default glibc keeps what lies at the end of the heap, where
 * blocks up to the size of the largest one that was freed are.
 */
TEST(the_memory_for_a_large_map_is_released)
{
	enum { LINES = 24000, LINE = 1000 };
	static char text[LINE + 1];
	struct jit_tail *t = NULL;
	struct received h = {};
	uint64_t until;

	memset(text, 'f', LINE - 1);
	memcpy(text, "2000 10 ", 8);
	text[LINE - 1] = '\n';
	for (int i = 0; i < LINES; i++)
		append(text);
	mallopt(M_MMAP_THRESHOLD, 128 * 1024);
	assert_int_equal(jit_tail__new(false, &t), 0);
	jit_tail__pause(t, true);
	assert_int_equal(jit_tail__follow(t, getpid()), 0);
	assert_int_equal(jit_tail__gone(t, getpid()), 0);
	wait_for_bytes(t, &h, (size_t)LINES * LINE);
	until = monotonic_ns() + PATIENCE;
	while (memory_of(find_watcher()) > KEPT_KB && monotonic_ns() < until)
		usleep(10000);
	assert_in_range(memory_of(find_watcher()), 1, KEPT_KB);
	jit_tail__free(t);
	vec_free(&h.bytes);
}

/* More commands than there is room for at once; in the end none is left. */
TEST(a_map_is_read_after_a_flood_of_commands)
{
	struct jit_tail *t = NULL;
	struct received h = {};
	pid_t watcher;

	append("1000 10 f\n");
	assert_int_equal(jit_tail__new(false, &t), 0);
	for (int i = 0; i < 20000; i++) {
		assert_int_equal(jit_tail__follow(t, 0x70000000 + i), 0);
		assert_int_equal(jit_tail__gone(t, 0x70000000 + i), 0);
	}
	assert_int_equal(jit_tail__follow(t, getpid()), 0);
	assert_true(jit_tail__settle(t, PATIENCE));
	wait_for_bytes(t, &h, 10);
	watcher = find_watcher();
	assert_true(watcher > 0);
	jit_tail__free(t);
	assert_int_equal(kill(watcher, 0), -1);
	assert_int_equal(errno, ESRCH);
	vec_free(&h.bytes);
	jit_tail__free(NULL);
}

/* ---- mappings of jitdumps, as many as a process likes ------------------------------------------ */

static void fill_long(char *path, size_t size, unsigned int number)
{
	memset(path, 'd', size);
	path[0] = '/';
	snprintf(path + size - 32, 32, "/jit-%u.dump", number);
}

TEST(repeated_mappings_of_a_dump_are_one_request)
{
	enum { TIMES = 20000, LONG = 1000 };
	struct jit_tail *t = NULL;
	struct received h = {};
	char path[LONG];
	size_t before;

	fill_long(path, sizeof(path), 1);
	assert_int_equal(jit_tail__new(false, &t), 0);
	assert_int_equal(jit_tail__follow(t, getpid()), 0);
	before = mallinfo2().uordblks;
	for (uint64_t i = 1; i <= TIMES; i++)
		assert_int_equal(jit_tail__follow_dump(t, getpid(), path, i << 12, (i + 1) << 12),
				 0);
	assert_in_range(mallinfo2().uordblks, 0, before + 16 * LONG);
	assert_true(jit_tail__settle(t, PATIENCE));
	assert_int_equal(jit_tail__take(t, monotonic_ns(), receive, &h), 0);
	assert_int_equal(h.last_file, 1);
	assert_int_equal(h.files, 0);
	jit_tail__free(t);
}

TEST(ended_programs_leave_almost_no_memory_in_use)
{
	enum { PROGRAMS = 1000 };
	struct jit_tail *t = NULL;
	struct received h = {};
	size_t before = 0;

	append("1000 10 f\n");
	assert_int_equal(jit_tail__new(false, &t), 0);
	for (int i = 0; i < PROGRAMS; i++) {
		assert_int_equal(jit_tail__follow(t, getpid()), 0);
		assert_int_equal(jit_tail__gone(t, getpid()), 0);
		assert_true(jit_tail__settle(t, PATIENCE));
		assert_int_equal(jit_tail__take(t, monotonic_ns(), receive, &h), 0);
		vec_free(&h.bytes);
		if (i == PROGRAMS / 10)
			before = mallinfo2().uordblks;
	}
	assert_int_equal(h.files, PROGRAMS);
	assert_in_range(mallinfo2().uordblks, 0, before + 8 * PROGRAMS + 2048); /* numbers */
	jit_tail__free(t);
}

static uint64_t count_refused(struct outside_books *books)
{
	struct outside_row row;
	uint64_t count = 0;

	while (outside_books__take(books, &row)) {
		assert_int_equal(row.thing, OUTSIDE_JIT_FILES);
		assert_int_equal(row.reason, OUTSIDE_BY_USER);
		count += row.count;
	}
	return count;
}

/*
 * A process maps one dump after the other: its user has a limit, what is beyond it is counted, and
 * the end of the process gives the room back. Another process that finds no room is reported, once.
 */
TEST(dumps_beyond_the_limit_of_a_user_are_counted)
{
	enum { DUMPS = 2000 };
	const uint64_t limit = quota_row(QUOTA_JIT_FILES)->user.limit;
	struct outside_books *books = outside_books__new();
	struct jit_tail *t = NULL;
	struct received h = {};
	pid_t child = fork();
	char path[64];

	if (!child)
		for (;;)
			pause();
	assert_int_equal(jit_tail__new(false, &t), 0);
	jit_tail__count_in(t, books);
	for (int pass = 0; pass < 2; pass++) {
		assert_int_equal(jit_tail__follow(t, getpid()), 0);
		if (!pass)
			assert_int_equal(jit_tail__follow(t, child), 0);
		for (unsigned int i = 0; i < DUMPS; i++) {
			snprintf(path, sizeof(path), "/tmp/none/jit-%u.dump", i);
			assert_int_equal(jit_tail__follow_dump(t, getpid(), path, 0, 4096), 0);
		}
		assert_int_equal(count_refused(books), DUMPS - (limit - 2));
		assert_int_equal(jit_tail__follow_dump(t, child, "/tmp/none/jit-1.dump", 0, 1), 0);
		assert_int_equal(jit_tail__follow_dump(t, child, "/tmp/none/jit-2.dump", 0, 1), 0);
		assert_int_equal(count_refused(books), 2);
		assert_true(jit_tail__settle(t, PATIENCE));
		assert_int_equal(jit_tail__take(t, monotonic_ns(), receive, &h), 0);
		assert_int_equal(h.last_file, 1);
		assert_int_equal(h.state, JIT_FILE_STATE_TOO_MANY);
		assert_int_equal(jit_tail__gone(t, getpid()), 0);
		assert_true(jit_tail__settle(t, PATIENCE));
	}
	jit_tail__free(t);
	outside_books__free(books);
	kill(child, SIGKILL);
}

/*
 * A user beyond the number of lines gets the watcher of a user without processes, and another one
 * when that ends.
 */
TEST(users_beyond_the_limit_take_over_idle_watchers)
{
	enum { USERS = JIT_LINES_MAX + 1, IDLE = 5 };
	struct jit_tail *t = NULL;
	struct received h = {};
	pid_t watchers[USERS], children[USERS];
	char maps[USERS][64];

	if (geteuid())
		skip(); /* needs root */
	for (unsigned int i = 0; i < USERS; i++)
		children[i] = other_user(maps[i], sizeof(maps[i]), 60000 + i);
	assert_int_equal(jit_tail__new(false, &t), 0);
	for (unsigned int i = 0; i < USERS; i++) {
		if (i == JIT_LINES_MAX)
			assert_int_equal(jit_tail__gone(t, children[IDLE]), 0);
		assert_int_equal(jit_tail__follow(t, children[i]), 0);
		wait_for_bytes(t, &h, 10 * (i + 1));
	}
	assert_int_equal(find_watchers(watchers, USERS), JIT_LINES_MAX);
	for (unsigned int i = 1; i < JIT_LINE_FAILURES; i++) {
		assert_true(jit_tail__settle(t, PATIENCE));
		assert_int_equal(find_watchers(watchers, USERS), JIT_LINES_MAX);
		/* a new one is the last child */
		assert_int_equal(kill(watchers[i > 1 ? JIT_LINES_MAX - 1 : IDLE], SIGKILL), 0);
		wait_for_bytes(t, &h, 10 * (USERS + i));
	}
	assert_true(jit_tail__finish(t, PATIENCE));
	assert_int_equal(jit_tail__take(t, monotonic_ns(), receive, &h), 0);
	assert_int_equal(h.state, JIT_FILE_STATE_FOLLOWED);
	jit_tail__free(t);
	for (unsigned int i = 0; i < USERS; i++) {
		kill(children[i], SIGKILL);
		unlink(maps[i]);
	}
	vec_free(&h.bytes);
}

EACH_TEST_WITH(remove_map, remove_map);
