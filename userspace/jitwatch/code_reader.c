/* SPDX-License-Identifier: BSD-2-Clause */
#include "jitwatch/code_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/vec.h"
#include "runtimes/answers.h"
#include "runtimes/finder.h"
#include "stream/event_decode.h"

#define ANSWER_MAX (2u << 20) /* bytes of events */
#define KNOWN_MAX  16u	      /* processes that a reader remembers */

struct code_request {
	uint32_t pid, count;
	uint64_t started; /* distinguishes processes that had the number */
	struct code_question questions[CODE_QUESTIONS_MAX];
};
_Static_assert(sizeof(struct code_request) <= MESSAGE_SIZE_MAX, "it is one request");

struct code_answer {
	struct runtime_findings findings;
	int32_t result;
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

/* The process of the last request; a reader has one thread. */
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

/* NULL: nothing can be found. `again`: earlier findings may have changed. */
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
	struct code_answers answers = {.pid = request->pid, .limit = ANSWER_MAX};
	int fd, err = 0;

	found->memory = found_runtimes__memory(found);
	code_answers__begin(found);
	for (uint32_t i = 0; i < request->count && !err; i++)
		err = code_answers__add(&answers, found, &request->questions[i]);
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
	memset(&request, 0, offsetof(struct code_request, questions));
	if (job->request_size < offsetof(struct code_request, questions) ||
	    job->request_size > sizeof(request)) {
		answer->result = -EPROTO;
		return;
	}
	memcpy(&request, job->request, job->request_size);
	if (request.count > CODE_QUESTIONS_MAX) {
		answer->result = -EPROTO;
		return;
	}
	found = runtimes_of(&request, !request.count);
	if (!found) {
		answer->result = -ENODATA;
		return;
	}
	found_runtimes__describe(found, &answer->findings);
	answer->result = answer_all(found, &request, job);
}

/* ---- what comes back ------------------------------------------------------------------------- */

/* Bits of runtimes that are not listed, or whose words are not sound, go; so do states that there are none of. */
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

int code_reader__take_info(const struct helper_answer *from, struct runtime_findings *findings)
{
	struct code_answer answer;

	if (from->refusal || from->size != sizeof(answer))
		return -ENODATA;
	memcpy(&answer, from->data, sizeof(answer));
	if (answer.result)
		return -ENODATA;
	*findings = answer.findings;
	check_findings(findings);
	return 0;
}

static uint32_t pid_of(const struct event_header *event)
{
	if (event->type == EVENT_CODE_FUNCTION)
		return ((const struct code_function_event *)event)->pid;
	if (event->type == EVENT_CODE_CHAIN)
		return ((const struct code_chain_event *)event)->pid;
	return 0;
}

int code_reader__take_events(const struct helper_answer *answer, uint32_t pid, uint64_t time,
			     int (*push)(void *context, struct event_header *event), void *context)
{
	_cleanup_free_ char *bytes = NULL;
	struct stat st;
	size_t size;
	int err = 0;

	if (answer->refusal || !answer->fd_count || fstat(answer->fds[0], &st) || st.st_size <= 0 ||
	    st.st_size > ANSWER_MAX)
		return 0;
	size = (size_t)st.st_size;
	bytes = malloc(size);
	if (!bytes)
		return -ENOMEM;
	if (pread_full(answer->fds[0], bytes, size, 0) != (ssize_t)size)
		return 0;
	for (size_t at = 0; at < size && !err;) {
		struct event_header *event = (struct event_header *)(bytes + at);

		if (event_check(event, size - at) || pid_of(event) != pid)
			return 0;
		event->time = time;
		at += event->size;
		err = push(context, event);
	}
	return err;
}
