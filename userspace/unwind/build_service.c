/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * While one builder works, the keeper makes the next one, which waits for its file. The memory for a table has its size
 * from the beginning and keeps it; the builder seals it against writing, or what is in it does not count. CPU time
 * is what the kernel counted for the builder: its own word is not asked for.
 */
#include "unwind/build_service.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/fd_message.h"
#include "base/log.h"
#include "base/vec.h"
#include "helpers/watch.h"
#include "unwind/build_reply.h"

#define PATIENCE       1000000000ull  /* ns */
#define WALL_TIME      20000000000ull /* ns */
#define START_PATIENCE 10000000000ull /* ns, for the keeper to fork */
#define END_PATIENCE   1000000000ull  /* ns, for a builder that was killed */
#define POLL_MS	       50
#define HANGS_MAX      3   /* of one user's files */
#define OWNERS_MAX     256 /* that had builders hang */

struct builder {
	int socket, pidfd;
	pid_t pid; /* 0: the keeper has not said yet */
	bool ended;
	uint64_t cpu_ns;
};

struct hanging_owner {
	uint32_t user;
	unsigned int hangs;
};

struct build_service {
	struct build_service_options options;
	pid_t keeper;
	int control; /* -1: it has ended */
	uint64_t tickets;
	struct builder now, next;
	VEC(struct hanging_owner) owners;
};

static const struct builder NO_BUILDER = {.socket = -1, .pidfd = -1};

/* ---- builders -------------------------------------------------------------------------------- */

static void drop_builder(struct builder *b)
{
	if (b->socket >= 0)
		close(b->socket);
	if (b->pidfd >= 0)
		close(b->pidfd);
	*b = NO_BUILDER;
}

static void drop_keeper(struct build_service *s)
{
	log_debug(LOG_UNWIND, "the keeper of the builders has ended");
	close(s->control);
	s->control = -1;
}

static void start_next(struct build_service *s)
{
	int ends[2];
	ssize_t sent;

	if (s->next.socket >= 0 || s->control < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return;
	sent = fd_message__send(s->control, "", 1, NULL, 0, &ends[1], 1, MSG_DONTWAIT);
	close(ends[1]);
	if (sent < 0)
		close(ends[0]);
	else
		s->next.socket = ends[0];
}

static void take_start(struct build_service *s, const struct builder_note *note, int pidfd)
{
	/* one at a time is started */
	if (note->pid > 0 && s->next.socket >= 0 && !s->next.pid) {
		s->next.pid = note->pid;
		s->next.pidfd = pidfd;
		return;
	}
	if (pidfd >= 0)
		close(pidfd);
	drop_builder(&s->next);
}

static void take_end(struct build_service *s, const struct builder_note *note)
{
	if (note->pid == s->next.pid)
		drop_builder(&s->next); /* before there was anything to do */
	if (note->pid != s->now.pid)
		return;
	s->now.ended = true;
	s->now.cpu_ns = note->cpu_ns;
}

static void take_notes(struct build_service *s)
{
	struct builder_note note;
	ssize_t got = 1;

	while (s->control >= 0 && got > 0) {
		int pidfd = -1;
		size_t count = 1;

		got = fd_message__receive(s->control, &note, sizeof(note), &pidfd, &count,
					  MSG_DONTWAIT);
		if (got == sizeof(note) && note.ended)
			take_end(s, &note);
		else if (got == sizeof(note))
			take_start(s, &note, count ? pidfd : -1);
		else if (got != -EAGAIN)
			drop_keeper(s);
	}
}

static void await(const struct build_service *s, int socket, int ms)
{
	struct pollfd fds[] = {{.fd = s->control, .events = POLLIN},
			       {.fd = socket, .events = POLLIN}};

	poll(fds, 2, ms);
}

/* The one that was started before, or a new one. */
static int take_builder(struct build_service *s)
{
	uint64_t until = monotonic_ns() + START_PATIENCE;

	do {
		take_notes(s);
		start_next(s);
		if (s->next.pid) {
			s->now = s->next;
			s->next = NO_BUILDER;
			return 0;
		}
		if (s->control >= 0)
			await(s, -1, POLL_MS);
	} while (s->control >= 0 && monotonic_ns() < until);
	return -EPIPE;
}

/* Whatever it does, it is over. One that does not end is left behind. CPU time that it took, ns. */
static uint64_t end_builder(struct build_service *s)
{
	uint64_t until = monotonic_ns() + END_PATIENCE, cpu = 0;

	process_cpu_time(s->now.pid, &cpu);
	if (s->now.pidfd >= 0)
		syscall(SYS_pidfd_send_signal, s->now.pidfd, SIGKILL, NULL, 0);
	take_notes(s);
	while (!s->now.ended && s->control >= 0 && monotonic_ns() < until) {
		await(s, -1, POLL_MS);
		take_notes(s);
	}
	if (s->now.ended)
		cpu = s->now.cpu_ns;
	else
		log_debug(LOG_UNWIND, "builder %d does not end: left behind", s->now.pid);
	drop_builder(&s->now);
	return cpu;
}

/* ---- a table --------------------------------------------------------------------------------- */

/* It has its size for good, and can be sealed against writing. */
static int make_memory(uint64_t size)
{
	_cleanup_close_ int fd = memfd_create("table", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)size) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK))
		return -errno;
	return steal_fd(fd);
}

