/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The collector's side of a pool. A reader has one request at a time, so the one that hangs is known, and none
 * waits behind it. Requests wait in one list; a reader that is free gets the oldest one of an owner that was not
 * served last. Each owner has a credit of readers' CPU time, which grows by a twentieth of the time that passes.
 *
 * A request that is not answered soon is slow. Its reader is replaced at once, so that the others are served; its owner
 * has no second one served meanwhile. And since the whole stream of events waits for a request that `holds`, that time is
 * on its owner's account, too: when it is used up, the stream goes on without the answer.
 */
#include "readers/reader_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/fd_message.h"
#include "base/hashmap.h"
#include "base/io.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/vec.h"
#include "helpers/watch.h"
#include "readers/reader_child.h"
#include "readers/reader_owner.h"

#define READERS_MAX	  8
#define READERS		  2
#define DEADLINE	  1000000000ull /* ns */
#define RUNNING_PATIENCE  10 /* deadlines, for a reader that does not sleep but wants a CPU */
#define START_PATIENCE	  10 /* deadlines, for a reader to be forked */
#define HANGS		  2
#define CREDIT		  1000000000ull /* ns of CPU */
#define CREDIT_DIVISOR	  20
#define BUDGET_PATIENCE	  2000000000ull /* ns that a request waits for its owner's credit */
#define WAITING_MAX	  8192
#define OWNER_WAITING_MAX 4096
#define OWNERS_MAX	  4096
#define SLOW		  20000000ull  /* ns: what has no answer by then is slow */
#define PATIENCE	  100000000ull /* ns that one owner may hold up others at once … */
#define PATIENCE_OF_ALL	  3	       /* … and all of them, times that */
#define PATIENCE_DIVISOR  20
#define STEP_MAX	  50000000ull /* ns: if there is more time between two steps, it is our doing */
#define TRUSTED		  0	      /* the owner who may keep us waiting */

/* Of time. */
struct patience {
	int64_t left; /* ns */
	uint64_t as_of;
	uint64_t step; /* in which it was charged last */
};

struct owner {
	uint64_t key;
	int64_t credit;	   /* ns of CPU */
	uint64_t credited; /* when */
	struct patience patience;
	uint64_t slow_step; /* in which a request of his was slow */
	unsigned int hangs;
	size_t waiting; /* or being served */
	bool banned;
};

/* A request that has no answer yet. */
struct asked {
	struct asked *next;
	uint64_t service, owner, time;
	enum reader_refusal refusal; /* decided when it was asked */
	bool for_all;		     /* not its owner's requests are too many, but all */
	bool holds, answered;	     /* the latter: nobody waits for it any more */
	reader_answer_fn answer;
	void *context;
	int fds[READER_FDS_MAX];
	size_t fd_count, size;
	_Alignas(8) char data[];
};

enum reader_state { READER_NONE, READER_STARTING, READER_IDLE, READER_BUSY };

struct reader {
	enum reader_state state;
	int socket;
	pid_t pid;
	int pidfd;	/* -1: it has not said who it is */
	uint64_t since; /* that state */
	struct asked *serving;
};

struct reader_pool {
	struct reader_pool_options options;
	pid_t keeper;
	int control, epoll;
	struct reader readers[READERS_MAX];
	struct asked *first, **last; /* that wait */
	size_t waiting;		     /* all without an answer */
	VEC(struct owner) owners;
	struct hashmap by_key;
	uint64_t last_owner;
	bool hurry;
	uint64_t steps, last_step, elapsed; /* between the last two */
	struct patience patience;	    /* with all but the trusted one */
	struct reader_pool_stats stats;
};

/* ---- owners ---------------------------------------------------------------------------------- */

static bool owner_has_key(const void *pool, uint32_t index, const void *key)
{
	return ((const struct reader_pool *)pool)->owners.data[index].key == *(const uint64_t *)key;
}

static struct owner *known_owner(struct reader_pool *p, uint64_t key)
{
	uint32_t index = hashmap__find(&p->by_key, hash_u64(key), &key);

	return index == HASHMAP_NONE ? NULL : &p->owners.data[index];
}

