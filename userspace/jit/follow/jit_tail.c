/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The collector's side of the watchers. Each user has a watcher, so one that hangs delays no other
 * user. A line is a sequence of watchers. It keeps the requests, which the next watcher is sent
 * again, and the reported files, which it reports as given up if their user's files hang.
 *
 * Lines beyond 32 users are shared: a new user gets the one with the fewest processes. A user keeps
 * the line, whose watchers count what they read of the user's files. A channel is used again when
 * its watcher has ended.
 */
#include "jit/follow/jit_tail.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/log.h"
#include "base/vec.h"
#include "jit/follow/jit_channel.h"
#include "jit/follow/jit_watcher.h"
#include "tenants/helper_process.h"
#include "tenants/keeper.h"
#include "tenants/message.h"
#include "tenants/quota.h"
#include "tenants/tenant_user.h"

#define UNTAKEN_MAX (2u << 20) /* bytes of events not taken yet, except at the end */
#define WAIT_STEP   500000     /* ns */
#define NUMBERS_MAX (1u << 18) /* files of one watcher; then another one begins */

/* A request, without the room for a path. */
struct watcher_request {
	enum jit_command_kind kind;
	pid_t pid;
	uint32_t user;
	uint64_t start, end;
	char *path;	       /* of a dump */
	bool has_refused_dump; /* of JIT_FOLLOW: reported for the process */
};

struct followed_file {
	uint32_t number, user;
	pid_t pid;
	uint8_t kind;
};

struct jit_line {
	struct jit_tail *tail;
	unsigned int current;  /* number of the watcher; JIT_WATCHERS_MAX: none any more */
	unsigned int failures; /* watchers that ended without a user to blame */
	VEC(uint32_t) users;   /* of its files, now or before */
	/* of each program a JIT_FOLLOW, a JIT_FOLLOW_DUMP a path, and a JIT_GONE until it is sent */
	VEC(struct watcher_request) log;
	size_t sent; /* of the log */
	VEC(uint32_t)
	numbers; /* the recording's number of each file of this watcher; 0: none */
	VEC(struct followed_file) files;

	uint64_t seen_at; /* last value of touched_at */
};

struct jit_tail {
	struct helper_process keeper;
	struct jit_channels *channels;
	struct outside_books *books; /* or NULL */
	bool attach_jvms, settling, finished, paused;
	uint32_t requested; /* requests to all watchers to finish their work */
	struct jit_line lines[JIT_LINES_MAX];
	unsigned int line_count;
	unsigned int first; /* line to read first */
	/* of the channels: of a line, or abandoned, until it has ended */
	struct helper_process watchers[JIT_WATCHERS_MAX];
	struct quota hangs;    /* of users */
	struct quota requests; /* QUOTA_JIT_FILES: in the logs, without JIT_GONE */
	VEC(char) untaken;     /* events */
	uint32_t last_number;
	int err;
};

static struct jit_channel *channel_of(const struct jit_line *l)
{
	return l->current < JIT_WATCHERS_MAX ? &l->tail->channels->of[l->current] : NULL;
}

/* Of a line with a channel. Its socket is -1 until it could be forked. */
static struct helper_process *watcher_of(const struct jit_line *l)
{
	return &l->tail->watchers[l->current];
}

/* If the socket is full, the watcher has other messages to wake it. */
static void wake(const struct jit_line *l)
{
	message__send(watcher_of(l)->socket, &(struct message){.frame.service = JIT_WAKE},
		      MSG_DONTWAIT);
}

static void set_work(const struct jit_tail *t, struct jit_channel *channel)
{
	channel->paused = t->paused;
	channel->settling = t->settling;
	channel->requested = t->requested;
}

/* Passes what all watchers shall do to those that there are. */
static void pass_work(struct jit_tail *t)
{
	for (unsigned int i = 0; i < t->line_count; i++) {
		struct jit_channel *channel = channel_of(&t->lines[i]);

		if (!channel)
			continue;
		set_work(t, channel);
		wake(&t->lines[i]);
	}
}

/* ---- events ---------------------------------------------------------------------------------- */

static int keep_event(struct jit_tail *t, const struct event_header *event)
{
	return vec_append(&t->untaken, event, event->size);
}

