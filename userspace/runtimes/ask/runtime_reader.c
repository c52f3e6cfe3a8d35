/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/ask/runtime_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/io.h"
#include "base/minmax.h"
#include "runtimes/answers.h"
#include "runtimes/table.h"
#include "stream/event_decode.h"
#include "tenants/owner.h"

#define ARRAY_MAX (64u << 20) /* bytes */

struct frames_request {
	struct made_runtime runtime;
	uint64_t registers[RUNTIME_REGISTERS]; /* all 0: none */
	uint64_t area_count;		       /* in a descriptor */
};

struct frames_answer {
	struct made_runtime runtime;
	uint64_t count; /* of frames, in a descriptor */
	uint64_t cpu_ns, elapsed_ns;
	int32_t result;
};

/* ---- arrays between processes ---------------------------------------------------------------- */

/* A descriptor of a copy; -1 for no bytes; negative errno. */
static int share_bytes(const void *data, size_t size)
{
	return size ? memory_with("sysprof-array", data, size) : -1;
}

/* Copies `count` elements; the caller frees. 0; -ENODATA: too few or too many; -ENOMEM. */
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

int runtime_reader__read(const struct frame_sizes_request *request, struct made_frame **frames,
			 size_t *count)
{
	const struct runtime *runtime = runtime_of_made_code(request->runtime->by);

	return runtime ? runtime->frame_sizes(request, frames, count) : -EINVAL;
}

