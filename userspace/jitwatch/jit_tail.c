/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is asked for and what was read lie under one lock; everything else is the thread's own. A round
 * is: wait, take what is asked for, take inotify's signs, read the files that have some or are due.
 */
#include "jitwatch/jit_tail.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/vec.h"
#include "jitwatch/jit_file.h"
#include "jitwatch/jvm_attach.h"

#define FILES_MAX      1024u
#define WAITING_MAX    4096u
#define UNTAKEN_MAX    (8u << 20)    /* bytes of events that nobody has taken yet */
#define UNTAKEN_LIMIT  (64u << 20)   /* the same at the end, when nobody takes any more */
#define ROUND_MIN      200000ull     /* ns between two rounds of reading */
#define CPU_WINDOW     1000000000ull /* ns */
#define CPU_PER_FILE   20000000ull   /* ns of a window */
#define CPU_FIRST      500000000ull  /* ns of the first, for what is there already */
#define PARSING_A_BYTE 5	     /* ns */
#define LOOK_INTERVAL  1000000000ull /* ns: for new files, and for others under an old name */
#define POLL_INTERVAL  50000000ull   /* ns: of files without signs */
#define GLANCE_SHARE   64	     /* of the time since the last line was written */
#define GLANCE_MIN     5000000ull    /* ns */
#define GLANCE_FILES   8 /* ... for so many files: twice as many have half as many glances */
#define SIGNS_AT_ONCE  16
#define SIGNS_SIZE     16384

enum request_kind { FOLLOW, FOLLOW_DUMP, GONE };

struct request {
	enum request_kind kind;
	pid_t pid;
	uint64_t start, end;
	char *path; /* of a dump */
};

struct followed {
	struct jit_file file;
	int watch; /* -1: none */
	struct jit_signs signs;
	bool more;	   /* there is more to read */
	uint64_t grown_at; /* something was read then */
	uint64_t glance_at;
	uint64_t window, used; /* CPU, ns */
	uint64_t slow_until;   /* it has used up its CPU; 0: it has not */
	uint64_t poll_at;      /* it has no watch; 0: it has */
};

/* A process without a map so far. */
struct waiting {
	struct jit_owner owner;
	uint64_t next, interval;
};

#define ASK_INTERVAL	10000000000ull /* ns */
#define ASK_PATIENCE	5000000000ull
#define ASK_TRIES	20 /* of a JVM that does not catch SIGQUIT yet */
#define ASK_AGAIN	200000000ull
#define SETTLE_PATIENCE 600000000ull /* ns for JVMs to answer, at the end */
#define REAP_INTERVAL	5000000ull

/* A HotSpot process that is asked for its map. */
struct asked_jvm {
	struct jit_owner owner;
	uint64_t next;
	pid_t child; /* that is asking; 0: none */
	uint64_t began;
	unsigned int tries; /* in vain */
	bool gone;
};

struct jit_tail {
	pthread_t thread;
	bool started;
	int wake_fd;

	pthread_mutex_t lock;
	pthread_cond_t idle; /* all that was asked for is done */
	VEC(struct request) requests;
	VEC(char) untaken;
	bool busy, settling, ending, ended;
	uint64_t cpu;

	/* the thread's */
	int epoll, inotify;
	VEC(struct request) taken;
	VEC(struct followed) files;
	VEC(struct waiting) waiting;
	bool ask_jvms, asked_at_end;
	VEC(struct asked_jvm) jvms;
	uint32_t next_number;
	uint64_t last_round; /* of reading */
	uint64_t next_look;
	int err;
};

/* ---- between the threads --------------------------------------------------------------------- */

static void wake(struct jit_tail *t)
{
	eventfd_write(t->wake_fd, 1);
}

static int ask(struct jit_tail *t, const struct request *request)
{
	int err;

	pthread_mutex_lock(&t->lock);
	err = vec_push(&t->requests, *request);
	pthread_mutex_unlock(&t->lock);
	if (err)
		free(request->path);
	else
		wake(t);
	return err;
}

int jit_tail__follow(struct jit_tail *t, pid_t pid)
{
	const struct request request = {.kind = FOLLOW, .pid = pid};

	return ask(t, &request);
}