/* A request of the process's present program; `path` NULL: JIT_FOLLOW, "": any dump. */
static struct watcher_request *find_request(const struct jit_line *l, pid_t pid, const char *path)
{
	for (size_t i = l->log.count; i-- > 0;) {
		struct watcher_request *request = &l->log.data[i];

		if (request->pid != pid)
			continue;
		if (request->kind == JIT_GONE)
			return NULL;
		if (path ? request->path && (!*path || !strcmp(request->path, path))
			 : request->kind == JIT_FOLLOW)
			return request;
	}
	return NULL;
}

/* The last of them is not that it is gone. */
static bool has_requests(const struct jit_line *l, pid_t pid)
{
	return find_request(l, pid, NULL) || find_request(l, pid, "");
}

static int note_file(struct jit_line *l, const struct jit_file_event *e)
{
	const struct followed_file file = {
		.number = e->file, .user = e->user, .pid = (pid_t)e->pid, .kind = e->kind};
	size_t i = 0;

	while (i < l->files.count && l->files.data[i].number != e->file)
		i++;
	if (e->state == JIT_FILE_STATE_FOLLOWED) /* the process may be gone by now */
		return i < l->files.count || !has_requests(l, file.pid) ? 0
									: vec_push(&l->files, file);
	if (i < l->files.count)
		l->files.data[i] = l->files.data[--l->files.count];
	return 0;
}

/* Counts it in the books of the outside if its state is a limit's. */
static void note_left(struct jit_tail *t, uint32_t user, enum jit_file_state state)
{
	enum outside_reason reason;

	switch (state) {
	case JIT_FILE_STATE_USER_LIMIT:
	case JIT_FILE_STATE_TOO_MANY:
		reason = OUTSIDE_BY_USER;
		break;
	case JIT_FILE_STATE_LIMIT:
	case JIT_FILE_STATE_NO_READER:
		reason = OUTSIDE_BY_ALL;
		break;
	case JIT_FILE_STATE_TOO_BIG:
	case JIT_FILE_STATE_TOO_MANY_OPEN:
		reason = OUTSIDE_BY_ITSELF;
		break;
	case JIT_FILE_STATE_HUNG:
		reason = OUTSIDE_BY_BANNED;
		break;
	default:
		return;
	}
	outside_books__add(t->books, user, OUTSIDE_JIT_FILES, reason, 1);
}

static bool is_sound(const struct event_header *event, long size)
{
	const struct jit_file_event *file = (const void *)event;
	const struct jit_bytes_event *bytes = (const void *)event;

	if ((size_t)size < sizeof(*event) || event->size != (size_t)size || size % EVENT_ALIGN)
		return false;
	if (event->type == EVENT_JIT_FILE)
		return (size_t)size > sizeof(*file) && file->file &&
		       file->kind < JIT_FILE_KIND_COUNT && file->state < JIT_FILE_STATE_COUNT &&
		       !((const char *)event)[size - 1];
	if (event->type == EVENT_JIT_CLOCK)
		return (size_t)size == sizeof(struct jit_clock_event);
	return event->type == EVENT_JIT_BYTES && (size_t)size >= sizeof(*bytes) && bytes->file &&
	       bytes->after <= bytes->before && bytes->size <= (size_t)size - sizeof(*bytes);
}

static uint32_t *file_of(struct event_header *event)
{
	switch (event->type) {
	case EVENT_JIT_FILE:
		return &((struct jit_file_event *)event)->file;
	case EVENT_JIT_CLOCK:
		return &((struct jit_clock_event *)event)->file;
	default:
		return &((struct jit_bytes_event *)event)->file;
	}
}

/* Each watcher numbers its own files. False: an event of a file that was not reported. */
static bool translate_number(struct jit_line *l, struct event_header *event)
{
	uint32_t *file = file_of(event), *number;

	if (!*file || *file > 2 * NUMBERS_MAX)
		return false;
	while (l->numbers.count < *file && !l->tail->err)
		l->tail->err = vec_push(&l->numbers, 0);
	if (l->tail->err)
		return true;
	number = &l->numbers.data[*file - 1];
	if (!*number && event->type != EVENT_JIT_FILE)
		return false;
	if (!*number)
		*number = ++l->tail->last_number;
	*file = *number;
	return true;
}

