/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/service_names.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sysprof/event.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/io.h"
#include "base/map.h"
#include "base/parse.h"
#include "base/proc_task.h"
#include "base/suffix.h"
#include "live/capture/bpf_session.h"
#include "live/proc/fact_reader.h"
#include "live/proc/process_facts.h"
#include "services/cgroup_path.h"
#include "services/containers.h"
#include "services/service_decision.h"
#include "tenants/owner.h"
#include "tenants/quota.h"

#define S	      1000000000ull
#define READ_AT_START (2 * S)
#define AT_ONCE	      64u	   /* readings under way at the start, and of those due */
#define SCAN_INTERVAL 100000000ull /* ns */
#define NEVER	      UINT64_MAX

/* Times of the readings after the first one; the second has the published context. */
static const uint64_t looks[] = {0, 0, S, 10 * S, 60 * S};
#define LOOKS (sizeof(looks) / sizeof(looks[0]))

/* A program in a process. */
struct service_process {
	uint32_t tgid;
	uint32_t verdict;
	/* by the question; zeros: by /proc alone, at the start */
	uint64_t started, exec_id, group;
	uint64_t asked;	      /* time of that question */
	uint64_t start_ticks; /* by /proc; 0: not read yet */
	uint64_t program;     /* hash of the name of its file */
	uint64_t first, next; /* the first reading, and when the next one is due */
	uint64_t request;     /* under way; 0: none */
	enum service_source source;
	uint8_t looks;
	bool is_decided, is_answered;
};

DEFINE_MAP_BY(service_process_map, struct service_process, uint32_t, tgid);

struct service_names {
	struct service_names_options options;
	struct bpf_session *session;
	struct service_process_map processes;
	struct containers *containers; /* names that readings have had, for what cannot be read */
	struct quota readings;
	uint64_t requests;  /* so far */
	uint64_t next_scan; /* for what is due */
	uint64_t next_sweep;
	struct service_news news;
	int err; /* of `push`, within an answer */
};

/* A reading under way. */
struct service_look {
	struct service_names *names;
	uint32_t tgid;
	uint64_t request;
	char group[EVENT_PATH_MAX];
	struct fact_reading reading;
};

/* ---- life ------------------------------------------------------------------------------------ */

int service_names__new(const struct service_names_options *options, struct service_names **names)
{
	struct service_names *s = calloc(1, sizeof(*s));
	int err = s ? containers__new(NULL, &s->containers) : -ENOMEM;

	if (err) {
		service_names__free(s);
		return err;
	}
	s->options = *options;
	quota__init(&s->readings, QUOTA_NAME_READINGS);
	*names = s;
	return 0;
}

void service_names__free(struct service_names *s)
{
	if (!s)
		return;
	containers__free(s->containers);
	service_process_map__fini(&s->processes);
	free(s);
}

void service_names__opened(struct service_names *s, struct bpf_session *session)
{
	s->session = session;
}

struct service_news service_names__take_news(struct service_names *s)
{
	struct service_news news = s->news;

	s->news = (struct service_news){};
	return news;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

/* If the kernel's set is full, it asks again. */
static void put_verdict(struct service_names *s, const struct service_process *p)
{
	const struct name_key key = name_key_of_program(p->tgid, p->started, p->exec_id, p->group);

	if (s->session && p->started)
		(void)bpf_session__put_verdict(s->session, &key, p->verdict);
}

static uint32_t judge(const struct service_names *s, const struct service_decision *decision)
{
	const struct name_judge *j = &s->options.judge;

	return j->judge(j->context, NAMED_BY_SERVICE, decision->name);
}

/* What becomes known later counts if it is as certain. False: it does not. */
static bool keep_decision(struct service_names *s, struct service_process *p,
			  const struct service_decision *decision)
{
	uint32_t verdict = judge(s, decision);
	bool is_first = !p->is_decided;

	if (!is_first && decision->source > p->source)
		return false;
	p->is_decided = true;
	p->source = decision->source;
	if (!is_first && p->verdict == verdict)
		return true;
	p->verdict = verdict;
	put_verdict(s, p);
	*(is_first ? &s->news.added : &s->news.changed) = true;
	return true;
}

static const char *fact_of(const void *context, const char *key)
{
	const struct fact_text *facts = context;
	const char *at = facts->text;

	for (unsigned int i = 0; i < facts->count; i++) {
		const char *value = at + strlen(at) + 1;

		if (!strcmp(at, key))
			return value;
		at = value + strlen(value) + 1;
	}
	return NULL;
}

/* 0 or -ENOMEM. */
static int decide(struct service_names *s, const struct fact_text *facts, const char *group,
		  struct service_decision *decision)
{
	struct container_names names = {};
	struct cgroup_place place;
	const struct service_question question = {.fact = fact_of,
						  .context = facts,
						  .cgroup = group,
						  .place = &place,
						  .container = &names};
	const struct container_names *known;
	int err = 0;