void runtime_reader__serve(struct helper_job *job)
{
	_cleanup_free_ struct made_frame *frames = NULL;
	_cleanup_free_ void *areas = NULL;
	uint64_t cpu = thread_cpu_ns(), began = monotonic_ns();
	struct frames_answer *answer = job->answer;
	struct frames_request request;
	size_t count = 0;
	int fd;

	job->answer_size = sizeof(*answer);
	answer->result = -EPROTO;
	if (job->request_size != sizeof(request))
		return;
	memcpy(&request, job->request, sizeof(request));
	if (request.runtime.state_count > MADE_STATES_MAX)
		return;
	answer->result = take_bytes(job->fd_count ? job->fds[0] : -1, request.area_count,
				    sizeof(struct made_area), &areas);
	if (answer->result)
		return;
	answer->runtime = request.runtime;
	answer->result = runtime_reader__read(
		&(struct frame_sizes_request){&answer->runtime, request.registers, areas,
					      request.area_count},
		&frames, &count);
	answer->cpu_ns = thread_cpu_ns() - cpu;
	answer->elapsed_ns = monotonic_ns() - began;
	fd = share_bytes(frames, count * sizeof(*frames));
	if (fd < 0)
		return;
	job->answer_fds[job->answer_fd_count++] = fd;
	answer->count = count;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* The part of a request that its answer needs. */
struct pending_request {
	uint64_t ticket;
	struct made_runtime runtime;
	made_answer_fn answer;
	void *context;
};

/* Ascending and disjoint. They come from another process. */
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

/* 0, or why there are no frames. */
static int take_frames(const struct helper_answer *from, struct frames_answer *answer,
		       void **frames)
{
	int err;

	if (from->refusal || from->size != sizeof(*answer))
		return -ETIMEDOUT;
	memcpy(answer, from->data, sizeof(*answer));
	if (answer->runtime.state_count > MADE_STATES_MAX || answer->result > 0)
		return -EPROTO;
	if (answer->result)
		return answer->result;
	err = take_bytes(from->fd_count ? from->fds[0] : -1, answer->count,
			 sizeof(struct made_frame), frames);
	return err || frames_are_sound(*frames, answer->count) ? err : -EPROTO;
}

/* A helper_answer_fn. */
static void deliver_answer(void *context, const struct helper_answer *from)
{
	_cleanup_free_ struct pending_request *pending = context;
	_cleanup_free_ void *frames = NULL;
	struct frames_answer taken = {};
	struct made_answer answer = {.ticket = pending->ticket, .runtime = &pending->runtime};

	answer.result = take_frames(from, &taken, &frames);
	answer.cpu_ns = taken.cpu_ns;
	answer.elapsed_ns = taken.elapsed_ns;
	if (!answer.result) {
		taken.runtime.tgid = pending->runtime.tgid;
		taken.runtime.by = pending->runtime.by;
		answer.runtime = &taken.runtime;
		answer.frames = frames;
		answer.count = taken.count;
	}
	pending->answer(pending->context, &answer);
}

int runtime_reader__request(struct helper_pool *pool, unsigned int service,
			    const struct made_request *request, made_answer_fn answer,
			    void *context)
{
	struct frames_request sent = {.runtime = *request->runtime,
				      .area_count = request->area_count};
	_cleanup_free_ struct pending_request *pending = NULL;
	_cleanup_close_ int areas = -1;
	int err;

	if (sent.runtime.state_count > MADE_STATES_MAX)
		return -EINVAL;
	if (request->registers)
		memcpy(sent.registers, request->registers, sizeof(sent.registers));
	areas = share_bytes(request->areas, request->area_count * sizeof(*request->areas));
	pending = areas < -1 ? NULL : malloc(sizeof(*pending));
	if (!pending)
		return -ENOMEM;
	*pending = (struct pending_request){request->ticket, *request->runtime, answer, context};
	err = helper_pool__request(pool,
				   &(struct helper_request){
					   .service = service,
					   .owner = helper_owner((pid_t)request->runtime->tgid),
					   .data = &sent,
					   .size = sizeof(sent),
					   .fds = &areas,
					   .fd_count = areas >= 0,
					   .answer = deliver_answer,
					   .context = pending,
				   });
	if (!err)
		steal_ptr(pending);
	return err;
}

/* ---- functions ------------------------------------------------------------------------------- */

#define ANSWER_MAX (2u << 20) /* bytes of events */
#define KNOWN_MAX  64u	      /* processes that a reader remembers */

struct code_request {
	uint32_t pid, count;
	uint64_t started; /* distinguishes processes with the same pid */
	struct code_question questions[CODE_QUESTIONS_MAX];
};
_Static_assert(sizeof(struct code_request) <= MESSAGE_SIZE_MAX, "it is one request");

struct code_answer {
	struct runtime_findings findings;
	int32_t result;
	uint32_t left;	/* questions whose answer a limit cut short, or left out */
	uint64_t ended; /* when it had been read */
};

/* ---- requests -------------------------------------------------------------------------------- */

int code_reader__request(struct helper_pool *pool, unsigned int service, uint32_t pid,
			 uint64_t owner, uint64_t started, const struct code_question *questions,
			 size_t count, helper_answer_fn answer, void *context)
{
	struct code_request request = {.pid = pid, .count = count, .started = started};

	if (count > CODE_QUESTIONS_MAX)
		return -EINVAL;
	if (count)
		memcpy(request.questions, questions, count * sizeof(*questions));
	return helper_pool__request(pool, &(struct helper_request){
						  .service = service,
						  .owner = owner,
						  .data = &request,
						  .size = offsetof(struct code_request, questions) +
							  count * sizeof(*questions),
						  .answer = answer,
						  .context = context,
					  });
}

/* ---- in a reader ----------------------------------------------------------------------------- */

/* A process of an earlier request; a reader has one thread. */
struct cached_process {
	uint64_t started, used;
	struct found_runtimes found; /* pid 0: free */
};

static struct cached_process *forget_oldest(struct cached_process *known)
{
	struct cached_process *oldest = &known[0];

	for (size_t i = 1; i < KNOWN_MAX; i++)
		if (known[i].used < oldest->used)
			oldest = &known[i];
	found_runtimes__fini(&oldest->found);
	*oldest = (struct cached_process){};
	return oldest;
}

/* NULL: it cannot be read. `again`: search again, not in the cache. */
static struct found_runtimes *runtimes_of(const struct code_request *request, bool again)
{
	static struct cached_process known[KNOWN_MAX];
	static uint64_t uses;
	struct cached_process *process = NULL;

	for (size_t i = 0; i < KNOWN_MAX; i++)
		if (known[i].found.pid == (pid_t)request->pid &&
		    known[i].started == request->started)
			process = &known[i];
	if (process && again) {
		found_runtimes__fini(&process->found);
		*process = (struct cached_process){};
		process = NULL;
	}
	if (!process) {
		process = forget_oldest(known);
		if (runtime_finder__look((pid_t)request->pid, &process->found)) {
			found_runtimes__fini(&process->found);
			return NULL;
		}
		process->started = request->started;
	}
	process->used = ++uses;
	return &process->found;
}

static int answer_all(struct found_runtimes *found, const struct code_request *request,
		      struct helper_job *job)
{
	struct code_answer *answer = job->answer;
	struct code_answers answers = {.pid = request->pid, .limit = ANSWER_MAX};
	uint32_t i;
	int fd, err = 0;

	found->memory = found_runtimes__memory(found);
	code_answers__begin(found);
	for (i = 0; i < request->count && !err; i++)
		err = code_answers__add(&answers, found, &request->questions[i]);
	answer->left = answers.left + request->count - i;
	fd = err == -ENOMEM || !answers.bytes.count
		     ? -1
		     : memory_with("sysprof-code", answers.bytes.data, answers.bytes.count);
	if (fd >= 0)
		job->answer_fds[job->answer_fd_count++] = fd;
	code_answers__fini(&answers);
	return err == -ENOMEM ? err : 0;
}

void code_reader__serve(struct helper_job *job)
{
	struct code_answer *answer = job->answer;
	struct code_request request;
	struct found_runtimes *found;

	job->answer_size = sizeof(*answer);
	answer->result = -EPROTO;
	if (job->request_size < offsetof(struct code_request, questions) ||
	    job->request_size > sizeof(request))
		return;
	memcpy(&request, job->request, job->request_size);
	if (request.count > CODE_QUESTIONS_MAX)
		return;
	found = runtimes_of(&request, !request.count);
	if (!found) {
		answer->result = -ENODATA;
		return;
	}
	found_runtimes__describe(found, &answer->findings);
	answer->result = answer_all(found, &request, job);
	answer->ended = monotonic_ns();
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Clears bits of runtimes that are not listed or whose words are not sound, and unknown states. */
static void check_findings(struct runtime_findings *findings)
{
	const struct runtime_memory *memory;
	uint32_t sound = 0;

	for (unsigned int i = 0; (memory = runtime_memory(i)); i++) {
		if (!memory->is_sound || memory->is_sound(&findings->info))
			sound |= memory->bits;
		if (findings->of[i].state >= CODE_RUNTIME_STATE_COUNT)
			findings->of[i] = (struct runtime_finding){};
	}
	findings->info.has &= sound;
}

/* The result is -ENODATA if there is none. */
static struct code_answer answer_of(const struct helper_answer *from)
{
	struct code_answer answer = {.result = -ENODATA};

	if (!from->refusal && from->size == sizeof(answer))
		memcpy(&answer, from->data, sizeof(answer));
	return answer;
}

int code_reader__take_info(const struct helper_answer *from, struct runtime_findings *findings)
{
	struct code_answer answer = answer_of(from);

	if (answer.result)
		return -ENODATA;
	*findings = answer.findings;
	check_findings(findings);
	return 0;
}

uint32_t code_reader__left(const struct helper_answer *from)
{
	return min_u64(answer_of(from).left, CODE_QUESTIONS_MAX);
}

static uint32_t pid_of(const struct event_header *event)
{
	if (event->type == EVENT_CODE_FUNCTION)
		return ((const struct code_function_event *)event)->pid;
	if (event->type == EVENT_CODE_CHAIN)
		return ((const struct code_chain_event *)event)->pid;
	return 0;
}

int code_reader__take_events(const struct helper_answer *answer, uint32_t pid, uint64_t requested,
			     int (*push)(void *context, struct event_header *event), void *context)
{
	/* whatever a reader says */
	uint64_t time = max_u64(min_u64(answer_of(answer).ended, monotonic_ns()), requested);
	_cleanup_free_ void *bytes = NULL;
	struct stat st;
	size_t size;
	int err;

	if (answer->refusal || !answer->fd_count || fstat(answer->fds[0], &st) || st.st_size <= 0 ||
	    st.st_size > ANSWER_MAX)
		return 0;
	size = (size_t)st.st_size;
	err = take_bytes(answer->fds[0], size, 1, &bytes);
	for (size_t at = 0; at < size && !err;) {
		struct event_header *event = (void *)((char *)bytes + at);

		if (event_check(event, size - at) || pid_of(event) != pid)
			return -ENODATA;
		event->time = time;
		at += event->size;
		err = push(context, event);
	}
	return err;
}