static int send_question(struct build_service *s, const struct build_request *request, int memory)
{
	struct build_question question = {
		.ticket = ++s->tickets,
		.base = request->base,
		.limit = request->limit,
		.kind = request->kind,
	};
	const int fds[] = {request->fd, memory};
	ssize_t sent;

	sent = fd_message__send(s->now.socket, &question, sizeof(question), NULL, 0, fds, 2,
				MSG_DONTWAIT);
	return sent < 0 ? -EPIPE : 0;
}

/* 0; -EAGAIN: not yet; -EPIPE: it has ended; -EPROTO: it is no reply. */
static int read_reply(struct build_service *s, struct build_reply *reply)
{
	ssize_t got = recv(s->now.socket, reply, sizeof(*reply), MSG_DONTWAIT | MSG_TRUNC);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	if (got <= 0)
		return -EPIPE;
	return got == sizeof(*reply) ? 0 : -EPROTO;
}

static int await_reply(struct build_service *s, struct build_reply *reply)
{
	uint64_t begin = monotonic_ns(), now = begin;
	struct liveness liveness = {.since = begin};
	int err;

	while ((err = read_reply(s, reply)) == -EAGAIN) {
		if (now - begin > s->options.wall_time ||
		    liveness__is_stuck(&liveness, s->now.pid, now, s->options.patience))
			return -ETIMEDOUT;
		await(s, s->now.socket, POLL_MS);
		take_notes(s);
		now = monotonic_ns();
	}
	return err;
}

static int ask_builder(struct build_service *s, const struct build_request *request,
		       struct build_result *result)
{
	_cleanup_close_ int memory = make_memory(request->limit);
	struct build_reply reply;
	int err = memory < 0 ? memory : send_question(s, request, memory);

	start_next(s);
	if (!err)
		err = await_reply(s, &reply);
	return err ? err : build_reply__take(&reply, s->tickets, memory, request, result);
}

/* ---- who has them hang ----------------------------------------------------------------------- */

static struct hanging_owner *find_owner(struct build_service *s, uint32_t user)
{
	for (size_t i = 0; i < s->owners.count; i++)
		if (s->owners.data[i].user == user)
			return &s->owners.data[i];
	return NULL;
}

static bool is_banned(struct build_service *s, uint32_t user)
{
	const struct hanging_owner *owner = user ? find_owner(s, user) : NULL;

	return owner && owner->hangs >= HANGS_MAX;
}

static void blame(struct build_service *s, uint32_t user)
{
	struct hanging_owner *owner = find_owner(s, user);

	if (owner)
		owner->hangs++;
	else if (user && s->owners.count < OWNERS_MAX)
		(void)vec_push(&s->owners, ((struct hanging_owner){user, 1}));
}

static enum table_refusal refusal_of(int err)
{
	switch (err) {
	case -EPIPE:
		return TABLE_REFUSAL_DIED;
	case -ETIMEDOUT:
		return TABLE_REFUSAL_HUNG;
	case -EPROTO:
		return TABLE_REFUSAL_FORGED;
	case -EPERM:
		return TABLE_REFUSAL_BANNED;
	default:
		return TABLE_REFUSAL_NONE;
	}
}

void build_service__build(struct build_service *s, const struct build_request *request,
			  struct build_result *result)
{
	*result = (struct build_result){};
	if (is_banned(s, request->owner)) {
		result->err = -EPERM;
	} else {
		result->err = take_builder(s);
		if (!result->err) {
			result->err = ask_builder(s, request, result);
			result->cpu_ns = end_builder(s);
		}
		if (result->err == -ETIMEDOUT)
			blame(s, request->owner);
	}
	if (!result->refusal)
		result->refusal = refusal_of(result->err);
}

/* ---- the service ----------------------------------------------------------------------------- */

int build_service__start(const struct build_service_options *options,
			 struct build_service **service)
{
	struct build_service *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	if (options)
		s->options = *options;
	if (!s->options.work)
		s->options.work = build_child__work;
	if (!s->options.patience)
		s->options.patience = PATIENCE;
	if (!s->options.wall_time)
		s->options.wall_time = WALL_TIME;
	s->control = -1;
	s->now = s->next = NO_BUILDER;
	err = build_keeper__start(s->options.work, &s->keeper, &s->control);
	if (err) {
		free(s);
		return err;
	}
	start_next(s);
	*service = s;
	return 0;
}

void build_service__free(struct build_service *s)
{
	if (!s)
		return;
	drop_builder(&s->now);
	drop_builder(&s->next);
	if (s->control >= 0)
		close(s->control);
	/* it waits for nothing but its socket */
	while (waitpid(s->keeper, NULL, 0) < 0 && errno == EINTR)
		;
	vec_free(&s->owners);
	free(s);
}
