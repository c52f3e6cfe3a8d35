/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that reads perf.data: what it may and may not, and what becomes of a file whose process
 * crashes, hangs, eats memory or lies. The processes are real; what they do in place of reading is
 * said here.
 */
#include <dirent.h>
#include <sys/socket.h>
#include "unit.h"
#include "failing_call.h"
#include "stream/perf/perf_child.h"

#include <sysprof/event.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "stream/meta.h"
#include "tenants/child.h"

#define MS	   1000000ull
#define PIECE_SIZE (64u << 10) /* at which a piece is sent */

/* ---- a reading ------------------------------------------------------------------------------- */

struct reading {
	size_t events, bytes;
	uint64_t last;
	uint64_t file;	   /* of a mapping */
	int stop_with;	   /* the sink returns it */
	bool looks;	   /* at the process, at the first event */
	char status[8192]; /* of it */
	char root[64];
	size_t descriptors;
};

static struct failure failure;
static struct perf_data_summary summary;

static pid_t first_child(void)
{
	char path[64], text[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	return read_line(path, text, sizeof(text)) ? 0 : (pid_t)strtol(text, NULL, 10);
}

static void look_at(struct reading *r, pid_t pid)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_closedir_ DIR *d = NULL;
	char path[64];
	ssize_t length;
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	assert_int_equal(read_file_at(AT_FDCWD, path, sizeof(r->status) - 1, &text, &size), 0);
	memcpy(r->status, text, size + 1);
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	length = readlink(path, r->root, sizeof(r->root) - 1);
	r->root[length < 0 ? 0 : length] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	d = opendir(path);
	for (struct dirent *entry; d && (entry = readdir(d));)
		r->descriptors += entry->d_name[0] != '.';
}

static int take_event(void *context, const struct event_header *event)
{
	struct reading *r = context;

	if (r->looks && !r->events)
		look_at(r, first_child());
	r->events++;
	r->bytes += event->size;
	r->last = event->time;
	if (event->type == EVENT_MMAP)
		r->file = ((const struct mmap_event *)event)->file;
	return r->stop_with;
}

/* No process is left behind. */
static int read_by(const struct perf_child_work *work, struct reading *r)
{
	_cleanup_close_ int fd = memory_with("perf.data", "12345678", 8);
	int err;

	failure = (struct failure){};
	err = perf_child__read(fd, false, work, take_event, r, &summary, &failure);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	return err;
}

static void assert_fails(perf_read_fn read, int error, const char *why)
{
	const struct perf_child_work work = {.read = read};
	struct reading r = {};

	assert_int_equal(read_by(&work, &r), error);
	assert_string_equal(failure.what, why);
}

#define CHILD(name)                                                                                \
	static int name(int fd, const struct perf_data_options *options, event_sink_fn sink,       \
			void *context, struct perf_data_summary *about, struct failure *why)

/* Does this, then succeeds. */
#define CHILD_DOING(name, what)                                                                    \
	CHILD(name)                                                                                \
	{                                                                                          \
		what;                                                                              \
		return 0;                                                                          \
	}

/* ---- what comes through ---------------------------------------------------------------------- */

static int push_event(event_sink_fn sink, void *context, unsigned int type, uint64_t time)
{
	union {
		struct mmap_event map;
		struct task_event task;
		struct event_header header;
		char space[sizeof(struct mmap_event) + EVENT_ALIGN];
	} event = {};

	event.header.size = type == EVENT_MMAP	 ? sizeof(event.space)
			    : type == EVENT_FORK ? sizeof(event.task)
						 : sizeof(event.header);
	event.header.type = (uint16_t)type;
	event.header.time = time;
	if (type == EVENT_MMAP)
		event.map.file = 7;
	return sink(context, &event.header);
}

#define FORKS 10000u /* more than a piece */

CHILD(read_well)
{
	char bytes[9];
	int err = 0;

	for (unsigned int i = 0; i < FORKS && !err; i++)
		err = push_event(sink, context, EVENT_FORK, i);
	err = err ?: push_event(sink, context, EVENT_MMAP, FORKS);
	err = err ?: push_event(sink, context, EVENT_END, FORKS);
	about->records = (uint64_t)pread(fd, bytes, sizeof(bytes), 0);
	about->samples = options->copies;
	about->kernel_names = options->kernel ? PERF_KERNEL_OTHER : PERF_KERNEL_HIDDEN;
	return err;
}