static bool is_remarkable(const struct owner *owner)
{
	return owner->waiting || owner->hangs || owner->credit < 0 || owner->patience.left < 0;
}

/* Those about whom there is nothing to remember go. */
static int forget_owners(struct reader_pool *p)
{
	size_t kept = 0;

	hashmap__clear(&p->by_key);
	for (size_t i = 0; i < p->owners.count; i++)
		if (is_remarkable(&p->owners.data[i]))
			p->owners.data[kept++] = p->owners.data[i];
	p->owners.count = kept;
	for (size_t i = 0; i < kept; i++)
		if (hashmap__add(&p->by_key, hash_u64(p->owners.data[i].key), i))
			return -ENOMEM;
	return kept < OWNERS_MAX ? 0 : -ENOMEM;
}

/* NULL: no memory, or too many of them. */
static struct owner *find_owner(struct reader_pool *p, uint64_t key)
{
	struct owner *owner = known_owner(p, key);

	if (owner)
		return owner;
	if (p->owners.count >= OWNERS_MAX && forget_owners(p))
		return NULL;
	if (vec_push(&p->owners, (struct owner){.key = key,
						.credit = (int64_t)p->options.credit,
						.credited = monotonic_ns(),
						.patience.left = (int64_t)p->options.patience}))
		return NULL;
	if (hashmap__add(&p->by_key, hash_u64(key), p->owners.count - 1)) {
		p->owners.count--;
		return NULL;
	}
	return &p->owners.data[p->owners.count - 1];
}

static bool has_credit(const struct reader_pool *p, struct owner *owner, uint64_t now)
{
	owner->credit += (int64_t)((now - owner->credited) / CREDIT_DIVISOR);
	owner->credited = now;
	if (owner->credit > (int64_t)p->options.credit)
		owner->credit = (int64_t)p->options.credit;
	return owner->credit > 0;
}

