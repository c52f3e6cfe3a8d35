/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A round: wait, take commands and inotify events, send requests to JVMs, read due files
 * (jit_follower.c). Before a process's files are touched, the channel gets its user: if the read
 * never ends, the collector charges that user.
 */
#include "jit/follow/jit_watcher.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/minmax.h"
#include "base/vec.h"
#include "jit/follow/jit_channel.h"
#include "jit/follow/jit_follower.h"
#include "jit/follow/jit_owner.h"
#include "jit/follow/jvm_requests.h"
#include "tenants/helper_process.h"
#include "tenants/message.h"

#define SETTLE_MAX	(64u << 20)  /* bytes of events, at the end and of an ended process */
#define BACKLOG_KEPT	(1u << 20)   /* bytes of an empty backlog that stay allocated */
#define ROUND_MIN	200000ull    /* ns between two rounds of reading */
#define BACKLOG_ROUND	5	     /* ms, while there is a backlog */
#define PAUSED_ROUND	100000000    /* ns between two rounds during a pause */
#define SETTLE_PATIENCE 600000000ull /* ns for JVMs to answer, at the end */

struct watcher {
	struct jit_channel *channel;
	int epoll;
	VEC(char) backlog; /* events that did not fit into the ring */
	size_t backlog_sent;
	size_t settled; /* bytes of events since the end was requested */
	struct jit_follower *follower;
	struct jvm_requests jvms;
	uint32_t requested; /* the channel's, when this round began */
	bool orphaned;
	int err;
};

/* ---- events ---------------------------------------------------------------------------------- */

static void send_backlog(struct watcher *w)
{
	while (w->backlog_sent < w->backlog.count) {
		const struct event_header *event =
			(const void *)(w->backlog.data + w->backlog_sent);

		if (!jit_channel__send_event(w->channel, event, event->size))
			break;
		w->backlog_sent += event->size;
	}
	if (w->backlog_sent == w->backlog.count)
		w->backlog_sent = w->backlog.count = 0;
	if (!w->backlog.count && w->backlog.capacity > BACKLOG_KEPT)
		vec_free(&w->backlog);
	w->channel->backlogged = w->backlog.count > 0;
}

/* An event_push_fn. It counts as progress: a slow read is no hang. */
static int keep_event(void *context, struct event_header *event)
{
	struct watcher *w = context;

	if (w->channel->touched_at)
		w->channel->touched_at = monotonic_ns();
	if (w->channel->settling)
		w->settled += event->size;
	send_backlog(w);
	if (!w->backlog.count && jit_channel__send_event(w->channel, event, event->size))
		return 0;
	w->channel->backlogged = true;
	return vec_append(&w->backlog, event, event->size);
}

static bool is_full(void *context, bool settle)
{
	const struct watcher *w = context;

	if (settle)
		return w->settled > SETTLE_MAX || w->backlog.count > SETTLE_MAX;
	return w->backlog.count > w->backlog_sent;
}

static void touch(void *context, const struct jit_owner *owner)
{
	struct watcher *w = context;

	if (owner)
		w->channel->touched_user = owner->user;
	w->channel->touched_at = owner ? monotonic_ns() : 0;
}

/* ---- commands -------------------------------------------------------------------------------- */

static void follow_process(struct watcher *w, pid_t pid)
{
	struct jit_owner owner;

	if (jit_follower__has_map(w->follower, pid) || jit_owner__read(pid, &owner))
		return;
	if (w->channel->attach_jvms) {
		touch(w, &owner);
		if (jvm_requests__add(&w->jvms, &owner))
			w->err = -ENOMEM;
		touch(w, NULL);
	}
	jit_follower__follow_map(w->follower, &owner);
}

static void run_command(struct watcher *w, const struct message_buffer *message)
{
	const struct jit_command *command = (const void *)message->bytes;

	switch (message->frame.service) {
	case JIT_FOLLOW:
		follow_process(w, command->pid);
		break;
	case JIT_FOLLOW_DUMP:
		jit_follower__follow_dump(w->follower, command->pid, command->path, command->start,
					  command->end);
		break;
	case JIT_GONE:
		jvm_requests__forget(&w->jvms, command->pid);
		jit_follower__let_go(w->follower, command->pid);
		break;
	}
}