int jit_tail__follow_dump(struct jit_tail *t, pid_t pid, const char *path, uint64_t start,
			  uint64_t end)
{
	const struct request request = {
		.kind = FOLLOW_DUMP, .pid = pid, .start = start, .end = end, .path = strdup(path)};

	return request.path ? ask(t, &request) : -ENOMEM;
}

int jit_tail__gone(struct jit_tail *t, pid_t pid)
{
	const struct request request = {.kind = GONE, .pid = pid};

	return ask(t, &request);
}

int jit_tail__take(struct jit_tail *t, uint64_t now, event_push_fn push, void *context)
{
	__typeof__(t->untaken) taken;
	int err = 0;

	pthread_mutex_lock(&t->lock);
	taken = t->untaken;
	t->untaken = (__typeof__(t->untaken)){};
	pthread_mutex_unlock(&t->lock);
	if (taken.count > UNTAKEN_MAX)
		wake(t);
	for (size_t at = 0; at < taken.count && !err;) {
		struct event_header *event = (void *)(taken.data + at);

		at += event->size;
		event->time = now;
		err = push(context, event);
	}
	vec_free(&taken);
	return err;
}

/* An event_push_fn: the thread's events, for whoever takes them. */
static int keep_event(void *context, struct event_header *event)
{
	struct jit_tail *t = context;
	int err;

	pthread_mutex_lock(&t->lock);
	err = vec_reserve(&t->untaken, t->untaken.count + event->size);
	if (!err) {
		memcpy(t->untaken.data + t->untaken.count, event, event->size);
		t->untaken.count += event->size;
	}
	pthread_mutex_unlock(&t->lock);
	return err;
}

static bool is_full(struct jit_tail *t, bool settle)
{
	bool full;

	pthread_mutex_lock(&t->lock);
	full = t->untaken.count > (settle ? UNTAKEN_LIMIT : UNTAKEN_MAX);
	pthread_mutex_unlock(&t->lock);
	return full;
}

static bool wait_until_idle(struct jit_tail *t, uint64_t timeout, bool settling)
{
	struct timespec deadline;
	uint64_t until = monotonic_ns() + timeout;
	bool done;
	int err = 0;

	deadline.tv_sec = until / 1000000000ull;
	deadline.tv_nsec = until % 1000000000ull;
	pthread_mutex_lock(&t->lock);
	t->settling |= settling;
	t->busy = true;
	wake(t);
	while (t->busy && !t->ended && !err)
		err = pthread_cond_timedwait(&t->idle, &t->lock, &deadline);
	done = !t->busy || t->ended;
	pthread_mutex_unlock(&t->lock);
	return done;
}

bool jit_tail__settle(struct jit_tail *t, uint64_t timeout)
{
	return wait_until_idle(t, timeout, false);
}

bool jit_tail__finish(struct jit_tail *t, uint64_t timeout)
{
	return wait_until_idle(t, timeout, true);
}

uint64_t jit_tail__cpu(const struct jit_tail *t)
{
	struct jit_tail *writable = (struct jit_tail *)t;
	uint64_t cpu;

	pthread_mutex_lock(&writable->lock);
	cpu = t->cpu;
	pthread_mutex_unlock(&writable->lock);
	return cpu;
}

static uint64_t thread_cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* ---- files ----------------------------------------------------------------------------------- */

static struct jit_file_sink sink_of(struct jit_tail *t)
{
	return (struct jit_file_sink){.push = keep_event, .context = t};
}

static void watch(struct jit_tail *t, struct followed *f)
{
	char path[64];

	uint64_t now = monotonic_ns();

	if (f->file.fd < 0)
		return;
	if (f->file.kind == JIT_FILE_DUMP) { /* its times are exact, whenever it is read */
		f->poll_at = now + LOOK_INTERVAL;
		return;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->file.fd);
	f->watch = inotify_add_watch(t->inotify, path, IN_MODIFY | IN_OPEN | IN_CLOSE_WRITE);
	f->poll_at = f->watch < 0 ? now + POLL_INTERVAL : 0;
}

static void unwatch(struct jit_tail *t, struct followed *f)
{
	if (f->watch >= 0)
		inotify_rm_watch(t->inotify, f->watch);
	f->watch = -1;
}

