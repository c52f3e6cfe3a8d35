/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/parts/names.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sysprof/event.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/minmax.h"
#include "base/proc_task.h"
#include "base/suffix.h"
#include "base/vec.h"
#include "live/capture/bpf_session.h"
#include "live/capture/target.h"
#include "live/proc/group_paths.h"
#include "live/service_names.h"
#include "stream/event_decode.h"

#define GROUP_TEXT_MAX 8192	     /* bytes of /proc/PID/cgroup */
#define ASK_AGAIN      2000000000ull /* ns */
#define HELD_MAX       (32u << 20)   /* bytes of events that wait; then they wait no longer */
#define THREADS_TRIED  8	     /* of a process whose main thread has ended */

/* The answers to the last questions of a CPU, as the kernel side keeps them there. */
struct cpu_answers {
	bool keep[NAME_SLOTS];
};

struct names {
	struct names_options options;
	struct bpf_session *session;
	struct group_paths *paths;
	VEC(struct event_header *) held; /* questions and tentative samples, as they were read */
	size_t held_bytes;
	uint64_t oldest; /* of them; UINT64_MAX: there are none */
	VEC(struct cpu_answers) answers;
	bool ask_again;	    /* a verdict may change: the kernel side asks again … */
	uint64_t announced; /* … a moment after this, CLOCK_MONOTONIC ns */
};

static void names__free(void *names)
{
	struct names *n = names;

	vec_free_with(&n->held, event, free(*event));
	vec_free(&n->answers);
	group_paths__free(n->paths);
	free(n);
}

static void names__opened(void *names, struct bpf_session *session)
{
	struct names *n = names;

	n->session = session;
	if (n->options.services)
		service_names__opened(n->options.services, session);
}

/* ---- verdicts -------------------------------------------------------------------------------- */

/* If the kernel's set is full, it asks again. */
static uint32_t judge(struct names *n, const struct name_key *key, const char *path)
{
	const struct name_judge *j = &n->options.judge;
	uint32_t verdict = j->judge(j->context, (uint32_t)key->kind, path);

	n->ask_again |= verdict & NAME_MAY_CHANGE;
	if (verdict & NAME_MAY_CHANGE)
		verdict -= NAME_MAY_CHANGE;
	else if (n->session)
		(void)bpf_session__put_verdict(n->session, key, verdict);
	return verdict;
}

/* What has no path never gets one: no rule matches it, and it is counted. */
static uint32_t leave_out(struct names *n, const struct name_question_event *q,
			  const struct name_key *key, enum outside_reason reason)
{
	struct outside_books *books = n->options.books;

	outside_books__add(books, outside_books__user_of(books, (pid_t)q->tgid), OUTSIDE_NAMES,
			   reason, 1);
	if (n->session)
		(void)bpf_session__put_verdict(n->session, key, 0);
	return 0;
}

static uint32_t judge_group(struct names *n, const struct name_question_event *q)
{
	const struct name_key key = {.kind = NAMED_BY_GROUP, .words = {q->group}};
	const struct known_group *group;

	errno = 0;
	group = group_paths__find(n->paths, q->group);
	if (group)
		return judge(n, &key, group->path);
	if (errno != EMFILE && errno != ENFILE && errno != ENOMEM)
		return leave_out(n, q, &key, OUTSIDE_BY_NO_ANSWER);
	n->ask_again = true;
	return 0;
}

/* "python3\0bin\0usr\0" is /usr/bin/python3. False: the event is damaged, or has no path. */
static bool join_path(const struct name_question_event *q, char path[NAME_PATH_MAX + 2])
{
	const char *end = q->path + q->path_size;
	char *at = path;

	if (!q->path_size || q->path_size > NAME_PATH_MAX || end[-1])
		return false;
	while (end > q->path) {
		const char *part = end - 1;

		while (part > q->path && part[-1])
			part--;
		/* of a path that is cut, the beginning is not known */
		if (at > path || !q->is_cut)
			*at++ = '/';
		at = stpcpy(at, part);
		end = part;
	}
	return true;
}

/* The path of a process's program, by its directory in /proc or that of a thread. False: none. */
static bool read_exe(int dir, const char *name, char path[PATH_MAX])
{
	ssize_t length = readlinkat(dir, name, path, PATH_MAX - 1);

	if (length <= 0)
		return false;
	path[length] = '\0';
	path[mapping_path_length(path)] = '\0';
	return true;
}

/* The whole path of a program of which the end is known, unless it has executed another. */
static bool read_long_path(const struct names *n, uint32_t tgid, const char *end,
			   char path[PATH_MAX])
{
	char name[32];

	snprintf(name, sizeof(name), "%u/exe", tgid);
	return read_exe(n->options.proc_fd, name, path) && has_suffix(path, end);
}