/* Takes the watcher's events; `all`: beyond UNTAKEN_MAX. False: one is invalid. */
static bool handle_events(struct jit_line *l, bool all)
{
	static _Thread_local _Alignas(8) char buffer[EVENT_SIZE_MAX];
	struct jit_tail *t = l->tail;
	struct jit_channel *channel = channel_of(l);
	struct event_header *event = (void *)buffer;
	long size = 0;
	bool received = false;

	while (channel && (all || t->untaken.count < UNTAKEN_MAX) && !t->err &&
	       (size = jit_channel__take_event(channel, buffer, sizeof(buffer))) > 0) {
		received = true;
		if (!is_sound(event, size) || !translate_number(l, event))
			return false;
		if (!t->err && event->type == EVENT_JIT_FILE) {
			const struct jit_file_event *file = (const void *)event;

			note_left(t, file->user, file->state);
			t->err = note_file(l, file);
		}
		t->err = t->err ? t->err : keep_event(t, event);
	}
	if (received && channel->backlogged)
		wake(l);
	return size >= 0;
}

/* ---- commands -------------------------------------------------------------------------------- */

static void free_request(struct jit_line *l, size_t i)
{
	const struct watcher_request *request = &l->log.data[i];

	if (request->kind != JIT_GONE)
		quota__give(&l->tail->requests, request->user, 1);
	free(request->path);
}

/* The caller has freed it, or copied it. */
static void remove_request(struct jit_line *l, size_t i)
{
	memmove(&l->log.data[i], &l->log.data[i + 1], (--l->log.count - i) * sizeof(*l->log.data));
	l->sent -= l->sent > i;
}

/* Drops the commands before `end` of a process that is gone. */
static void forget_requests(struct jit_line *l, pid_t pid, size_t end)
{
	size_t kept = 0, sent = 0;

	for (size_t i = 0; i < l->log.count; i++) {
		if (i < end && l->log.data[i].pid == pid) {
			free_request(l, i);
			continue;
		}
		sent += i < l->sent;
		l->log.data[kept++] = l->log.data[i];
	}
	l->log.count = kept;
	l->sent = sent;
}

static void forget_files(struct jit_line *l, pid_t pid)
{
	for (size_t i = l->files.count; i-- > 0;)
		if (l->files.data[i].pid == pid)
			l->files.data[i] = l->files.data[--l->files.count];
}

static bool send_one(const struct jit_line *l, const struct watcher_request *request)
{
	struct jit_command command = {
		.pid = request->pid, .start = request->start, .end = request->end};
	size_t length = request->path ? strnlen(request->path, PATH_MAX - 1) : 0;

	if (length)
		memcpy(command.path, request->path, length);
	return !message__send(
		watcher_of(l)->socket,
		&(struct message){
			.frame = {.service = request->kind,
				  .size = offsetof(struct jit_command, path) + length + 1},
			.bytes = &command},
		MSG_DONTWAIT);
}

/* As many as the socket takes; the others later. */
static void send_commands(struct jit_line *l)
{
	while (channel_of(l) && l->sent < l->log.count) {
		const struct watcher_request request = l->log.data[l->sent];

		if (!send_one(l, &request))
			break;
		l->sent++;
		if (request.kind == JIT_GONE)
			forget_requests(l, request.pid, l->sent);
	}
}

static int report_left(struct jit_tail *t, const struct followed_file *file, const char *path,
		       enum jit_file_state why)
{
	union jit_file_room e;

	jit_file_room__fill(&e, path,
			    &(struct jit_file_event){.pid = (uint32_t)file->pid,
						     .file = file->number,
						     .kind = file->kind,
						     .state = (uint8_t)why,
						     .user = file->user});
	note_left(t, file->user, why);
	return keep_event(t, &e.event.header);
}

/* Reports a file that no watcher reads. */
static int say_unread(struct jit_tail *t, const struct watcher_request *request,
		      enum jit_file_state why)
{
	struct followed_file file = {.user = request->user, .pid = request->pid};
	char map[64];

	if (request->kind == JIT_GONE)
		return 0;
	snprintf(map, sizeof(map), "/tmp/perf-%d.map", request->pid);
	file.number = ++t->last_number;
	file.kind = request->kind == JIT_FOLLOW ? JIT_FILE_MAP : JIT_FILE_DUMP;
	return report_left(t, &file, request->path ? request->path : map, why);
}

