/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/proc/fact_reader.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include <sysprof/event.h>

#include "base/cleanup.h"
#include "base/proc_task.h"
#include "base/suffix.h"
#include "live/proc/command_line.h"
#include "live/proc/environment.h"
#include "live/proc/otel_context.h"

struct facts_question {
	uint32_t names_size;
	uint32_t with_context;
	char names[FACT_NAMES_MAX];
};

struct facts_answer {
	uint32_t count, size, left, unused;
	char text[PROCESS_FACTS_SIZE - 16];
};

_Static_assert(sizeof(struct facts_question) <= MESSAGE_SIZE_MAX, "a request");
_Static_assert(sizeof(struct facts_answer) <= MESSAGE_SIZE_MAX, "an answer");

/* ---- in a reader ----------------------------------------------------------------------------- */

static void read_environment(int dir, const struct facts_question *q, struct fact_text *facts)
{
	_cleanup_free_ char *text = malloc(ENVIRONMENT_SIZE_MAX);
	ssize_t size = text ? proc_read_small(dir, "environ", text, ENVIRONMENT_SIZE_MAX) : 0;

	facts->left += size == ENVIRONMENT_SIZE_MAX;
	if (size > 0)
		environment__pick(text, size, q->names, q->names_size, facts);
}

static void read_command_line(int dir, struct fact_text *facts)
{
	char path[PATH_MAX], subject[COMMAND_SUBJECT_SIZE];
	ssize_t length = readlinkat(dir, "exe", path, sizeof(path) - 1), size;
	_cleanup_free_ char *text = NULL;
	struct arguments words;
	const char *program = path;
	bool is_loader;

	if (length <= 0)
		return;
	path[length] = '\0';
	path[mapping_path_length(path)] = '\0';
	is_loader = is_loader_path(path);
	if (!is_loader && !command_is_interpreter(path_base(path)))
		return;
	text = malloc(COMMAND_LINE_SIZE_MAX);
	size = text ? proc_read_small(dir, "cmdline", text, COMMAND_LINE_SIZE_MAX) : 0;
	words = (struct arguments){text, text + (size > 0 ? size : 0)};
	if (is_loader && command_line__skip_loader(&words)) {
		program = words.at;
		fact_text__add(facts, "exe", "", program, strlen(program));
	}
	if (!command_is_interpreter(path_base(program)))
		return;
	if (size > 0 &&
	    command_line__subject(path_base(program), words.at, words.end - words.at, subject))
		fact_text__add(facts, "script", "", subject, strlen(subject));
	else /* the subject may be behind what was read */
		facts->left += size == COMMAND_LINE_SIZE_MAX;
}

void fact_reader__serve(struct helper_job *job)
{
	const struct facts_question *q = job->request;
	struct facts_answer *answer = job->answer;
	struct fact_text facts = {
		.text = answer->text, .room = sizeof(answer->text), .most = PROCESS_FACTS_MAX - 1};

	job->answer_size = sizeof(*answer);
	if (job->request_size != sizeof(*q) || job->fd_count != 1 ||
	    q->names_size > sizeof(q->names))
		return;
	/* first what is small: a long environment must not take its room */
	read_command_line(job->fds[0], &facts);
	if (q->with_context)
		otel_context__read(job->fds[0], &facts);
	read_environment(job->fds[0], q, &facts);
	answer->count = facts.count;
	answer->size = (uint32_t)facts.size;
	answer->left = facts.left;
}

/* ---- requests -------------------------------------------------------------------------------- */

int fact_reader__request(struct helper_pool *pool, unsigned int service, uint64_t owner, int dir,
			 const char *names, size_t names_size, bool with_context,
			 helper_answer_fn answer, void *context)
{
	_cleanup_free_ struct facts_question *q = calloc(1, sizeof(*q));
	struct helper_request request;

	if (!q)
		return -ENOMEM;
	if (names_size > sizeof(q->names))
		return -EINVAL;
	q->names_size = (uint32_t)names_size;
	q->with_context = with_context;
	memcpy(q->names, names, names_size);
	request = (struct helper_request){
		.service = service,
		.owner = owner,
		.data = q,
		.size = sizeof(*q),
		.fds = &dir,
		.fd_count = 1,
		.answer = answer,
		.context = context,
	};
	return helper_pool__request(pool, &request);
}

bool fact_reader__take(const struct helper_answer *from, struct fact_text *facts)
{
	struct facts_answer answer;
	const char *at = answer.text, *end, *zero, *value;

	if (from->refusal || from->size != sizeof(answer))
		return false;
	memcpy(&answer, from->data, sizeof(answer));
	if (answer.size > sizeof(answer.text))
		return false;
	end = at + answer.size;
	for (uint32_t i = 0; i < answer.count; i++) {
		zero = memchr(at, '\0', end - at);
		value = zero ? zero + 1 : end;
		if (value == end || !(zero = memchr(value, '\0', end - value)))
			return false;
		fact_text__add(facts, "", at, value, zero - value);
		at = zero + 1;
	}
	facts->left += answer.left;
	return at == end;
}