static void forget(struct jit_tail *t, size_t i)
{
	unwatch(t, &t->files.data[i]);
	jit_file__close(&t->files.data[i].file);
	t->files.data[i] = t->files.data[--t->files.count];
}

/*
 * Of its CPU it has used too much in this second: it is read again in the next. What is read has to be
 * parsed, too, later and elsewhere.
 */
static void account(struct jit_tail *t, struct followed *f, uint64_t used, uint64_t bytes)
{
	uint64_t now = monotonic_ns();

	used += bytes * PARSING_A_BYTE;

	if (now >= f->window + CPU_WINDOW) {
		f->window = now;
		f->used = 0;
	}
	f->used += used;
	if (f->used < (f->file.listed ? CPU_PER_FILE : CPU_FIRST) || f->slow_until)
		return;
	f->slow_until = f->window + CPU_WINDOW;
	unwatch(t, f);
}

/* When it has been quiet for long, it hardly matters when exactly it stopped being so. */
static void plan_glance(const struct jit_tail *t, struct followed *f)
{
	uint64_t now = monotonic_ns(), interval = (now - f->grown_at) / GLANCE_SHARE;
	uint64_t least = GLANCE_MIN * (1 + t->files.count / GLANCE_FILES);

	interval = interval > least ? interval : least;
	f->glance_at = now + (interval < LOOK_INTERVAL ? interval : LOOK_INTERVAL);
}

static void glance(const struct jit_tail *t, struct followed *f)
{
	jit_file__glance(&f->file);
	plan_glance(t, f);
}

/* 0: there is nothing to be gained by it. */
static uint64_t glances_at(const struct followed *f)
{
	return f->file.kind == JIT_FILE_MAP && f->file.state == JIT_FILE_STATE_FOLLOWED &&
			       f->file.at_end && !f->slow_until && !f->poll_at
		       ? f->glance_at
		       : 0;
}

static void read_file(struct jit_tail *t, struct followed *f, bool settle)
{
	const struct jit_file_sink sink = sink_of(t);
	uint64_t began = thread_cpu(), told = f->file.told;
	int more;

	if (f->slow_until) { /* from here on there are signs again */
		f->slow_until = 0;
		watch(t, f);
		f->signs.opened = true;
	}
	if (f->watch < 0) {
		f->poll_at = monotonic_ns() +
			     (f->file.kind == JIT_FILE_DUMP ? LOOK_INTERVAL : POLL_INTERVAL);
		f->signs = (struct jit_signs){.opened = true, .modified = true};
	}
	more = jit_file__read(&f->file, &f->signs, settle, &sink);
	if (f->file.told != told || !f->grown_at)
		f->grown_at = monotonic_ns();
	plan_glance(t, f);
	f->signs = (struct jit_signs){};
	f->more = more > 0;
	if (more < 0)
		t->err = more;
	/* what was there before counts only as far as reading goes */
	told = told > f->file.found_size ? told : f->file.found_size;
	account(t, f, thread_cpu() - began, f->file.told > told ? f->file.told - told : 0);
}

static bool is_due(const struct followed *f, uint64_t now)
{
	uint64_t wakes = jit_file__wakes_at(&f->file);

	if (f->file.fd < 0)
		return false;
	if (f->slow_until)
		return now >= f->slow_until;
	if (f->poll_at && now >= f->poll_at)
		return true;
	return f->signs.modified || f->signs.closed || f->signs.opened || f->more ||
	       (wakes && now >= wakes);
}

static struct followed *find_file(struct jit_tail *t, pid_t pid, enum jit_file_kind kind)
{
	for (size_t i = 0; i < t->files.count; i++)
		if (t->files.data[i].file.owner.pid == pid && t->files.data[i].file.kind == kind)
			return &t->files.data[i];
	return NULL;
}

/* Two processes can have one number, each in a namespace of its own, and one /tmp. */
static bool is_anothers(const struct jit_tail *t, const struct jit_owner *owner,
			const struct jit_found *found)
{
	for (size_t i = 0; i < t->files.count && found->fd >= 0; i++) {
		const struct jit_file *f = &t->files.data[i].file;

		if (f->fd >= 0 && f->owner.pid != owner->pid && f->device == found->st.st_dev &&
		    f->inode == found->st.st_ino)
			return !jit_has_open(owner->pid, &found->st);
	}
	return false;
}