static void blame(struct reader_pool *p, uint64_t key)
{
	struct owner *owner = known_owner(p, key);

	if (!owner || owner->banned)
		return;
	owner->banned = ++owner->hangs >= p->options.hangs;
	p->stats.owners_banned += owner->banned;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void close_fds(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void report_answer(struct reader_pool *p, struct asked *asked,
			  const struct reader_answer *answer)
{
	struct owner *owner = known_owner(p, asked->owner);

	if (asked->answered)
		return;
	asked->answered = true;
	if (owner)
		owner->waiting--;
	p->waiting--;
	p->stats.answered += !answer->refusal;
	p->stats.refused += answer->refusal == READER_BANNED ||
			    answer->refusal == READER_OVER_BUDGET;
	p->stats.late += answer->refusal == READER_LATE;
	asked->answer(asked->context, answer);
}

/* It is in no list any more. */
static void give_answer(struct reader_pool *p, struct asked *asked,
			const struct reader_answer *answer)
{
	report_answer(p, asked, answer);
	close_fds(answer->fds, answer->fd_count);
	close_fds(asked->fds, asked->fd_count);
	free(asked);
}

static void note_refusal(const struct reader_pool *p, const struct asked *asked,
			 enum reader_refusal refusal)
{
	static const enum outside_reason reasons[] = {
		[READER_HUNG] = OUTSIDE_BY_NO_ANSWER,
		[READER_BANNED] = OUTSIDE_BY_BANNED,
		[READER_OVER_BUDGET] = OUTSIDE_BY_USER,
		[READER_LATE] = OUTSIDE_BY_TOO_SLOW,
	};
	enum outside_thing thing = p->options.things ? p->options.things[asked->service]
						     : OUTSIDE_FILES;

	if (refusal != READER_ENDED)
		outside_books__add(p->options.books, reader_owner_user(asked->owner), thing,
				   asked->for_all ? OUTSIDE_BY_ALL : reasons[refusal], 1);
}

static void refuse(struct reader_pool *p, struct asked *asked, enum reader_refusal refusal)
{
	const struct reader_answer answer = {.refusal = refusal};

	note_refusal(p, asked, refusal);
	give_answer(p, asked, &answer);
}

static int copy_fds(struct asked *asked, const struct reader_request *request)
{
	for (size_t i = 0; i < request->fd_count; i++) {
		asked->fds[i] = fcntl(request->fds[i], F_DUPFD_CLOEXEC, 0);
		if (asked->fds[i] < 0)
			return -errno;
		asked->fd_count++;
	}
	return 0;
}

int reader_pool__ask(struct reader_pool *p, const struct reader_request *request)
{
	struct asked *asked;
	struct owner *owner;
	int err;

	if (request->size > READER_REQUEST_MAX || !request->size ||
	    request->fd_count > READER_FDS_MAX)
		return -EINVAL;
	if (request->service >= p->options.service_count)
		return -EINVAL;
	asked = malloc(sizeof(*asked) + request->size);
	if (!asked)
		return -ENOMEM;
	*asked = (struct asked){.service = request->service,
				.owner = request->owner,
				.holds = request->holds,
				.time = monotonic_ns(),
				.answer = request->answer,
				.context = request->context,
				.size = request->size};
	memcpy(asked->data, request->data, request->size);
	err = copy_fds(asked, request);
	owner = err ? NULL : find_owner(p, request->owner);
	if (!owner) {
		close_fds(asked->fds, asked->fd_count);
		free(asked);
		return err ? err : -ENOMEM;
	}
	if (p->control < 0)
		asked->refusal = READER_ENDED;
	else if (owner->banned)
		asked->refusal = READER_BANNED;
	else if (owner->waiting >= OWNER_WAITING_MAX || p->waiting >= WAITING_MAX)
		asked->refusal = READER_OVER_BUDGET;
	asked->for_all = asked->refusal == READER_OVER_BUDGET && owner->waiting < OWNER_WAITING_MAX;
	owner->waiting++;
	p->waiting++;
	p->stats.asked++;
	*p->last = asked;
	p->last = &asked->next;
	return 0;
}

/* ---- readers --------------------------------------------------------------------------------- */

static void set_state(struct reader *reader, enum reader_state state)
{
	reader->state = state;
	reader->since = monotonic_ns();
}

static int start_reader(struct reader_pool *p, struct reader *reader)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = reader};
	int ends[2];
	ssize_t sent;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	sent = fd_message__send(p->control, "", 1, NULL, 0, &ends[1], 1, MSG_DONTWAIT);
	close(ends[1]);
	if (sent < 0 || epoll_ctl(p->epoll, EPOLL_CTL_ADD, ends[0], &event)) {
		close(ends[0]);
		return sent < 0 ? (int)sent : -errno;
	}
	*reader = (struct reader){.socket = ends[0], .pidfd = -1};
	set_state(reader, READER_STARTING);
	return 0;
}

static void close_reader(struct reader *reader, bool kill_it)
{
	if (kill_it && reader->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, reader->pidfd, SIGKILL, NULL, 0);
	if (reader->pidfd >= 0)
		close(reader->pidfd);
	if (reader->socket >= 0)
		close(reader->socket);
	*reader = (struct reader){.socket = -1, .pidfd = -1};
}

/* Its place is free; what it served gets no answer, and its owner the blame. */
static void abandon(struct reader_pool *p, struct reader *reader, const char *why)
{
	struct asked *serving = reader->serving;

	log_debug(LOG_PROCFS, "reader %d is left behind: %s", reader->pid, why);
	close_reader(reader, true);
	if (!serving)
		return;
	p->stats.hung++;
	blame(p, serving->owner);
	refuse(p, serving, READER_HUNG);
}

static void check_deadline(struct reader_pool *p, struct reader *reader, uint64_t now)
{
	uint64_t took = now - reader->since, deadline = p->options.deadline;

	if (reader->state == READER_STARTING && took > START_PATIENCE * deadline)
		abandon(p, reader, "it does not start");
	if (reader->state != READER_BUSY || took <= deadline)
		return;
	if (took > RUNNING_PATIENCE * deadline || !process_is_runnable(reader->pid))
		abandon(p, reader, "no answer");
}

