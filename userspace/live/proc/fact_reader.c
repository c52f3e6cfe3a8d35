/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/proc/fact_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <sysprof/event.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/proc_task.h"
#include "base/suffix.h"
#include "live/proc/command_line.h"
#include "live/proc/environment.h"
#include "live/proc/otel_context.h"
#include "live/proc/process_facts.h"
#include "services/cgroup_path.h"
#include "services/containers.h"

#define FACT_NAMES_MAX 4096u /* bytes of all names of variables */
#define FACT_OWNERS    4u    /* also wanted */
#define EXECVE_WAITS   5
#define EXECVE_WAIT_US 1000u

struct fact_readers {
	struct helper_pool *pool;
	unsigned int service;
	struct users *users; /* NULL: owners are not wanted */
	char names[FACT_NAMES_MAX];
	size_t names_size;
};

struct facts_question {
	uint32_t names_size;
	uint32_t wanted; /* FACT_… */
	char names[FACT_NAMES_MAX];
};

struct facts_answer {
	uint32_t count, size, left, unused;
	char text[PROCESS_FACTS_SIZE - 16];
};

_Static_assert(sizeof(struct facts_question) <= MESSAGE_SIZE_MAX, "a request");
_Static_assert(sizeof(struct facts_answer) <= MESSAGE_SIZE_MAX, "an answer");

/* ---- in a reader ----------------------------------------------------------------------------- */

/*
 * An execve that is under way has set the program's file, and the memory has neither arguments nor
 * environment yet. What stays like this is read as it is.
 */
static void await_program(int dir)
{
	char byte, path[PATH_MAX];

	for (int i = 0; i < EXECVE_WAITS; i++) {
		if (proc_read_small(dir, "cmdline", &byte, 1) ||
		    proc_read_small(dir, "environ", &byte, 1) || !fact_reading__program(dir, path))
			return;
		usleep(EXECVE_WAIT_US);
	}
}

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
	_cleanup_free_ char *text = NULL;
	struct arguments words;
	const char *program = path;
	bool is_loader;
	ssize_t size;

	if (!fact_reading__program(dir, path))
		return;
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

/* One of each helper process, which reads files of a container once. */
static const struct container_names *find_container(const char *group)
{
	static struct containers *containers;
	struct cgroup_place place;

	cgroup_place__of_process(&place, group);
	if (!containers && containers__new("/", &containers))
		return NULL;
	return containers__find(containers, place.container, place.pod_uid, monotonic_ns());
}

static void read_container(int dir, struct fact_text *facts)
{
	char text[CGROUP_TEXT_MAX], path[EVENT_PATH_MAX];
	ssize_t size = proc_read_small(dir, "cgroup", text, sizeof(text));
	size_t length = 0;
	const char *group = size > 0 ? proc_parse_cgroup(text, size, &length) : NULL;
	const struct container_names *names;

	if (!group || length >= sizeof(path))
		return;
	memcpy(path, group, length);
	path[length] = '\0';
	names = find_container(path);
	if (!names)
		return;
#define X(field, key)                                                                              \
	if (names->field)                                                                          \
		fact_text__add(facts, CONTAINER_FACT, key, names->field, CONTAINER_TEXT_MAX);
	CONTAINER_NAMES(X)
#undef X
}

void fact_reader__serve(struct helper_job *job)
{
	const struct facts_question *q = job->request;
	struct facts_answer *answer = job->answer;
	struct fact_text facts = {
		.text = answer->text, .room = sizeof(answer->text), .most = PROCESS_FACTS_MAX - 2};

	job->answer_size = sizeof(*answer);
	if (job->request_size != sizeof(*q) || job->fd_count != 1 ||
	    q->names_size > sizeof(q->names))
		return;
	if (q->wanted & FACT_HELD)
		await_program(job->fds[0]);
	/* first what is small: a long environment must not take its room */
	read_command_line(job->fds[0], &facts);
	if (q->wanted & FACT_OWNERS)
		read_container(job->fds[0], &facts);
	if (q->wanted & FACT_CONTEXT)
		otel_context__read(job->fds[0], &facts);
	read_environment(job->fds[0], q, &facts);
	answer->count = facts.count;
	answer->size = (uint32_t)facts.size;
	answer->left = facts.left;
}