static void begin_file(struct jit_tail *t, const struct jit_owner *owner, enum jit_file_kind kind,
		       struct jit_found *found)
{
	struct followed f = {.watch = -1};
	const struct jit_file_sink sink = sink_of(t);
	int err;

	if (found->fd >= 0 && t->files.count >= FILES_MAX) {
		close(found->fd);
		found->fd = -1;
		found->state = JIT_FILE_STATE_TOO_MANY;
	}
	if (is_anothers(t, owner, found)) {
		close(found->fd);
		found->fd = -1;
		found->state = JIT_FILE_STATE_SHARED;
	}
	err = jit_file__begin(&f.file, t->next_number++, kind, owner, found, monotonic_ns(), &sink);
	if (!err &&
	    t->files.count < 2 * FILES_MAX) /* those that are not read stay, and are told once */
		err = vec_push(&t->files, f);
	if (err || f.file.fd < 0) {
		t->err = err ? err : t->err;
		return;
	}
	watch(t, &t->files.data[t->files.count - 1]);
	read_file(t, &t->files.data[t->files.count - 1], false);
}

/* ---- what is asked for ----------------------------------------------------------------------- */

/* 0: it has been found, or never will be. */
static int look_for_map(struct jit_tail *t, const struct jit_owner *owner)
{
	struct jit_found found;
	int err = jit_find_map(owner, &found);

	if (err == -ENOENT)
		return -EAGAIN;
	if (!err)
		begin_file(t, owner, JIT_FILE_MAP, &found);
	return 0;
}

static size_t find_waiting(const struct jit_tail *t, pid_t pid)
{
	for (size_t i = 0; i < t->waiting.count; i++)
		if (t->waiting.data[i].owner.pid == pid)
			return i;
	return t->waiting.count;
}

static void ask_jvm(struct jit_tail *t, const struct jit_owner *owner)
{
	const struct asked_jvm jvm = {.owner = *owner};

	if (t->ask_jvms && jvm_is_one(owner) && vec_push(&t->jvms, jvm))
		t->err = -ENOMEM;
}

static void follow(struct jit_tail *t, pid_t pid)
{
	struct waiting w = {.interval = LOOK_INTERVAL / 64};

	if (find_file(t, pid, JIT_FILE_MAP) || find_waiting(t, pid) < t->waiting.count ||
	    jit_owner__read(pid, &w.owner))
		return;
	ask_jvm(t, &w.owner);
	if (!look_for_map(t, &w.owner))
		return;
	w.next = monotonic_ns() + w.interval;
	if (t->waiting.count < WAITING_MAX && vec_push(&t->waiting, w))
		t->err = -ENOMEM;
}

static void follow_dump(struct jit_tail *t, const struct request *request)
{
	struct jit_owner owner;
	struct jit_found found;

	if (find_file(t, request->pid, JIT_FILE_DUMP) || jit_owner__read(request->pid, &owner) ||
	    jit_open_dump(&owner, request->path, request->start, request->end, &found))
		return;
	begin_file(t, &owner, JIT_FILE_DUMP, &found);
}

/* There is no time for the rest. */
static void give_up(struct jit_tail *t, struct followed *f)
{
	const struct jit_file_sink sink = sink_of(t);
	int err = jit_file__give_up(&f->file, &sink);

	f->more = false;
	t->err = err ? err : t->err;
}

static void let_go(struct jit_tail *t, pid_t pid)
{
	size_t i = find_waiting(t, pid);

	if (i < t->waiting.count)
		t->waiting.data[i] = t->waiting.data[--t->waiting.count];
	for (i = 0; i < t->jvms.count; i++)
		t->jvms.data[i].gone |= t->jvms.data[i].owner.pid == pid;
	for (i = t->files.count; i-- > 0;) {
		struct followed *f = &t->files.data[i];

		if (f->file.owner.pid != pid)
			continue;
		do
			read_file(t, f, true);
		while (f->more && !t->err && !f->slow_until && !is_full(t, true));
		if (f->more)
			give_up(t, f);
		forget(t, i);
	}
}