static void finish_request(struct reader_pool *p, struct reader *reader,
			   const struct reader_head *head, const char *data, int *fds,
			   size_t fd_count)
{
	struct reader_answer answer = {
		.data = data, .size = head->size, .fds = fds, .fd_count = fd_count};
	struct asked *asked = reader->serving;
	struct owner *owner = known_owner(p, asked->owner);

	p->stats.cpu_ns += head->cpu_ns;
	if (owner)
		owner->credit -= (int64_t)min_u64(head->cpu_ns, p->options.credit);
	reader->serving = NULL;
	set_state(reader, READER_IDLE);
	give_answer(p, asked, &answer);
}

/* Takes what a reader has sent. False: nothing more. */
static bool take_message(struct reader_pool *p, struct reader *reader)
{
	struct {
		struct reader_head head;
		char data[READER_ANSWER_MAX];
	} message;
	int fds[READER_FDS_MAX];
	size_t count = READER_FDS_MAX;
	ssize_t got = fd_message__receive(reader->socket, &message, sizeof(message), fds, &count,
					  MSG_DONTWAIT);

	if (got == -EAGAIN)
		return false;
	if (got >= (ssize_t)sizeof(message.head) && reader->state == READER_STARTING) {
		close_fds(fds, count);
		reader->pid = (pid_t)message.head.pid;
		reader->pidfd = (int)syscall(SYS_pidfd_open, reader->pid, 0);
		set_state(reader, READER_IDLE);
		return true;
	}
	if (got < (ssize_t)sizeof(message.head) || reader->state != READER_BUSY ||
	    message.head.size != (size_t)got - sizeof(message.head)) {
		if (got > 0)
			close_fds(fds, count);
		abandon(p, reader, got > 0 ? "nonsense" : "it ended");
		return false;
	}
	finish_request(p, reader, &message.head, message.data, fds, count);
	return true;
}

/* ---- holding up others ----------------------------------------------------------------------- */

static void refill_patience(struct patience *t, uint64_t limit, uint64_t now)
{
	t->left += (int64_t)min_u64((now - t->as_of) / PATIENCE_DIVISOR, limit);
	if (!t->as_of || t->left > (int64_t)limit)
		t->left = (int64_t)limit;
	t->as_of = now;
}

/* Once in a step, however many requests there are. */
static void charge_patience(struct reader_pool *p, struct patience *t, uint64_t limit, uint64_t age,
			    uint64_t now)
{
	if (t->step == p->steps)
		return;
	t->step = p->steps;
	refill_patience(t, limit, now);
	t->left -= (int64_t)min_u64(p->elapsed, age - SLOW);
}

static bool holds_up(const struct reader_pool *p, const struct asked *asked, uint64_t now)
{
	return p->hurry && asked->holds && !asked->answered && asked->owner != TRUSTED &&
	       now - asked->time > SLOW;
}

static void charge_request(struct reader_pool *p, const struct asked *asked, uint64_t now)
{
	struct owner *owner = known_owner(p, asked->owner);
	uint64_t limit = p->options.patience, age = now - asked->time;

	if (!owner || !holds_up(p, asked, now))
		return;
	charge_patience(p, &owner->patience, limit, age, now);
	charge_patience(p, &p->patience, PATIENCE_OF_ALL * limit, age, now);
}

/* All of a step are charged before one is judged. */
static void charge_all(struct reader_pool *p, uint64_t now)
{
	p->steps++;
	p->elapsed = p->last_step ? min_u64(now - p->last_step, STEP_MAX) : 0;
	p->last_step = now;
	for (const struct asked *asked = p->first; asked && p->hurry; asked = asked->next)
		charge_request(p, asked, now);
	for (unsigned int i = 0; i < READERS_MAX; i++) {
		const struct reader *reader = &p->readers[i];
		struct owner *owner = reader->serving ? known_owner(p, reader->serving->owner)
						      : NULL;

		if (!owner)
			continue;
		charge_request(p, reader->serving, now);
		if (now - reader->since > SLOW)
			owner->slow_step = p->steps;
	}
}

static bool is_late(struct reader_pool *p, const struct asked *asked, uint64_t now)
{
	const struct owner *owner = known_owner(p, asked->owner);

	return owner && holds_up(p, asked, now) &&
	       (owner->patience.left <= 0 || p->patience.left <= 0);
}