/* ---- one watcher after the other ------------------------------------------------------------- */

/* The watcher ends then, unless it hangs: its channel is in use until it has ended. */
static void abandon_watcher(const struct jit_line *l)
{
	if (channel_of(l))
		shutdown(watcher_of(l)->socket, SHUT_WR);
}

/* A channel that no watcher has; JIT_WATCHERS_MAX: none. */
static unsigned int find_channel(struct jit_tail *t)
{
	bool used[JIT_WATCHERS_MAX + 1] = {};

	for (unsigned int i = 0; i < t->line_count; i++)
		used[t->lines[i].current] = true;
	for (unsigned int i = 0; i < JIT_WATCHERS_MAX; i++) {
		if (used[i] ||
		    (t->watchers[i].socket >= 0 && !helper_process__has_ended(&t->watchers[i])))
			continue;
		helper_process__let_go(&t->watchers[i]);
		return i;
	}
	return JIT_WATCHERS_MAX;
}

static void prepare_channel(const struct jit_tail *t, struct jit_channel *channel)
{
	set_work(t, channel);
	channel->attach_jvms = t->attach_jvms;
	channel->hangs = t->hangs;
	channel->done = 0;
	channel->touched_at = 0;
	channel->backlogged = false;
	channel->written = channel->read = 0;
}

static int begin_watcher(struct jit_line *l)
{
	struct jit_tail *t = l->tail;
	const struct jit_channel *before = channel_of(l);
	struct jit_begin begin = {.channels = t->channels};
	const struct child_plan plan = {.data = &begin, .size = sizeof(begin)};
	struct jit_channel *channel;
	int err;

	l->current = JIT_WATCHERS_MAX;
	begin.number = find_channel(t);
	if (begin.number == JIT_WATCHERS_MAX || l->failures >= JIT_LINE_FAILURES)
		return -ENOSPC;
	l->current = begin.number;
	channel = &t->channels->of[begin.number];
	prepare_channel(t, channel);
	if (before)
		quota__continue(&channel->bytes, &before->bytes);
	l->sent = l->numbers.count = 0;
	l->seen_at = 0;
	err = helper_process__start(watcher_of(l), &t->keeper, &plan);
	return err == -EAGAIN ? 0 : err; /* the next tick tries again */
}

/* From `time` on entries of a map are in doubt, as in stop_at_limit() of jit_file.c. */
static int leave_file(struct jit_tail *t, const struct followed_file *file, uint64_t time,
		      enum jit_file_state why)
{
	struct jit_bytes_event doubt = {
		.header = {.size = sizeof(doubt), .type = EVENT_JIT_BYTES},
		.after = time,
		.before = UINT64_MAX,
		.file = file->number,
		.flags = JIT_SNAPSHOT_BEGIN | JIT_SNAPSHOT_END,
	};
	int err = file->kind == JIT_FILE_MAP ? keep_event(t, &doubt.header) : 0;

	return err ? err : report_left(t, file, "", why);
}

static bool is_denied(const struct jit_tail *t, uint32_t user)
{
	return quota__used(&t->hangs, user) >= helper_classes[HELPER_WATCHER].hangs;
}

/* Gives up the user's files. What was read of them stays. */
static void deny_user(struct jit_line *l, uint32_t user, uint64_t time)
{
	struct jit_tail *t = l->tail;

	if (is_denied(t, user))
		l->failures++; /* by a process that has become that user */
	quota__take(&t->hangs, user, 1, 0);
	outside_books__add(t->books, user, OUTSIDE_JIT_FILES, OUTSIDE_BY_NO_ANSWER, 1);
	for (size_t i = l->files.count; i-- > 0;) {
		const struct followed_file file = l->files.data[i];

		if (file.user != user)
			continue;
		t->err = t->err ? t->err : leave_file(t, &file, time, JIT_FILE_STATE_HUNG);
		forget_requests(l, file.pid, l->log.count);
		forget_files(l, file.pid);
		i = i < l->files.count ? i : l->files.count;
	}
	for (size_t i = l->log.count; i-- > 0;) {
		if (l->log.data[i].user != user)
			continue;
		t->err = t->err ? t->err : say_unread(t, &l->log.data[i], JIT_FILE_STATE_HUNG);
		free_request(l, i);
		remove_request(l, i);
	}
}

