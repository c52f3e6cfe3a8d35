/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The child writes pieces to its socket: whole events, as they are in memory, and last a report. The
 * parent makes the profile meanwhile, so that two CPUs share the work.
 *
 * Anything wrong in a piece ends the reading, where damage in a recording is skipped: only a child
 * that a file has taken over sends such a piece.
 */
#include "stream/perf/perf_child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/io.h"
#include "base/minmax.h"
#include "stream/event_decode.h"
#include "stream/perf/perf_file.h"
#include "stream/perf/perf_kernel.h"
#include "stream/perf/perf_unpack.h"
#include "tenants/filter.h"
#include "tenants/helper_process.h"

#define PIECE_FULL	 (64u << 10)
#define PIECE_MAX	 (PIECE_FULL + EVENT_LIVE_MAX)
#define POLL_MS		 100
#define CPU_SECONDS_BASE 30
#define BYTES_PER_SECOND (1ull << 20) /* of a file, which may be compressed, at the least */

/* An event is less than so many times its record; the kernel's symbols are in no record. */
#define EVENT_GROWTH	    16
#define EVENTS_FREE	    (128ull << 20)
#define SIZE_MAX_FOR_LIMITS (1ull << 48)

struct piece {
	uint32_t size; /* of the bytes that follow */
	uint32_t is_report;
};

/* The last piece. */
struct report {
	int64_t error;
	struct perf_data_summary summary;
	struct failure why;
};

/* ---- the child ------------------------------------------------------------------------------- */

struct request {
	perf_read_fn read;
	bool copies;
	struct running_kernel kernel;
};

struct piece_writer {
	struct piece head;
	char bytes[PIECE_MAX];
};

static int write_piece(struct piece_writer *w, bool is_report)
{
	int err;

	w->head.is_report = is_report;
	err = write_full(CHILD_SOCKET, w, sizeof(w->head) + w->head.size);
	w->head.size = 0;
	return err;
}

/* An event_sink_fn. */
static int write_event(void *writer, const struct event_header *event)
{
	struct piece_writer *w = writer;

	memcpy(w->bytes + w->head.size, event, event->size);
	w->head.size += event->size;
	return w->head.size < PIECE_FULL ? 0 : write_piece(w, false);
}

static int write_report(struct piece_writer *w, const struct report *report)
{
	int err = w->head.size ? write_piece(w, false) : 0;

	memcpy(w->bytes, report, sizeof(*report));
	w->head.size = sizeof(*report);
	return err ?: write_piece(w, true);
}

/* 0, or negative errno: the process is not sandboxed. */
static int seal(const struct child_self *self)
{
	struct filter *filter = self->confined ? NULL : filter__new(HELPER_FILTER_WORKER);
	int err = self->confined ?: filter__enter(filter);

	filter__free(filter);
	return err;
}

static int run_child(const struct child_self *self)
{
	static struct piece_writer writer;
	struct request request = *(const struct request *)self->data;
	struct report report = {.error = seal(self)};

	/* their numbers here; those that are negative were not passed */
	if (request.kernel.kallsyms >= 0)
		request.kernel.kallsyms = CHILD_FIRST_FD + 1;
	if (request.kernel.modules >= 0)
		request.kernel.modules = CHILD_FIRST_FD + 2;
	if (report.error)
		fail(&report.why, 0, "the process that reads it cannot be sandboxed: %s",
		     strerror((int)-report.error));
	else
		report.error =
			request.read(CHILD_FIRST_FD,
				     &(struct perf_data_options){request.copies, &request.kernel},
				     write_event, &writer, &report.summary, &report.why);
	return write_report(&writer, &report) ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- the parent ------------------------------------------------------------------------------ */

struct perf_child {
	struct helper_process process;
	unsigned int cpu_seconds;
	uint64_t silence;
	uint64_t left; /* bytes that it may still send */
	uint64_t last; /* time of the last event */
	bool is_gone;  /* it has ended without a report, or makes no progress */
	event_sink_fn sink;
	void *context;
	char *bytes; /* of a piece */
	struct report report;
	struct failure *failure;
};

/* Until it has sent something, or has ended. 0; -ETIMEDOUT: it makes no progress. */
static int await_bytes(struct perf_child *c)
{
	struct pollfd wait = {.fd = c->process.socket, .events = POLLIN};

	if (poll(&wait, 1, POLL_MS) > 0)
		return 0;
	return liveness__is_stuck(&c->process.liveness, c->process.pid, monotonic_ns(), c->silence)
		       ? -ETIMEDOUT
		       : 0;
}

/* 0; -EIO: it has ended; -ETIMEDOUT. */
static int receive(struct perf_child *c, void *to, size_t size)
{
	size_t at = 0;
	int err = 0;

	while (at < size && !err) {
		ssize_t got = recv(c->process.socket, (char *)to + at, size - at, MSG_DONTWAIT);

		if (got > 0) {
			at += (size_t)got;
			c->process.liveness.since = monotonic_ns();
		} else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
			err = await_bytes(c);
		} else {
			err = -EIO;
		}
	}
	c->is_gone |= err != 0;
	return err;
}

static int refuse(struct perf_child *c)
{
	return fail(c->failure, -EBADMSG, "the process that reads it sent invalid data");
}

