/* SPDX-License-Identifier: BSD-2-Clause */
#include "jitwatch/runtime_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/io.h"
#include "jitwatch/luajit.h"
#include "jitwatch/pypy.h"
#include "readers/reader_owner.h"
#include "readers/reader_pool.h"

#define ARRAY_MAX (64u << 20) /* bytes */

_Static_assert(LUAJIT_DISPATCH < RUNTIME_REGISTERS, "one of the registers of a request");

struct runtime_reader {
	runtime_answer_fn answer;
	void *context;
	struct reader_pool *pool; /* or NULL */
	unsigned int service;
};

int runtime_reader__new(runtime_answer_fn answer, void *context, struct reader_pool *pool,
			unsigned int service, struct runtime_reader **reader)
{
	struct runtime_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->answer = answer;
	r->context = context;
	r->pool = pool;
	r->service = service;
	*reader = r;
	return 0;
}

void runtime_reader__free(struct runtime_reader *r)
{
	free(r);
}

static bool is_valid(const struct runtime_request *request)
{
	return (unsigned int)request->question < RUNTIME_QUESTION_COUNT &&
	       request->runtime.state_count <= MADE_STATES_MAX &&
	       (request->areas || !request->area_count);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* *frames is the caller's. */
static void read_runtime(const struct runtime_request *request, struct runtime_answer *answer,
			 struct made_frame **frames)
{
	uint64_t cpu = thread_cpu_ns(), began = monotonic_ns();

	*answer = (struct runtime_answer){.question = request->question,
					  .ticket = request->ticket,
					  .runtime = request->runtime};
	switch (request->question) {
	case RUNTIME_LUAJIT_TRACES:
		answer->result = luajit__frames(&answer->runtime,
						request->registers[LUAJIT_DISPATCH], request->areas,
						request->area_count, frames, &answer->frame_count);
		break;
	case RUNTIME_PYPY_TRACES:
		answer->result = pypy__frames((pid_t)request->runtime.tgid, request->areas,
					      request->area_count, frames, &answer->frame_count);
		break;
	case RUNTIME_QUESTION_COUNT:
		break;
	}
	answer->frames = *frames;
	answer->cpu_ns = thread_cpu_ns() - cpu;
	answer->elapsed_ns = monotonic_ns() - began;
}

static void read_in_place(struct runtime_reader *r, const struct runtime_request *request)
{
	_cleanup_free_ struct made_frame *frames = NULL;
	struct runtime_answer answer;

	read_runtime(request, &answer, &frames);
	r->answer(r->context, &answer);
}

/* ---- arrays between processes ---------------------------------------------------------------- */

/* A descriptor of a copy of so many bytes; -1 of none; negative errno. */
static int share_bytes(const void *data, size_t size)
{
	_cleanup_close_ int fd = size ? memfd_create("sysprof-array", MFD_CLOEXEC) : -1;
	int err;

	if (!size)
		return -1;
	if (fd < 0)
		return -errno;
	err = write_full(fd, data, size);
	return err ? err : steal_fd(fd);
}

/* A copy of so many bytes of it, the caller's. 0, -ENODATA: it has fewer; -ENOMEM. */
static int take_bytes(int fd, size_t count, size_t size, void **data)
{
	_cleanup_free_ void *copy = NULL;

	*data = NULL;
	if (!count)
		return 0;
	if (count > ARRAY_MAX / size)
		return -ENODATA;
	copy = malloc(count * size);
	if (!copy)
		return -ENOMEM;
	if (pread_full(fd, copy, count * size, 0) != (ssize_t)(count * size))
		return -ENODATA;
	*data = steal_ptr(copy);
	return 0;
}

/* ---- in a reader ----------------------------------------------------------------------------- */

void runtime_reader__serve(struct reader_job *job)
{
	_cleanup_free_ struct made_frame *frames = NULL;
	_cleanup_free_ void *areas = NULL;
	struct runtime_answer *answer = job->answer;
	struct runtime_request request;
	int fd;

	job->answer_size = sizeof(*answer);
	if (job->request_size != sizeof(request)) {
		answer->result = -EPROTO;
		return;
	}
	memcpy(&request, job->request, sizeof(request));
	answer->result = take_bytes(job->fd_count ? job->fds[0] : -1, request.area_count,
				    sizeof(*request.areas), &areas);
	if (answer->result)
		return;
	request.areas = areas;
	read_runtime(&request, answer, &frames);
	fd = share_bytes(frames, answer->frame_count * sizeof(*frames));
	answer->frames = NULL;
	if (fd >= 0)
		job->answer_fds[job->answer_fd_count++] = fd;
	else
		answer->frame_count = 0;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* What is asked of a reader process. */
struct asked_runtime {
	struct runtime_reader *reader;
	struct runtime_request request; /* without its areas */
};

/* As they are promised to be; they come from another process. */
static bool frames_are_sound(const struct made_frame *frames, size_t count)
{
	uint64_t end = 0;

	for (size_t i = 0; i < count; i++) {
		if (frames[i].start < end || frames[i].end <= frames[i].start)
			return false;
		end = frames[i].end;
	}
	return true;
}

static void take_answer(const struct asked_runtime *asked, const struct reader_answer *from,
			struct runtime_answer *answer, void **frames)
{
	const struct runtime_request *request = &asked->request;

	if (from->refusal || from->size != sizeof(*answer)) {
		answer->result = -ETIMEDOUT;
	} else {
		memcpy(answer, from->data, sizeof(*answer));
		answer->frames = NULL;
		if (answer->runtime.state_count > MADE_STATES_MAX || answer->result > 0)
			*answer = (struct runtime_answer){.result = -EPROTO};
	}
	if (!answer->result)
		answer->result = take_bytes(from->fd_count ? from->fds[0] : -1, answer->frame_count,
					    sizeof(*answer->frames), frames);
	if (!answer->result && !frames_are_sound(*frames, answer->frame_count))
		answer->result = -EPROTO;
	if (answer->result) {
		answer->runtime = request->runtime;
		answer->frame_count = 0;
	}
	answer->runtime.tgid = request->runtime.tgid;
	answer->runtime.by = request->runtime.by;
	answer->frames = *frames;
	answer->question = request->question;
	answer->ticket = request->ticket;
}

/* A reader_answer_fn. */
static void answer_asked(void *context, const struct reader_answer *from)
{
	_cleanup_free_ struct asked_runtime *asked = context;
	_cleanup_free_ void *frames = NULL;
	struct runtime_answer answer = {};

	take_answer(asked, from, &answer, &frames);
	asked->reader->answer(asked->reader->context, &answer);
}

static int ask_pool(struct runtime_reader *r, const struct runtime_request *request)
{
	_cleanup_close_ int areas = share_bytes(request->areas,
						request->area_count * sizeof(*request->areas));
	struct asked_runtime *asked = areas < -1 ? NULL : malloc(sizeof(*asked));
	struct reader_request to_pool;
	int err;

	if (!asked)
		return -ENOMEM;
	*asked = (struct asked_runtime){r, *request};
	asked->request.areas = NULL;
	to_pool = (struct reader_request){
		.service = r->service,
		.owner = reader_owner((pid_t)request->runtime.tgid),
		.data = &asked->request,
		.size = sizeof(asked->request),
		.fds = &areas,
		.fd_count = areas >= 0,
		.answer = answer_asked,
		.context = asked,
	};
	err = reader_pool__ask(r->pool, &to_pool);
	if (err)
		free(asked);
	return err;
}

int runtime_reader__ask(struct runtime_reader *r, const struct runtime_request *request)
{
	if (!is_valid(request))
		return -EINVAL;
	if (r->pool)
		return ask_pool(r, request);
	read_in_place(r, request);
	return 0;
}