/* ---- readings -------------------------------------------------------------------------------- */

static int add_name(struct fact_readers *f, const char *name)
{
	size_t size = strlen(name) + 1;

	if (!environment_name_is_valid(name) || size > sizeof(f->names) - f->names_size)
		return -EINVAL;
	memcpy(f->names + f->names_size, name, size);
	f->names_size += size;
	return 0;
}

int fact_readers__new(const struct fact_readers_options *options, struct fact_readers **readers)
{
	struct fact_readers *f = calloc(1, sizeof(*f));
	int err = !f ? -ENOMEM : options->owners ? users__new("/etc/passwd", &f->users) : 0;

	for (const char *const *name = environment_names; *name && !err; name++)
		err = add_name(f, *name);
	for (size_t i = 0; i < options->name_count && !err; i++)
		err = add_name(f, options->names[i]);
	if (err) {
		fact_readers__free(f);
		return err;
	}
	f->pool = options->pool;
	f->service = options->service;
	*readers = f;
	return 0;
}

void fact_readers__free(struct fact_readers *f)
{
	if (!f)
		return;
	users__free(f->users);
	free(f);
}

bool fact_reading__program(int dir, char path[PATH_MAX])
{
	ssize_t length = readlinkat(dir, "exe", path, PATH_MAX - 1);

	if (length < 0 && errno == ENAMETOOLONG)
		length = 0;
	else if (length <= 0)
		return false;
	path[length] = '\0';
	path[mapping_path_length(path)] = '\0';
	return true;
}

bool fact_reading__begin(struct fact_reading *r, const struct fact_readers *f, int dir, pid_t pid)
{
	uid_t uid;

	r->since = monotonic_ns();
	*r->user = '\0';
	if (!fact_reading__program(dir, r->path))
		return false;
	if (f->users && !proc_real_uid(pid, &uid))
		users__name(f->users, uid, r->user);
	return true;
}

static void add_program(const struct fact_reading *r, struct fact_text *facts)
{
	fact_text__add(facts, "exe", "", r->path, strlen(r->path));
}

void fact_reading__add(const struct fact_reading *r, struct fact_text *facts)
{
	if (!is_loader_path(r->path))
		add_program(r, facts);
	if (*r->user)
		fact_text__add(facts, "user", "", r->user, USER_NAME_SIZE);
}

int fact_readers__request(const struct fact_readers *f, uint64_t owner, int dir,
			  unsigned int wanted, helper_answer_fn answer, void *context)
{
	_cleanup_free_ struct facts_question *q = calloc(1, sizeof(*q));
	struct helper_request request;

	if (!q)
		return -ENOMEM;
	q->names_size = (uint32_t)f->names_size;
	q->wanted = wanted | (f->users ? FACT_OWNERS : 0);
	memcpy(q->names, f->names, f->names_size);
	request = (struct helper_request){
		.service = f->service,
		.owner = owner,
		.holds = wanted & FACT_HELD,
		.data = q,
		.size = sizeof(*q),
		.fds = &dir,
		.fd_count = 1,
		.answer = answer,
		.context = context,
	};
	return helper_pool__request(f->pool, &request);
}

static bool take_answer(const struct helper_answer *from, struct fact_text *facts)
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

bool fact_reading__take(const struct fact_reading *r, const struct helper_answer *answer,
			struct fact_text *facts)
{
	bool taken;

	fact_reading__add(r, facts);
	taken = take_answer(answer, facts);
	if (is_loader_path(r->path)) /* unless the answer has the program that it loaded */
		add_program(r, facts);
	return taken;
}