static uint32_t judge_file(struct names *n, const struct name_question_event *q)
{
	char path[NAME_PATH_MAX + 2], whole[PATH_MAX];
	struct name_key key = {.kind = NAMED_BY_EXE};

	memcpy(key.words, q->exe, sizeof(key.words));
	if (!join_path(q, path))
		return leave_out(n, q, &key, OUTSIDE_BY_NO_ANSWER);
	if (!q->is_cut)
		return judge(n, &key, path);
	if (!read_long_path(n, q->tgid, path, whole))
		return leave_out(n, q, &key, OUTSIDE_BY_ITSELF);
	return judge(n, &key, whole);
}

static uint32_t judge_service(struct names *n, const struct name_question_event *q)
{
	const struct known_group *group = group_paths__find(n->paths, q->group);
	char path[NAME_PATH_MAX + 2];

	return service_names__judge(n->options.services, q, join_path(q, path) ? path : "",
				    group ? group->path : "");
}

static int answer(struct names *n, const struct name_question_event *q)
{
	uint32_t verdict = q->decided;
	struct cpu_answers *answers;

	if (q->unknown & NAMED_BY_GROUP)
		verdict |= judge_group(n, q);
	if (q->unknown & NAMED_BY_EXE)
		verdict |= judge_file(n, q);
	if (q->unknown & NAMED_BY_SERVICE)
		verdict |= judge_service(n, q);
	if (q->cpu >= EVENT_CPU_LIMIT)
		return 0;
	answers = vec_at(&n->answers, q->cpu);
	if (!answers)
		return -ENOMEM;
	answers->keep[name_slot_of(q->tgid)] = verdict == NAME_INCLUDED;
	return 0;
}

static bool is_kept(const struct names *n, const struct sample_event *sample)
{
	return sample->cpu < n->answers.count &&
	       n->answers.data[sample->cpu].keep[name_slot_of(sample->tgid)];
}

/* ---- what waits ------------------------------------------------------------------------------ */

static int settle(struct names *n, struct event_header *event, bool *answered)
{
	if (event->type == EVENT_NAME_QUESTION) {
		*answered = true;
		return answer(n, (const struct name_question_event *)event);
	}
	return (is_kept(n, (const struct sample_event *)event) ? n->options.keep : n->options.drop)(
		n->options.context, event);
}

/* Is it of a process that is being read for its service? What comes after it waits as well. */
static bool awaits_reader(const struct names *n, const struct event_header *event)
{
	const struct name_question_event *q = (const struct name_question_event *)event;

	return event->type == EVENT_NAME_QUESTION && q->unknown & NAMED_BY_SERVICE &&
	       service_names__awaits(n->options.services, q);
}

static void drop_first(struct names *n, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		n->held_bytes -= n->held.data[i]->size;
		free(n->held.data[i]);
	}
	vec_drop(&n->held, count);
	n->oldest = UINT64_MAX;
	for (size_t i = 0; i < n->held.count; i++)
		n->oldest = min_u64(n->oldest, n->held.data[i]->time);
}

/* `all`: also what still awaits a reader. */
static int settle_held(struct names *n, bool all, bool *answered)
{
	size_t count = 0;
	int err = 0;

	while (count < n->held.count && !err && (all || !awaits_reader(n, n->held.data[count])))
		err = settle(n, n->held.data[count++], answered);
	drop_first(n, count);
	return err;
}

static void announce(struct names *n, bool answered, uint64_t now)
{
	struct service_news news = {};

	if (n->options.services)
		news = service_names__take_news(n->options.services);
	if (!n->session || !(answered || news.added || news.changed))
		return;
	n->ask_again &= now <= n->announced + ASK_AGAIN;
	n->announced = now;
	bpf_session__announce_verdicts(n->session, news.changed);
}

static int settle_now(struct names *n, bool all, uint64_t now)
{
	bool answered = n->ask_again && now > n->announced + ASK_AGAIN;
	int err = settle_held(n, all, &answered);

	announce(n, answered, now);
	return err;
}

/* After all rings and the answers of readers were read. */
static int names__tick(void *names, uint64_t now)
{
	struct names *n = names;
	int err = settle_now(n, false, now);

	return err || !n->options.services ? err : service_names__tick(n->options.services, now);
}

static int names__finish(void *names, uint64_t time)
{
	return settle_now(names, true, time);
}

static int take_question(struct names *n, const struct event_header *event)
{
	const struct name_question_event *q = (const struct name_question_event *)event;

	return event->type == EVENT_NAME_QUESTION && q->unknown & NAMED_BY_SERVICE
		       ? service_names__ask(n->options.services, q)
		       : 0;
}

static int hold(struct names *n, const struct event_header *event)
{
	struct event_header *copy;
	int err = n->held_bytes < HELD_MAX ? 0 : settle_now(n, true, n->announced);

	if (!err)
		err = take_question(n, event);
	if (err)
		return err;
	copy = malloc(event->size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, event, event->size);
	err = vec_push(&n->held, copy);
	if (err) {
		free(copy);
		return err;
	}
	n->held_bytes += event->size;
	n->oldest = min_u64(n->oldest, event->time);
	return 0;
}