/* Gives up the files of all users of the line. */
static void give_up(struct jit_line *l)
{
	struct jit_tail *t = l->tail;
	uint64_t now = monotonic_ns();

	l->current = JIT_WATCHERS_MAX;
	for (size_t i = 0; i < l->log.count; i++) {
		bool known = false;

		for (size_t j = 0; j < l->files.count; j++)
			known |= l->files.data[j].pid == l->log.data[i].pid;
		if (!known && !t->err)
			t->err = say_unread(t, &l->log.data[i], JIT_FILE_STATE_NO_READER);
		free_request(l, i);
	}
	l->log.count = l->sent = 0;
	for (size_t i = 0; i < l->files.count && !t->err; i++)
		t->err = leave_file(t, &l->files.data[i], now, JIT_FILE_STATE_NO_READER);
	l->files.count = 0;
}

/* No progress in one user's files for too long. */
static bool is_hanging(struct jit_line *l, uint64_t now)
{
	const struct jit_channel *channel = channel_of(l);
	struct helper_process *watcher = watcher_of(l);
	uint64_t at = channel->touched_at;

	if (at && at != l->seen_at) {
		watcher->liveness = (struct liveness){.since = now};
		process_cpu_ns_of(watcher->pid, &watcher->liveness.cpu_ns);
	}
	l->seen_at = at;
	return at && liveness__is_stuck(&watcher->liveness, watcher->pid, now,
					helper_classes[HELPER_WATCHER].silence);
}

/* A line with or without a watcher gets another one. */
static void begin_anew(struct jit_line *l)
{
	abandon_watcher(l);
	if (begin_watcher(l))
		give_up(l);
}

static void leave_watcher(struct jit_line *l)
{
	const struct jit_channel *channel = channel_of(l);
	uint64_t touched = channel->touched_at;

	log_debug(LOG_JIT, "watcher %u of %u %s", l->current + 1, JIT_WATCHERS_MAX,
		  touched ? "is abandoned: a request did not return" : "has ended");
	helper_process__kill(watcher_of(l));
	if (touched)
		deny_user(l, channel->touched_user, touched);
	else
		l->failures++;
	begin_anew(l);
}

static void look_after_watcher(struct jit_line *l)
{
	struct jit_tail *t = l->tail;
	bool sound = handle_events(l, t->settling || t->finished);

	if (t->finished)
		return;
	if (channel_of(l) && (watcher_of(l)->socket < 0 || l->numbers.count > NUMBERS_MAX)) {
		begin_anew(l);
	} else if (channel_of(l) && (helper_process__has_ended(watcher_of(l)) || !sound ||
				     is_hanging(l, monotonic_ns()))) {
		if (sound)
			handle_events(l, true);
		leave_watcher(l);
	}
	send_commands(l);
}

/* ---- lines of users -------------------------------------------------------------------------- */

static struct jit_line *add_line(struct jit_tail *t, uint32_t user)
{
	struct jit_line *l;

	if (t->line_count >= JIT_LINES_MAX || find_channel(t) == JIT_WATCHERS_MAX)
		return NULL;
	l = &t->lines[t->line_count];
	*l = (struct jit_line){.tail = t, .current = JIT_WATCHERS_MAX};
	if (vec_push(&l->users, user)) {
		t->err = -ENOMEM;
		return NULL;
	}
	t->line_count++;
	begin_anew(l);
	return l;
}

/* The line with a watcher and the fewest processes. */
static struct jit_line *share_line(struct jit_tail *t, uint32_t user)
{
	struct jit_line *best = NULL;

	for (unsigned int i = 0; i < t->line_count; i++) {
		struct jit_line *l = &t->lines[i];

		if (channel_of(l) && (!best || l->log.count < best->log.count))
			best = l;
	}
	if (best && user != TENANT_UNKNOWN && vec_push(&best->users, user))
		t->err = -ENOMEM;
	return best;
}

/* NULL: no line has a watcher. */
static struct jit_line *line_of(struct jit_tail *t, uint32_t user)
{
	struct jit_line *l = NULL;