static void take_requests(struct jit_tail *t)
{
	eventfd_t count;

	eventfd_read(t->wake_fd, &count);
	pthread_mutex_lock(&t->lock);
	t->taken.count = 0;
	for (size_t i = 0; i < t->requests.count && !t->err; i++)
		t->err = vec_push(&t->taken, t->requests.data[i]);
	t->requests.count = 0;
	pthread_mutex_unlock(&t->lock);
	for (size_t i = 0; i < t->taken.count; i++) {
		struct request *request = &t->taken.data[i];

		if (request->kind == FOLLOW)
			follow(t, request->pid);
		else if (request->kind == FOLLOW_DUMP)
			follow_dump(t, request);
		else
			let_go(t, request->pid);
		free(request->path);
	}
}

/* ---- asking JVMs ----------------------------------------------------------------------------- */

/* The one that asks has ended, or has taken too long. Who does not answer is not asked again. */
static void reap(struct jit_tail *t, struct asked_jvm *jvm, uint64_t now)
{
	size_t waiting = find_waiting(t, jvm->owner.pid);
	int status = 0;

	if (now > jvm->began + ASK_PATIENCE)
		kill(jvm->child, SIGKILL);
	if (waitpid(jvm->child, &status, WNOHANG) == 0)
		return;
	jvm->child = 0;
	jvm->gone |= !WIFEXITED(status) || WEXITSTATUS(status);
	jvm->next = jvm->began + ASK_INTERVAL;
	if (waiting < t->waiting.count)
		t->waiting.data[waiting].next = now;
}

static void begin_asking(struct asked_jvm *jvm, uint64_t now)
{
	pid_t child = jvm_attach__begin(&jvm->owner);

	if (child > 0) {
		jvm->began = now;
		jvm->child = child;
	} else if (++jvm->tries < ASK_TRIES) { /* it has only just started */
		jvm->next = now + ASK_AGAIN;
	} else {
		jvm->gone = true;
	}
}

static void ask_jvms(struct jit_tail *t, bool settle)
{
	uint64_t now = monotonic_ns();

	for (size_t i = 0; i < t->jvms.count && settle && !t->asked_at_end; i++)
		t->jvms.data[i].next = 0;
	t->asked_at_end |= settle;
	for (size_t i = t->jvms.count; i-- > 0;) {
		struct asked_jvm *jvm = &t->jvms.data[i];

		if (jvm->child)
			reap(t, jvm, now);
		else if (jvm->gone)
			*jvm = t->jvms.data[--t->jvms.count];
		else if (now >= jvm->next)
			begin_asking(jvm, now);
	}
}

static void stop_asking(struct jit_tail *t)
{
	for (size_t i = 0; i < t->jvms.count; i++) {
		if (!t->jvms.data[i].child)
			continue;
		kill(t->jvms.data[i].child, SIGKILL);
		waitpid(t->jvms.data[i].child, NULL, 0);
	}
}