/* Their readers go on: whether they come to an end says something about their owner. */
static void let_go_of_slow_ones(struct reader_pool *p, uint64_t now)
{
	const struct reader_answer late = {.refusal = READER_LATE};

	for (unsigned int i = 0; i < READERS_MAX; i++) {
		struct asked *serving = p->readers[i].serving;

		if (!serving || !is_late(p, serving, now))
			continue;
		note_refusal(p, serving, READER_LATE);
		report_answer(p, serving, &late);
	}
}

void reader_pool__set_hurry(struct reader_pool *p, bool hurry)
{
	p->hurry = hurry;
}

/* ---- handing out ----------------------------------------------------------------------------- */

static struct asked *unlink_asked(struct reader_pool *p, struct asked **link)
{
	struct asked *asked = *link;

	*link = asked->next;
	if (!asked->next)
		p->last = link;
	asked->next = NULL;
	return asked;
}

/* Those whose answer is known: their owner is banned, has no credit for too long, or no patience is left for him. */
static void refuse_hopeless(struct reader_pool *p, uint64_t now)
{
	struct asked **link = &p->first, *hopeless = NULL, **end = &hopeless;

	while (*link) {
		struct asked *asked = *link;
		struct owner *owner = known_owner(p, asked->owner);

		if (!asked->refusal && owner && owner->banned)
			asked->refusal = READER_BANNED;
		if (!asked->refusal && owner && now - asked->time > BUDGET_PATIENCE &&
		    !has_credit(p, owner, now))
			asked->refusal = READER_OVER_BUDGET;
		if (!asked->refusal && is_late(p, asked, now))
			asked->refusal = READER_LATE;
		if (!asked->refusal) {
			link = &asked->next;
			continue;
		}
		*end = unlink_asked(p, link);
		end = &(*end)->next;
	}
	while (hopeless) {
		struct asked *next = hopeless->next;

		refuse(p, hopeless, hopeless->refusal);
		hopeless = next;
	}
}

/* The oldest request of an owner who was not served last, or else the oldest; NULL: none may be served. */
static struct asked *next_request(struct reader_pool *p, uint64_t now)
{
	struct asked **fallback = NULL;

	for (struct asked **link = &p->first; *link; link = &(*link)->next) {
		struct owner *owner = known_owner(p, (*link)->owner);

		if ((*link)->refusal || (owner && owner->slow_step == p->steps) ||
		    (owner && !has_credit(p, owner, now)))
			continue;
		if ((*link)->owner != p->last_owner)
			return unlink_asked(p, link);
		if (!fallback)
			fallback = link;
	}
	return fallback ? unlink_asked(p, fallback) : NULL;
}

static void serve_next(struct reader_pool *p, struct reader *reader, uint64_t now)
{
	struct asked *asked = next_request(p, now);
	ssize_t sent;

	if (!asked)
		return;
	sent = fd_message__send(reader->socket, &asked->service, sizeof(asked->service),
				asked->data, asked->size, asked->fds, asked->fd_count,
				MSG_DONTWAIT);
	reader->serving = asked;
	p->last_owner = asked->owner;
	set_state(reader, READER_BUSY);
	if (sent < 0)
		abandon(p, reader, "it takes nothing");
}

static bool is_slow(const struct reader *reader, uint64_t now)
{
	return reader->state == READER_BUSY && now - reader->since > SLOW;
}

/* Slow ones do not count: others are started instead, as long as there is a place. */
static void hand_out(struct reader_pool *p, uint64_t now)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < READERS_MAX; i++)
		count += p->readers[i].state != READER_NONE && !is_slow(&p->readers[i], now);
	for (unsigned int i = 0; i < READERS_MAX && p->first && p->control >= 0; i++) {
		struct reader *reader = &p->readers[i];

		if (reader->state == READER_NONE && count < p->options.readers)
			count += !start_reader(p, reader);
		if (reader->state == READER_IDLE)
			serve_next(p, reader, now);
	}
}

/* ---- the pool -------------------------------------------------------------------------------- */