	cgroup_place__of_process(&place, group);
	if (container_names__take_facts(&names, fact_of, facts))
		err = containers__put(s->containers, place.container, place.pod_uid, &names);
	known = containers__find(s->containers, place.container, place.pod_uid, monotonic_ns());
	names = known ? *known : names;
	service_decide(&question, decision);
	return err;
}

/* ---- what a reader has found ----------------------------------------------------------------- */

/*
 * The directory of a process below /proc; if its main thread has ended, of another thread, which
 * has the memory. Negative errno: it is gone.
 */
static int open_process(const struct service_names *s, uint32_t tgid, struct proc_stat *stat)
{
	_cleanup_close_ int dir = proc_open_process(s->options.proc_fd, (pid_t)tgid);
	_cleanup_closedir_ DIR *threads = NULL;
	int err = dir < 0 ? dir : proc_read_stat(dir, "stat", stat);

	if (err)
		return err;
	if (!proc_stat__is_dead(stat))
		return steal_fd(dir);
	threads = open_names(dir, "task");
	for (struct dirent *entry; threads && (entry = readdir(threads));) {
		char path[PATH_MAX];
		_cleanup_close_ int thread = *entry->d_name == '.'
						     ? -1
						     : openat(dirfd(threads), entry->d_name,
							      O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (thread >= 0 && fact_reading__program(thread, path))
			return steal_fd(thread);
	}
	return -ESRCH;
}

static void schedule(struct service_process *p)
{
	p->next = p->looks < LOOKS ? p->first + looks[p->looks] : NEVER;
}

/* Is it still the program that the request was about, or has it ended? */
static bool is_current(const struct service_look *look, const struct service_process *p)
{
	struct proc_stat stat;
	char path[PATH_MAX];
	_cleanup_close_ int dir = open_process(look->names, look->tgid, &stat);

	if (dir < 0 || stat.start_ticks != p->start_ticks)
		return true;
	return fact_reading__program(dir, path) && !strcmp(path, look->reading.path);
}

/* 0, -ENOMEM, or an error of `push`. */
static int use_facts(struct service_names *s, struct service_process *p,
		     const struct service_look *look, const struct fact_text *facts)
{
	const struct service_names_options *o = &s->options;
	struct service_decision decision;
	struct task *task;
	int err = decide(s, facts, look->group, &decision);

	if (err)
		return err;
	if (!keep_decision(s, p, &decision) || !o->push || !(p->verdict & NAME_INCLUDED))
		return 0;
	outside_books__add(o->books, outside_books__user_of(o->books, (pid_t)p->tgid),
			   OUTSIDE_FACTS, OUTSIDE_BY_ITSELF, facts->left);
	task = tasks__find(o->tasks, (pid_t)p->tgid);
	if (task)
		task->slots.program.facts_looks = FACTS_READ_ELSEWHERE;
	return process_facts__push((pid_t)p->tgid, look->reading.since, FACTS_STATE_WHOLE, facts,
				   o->push, o->context);
}

/* A helper_answer_fn. */
static void take_answer(void *context, const struct helper_answer *answer)
{
	_cleanup_free_ struct service_look *look = context;
	struct service_names *s = look->names;
	struct service_process *p = service_process_map__find(&s->processes, look->tgid);
	char text[PROCESS_FACTS_SIZE];
	struct fact_text facts = {.text = text, .room = sizeof(text), .most = PROCESS_FACTS_MAX};

	if (!p || p->request != look->request)
		return;
	p->request = 0;
	schedule(p);
	p->is_answered = fact_reading__take(&look->reading, answer, &facts);
	if (p->is_answered && is_current(look, p))
		s->err = s->err ? s->err : use_facts(s, p, look, &facts);
}

/* ---- readings -------------------------------------------------------------------------------- */

static void read_group(int dir, char group[EVENT_PATH_MAX])
{
	char text[CGROUP_TEXT_MAX];
	ssize_t size = proc_read_small(dir, "cgroup", text, sizeof(text));
	size_t length = 0;
	const char *path = size > 0 ? proc_parse_cgroup(text, (size_t)size, &length) : NULL;

	snprintf(group, EVENT_PATH_MAX, "%.*s", path ? (int)length : 0, path ? path : "");
}

/* `look`: what was read at once; freed by its answer. */
static int request(struct service_names *s, struct service_process *p, int dir,
		   struct service_look *look, uint64_t owner, unsigned int wanted)
{
	int err;

	look->names = s;
	look->tgid = p->tgid;
	look->request = p->request = ++s->requests;
	read_group(dir, look->group);
	err = fact_readers__request(s->options.facts, owner, dir, wanted, take_answer, look);
	if (!err)
		return 0;
	p->request = 0;
	free(look);
	/* no descriptor is left */
	return err == -ENOMEM ? err : 0;
}

/* Has its owner had his share? Then it is read a second later. */
static bool is_over_share(struct service_names *s, struct service_process *p, uint64_t owner,
			  uint64_t now)
{
	if (quota__refusal(&s->readings, owner, 1, now) == OUTSIDE_REASON_COUNT) {
		quota__take(&s->readings, owner, 1, now);
		return false;
	}
	outside_books__add(s->options.books, helper_owner_user(owner), OUTSIDE_NAMES,
			   OUTSIDE_BY_TOO_OFTEN, 1);
	p->next = now + S;
	return true;
}

static uint64_t owner_of(const struct service_names *s, uint32_t tgid, uint64_t now)
{
	struct task *task = tasks__need(s->options.tasks, (pid_t)tgid);

	return task ? task__owner(task, now) : helper_owner((pid_t)tgid);
}

/* Why a process is read. */
enum look_cause { LOOK_AT_START, LOOK_FOR_QUESTION, LOOK_AGAIN };

static int look_at(struct service_names *s, struct service_process *p, int dir,
		   enum look_cause cause, struct service_look **look)
{
	uint64_t now = monotonic_ns(), owner = owner_of(s, p->tgid, now);
	struct service_look *taken = *look;

	if (cause != LOOK_AT_START && is_over_share(s, p, owner, now))
		return 0;
	if (!p->looks++)
		p->first = now;
	p->program = hash_string(path_base(taken->reading.path));
	p->next = NEVER;
	*look = NULL;
	return request(s, p, dir, taken, owner,
		       (cause == LOOK_FOR_QUESTION ? FACT_HELD : 0) |
			       (p->is_answered ? FACT_CONTEXT : 0));
}

static int decide_on_kernel(struct service_names *s, struct service_process *p)
{
	const struct service_question question = {.is_kernel = true, .fact = fact_of};
	struct service_decision decision;

	service_decide(&question, &decision);
	keep_decision(s, p, &decision);
	p->next = NEVER;
	return 0;
}

/* `name`: of its program, by the question; NULL: any. 0, -ESRCH: it is gone, or -ENOMEM. */
static int look(struct service_names *s, struct service_process *p, enum look_cause cause,
		const char *name)
{
	_cleanup_free_ struct service_look *look = malloc(sizeof(*look));
	struct proc_stat stat;
	_cleanup_close_ int dir = open_process(s, p->tgid, &stat);
	const char *path;

	if (dir < 0 || !look)
		return !look || dir == -ENOMEM ? -ENOMEM : -ESRCH;
	path = look->reading.path;
	if (p->start_ticks && p->start_ticks != stat.start_ticks)
		return -ESRCH;
	p->start_ticks = stat.start_ticks;
	if (stat.flags & PROC_FLAG_KTHREAD)
		return decide_on_kernel(s, p);
	if (!fact_reading__begin(&look->reading, s->options.facts, dir, (pid_t)p->tgid) || !*path)
		return -ESRCH;
	/* it has executed another one since */
	if (name && *name && strcmp(name, path_base(path)))
		return 0;
	return look_at(s, p, dir, cause, &look);
}

/* ---- the table ------------------------------------------------------------------------------- */

static bool is_gone(uint32_t tgid)
{
	return kill((pid_t)tgid, 0) && errno == ESRCH;
}

/* Makes room: ended processes go, then those that are not read again, whose verdict stays. */
static void sweep(struct service_names *s, uint64_t now)
{
	struct service_process_map *m = &s->processes;

	if (now < s->next_sweep)
		return;
	s->next_sweep = now + S;
	for (size_t i = m->count; i-- > 0;)
		if (is_gone(m->data[i].tgid))
			service_process_map__remove(m, &m->data[i]);
	for (size_t i = m->count; i-- > 0 && m->count > SERVICE_PROCESSES_MAX / 2;)
		if (m->data[i].next == NEVER && !m->data[i].request)
			service_process_map__remove(m, &m->data[i]);
}

/* NULL: no memory (errno ENOMEM), or too many. */
static struct service_process *need_process(struct service_names *s, uint32_t tgid)
{
	struct service_process *p = service_process_map__find(&s->processes, tgid);

	if (p)
		return p;
	if (s->processes.count >= SERVICE_PROCESSES_MAX)
		sweep(s, monotonic_ns());
	errno = 0;
	if (s->processes.count >= SERVICE_PROCESSES_MAX)
		return NULL;
	p = service_process_map__need(&s->processes,
				      &(struct service_process){.tgid = tgid, .next = NEVER}, NULL);
	errno = p ? 0 : ENOMEM;
	return p;
}

static bool is_of(const struct service_process *p, const struct name_question_event *q)
{
	return p->started == q->started && p->exec_id == q->exec_id && p->group == q->group;
}

/* Of a process that was read at the start, before any question: is it the same? */
static bool was_read(const struct service_names *s, const struct service_process *p,
		     const struct name_question_event *q)
{
	struct proc_stat stat;
	_cleanup_close_ int dir = -1;

	if (p->started || !p->is_decided || !q->path_size || p->program != hash_string(q->path))
		return false;
	dir = open_process(s, p->tgid, &stat);
	return dir >= 0 && stat.start_ticks == p->start_ticks;
}

static void set_program(struct service_process *p, const struct name_question_event *q)
{
	p->started = q->started;
	p->exec_id = q->exec_id;
	p->group = q->group;
	p->asked = q->header.time;
}

/* It is judged by what the question shows. */
static void count_left_out(const struct service_names *s, uint32_t tgid, enum outside_reason why)
{
	struct outside_books *books = s->options.books;

	outside_books__add(books, outside_books__user_of(books, (pid_t)tgid), OUTSIDE_NAMES, why,
			   1);
}

int service_names__ask(struct service_names *s, const struct name_question_event *q)
{
	struct service_process *p = need_process(s, q->tgid);
	int err = p ? 0 : -errno;

	if (err)
		return err;
	if (!p) {
		count_left_out(s, q->tgid, OUTSIDE_BY_ALL);
		return 0;
	}
	/* of an earlier program: the ring of another CPU was read first */
	if (q->header.time < p->asked && !is_of(p, q))
		return 0;
	if (is_of(p, q)) {
		if (p->is_decided)
			put_verdict(s, p);
		return 0;
	}
	if (was_read(s, p, q)) {
		set_program(p, q);
		put_verdict(s, p);
		s->news.added = true;
		return 0;
	}
	*p = (struct service_process){.tgid = q->tgid, .next = NEVER};
	set_program(p, q);
	err = look(s, p, LOOK_FOR_QUESTION, q->path_size ? q->path : NULL);
	if (err != -ESRCH)
		return err;
	/* after its answer it is removed */
	p->next = 0;
	return 0;
}

static struct service_process *find_asked(const struct service_names *s,
					  const struct name_question_event *q)
{
	struct service_process *p = service_process_map__find(&s->processes, q->tgid);

	return p && is_of(p, q) ? p : NULL;
}

bool service_names__awaits(const struct service_names *s, const struct name_question_event *q)
{
	const struct service_process *p = find_asked(s, q);

	return p && !p->is_decided && p->request;
}

/* NULL: its parent has no verdict, or it has executed a program since. */
static const struct service_process *find_original(const struct service_names *s,
						   const struct name_question_event *q)
{
	const struct task *task = tasks__find(s->options.tasks, (pid_t)q->tgid);
	const struct service_process *parent;

	if (!task || task->is_unknown || task->execed || !q->path_size)
		return NULL;
	parent = service_process_map__find(&s->processes, (uint32_t)task->parent.pid);
	return parent && parent->is_decided && parent->program == hash_string(q->path) &&
			       (!parent->started ||
				(parent->exec_id == q->exec_id && parent->group == q->group))
		       ? parent
		       : NULL;
}

static void take_over(struct service_names *s, struct service_process *p,
		      const struct service_process *original)
{
	p->program = original->program;
	p->verdict = original->verdict;
	p->source = original->source;
	p->is_decided = true;
	put_verdict(s, p);
	s->news.added = true;
}

/* By its parent, or by what the question shows. */
static void judge_unread(struct service_names *s, struct service_process *p,
			 const struct name_question_event *q, const char *path, const char *group)
{
	const struct service_process *original = find_original(s, q);
	char text[NAME_PATH_MAX + 8];
	struct fact_text facts = {.text = text, .room = sizeof(text), .most = 1};
	struct service_decision decision;

	if (original) {
		take_over(s, p, original);
		return;
	}
	count_left_out(s, q->tgid, OUTSIDE_BY_NO_ANSWER);
	if (*path)
		fact_text__add(&facts, "exe", "", path, strlen(path));
	if (!decide(s, &facts, group, &decision))
		keep_decision(s, p, &decision);
}

uint32_t service_names__judge(struct service_names *s, const struct name_question_event *q,
			      const char *path, const char *group)
{
	struct service_process gone = {.tgid = q->tgid}, *p = find_asked(s, q);

	if (!p) {
		p = &gone;
		set_program(p, q);
	}
	if (!p->is_decided)
		judge_unread(s, p, q, path, group);
	return p->verdict;
}

uint32_t service_names__of_process(const struct service_names *s, pid_t pid)
{
	const struct service_process *p = service_process_map__find(&s->processes, (uint32_t)pid);
	struct proc_stat stat;

	if (!p || !p->is_decided || proc_stat_of(pid, &stat))
		return 0;
	return !p->start_ticks || p->start_ticks == stat.start_ticks ? p->verdict : 0;
}

/* ---- readings that are due ------------------------------------------------------------------- */

/* `next` may be that of the last call. */
static int look_again(struct service_names *s, enum look_cause cause, uint64_t now)
{
	struct service_process_map *m = &s->processes;
	int err = 0;

	for (size_t i = m->count; i-- > 0 && (!err || err == -ESRCH);) {
		struct service_process *p = &m->data[i];

		if (p->next > now || p->request)
			continue;
		if (helper_pool__waiting(s->options.readers) >= AT_ONCE)
			break;
		err = look(s, p, cause, NULL);
		if (err == -ESRCH)
			service_process_map__remove(m, p);
	}
	return err == -ESRCH ? 0 : err;
}

int service_names__tick(struct service_names *s, uint64_t now)
{
	int err = s->err;

	s->err = 0;
	if (err)
		return err;
	if (now < s->next_scan)
		return 0;
	s->next_scan = now + SCAN_INTERVAL;
	return look_again(s, LOOK_AGAIN, now);
}

static int list_processes(struct service_names *s, uint64_t now)
{
	_cleanup_closedir_ DIR *processes = open_names(s->options.proc_fd, ".");
	uint64_t pid;

	for (struct dirent *entry; processes && (entry = readdir(processes));) {
		struct service_process *p;

		if (parse_u64(entry->d_name, 1, INT_MAX, &pid) || (pid_t)pid == getpid())
			continue;
		p = need_process(s, (uint32_t)pid);
		if (!p && errno)
			return -errno;
		if (p)
			p->next = now;
	}
	return 0;
}

int service_names__read_all(struct service_names *s)
{
	uint64_t now = monotonic_ns(), until = now + READ_AT_START;
	int err = list_processes(s, now);

	/* the second reading is due at once */
	while (!err && now < until) {
		err = look_again(s, LOOK_AT_START, now);
		if (!helper_pool__waiting(s->options.readers))
			break;
		helper_pool__settle(s->options.readers, until - now);
		now = monotonic_ns();
	}
	return err;
}