	for (unsigned int i = 0; i < t->line_count; i++)
		for (size_t j = 0; j < t->lines[i].users.count; j++)
			if (t->lines[i].users.data[j] == user)
				return &t->lines[i];
	if (user == TENANT_UNKNOWN) /* the process has probably ended */
		l = share_line(t, user);
	if (!l)
		l = add_line(t, user);
	return l ? l : share_line(t, user);
}

static int add_request(struct jit_line *l, const struct watcher_request *request)
{
	int err = vec_push(&l->log, *request);

	if (err) {
		free(request->path);
		return err;
	}
	if (request->kind != JIT_GONE)
		quota__take(&l->tail->requests, request->user, 1, 0);
	send_commands(l);
	return 0;
}

/* A process can map dumps at will: the first that is refused is reported, if it has no other. */
static int refuse_dump(struct jit_tail *t, const struct watcher_request *dump,
		       enum jit_file_state why)
{
	for (unsigned int i = 0; i < t->line_count; i++) {
		struct jit_line *l = &t->lines[i];
		struct watcher_request *follow = find_request(l, dump->pid, NULL);

		if (!follow || follow->has_refused_dump || find_request(l, dump->pid, ""))
			continue;
		follow->has_refused_dump = true;
		return say_unread(t, dump, why);
	}
	note_left(t, dump->user, why); /* the process was reported */
	return 0;
}

static int refuse_request(struct jit_tail *t, const struct watcher_request *request,
			  enum jit_file_state why)
{
	int err = request->path ? refuse_dump(t, request, why) : say_unread(t, request, why);

	free(request->path);
	return err;
}

static int request_file(struct jit_tail *t, struct watcher_request *request)
{
	struct jit_line *l;

	request->user = tenant_user(request->pid);
	if (is_denied(t, request->user))
		return refuse_request(t, request, JIT_FILE_STATE_HUNG);
	if (quota__refusal(&t->requests, request->user, 1, 0) != OUTSIDE_REASON_COUNT)
		return refuse_request(t, request, JIT_FILE_STATE_TOO_MANY);
	l = line_of(t, request->user);
	if (l && channel_of(l))
		return add_request(l, request);
	return refuse_request(t, request, JIT_FILE_STATE_NO_READER);
}

int jit_tail__follow(struct jit_tail *t, pid_t pid)
{
	struct watcher_request request = {.kind = JIT_FOLLOW, .pid = pid};

	return request_file(t, &request);
}

int jit_tail__follow_dump(struct jit_tail *t, pid_t pid, const char *path, uint64_t start,
			  uint64_t end)
{
	struct watcher_request request = {
		.kind = JIT_FOLLOW_DUMP, .pid = pid, .start = start, .end = end};

	for (unsigned int i = 0; i < t->line_count; i++) {
		struct watcher_request *dump = find_request(&t->lines[i], pid, path);

		if (dump) { /* mapped again: this mapping is likelier to be there */
			dump->start = start;
			dump->end = end;
			return 0;
		}
	}
	request.path = strdup(path);
	return request.path ? request_file(t, &request) : -ENOMEM;
}

/* Searches all lines: the process's user may have changed, or be unknown. */
int jit_tail__gone(struct jit_tail *t, pid_t pid)
{
	const struct watcher_request request = {.kind = JIT_GONE, .pid = pid};
	int err = 0;

	for (unsigned int i = 0; i < t->line_count && !err; i++) {
		struct jit_line *l = &t->lines[i];

		if (!channel_of(l) || !has_requests(l, pid))
			continue;
		forget_files(l, pid);
		err = add_request(l, &request);
	}
	return err;
}

void jit_tail__pause(struct jit_tail *t, bool pause)
{
	if (t->paused == pause)
		return;
	t->paused = pause;
	pass_work(t);
}

/* ---- for the collector ----------------------------------------------------------------------- */

bool jit_tail__follows(const struct jit_tail *t)
{
	return t->line_count > 0;
}