static void set_options(struct reader_pool *p, const struct reader_pool_options *options)
{
	struct reader_pool_options *own = &p->options;

	*own = *options;
	own->readers = own->readers ? own->readers : READERS;
	own->readers = own->readers < READERS_MAX ? own->readers : READERS_MAX;
	own->deadline = own->deadline ? own->deadline : DEADLINE;
	own->hangs = own->hangs ? own->hangs : HANGS;
	own->credit = own->credit ? own->credit : CREDIT;
	own->patience = own->patience ? own->patience : PATIENCE;
}

int reader_pool__new(const struct reader_pool_options *options, struct reader_pool **pool)
{
	struct reader_pool *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	set_options(p, options);
	hashmap__init(&p->by_key, owner_has_key, p);
	p->last = &p->first;
	p->control = -1;
	for (size_t i = 0; i < READERS_MAX; i++)
		p->readers[i] = (struct reader){.socket = -1, .pidfd = -1};
	p->epoll = epoll_create1(EPOLL_CLOEXEC);
	err = p->epoll < 0 ? -errno : reader_keeper__start(&p->options, &p->keeper, &p->control);
	for (unsigned int i = 0; i < p->options.readers && !err; i++)
		err = start_reader(p, &p->readers[i]);
	if (err) {
		reader_pool__free(p);
		return err;
	}
	*pool = p;
	return 0;
}

static void end_readers(struct reader_pool *p)
{
	for (size_t i = 0; i < READERS_MAX; i++) {
		struct asked *serving = p->readers[i].serving;

		close_reader(&p->readers[i], serving != NULL);
		if (serving)
			refuse(p, serving, READER_ENDED);
	}
	while (p->first)
		refuse(p, unlink_asked(p, &p->first), READER_ENDED);
}

void reader_pool__end(struct reader_pool *p)
{
	int control = p->control;

	p->control = -1;
	end_readers(p);
	if (control >= 0)
		close(control);
	/* it waits for nothing but its socket, and a moment for readers that end */
	if (p->keeper > 0)
		while (waitpid(p->keeper, NULL, 0) < 0 && errno == EINTR)
			;
	p->keeper = 0;
}

void reader_pool__free(struct reader_pool *p)
{
	if (!p)
		return;
	reader_pool__end(p);
	if (p->epoll >= 0)
		close(p->epoll);
	hashmap__fini(&p->by_key);
	vec_free(&p->owners);
	free(p);
}

void reader_pool__step(struct reader_pool *p)
{
	struct epoll_event events[READERS_MAX];
	int ready = epoll_wait(p->epoll, events, READERS_MAX, 0);
	uint64_t now = monotonic_ns();

	for (int i = 0; i < ready; i++) {
		struct reader *reader = events[i].data.ptr;

		while (reader->socket >= 0 && take_message(p, reader))
			;
	}
	for (unsigned int i = 0; i < READERS_MAX; i++)
		check_deadline(p, &p->readers[i], now);
	charge_all(p, now);
	let_go_of_slow_ones(p, now);
	refuse_hopeless(p, now);
	hand_out(p, now);
}

bool reader_pool__settle(struct reader_pool *p, uint64_t patience)
{
	uint64_t until = monotonic_ns() + patience;

	for (;;) {
		struct pollfd fd = {.fd = p->epoll, .events = POLLIN};
		uint64_t now, left;
		struct timespec timeout;

		reader_pool__step(p);
		now = monotonic_ns();
		if (!p->waiting || now >= until)
			return !p->waiting;
		left = min_u64(until - now, p->options.deadline / 4);
		timeout = (struct timespec){left / 1000000000, left % 1000000000};
		ppoll(&fd, 1, &timeout, NULL);
	}
}

int reader_pool__fd(const struct reader_pool *p)
{
	return p->epoll;
}

size_t reader_pool__waiting(const struct reader_pool *p)
{
	return p->waiting;
}

bool reader_pool__queues(const struct reader_pool *p)
{
	return p->first;
}

void reader_pool__stats(const struct reader_pool *p, struct reader_pool_stats *stats)
{
	*stats = p->stats;
}