static bool is_of_perf_data(unsigned int type)
{
	switch (type) {
	case EVENT_SAMPLE:
	case EVENT_MMAP:
	case EVENT_COMM:
	case EVENT_FORK:
	case EVENT_EXIT:
	case EVENT_LOST:
	case EVENT_CLOCK_ANCHOR:
	case EVENT_META:
	case EVENT_KALLSYMS:
	case EVENT_END:
		return true;
	default:
		return false;
	}
}

static int take_events(struct perf_child *c, size_t size)
{
	int err = 0;

	for (size_t at = 0; at < size && !err;) {
		struct event_header *event = (struct event_header *)(c->bytes + at);

		if (event_check(event, size - at) || !is_of_perf_data(event->type) ||
		    event->time < c->last)
			return refuse(c);
		/* a number of this process: in no recording either */
		if (event->type == EVENT_MMAP)
			((struct mmap_event *)event)->file = 0;
		c->last = event->time;
		at += event->size;
		err = c->sink(c->context, event);
	}
	return err;
}

static int take_report(struct perf_child *c, size_t size)
{
	struct report *r = &c->report;

	if (size != sizeof(*r))
		return refuse(c);
	memcpy(r, c->bytes, sizeof(*r));
	r->why.what[sizeof(r->why.what) - 1] = '\0';
	if (r->error > 0 || r->error < -4095 ||
	    (unsigned int)r->summary.kernel_names > PERF_KERNEL_HIDDEN)
		return refuse(c);
	return r->error ? fail(c->failure, (int)r->error, "%s", r->why.what) : 0;
}

static int take_piece(struct perf_child *c, const struct piece *head)
{
	int err;

	if (head->size > PIECE_MAX || head->is_report > 1)
		return refuse(c);
	if (head->size + sizeof(*head) > c->left)
		return fail(c->failure, -EFBIG,
			    "the process that reads it sent more than such a file can have");
	c->left -= head->size + sizeof(*head);
	err = receive(c, c->bytes, head->size);
	if (err)
		return err;
	return head->is_report ? take_report(c, head->size) : take_events(c, head->size);
}

static int read_pieces(struct perf_child *c)
{
	struct piece head;
	int err;

	do
		err = receive(c, &head, sizeof(head)) ?: take_piece(c, &head);
	while (!err && !head.is_report);
	return err;
}

static int explain_end(const struct perf_child *c, int err, int status)
{
	if (err == -ETIMEDOUT)
		return fail(c->failure, err, "the process that reads it makes no progress");
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
		return fail(c->failure, err,
			    "the process that reads it took more than %u s of CPU time",
			    c->cpu_seconds);
	if (WIFSIGNALED(status))
		return fail(c->failure, err, "the process that reads it was ended by signal %d",
			    WTERMSIG(status));
	return fail(c->failure, err, "the process that reads it ended with status %d",
		    WEXITSTATUS(status));
}

static int end_child(struct perf_child *c, int err)
{
	int status = 0;

	helper_process__end(&c->process, REAP_NS, &status, NULL);
	return c->is_gone ? explain_end(c, err, status) : err;
}

static int start_child(struct perf_child *c, int fd, struct request *request)
{
	int fds[3] = {fd}, err;
	struct child_plan plan = {
		.class = HELPER_PERF_READER,
		.run = run_child,
		.type = SOCK_STREAM,
		.fds = fds,
		.fd_count = 3,
		.data = request,
		.size = sizeof(*request),
		.confine = {.cpu_seconds = c->cpu_seconds},
	};

	running_kernel__open(&request->kernel);
	fds[1] = request->kernel.kallsyms;
	fds[2] = request->kernel.modules;
	perf_unpack__prepare();
	err = helper_process__start(&c->process, NULL, &plan);
	running_kernel__close(&request->kernel);
	return err ? fail(c->failure, err, "no process can be started to read it: %s",
			  strerror(-err))
		   : 0;
}

int perf_child__read(int fd, bool copies, const struct perf_child_work *work, event_sink_fn sink,
		     void *context, struct perf_data_summary *summary, struct failure *failure)
{
	static const struct perf_child_work usual = {};
	const struct perf_child_work *w = work ?: &usual;
	_cleanup_free_ char *bytes = malloc(PIECE_MAX);
	struct request request = {.read = w->read ?: perf_data_read, .copies = copies};
	struct perf_child c = {
		.sink = sink, .context = context, .bytes = bytes, .failure = failure};
	struct stat st;
	uint64_t size;
	int err;

	*summary = (struct perf_data_summary){};
	if (!bytes)
		return -ENOMEM;
	if (fstat(fd, &st))
		return fail(failure, -errno, "%s", strerror(errno));
	size = min_u64((uint64_t)st.st_size, SIZE_MAX_FOR_LIMITS);
	c.cpu_seconds = w->cpu_seconds
				?: CPU_SECONDS_BASE + (unsigned int)(size / BYTES_PER_SECOND);
	c.silence = w->silence ?: helper_classes[HELPER_PERF_READER].silence;
	c.left = EVENTS_FREE + EVENT_GROWTH * (size * PERF_UNPACK_RATIO + PERF_UNPACK_FREE);
	err = start_child(&c, fd, &request);
	if (err)
		return err;
	err = end_child(&c, read_pieces(&c));
	*summary = c.report.summary;
	return err;
}