/* The verdict on a new group is there before its first process. */
static int take_group(struct names *n, const struct group_made_event *made)
{
	const struct name_key key = {.kind = NAMED_BY_GROUP, .words = {made->group}};

	if (n->options.judge.rules->include & NAMED_BY_GROUP ||
	    n->options.judge.rules->exclude & NAMED_BY_GROUP)
		judge(n, &key, made->path);
	return group_paths__add(n->paths, made->group, made->path);
}

static int names__reported(void *names, const struct event_header *event)
{
	struct names *n = names;

	if (event->type == EVENT_GROUP_MADE)
		return take_group(n, (const struct group_made_event *)event);
	if (event->type != EVENT_NAME_QUESTION && event->type != EVENT_SAMPLE)
		return 0;
	return hold(n, event);
}

static uint64_t names__pending_since(const void *names)
{
	const struct names *n = names;

	return n->oldest;
}

int names_part__new(const struct names_options *options, struct live_part *part)
{
	struct names *n = calloc(1, sizeof(*n));
	int err = n ? group_paths__new(target_cgroup_root(), &n->paths) : -ENOMEM;

	if (err) {
		free(n);
		return err;
	}
	n->options = *options;
	n->oldest = UINT64_MAX;
	*part = (struct live_part){.object = n,
				   .reported = names__reported,
				   .opened = names__opened,
				   .pending_since = names__pending_since,
				   .tick = names__tick,
				   .finish = names__finish,
				   .free = names__free};
	return 0;
}

/* ---- a process in /proc ---------------------------------------------------------------------- */

static uint32_t verdict_on_comm(const struct name_rules *rules, const char *comm)
{
	uint32_t verdict = 0;

	for (uint32_t i = 0; i < rules->glob_count; i++) {
		const struct name_glob *glob = &rules->globs[i];
		uint64_t states = glob->start;
		__u64 ended = 0;

		for (size_t at = 0; at < PROC_COMM_SIZE - 1; at++)
			states = name_glob_step_comm(glob, states, (uint8_t)comm[at], &ended);
		verdict |= states & glob->include ? NAME_INCLUDED : 0;
		verdict |= states & glob->exclude ? NAME_EXCLUDED : 0;
	}
	return verdict;
}

static uint32_t verdict_on_user(const struct name_rules *rules, pid_t pid)
{
	uid_t uid;

	if (proc_real_uid(pid, &uid))
		return 0;
	for (uint32_t i = 0; i < rules->user_count; i++)
		if (rules->users[i].uid == uid)
			return rules->users[i].verdict;
	return 0;
}

static uint32_t verdict_on_group(const struct name_judge *judge, int dir)
{
	char text[GROUP_TEXT_MAX], *line;
	ssize_t size = proc_read_small(dir, "cgroup", text, sizeof(text) - 1);

	if (size <= 0)
		return 0;
	text[size] = '\0';
	/* the last line, of the unified hierarchy: the kernel side knows no other */
	line = strncmp(text, "0::/", 4) ? strstr(text, "\n0::/") : text;
	if (!line)
		return 0;
	line = strchr(line, '/');
	line[strcspn(line, "\n")] = '\0';
	return judge->judge(judge->context, NAMED_BY_GROUP, line) & ~NAME_MAY_CHANGE;
}

/* An ended main thread has no program any more, but the other threads do. */
static bool read_exe_of_threads(int dir, char path[PATH_MAX])
{
	_cleanup_closedir_ DIR *threads = open_names(dir, "task");
	struct dirent *entry;

	for (int i = 0; threads && i < THREADS_TRIED && (entry = readdir(threads)); i++) {
		char name[sizeof(entry->d_name) + 8];

		snprintf(name, sizeof(name), "%s/exe", entry->d_name);
		if (*entry->d_name != '.' && read_exe(dirfd(threads), name, path))
			return true;
	}
	return false;
}

static uint32_t verdict_on_file(const struct name_judge *judge, int dir, bool leader_ended)
{
	char path[PATH_MAX];

	if (leader_ended ? !read_exe_of_threads(dir, path) : !read_exe(dir, "exe", path))
		return 0;
	return judge->judge(judge->context, NAMED_BY_EXE, path);
}

uint32_t name_judge__process(const struct name_judge *judge, int proc_fd, pid_t pid)
{
	const struct name_rules *rules = judge->rules;
	uint32_t kinds = rules->include | rules->exclude, verdict = 0;
	_cleanup_close_ int dir = proc_open_process(proc_fd, pid);
	char comm[PROC_COMM_SIZE];
	struct proc_stat stat;

	if (dir < 0)
		return 0;
	if (proc_read_stat(dir, "stat", &stat) || (proc_stat__is_dead(&stat) && stat.threads <= 1))
		return 0;
	proc_stat__comm(&stat, comm);
	if (kinds & NAMED_BY_COMM)
		verdict |= verdict_on_comm(rules, comm);
	if (kinds & NAMED_BY_USER)
		verdict |= verdict_on_user(rules, pid);
	if (kinds & NAMED_BY_GROUP)
		verdict |= verdict_on_group(judge, dir);
	if (kinds & NAMED_BY_EXE)
		verdict |= verdict_on_file(judge, dir, proc_stat__is_dead(&stat));
	return verdict;
}