int jit_tail__take(struct jit_tail *t, uint64_t now, event_push_fn push, void *context)
{
	__typeof__(t->untaken) taken;
	int err;

	t->first++; /* in turn, because the bytes taken at once are limited */
	for (unsigned int i = 0; i < t->line_count; i++)
		look_after_watcher(&t->lines[(t->first + i) % t->line_count]);
	err = t->err;
	taken = t->untaken;
	t->untaken = (__typeof__(t->untaken)){};
	for (size_t at = 0; at < taken.count && !err;) {
		struct event_header *event = (void *)(taken.data + at);

		at += event->size;
		event->time = now;
		err = push(context, event);
	}
	vec_free(&taken);
	return err;
}

/* Requests all watchers to finish their work. */
static void request_completion(struct jit_tail *t)
{
	t->requested++;
	pass_work(t);
}

/* True: its work is done, and its events were taken. */
static bool is_line_done(struct jit_line *l)
{
	const struct jit_channel *channel = channel_of(l);
	bool done = !channel || (l->sent == l->log.count && channel->done == l->tail->requested);
	size_t sent = l->sent;

	look_after_watcher(l);
	if (l->sent != sent)
		request_completion(l->tail);
	return done && channel == channel_of(l) && l->sent == sent;
}

static bool is_done(struct jit_tail *t)
{
	bool done = true;

	for (unsigned int i = 0; i < t->line_count; i++)
		done &= is_line_done(&t->lines[i]);
	return done;
}

static bool has_watcher(const struct jit_tail *t)
{
	for (unsigned int i = 0; i < t->line_count; i++)
		if (channel_of(&t->lines[i]))
			return true;
	return !t->line_count;
}

bool jit_tail__settle(struct jit_tail *t, uint64_t timeout)
{
	const struct timespec step = {.tv_nsec = WAIT_STEP};
	uint64_t until = monotonic_ns() + timeout;

	for (unsigned int i = 0; i < t->line_count; i++)
		send_commands(&t->lines[i]);
	request_completion(t);
	while (has_watcher(t)) {
		if (is_done(t))
			return true;
		if (monotonic_ns() >= until)
			return false;
		nanosleep(&step, NULL);
	}
	return false;
}

/* There is no time for another watcher: only gives up the user whose files it hangs in. */
static void leave_at_end(struct jit_line *l)
{
	struct jit_channel *channel = channel_of(l);
	uint64_t touched = channel ? channel->touched_at : 0;

	if (touched && !process_is_runnable(watcher_of(l)->pid))
		deny_user(l, channel->touched_user, touched);
}

bool jit_tail__finish(struct jit_tail *t, uint64_t timeout)
{
	bool done;

	t->settling = true;
	done = jit_tail__settle(t, timeout);
	for (unsigned int i = 0; i < t->line_count && !done; i++)
		leave_at_end(&t->lines[i]);
	t->settling = false;
	t->finished = true;
	pass_work(t);
	return done;
}

void jit_tail__count_in(struct jit_tail *t, struct outside_books *books)
{
	t->books = books;
}

/* ---- life ------------------------------------------------------------------------------------ */

int jit_tail__new(bool attach_jvms, struct jit_tail **tail)
{
	const struct child_plan plan = {.class = HELPER_WATCHER, .run = jit_watcher__run};
	struct jit_tail *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->attach_jvms = attach_jvms;
	t->keeper = HELPER_PROCESS_NONE;
	quota__init(&t->requests, QUOTA_JIT_FILES);
	for (unsigned int i = 0; i < JIT_WATCHERS_MAX; i++)
		t->watchers[i] = HELPER_PROCESS_NONE;
	t->channels = jit_channels__new();
	err = t->channels ? keeper__start(HELPER_WATCHER_KEEPER, &plan, &t->keeper) : -ENOMEM;
	return finish_new(err, t, jit_tail__free, tail);
}

static void free_line(struct jit_line *l)
{
	for (size_t i = 0; i < l->log.count; i++)
		free_request(l, i);
	vec_free(&l->users);
	vec_free(&l->log);
	vec_free(&l->numbers);
	vec_free(&l->files);
}

void jit_tail__free(struct jit_tail *t)
{
	if (!t)
		return;
	for (unsigned int i = 0; i < t->line_count; i++)
		free_line(&t->lines[i]);
	for (unsigned int i = 0; i < JIT_WATCHERS_MAX; i++)
		helper_process__let_go(&t->watchers[i]);
	keeper__stop(&t->keeper);
	jit_channels__free(t->channels);
	vec_free(&t->untaken);
	free(t);
}