TEST(events_and_the_summary_are_passed_on)
{
	const struct perf_child_work work = {.read = read_well};
	struct reading r = {.file = 1};

	assert_int_equal(read_by(&work, &r), 0);
	assert_int_equal(r.events, FORKS + 2);
	assert_true(r.bytes > 2 * PIECE_SIZE);
	assert_int_equal(r.last, FORKS);
	assert_int_equal(summary.records, 8); /* bytes of the file */
	assert_int_equal(summary.samples, 0);
	assert_int_equal(summary.kernel_names, PERF_KERNEL_OTHER);
}

TEST(a_number_of_an_open_file_is_not_taken_from_a_child)
{
	const struct perf_child_work work = {.read = read_well};
	struct reading r = {.file = 1};

	assert_int_equal(read_by(&work, &r), 0);
	assert_int_equal(r.file, 0);
}

CHILD(find_nothing)
{
	about->records = 3;
	return fail(why, -ENODATA, "it has no events");
}

TEST(a_refusal_has_its_reason)
{
	assert_fails(find_nothing, -ENODATA, "it has no events");
	assert_int_equal(summary.records, 3);
}

TEST(an_error_of_the_sink_ends_the_child)
{
	const struct perf_child_work work = {.read = read_well};
	struct reading r = {.stop_with = -ECANCELED};

	assert_int_equal(read_by(&work, &r), -ECANCELED);
	assert_int_equal(r.events, 1);
	assert_string_equal(failure.what, "");
}

/* ---- what ends ------------------------------------------------------------------------------- */

CHILD_DOING(trap, __builtin_trap())
CHILD_DOING(leave, _exit(3))
CHILD_DOING(make_socket, socket(AF_INET, SOCK_STREAM, 0))
CHILD_DOING(stop_within_a_piece, write_full(CHILD_SOCKET, (uint32_t[]){64, 0, 1}, 12); _exit(0))

TEST(a_child_that_dies_is_a_refusal)
{
	assert_fails(trap, -EIO, "the process that reads it was ended by signal 4");
	assert_fails(leave, -EIO, "the process that reads it ended with status 3");
	assert_fails(stop_within_a_piece, -EIO, "the process that reads it ended with status 0");
}

TEST(a_forbidden_system_call_ends_it)
{
	assert_fails(make_socket, -EIO, "the process that reads it was ended by signal 31");
}

/* The parent sends nothing. */
static void wait_for_ever(void)
{
	char byte;

	while (read(CHILD_SOCKET, &byte, 1) < 0 && errno == EINTR)
		;
}

CHILD_DOING(hang_within_a_piece, write_full(CHILD_SOCKET, (uint32_t[]){64, 0, 1}, 12);
	    wait_for_ever())

TEST(a_child_that_hangs_is_ended)
{
	const struct perf_child_work work = {.read = hang_within_a_piece, .silence = 300 * MS};
	struct reading r = {};

	assert_int_equal(read_by(&work, &r), -ETIMEDOUT);
	assert_string_equal(failure.what, "the process that reads it makes no progress");
}

static volatile uint64_t turns;

CHILD_DOING(spin, for (;;) turns++)

TEST(its_cpu_time_is_limited)
{
	const struct perf_child_work work = {.read = spin, .cpu_seconds = 1};
	struct reading r = {};

	assert_int_equal(read_by(&work, &r), -EIO);
	assert_string_equal(failure.what,
			    "the process that reads it took more than 1 s of CPU time");
}