static void take_commands(struct watcher *w)
{
	static _Alignas(8) struct message_buffer message;
	int got;

	while ((got = message__receive(CHILD_SOCKET, &message, MSG_DONTWAIT)) > 0)
		run_command(w, &message);
	w->orphaned = got != -EAGAIN;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* A JVM has answered, so its map may exist now. */
static void note_answer(void *context, pid_t pid)
{
	struct watcher *w = context;

	jit_follower__expect_map(w->follower, pid);
}

/* ms until something is due; -1: nothing is. */
static int time_to_wait(struct watcher *w)
{
	uint64_t now = monotonic_ns(), next;
	bool full = is_full(w, false);

	if (w->channel->requested != w->requested) /* the previous round took its message */
		return 0;
	if (w->channel->paused) /* until a wake-up, which may not come for a backlog */
		return full ? PAUSED_ROUND / 1000000 : -1;
	if (jit_follower__has_more(w->follower, false) && !full)
		return 0;
	next = min_u64(jit_follower__next_due(w->follower, full),
		       jvm_requests__next_due(&w->jvms, now));
	if (full) /* the consumer of events does not always wake this process */
		next = min_u64(next, now + BACKLOG_ROUND * 1000000ull);
	if (next == UINT64_MAX)
		return -1;
	return next <= now ? 0 : (int)min_u64((next - now) / 1000000 + 1, INT_MAX);
}

/* Limits the rate of rounds. */
static void keep_distance(const struct watcher *w)
{
	uint64_t now = monotonic_ns(), next = jit_follower__last_read(w->follower) + ROUND_MIN;
	struct timespec rest = {};

	if (w->channel->paused)
		next = now + PAUSED_ROUND;

	if (now >= next)
		return;
	rest.tv_nsec = (long)(next - now);
	nanosleep(&rest, NULL);
}

/* If no work is left, reports the requests up to the start of this round as done. */
static void say_done(struct watcher *w, bool settle, bool settled)
{
	bool idle;

	send_backlog(w);
	idle = !w->backlog.count && !jit_follower__has_more(w->follower, settled) &&
	       (settled || (!settle && !jvm_requests__are_pending(&w->jvms)));
	if (idle)
		w->channel->done = w->requested;
}

static void wait_for_events(struct watcher *w, bool settle)
{
	struct epoll_event events[3];
	bool hurry = settle && w->channel->done != w->channel->requested && !w->backlog.count &&
		     !jvm_requests__are_pending(&w->jvms);

	epoll_wait(w->epoll, events, 3, hurry ? 0 : time_to_wait(w));
}

static int run_rounds(struct watcher *w)
{
	const struct jvm_requests_caller caller = {
		.answered = note_answer, .touch = touch, .context = w};
	uint64_t settle_began = 0;
	bool settle = false;

	while (!w->orphaned && !w->err && !jit_follower__error(w->follower)) {
		bool last;

		wait_for_events(w, settle);
		w->requested = w->channel->requested;
		settle = w->channel->settling;
		take_commands(w);
		settle_began = settle && !settle_began ? monotonic_ns() : settle_began;
		jit_follower__take_signs(w->follower);
		if (w->channel->paused && !settle) {
			send_backlog(w); /* files of ended processes are read even now */
			keep_distance(w);
			continue;
		}
		jvm_requests__send_due(&w->jvms, settle, &caller);
		jit_follower__look_for_files(w->follower);
		/* a JVM's snapshot is complete when it closes the file */
		last = settle && (!jvm_requests__are_pending(&w->jvms) ||
				  monotonic_ns() > settle_began + SETTLE_PATIENCE);
		jit_follower__read_due(w->follower, last);
		say_done(w, settle, last);
		if (!settle)
			keep_distance(w);
	}
	return w->err ? w->err : jit_follower__error(w->follower);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int add_to_epoll(struct watcher *w, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int open_descriptors(struct watcher *w)
{
	int err, signs_fd = jit_follower__signs_fd(w->follower);

	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (w->epoll < 0)
		return -errno;
	err = add_to_epoll(w, CHILD_SOCKET);
	return err || signs_fd < 0 ? err : add_to_epoll(w, signs_fd);
}

static int follow(struct jit_channel *channel)
{
	struct watcher w = {.channel = channel, .epoll = -1};
	const struct jit_follower_output output = {
		.push = keep_event, .is_full = is_full, .touch = touch, .context = &w};
	int err = jit_follower__new(&output, &channel->bytes, &channel->hangs, &w.follower)
			?: open_descriptors(&w)
			?: run_rounds(&w);
	jvm_requests__stop(&w.jvms);
	jit_follower__free(w.follower);
	jvm_requests__fini(&w.jvms);
	vec_free(&w.backlog);
	cleanup_close(&w.epoll);
	return err;
}

int jit_watcher__run(const struct child_self *self)
{
	const struct jit_begin *begin = self->data;
	struct jit_channel *channel = jit_channels__keep(begin->channels, begin->number);

	return helper_process__send_start() || follow(channel) ? EXIT_FAILURE : EXIT_SUCCESS;
}