static bool is_asking(const struct jit_tail *t)
{
	for (size_t i = 0; i < t->jvms.count; i++)
		if (t->jvms.data[i].child)
			return true;
	return false;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void note_sign(struct jit_tail *t, const struct inotify_event *sign)
{
	for (size_t i = 0; i < t->files.count; i++) {
		struct followed *f = &t->files.data[i];

		if (!(sign->mask & IN_Q_OVERFLOW) && f->watch != sign->wd)
			continue;
		if (sign->mask & IN_IGNORED) { /* another process had the same file */
			f->watch = -1;
			f->poll_at = 1;
			continue;
		}
		f->signs.opened |= sign->mask & (IN_OPEN | IN_Q_OVERFLOW) ? true : false;
		f->signs.modified |= sign->mask & (IN_MODIFY | IN_Q_OVERFLOW) ? true : false;
		f->signs.closed |= sign->mask & IN_CLOSE_WRITE ? true : false;
	}
}

/* Until there are none. */
static void take_signs(struct jit_tail *t)
{
	_Alignas(struct inotify_event) char buffer[SIGNS_SIZE];

	for (int n = 0; n < SIGNS_AT_ONCE; n++) {
		ssize_t size = read(t->inotify, buffer, sizeof(buffer));

		if (size < 0 && errno == EINTR)
			continue;
		if (size <= 0)
			return;
		for (ssize_t at = 0; at < size;) {
			const struct inotify_event *sign = (const void *)(buffer + at);

			note_sign(t, sign);
			at += (ssize_t)(sizeof(*sign) + sign->len);
		}
	}
}

/* Files that have taken the name of one that is followed, and maps that were not there before. */
static void look_around(struct jit_tail *t, uint64_t now)
{
	const struct jit_file_sink sink = sink_of(t);
	int err;

	for (size_t i = t->waiting.count; i-- > 0;) {
		struct waiting *w = &t->waiting.data[i];

		if (now < w->next)
			continue;
		w->interval = w->interval * 2 < LOOK_INTERVAL ? w->interval * 2 : LOOK_INTERVAL;
		w->next = now + w->interval;
		if (look_for_map(t, &w->owner) != -EAGAIN)
			t->waiting.data[i] = t->waiting.data[--t->waiting.count];
	}
	if (now < t->next_look)
		return;
	t->next_look = now + LOOK_INTERVAL;
	for (size_t i = 0; i < t->files.count; i++) {
		struct followed *f = &t->files.data[i];
		struct jit_found found;

		if (f->file.kind == JIT_FILE_DUMP || jit_find_map(&f->file.owner, &found) ||
		    found.fd < 0)
			continue;
		if (f->file.fd < 0) {
			struct jit_owner owner = f->file.owner;

			forget(t, i);
			begin_file(t, &owner, JIT_FILE_MAP, &found);
			return;
		}
		if (found.st.st_dev == f->file.device && found.st.st_ino == f->file.inode) {
			close(found.fd);
			f->file.named_at = now;
			continue;
		}
		read_file(t, f, false);
		unwatch(t, f);
		err = jit_file__replace(&f->file, found.fd, &found.st, now, &sink);
		t->err = t->err ? t->err : err;
		watch(t, f);
	}
}

static void read_files(struct jit_tail *t, bool settle)
{
	uint64_t now = monotonic_ns();

	for (size_t i = 0; i < t->files.count && !t->err; i++) {
		struct followed *f = &t->files.data[i];

		if (f->file.fd < 0)
			continue;
		if (!settle && !is_due(f, now)) {
			if (glances_at(f) && now >= f->glance_at)
				glance(t, f);
			continue;
		}
		if (is_full(t, settle)) {
			if (settle)
				give_up(t, f);
			continue;
		}
		read_file(t, f, settle);
		t->last_round = now;
	}
}

/* Is there anything that could be read at once? */
static bool has_more(const struct jit_tail *t, bool settle)
{
	for (size_t i = 0; i < t->files.count; i++)
		if (t->files.data[i].more && (settle || !t->files.data[i].slow_until))
			return true;
	return false;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return b && b < a ? b : a;
}

/* ms until something is due; -1: nothing is. */
static int time_to_wait(struct jit_tail *t)
{
	uint64_t now = monotonic_ns(), next = UINT64_MAX;

	bool full = is_full(t, false);

	if (has_more(t, false) && !full)
		return 0;
	for (size_t i = 0; i < t->waiting.count; i++)
		next = sooner(next, t->waiting.data[i].next);
	for (size_t i = 0; i < t->files.count && !full; i++) { /* who takes will wake us */
		const struct followed *f = &t->files.data[i];

		if (f->file.fd < 0)
			continue;
		next = sooner(next, f->slow_until ? f->slow_until : f->poll_at);
		if (!f->slow_until)
			next = sooner(next, jit_file__wakes_at(&f->file));
		next = sooner(next, glances_at(f));
	}
	for (size_t i = 0; i < t->jvms.count; i++)
		next = sooner(next,
			      t->jvms.data[i].child ? now + REAP_INTERVAL : t->jvms.data[i].next);
	if (t->files.count)
		next = sooner(next, t->next_look);
	if (next == UINT64_MAX)
		return -1;
	return next <= now ? 0 : (int)((next - now) / 1000000 + 1);
}

/* Not more often than that: what came meanwhile is read in one go. */
static void keep_distance(const struct jit_tail *t)
{
	uint64_t now = monotonic_ns();
	struct timespec rest = {};

	if (now >= t->last_round + ROUND_MIN)
		return;
	rest.tv_nsec = (long)(t->last_round + ROUND_MIN - now);
	nanosleep(&rest, NULL);
}

/* Whoever waits for it is told. */
static void tell_idle(struct jit_tail *t, bool settled)
{
	pthread_mutex_lock(&t->lock);
	t->cpu = thread_cpu();
	if (!t->requests.count && !has_more(t, settled) &&
	    (settled || (!t->settling && !is_asking(t)))) {
		t->busy = t->settling = false;
		pthread_cond_broadcast(&t->idle);
	}
	pthread_mutex_unlock(&t->lock);
}

static bool is_ending(struct jit_tail *t, bool *settle)
{
	bool ending;

	pthread_mutex_lock(&t->lock);
	ending = t->ending || t->err;
	*settle = t->settling;
	pthread_mutex_unlock(&t->lock);
	return ending;
}

static void *follow_files(void *context)
{
	struct jit_tail *t = context;
	bool settle = false, last;
	uint64_t settle_began = 0;

	while (!is_ending(t, &settle)) {
		struct epoll_event events[2];

		epoll_wait(t->epoll, events, 2, settle && !is_asking(t) ? 0 : time_to_wait(t));
		take_requests(t);
		is_ending(t, &settle);
		settle_began = settle && !settle_began ? monotonic_ns() : settle_began;
		ask_jvms(t, settle);
		take_signs(t);
		look_around(t, monotonic_ns());
		/* what it is asked for it writes now: a snapshot, whole when it is closed */
		last = settle && (!is_asking(t) || monotonic_ns() > settle_began + SETTLE_PATIENCE);
		read_files(t, last);
		tell_idle(t, last);
		if (!settle)
			keep_distance(t);
	}
	stop_asking(t);
	pthread_mutex_lock(&t->lock);
	t->ended = true;
	pthread_cond_broadcast(&t->idle);
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int add_to_epoll(struct jit_tail *t, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int open_descriptors(struct jit_tail *t)
{
	int err;

	t->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	t->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (t->wake_fd < 0 || t->epoll < 0)
		return -errno;
	/* a user may have no more than 128 of these: files are polled then */
	t->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	err = add_to_epoll(t, t->wake_fd);
	return err || t->inotify < 0 ? err : add_to_epoll(t, t->inotify);
}

/* Signals are for the thread that waits for them. */
static int start(struct jit_tail *t)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&t->thread, NULL, follow_files, t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	t->started = !err;
	return -err;
}

int jit_tail__new(bool ask_jvms, struct jit_tail **tail)
{
	struct jit_tail *t = calloc(1, sizeof(*t));
	pthread_condattr_t monotonic;
	int err;

	if (!t)
		return -ENOMEM;
	t->wake_fd = t->epoll = t->inotify = -1;
	t->next_number = 1;
	t->ask_jvms = ask_jvms;
	pthread_mutex_init(&t->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&t->idle, &monotonic);
	pthread_condattr_destroy(&monotonic);
	err = open_descriptors(t);
	if (!err)
		err = start(t);
	if (err) {
		jit_tail__free(t);
		return err;
	}
	*tail = t;
	return 0;
}

/* False: it hangs, in a system call on somebody's file. */
static bool end_thread(struct jit_tail *t)
{
	struct timespec deadline;
	bool ended;
	int err = 0;

	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec++;
	pthread_mutex_lock(&t->lock);
	t->ending = true;
	wake(t);
	while (!t->ended && !err)
		err = pthread_cond_timedwait(&t->idle, &t->lock, &deadline);
	ended = t->ended;
	pthread_mutex_unlock(&t->lock);
	if (ended)
		pthread_join(t->thread, NULL);
	else
		pthread_detach(t->thread);
	return ended;
}

static void close_one(int fd)
{
	if (fd >= 0)
		close(fd);
}

void jit_tail__free(struct jit_tail *t)
{
	if (!t || (t->started && !end_thread(t)))
		return;
	for (size_t i = 0; i < t->requests.count; i++)
		free(t->requests.data[i].path);
	for (size_t i = 0; i < t->files.count; i++)
		jit_file__close(&t->files.data[i].file);
	vec_free(&t->requests);
	vec_free(&t->taken);
	vec_free(&t->untaken);
	vec_free(&t->files);
	vec_free(&t->waiting);
	vec_free(&t->jvms);
	close_one(t->wake_fd);
	close_one(t->epoll);
	close_one(t->inotify);
	pthread_cond_destroy(&t->idle);
	pthread_mutex_destroy(&t->lock);
	free(t);
}