CHILD(eat_memory)
{
	for (unsigned int mb = 0; mb < 2048; mb += 64)
		if (mmap(NULL, 64 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
		    MAP_FAILED)
			return fail(why, -errno, "%s", mb > 512 ? "much" : "little");
	return 0;
}

TEST(its_memory_is_limited)
{
	assert_fails(eat_memory, -ENOMEM, "much");
}

/* ---- what lies ------------------------------------------------------------------------------- */

#define LIE "the process that reads it sent invalid data"

static void write_piece(uint32_t size, uint32_t is_report, const void *bytes, size_t count)
{
	write_full(CHILD_SOCKET, (uint32_t[]){size, is_report}, 8);
	write_full(CHILD_SOCKET, bytes, count);
}

static const char zeroes[8192];

CHILD_DOING(write_zeroes, write_piece(64, 0, zeroes, 64))
CHILD_DOING(write_large_piece, write_piece(1 << 20, 0, zeroes, 64))
CHILD_DOING(write_other_piece, write_piece(0, 2, zeroes, 0))
CHILD_DOING(write_short_report, write_piece(64, 1, zeroes, 64))

TEST(pieces_are_checked)
{
	assert_fails(write_zeroes, -EBADMSG, LIE);
	assert_fails(write_large_piece, -EBADMSG, LIE);
	assert_fails(write_other_piece, -EBADMSG, LIE);
	assert_fails(write_short_report, -EBADMSG, LIE);
}

CHILD_DOING(go_back, push_event(sink, context, EVENT_FORK, 2);
	    push_event(sink, context, EVENT_FORK, 1))
CHILD_DOING(send_symbols, push_event(sink, context, EVENT_SYMBOLS_END, 1))
CHILD_DOING(send_cut_event,
	    write_piece(16, 0, &(struct event_header){.size = 24, .type = EVENT_END}, 16))

TEST(events_are_checked)
{
	assert_fails(go_back, -EBADMSG, LIE);
	assert_fails(send_symbols, -EBADMSG, LIE);
	assert_fails(send_cut_event, -EBADMSG, LIE);
}

CHILD_DOING(succeed_oddly, return 7)
CHILD_DOING(name_oddly, about->kernel_names = 77)
CHILD_DOING(say_much, memset(why, 'x', sizeof(*why)); return -EIO)

TEST(reports_are_checked)
{
	assert_fails(succeed_oddly, -EBADMSG, LIE);
	assert_fails(name_oddly, -EBADMSG, LIE);
	{
		const struct perf_child_work work = {.read = say_much};
		struct reading r = {};

		assert_int_equal(read_by(&work, &r), -EIO);
		assert_int_equal(strlen(failure.what), sizeof(failure.what) - 1);
	}
}

CHILD(write_for_ever)
{
	int err;

	do
		err = push_event(sink, context, EVENT_FORK, 1);
	while (!err);
	return err;
}

TEST(what_a_child_may_send_is_limited_by_the_size_of_its_file)
{
	const struct perf_child_work work = {.read = write_for_ever};
	struct reading r = {};

	assert_int_equal(read_by(&work, &r), -EFBIG);
	assert_true(r.bytes > 200 << 20 && r.bytes < 400 << 20);
	assert_string_equal(failure.what,
			    "the process that reads it sent more than such a file can have");
}

/* ---- what it may do -------------------------------------------------------------------------- */

/* Fills a piece, and waits until it is looked at. */
CHILD(send_and_wait)
{
	for (size_t bytes = 0; bytes < PIECE_SIZE; bytes += sizeof(struct task_event))
		push_event(sink, context, EVENT_FORK, 1);
	wait_for_ever();
	return 0;
}

static unsigned long long status_field(const char *status, const char *field, int base)
{
	const char *at = strstr(status, field);

	assert_non_null(at);
	return strtoull(at + strlen(field), NULL, base);
}

TEST(a_child_has_no_file_system_and_a_filter)
{
	const struct perf_child_work work = {.read = send_and_wait};
	struct reading r = {.looks = true, .stop_with = -ECANCELED};

	assert_int_equal(read_by(&work, &r), -ECANCELED);
	assert_non_null(strstr(r.status, "Name:\tsysprof-perf\n"));
	assert_int_equal(status_field(r.status, "\nSeccomp:\t", 10), 2);
	assert_int_equal(status_field(r.status, "\nNoNewPrivs:\t", 10), 1);
	assert_int_equal(status_field(r.status, "\nCapEff:\t", 16), 0);
	assert_int_equal(status_field(r.status, "\nCapPrm:\t", 16), 0);
	assert_int_equal(status_field(r.status, "\nThreads:\t", 10), 1);
	assert_true(r.descriptors <=
		    7); /* 0, 1, 2, the socket, the file, kernel symbols and modules */
	if (getuid() != 0)
		return;
	assert_non_null(strstr(r.root, "/fdinfo"));
	assert_int_equal(status_field(r.status, "\nCapBnd:\t", 16), 0);
}

CHILD(open_files)
{
	const char *const paths[] = {"/", "/etc/passwd", "/proc/self/mem", "."};

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		if (open(paths[i], O_RDONLY) >= 0)
			return fail(why, -EEXIST, "%s", paths[i]);
	return write(CHILD_FIRST_FD + 1, "x", 1) > 0 ? -EEXIST : 0;
}

TEST(a_child_opens_no_file)
{
	assert_fails(open_files, 0, "");
}

/* `run` of a call that fails. */
static void read_without_limits(void *context)
{
	const struct perf_child_work work = {.read = read_well};
	_cleanup_close_ int fd = memory_with("perf.data", "12345678", 8);
	struct reading r = {};

	failure = (struct failure){};
	*(int *)context = perf_child__read(fd, false, &work, take_event, &r, &summary, &failure);
}

TEST(a_file_is_refused_if_its_reader_cannot_be_sandboxed)
{
	int err = 0;

	while_call_fails(SYS_prlimit64, EPERM, read_without_limits, &err);
	assert_int_equal(err, -EPERM);
	assert_string_equal(
		failure.what,
		"the process that reads it cannot be sandboxed: Operation not permitted");
}
