/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/parts/wall.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <sysprof/bpf_shared.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/minmax.h"
#include "base/thread.h"
#include "live/capture/bpf_visits.h"
#include "tenants/child.h"
#include "tenants/message.h"
#include "tenants/helper_process.h"

#define LAST_VISIT 500 /* ms for the last visit */
#define RESTARTS   VISIT_BANNED_MAX
/* ns of CPU time by which visits may exceed their budget: the first one walks all threads */
#define CREDIT	       60000000
#define SMALL_DEBT     10000000 /* ns: with `small`, visits resume after some seconds */
#define OVERDRAWN_EACH 16	/* threads */
#define MILLIONTHS     1000000ull
#define SHORT_NS       2000000u /* CPU time of a visit that may displace any thread */
#define PRIORITY       1	/* the least of SCHED_FIFO */

/* ---- the child: it visits -------------------------------------------------------------------- */

/* The data of a visitor. */
struct visiting {
	struct visitor *shared;
	int programs[VISIT_PROGRAMS];
	int count;	 /* of programs */
	int64_t credit;	 /* ns of CPU time */
	uint64_t used;	 /* CPU time by now, ns */
	uint64_t paid;	 /* CLOCK_MONOTONIC ns up to which its budget was credited */
	uint64_t random; /* state */
};

static uint64_t process_cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* xorshift64 */
static uint64_t next_random(struct visiting *v)
{
	v->random ^= v->random << 13;
	v->random ^= v->random >> 7;
	v->random ^= v->random << 17;
	return v->random;
}

static bool is_overdrawn(const struct visiting *v)
{
	return v->credit - (int64_t)(process_cpu() - v->used) < -(int64_t)v->shared->debt;
}

static void visit_one(struct visitor *shared, int program, uint32_t tid)
{
	__atomic_store_n(&shared->visited, tid, __ATOMIC_RELAXED);
	bpf_visits__run(program);
}

/* Begins anywhere, so that each thread has its chance. Deferred ones become due after the rest. */
static int scan_and_visit(struct visiting *v)
{
	struct visitor *shared = v->shared;
	int err = bpf_visits__run(v->programs[VISIT_SCAN]);
	uint32_t count = shared->due_count < VISIT_DUE_MAX ? shared->due_count : VISIT_DUE_MAX;
	uint32_t first = count ? (uint32_t)(next_random(v) % count) : 0;

	for (uint32_t i = 0; !err && i < count; i++) {
		if (i % OVERDRAWN_EACH == OVERDRAWN_EACH - 1 && !shared->final && is_overdrawn(v))
			break;
		visit_one(shared, v->programs[VISIT_ONE], shared->due[(first + i) % count]);
	}
	for (uint32_t i = count; !err && i < shared->due_count && i < VISIT_DUE_MAX; i++)
		visit_one(shared, v->programs[VISIT_ONE], shared->due[i]);
	__atomic_store_n(&shared->visited, 0, __ATOMIC_RELAXED);
	return err;
}

static void visit_all(struct visiting *v)
{
	struct visitor *shared = v->shared;
	uint64_t used;
	int err = v->count == VISIT_PROGRAMS ? scan_and_visit(v)
					     : bpf_visits__pass(v->programs[VISIT_PASS]);

	if (err)
		return;
	used = process_cpu();
	shared->cpu = used;
	v->credit -= (int64_t)(used - v->used);
	v->used = used;
	shared->count[VISIT_LINE_MADE]++;
}

/* The length of the next period, ns. Longer after visits that exceeded their budget. */
static uint64_t next_length(struct visiting *v)
{
	uint64_t period = NS_PER_SECOND / __atomic_load_n(&v->shared->hz, __ATOMIC_RELAXED);
	uint32_t budget = __atomic_load_n(&v->shared->budget, __ATOMIC_RELAXED);
	uint64_t now = monotonic_ns();

	v->credit += (int64_t)((now - v->paid) * budget / MILLIONTHS);
	v->credit = v->credit < CREDIT ? v->credit : CREDIT;
	v->paid = now;
	return v->credit < 0 ? period + (uint64_t)-v->credit * MILLIONTHS / budget : period;
}

/* True: the collector wants the child to end, or is gone. */
static bool is_called(uint64_t until)
{
	struct pollfd fd = {.fd = CHILD_SOCKET, .events = POLLIN};
	uint64_t now = monotonic_ns(), left = until > now ? until - now : 0;
	struct timespec wait = {.tv_sec = (time_t)(left / 1000000000),
				.tv_nsec = (long)(left % 1000000000)};

	return ppoll(&fd, 1, &wait, NULL) > 0;
}

/* Receives the programs, once the kernel has verified them, and the shared memory. */
static bool take_programs(struct visiting *v)
{
	struct message_buffer message;
	struct bpf_visits_memory where;
	char *memory;

	if (message__receive(CHILD_SOCKET, &message, 0) != 1 ||
	    message.frame.size != sizeof(where) || message.fd_count < 2 ||
	    message.fd_count > VISIT_PROGRAMS + 1)
		return false;
	v->count = (int)message.fd_count - 1;
	memcpy(v->programs, message.fds, (size_t)v->count * sizeof(int));
	memcpy(&where, message.bytes, sizeof(where));
	memory = mmap(NULL, where.size, PROT_READ | PROT_WRITE, MAP_SHARED, message.fds[v->count],
		      0);
	close(message.fds[v->count]);
	v->shared = (struct visitor *)(memory + where.offset);
	return memory != MAP_FAILED;
}

/* Waits for a random moment of the stratum. False: there is no further visit. */
static bool wait_for_visit(struct visiting *v, uint64_t stratum, uint64_t length)
{
	uint64_t drawn = stratum + next_random(v) % length;

	v->shared->drawn = max_u64(drawn, monotonic_ns()); /* the moment may be over */
	return !is_called(drawn);
}

static int run_visits(const struct child_self *self)
{
	struct visiting v = {};
	uint64_t stratum, length;

	(void)self;
	prctl(PR_SET_TIMERSLACK, 1);
	if (getrandom(&v.random, sizeof(v.random), 0) != sizeof(v.random) || !v.random)
		v.random = 88172645463325252ull;
	if (!take_programs(&v))
		return 0;
	v.credit = CREDIT;
	v.used = process_cpu();
	v.paid = stratum = monotonic_ns();
	visit_all(&v);
	stratum += length = next_length(&v);
	while (wait_for_visit(&v, stratum, length)) {
		visit_all(&v);
		stratum += length;
		length = next_length(&v);
		if (monotonic_ns() > stratum + length) {
			v.shared->count[VISIT_LINE_LATE]++;
			stratum = monotonic_ns();
		}
	}
	v.shared->final = 1;
	visit_all(&v);
	return 0;
}

/* ---- the collector --------------------------------------------------------------------------- */

struct wall {
	struct wall_options options;
	struct bpf_session *session; /* not owned */
	struct bpf_visits *visits;
	struct visitor *shared;
	struct helper_process child; /* none: it has ended, or was abandoned */
	uint64_t started;	     /* CLOCK_MONOTONIC ns; 0: not yet */
	bool first_in_line;	     /* the child has priority for a CPU */
	uint64_t made, cpu;	     /* as of the last decision about that */
	uint64_t visits_seen;	     /* shared->made_at, as of the last progress */
	uint32_t visited_seen;
	uint64_t books_of;  /* … as of the last books */
	uint64_t due_until; /* visits were due until then */
	uint32_t window, round;
	uint64_t hz_since; /* since when at this rate; … */
	uint64_t due;	   /* … visits due before */
	/* of abandoned children */
	unsigned int restarts;
	uint64_t past_count[VISIT_LINE_COUNT], past_cpu;
	/* if_possible: a thread loads the programs. `found` and `unfound` are its own until `loaded` */
	pthread_t loader;
	bool loading;
	atomic_bool loaded;
	struct bpf_visits *found;
	struct failure unfound;
	char why[600]; /* there are no visits, or no more of them; "": there are, or will be */
	struct wall *loading_before; /* in still_loading */
};

static void close_child(struct wall *w, bool left)
{
	uint64_t sum = 0, looks;

	if (w->child.socket < 0)
		return;
	looks = w->shared ? w->shared->count[VISIT_LINE_LOOKS] : 0;
	helper_process__end(&w->child, left ? 0 : REAP_NS, NULL, NULL);
	if (!w->shared)
		return;
	for (int line = VISIT_LINE_UNCHANGED; line < VISIT_LINE_COUNT; line++)
		sum += w->shared->count[line];
	if (looks > sum)
		w->shared->count[VISIT_LINE_LEFT] = looks - sum;
}

static void set_rate(struct wall *w)
{
	__atomic_store_n(&w->shared->hz, w->options.hz, __ATOMIC_RELAXED);
	__atomic_store_n(&w->shared->budget, w->options.budget, __ATOMIC_RELAXED);
	w->shared->debt = w->options.small ? SMALL_DEBT : UINT32_MAX;
	__atomic_store_n(&w->shared->window, w->window, __ATOMIC_RELAXED);
	__atomic_store_n(&w->shared->round, w->round, __ATOMIC_RELAXED);
}

/* Forks the child before the collector has much memory; it waits for its programs. */
static int start_child(struct wall *w, struct failure *failure)
{
	const struct child_plan plan = {
		.class = HELPER_VISITOR, .run = run_visits, .type = SOCK_SEQPACKET};
	int err = helper_process__start(&w->child, NULL, &plan);

	w->first_in_line = false;
	w->made = w->cpu = 0;
	return err ? fail(failure, err, "cannot start the process that visits threads: %s",
			  strerror(-err))
		   : 0;
}

/* The child makes its first visit now. */
static int send_programs(struct wall *w)
{
	int fds[VISIT_PROGRAMS + 1], count = bpf_visits__programs(w->visits, fds);
	const struct bpf_visits_memory where = bpf_visits__memory(w->visits);
	const struct message message = {.frame.size = sizeof(where),
					.bytes = &where,
					.fds = fds,
					.fd_count = (size_t)count + 1};

	set_rate(w);
	fds[count] = where.map;
	return message__send(w->child.socket, &message, 0);
}

/* Opens new programs and maps: those of a child that hangs may still run. 0 or negative errno. */
static int open_visits(struct wall *w, struct failure *failure)
{
	int err = bpf_visits__open(w->session, w->options.small, &w->visits, failure);

	if (!err)
		w->shared = bpf_visits__shared(w->visits);
	return err;
}

/* The recording goes on. */
static void __attribute__((format(printf, 2, 3)))
visit_no_more(struct wall *w, const char *format, ...)
{
	va_list args;
	int at = 0;

	if (w->started)
		at = snprintf(w->why, sizeof(w->why),
			      "after %.1f s: ", (double)(monotonic_ns() - w->started) / 1e9);
	va_start(args, format);
	vsnprintf(w->why + at, sizeof(w->why) - (size_t)at, format, args);
	va_end(args);
	log_debug(LOG_BPF, "no visits: %s", w->why);
	close_child(w, false);
}

/* The counts so far were added to past_count and past_cpu. */
static void clear_counts(struct wall *w)
{
	memset(w->shared->count, 0, sizeof(w->shared->count));
	w->shared->cpu = 0;
}

static void pass_programs(struct wall *w)
{
	int err = send_programs(w);

	if (err)
		visit_no_more(w, "the process that visits threads does not answer: %s",
			      strerror(-err));
}

/*
 * Abandons a child that waits for a page forever. Another child goes on without that process and
 * all of its user's; if that fails, the recording goes on without visits.
 */
static int leave_behind(struct wall *w)
{
	struct bpf_visits *left = w->visits;
	struct visitor old = {}; /* of it, up to `due` */
	struct failure why = {};
	int err;

	close_child(w, true);
	memcpy(&old, w->shared, offsetof(struct visitor, due));
	for (int line = 0; line < VISIT_LINE_COUNT; line++)
		w->past_count[line] += old.count[line];
	w->past_cpu += old.cpu;
	log_debug(LOG_BPF, "memory of process %u of user %u does not answer", old.visited_process,
		  old.visited_user);
	if (w->restarts == RESTARTS) {
		clear_counts(w);
		visit_no_more(w, "memory of too many processes did not answer");
		return 0;
	}
	err = bpf_visits__drain(w->visits, w->options.push, w->options.context);
	if (err)
		return err;
	w->visits = NULL;
	if (open_visits(w, &why) || start_child(w, &why)) {
		bpf_visits__free(w->visits);
		w->visits = left;
		w->shared = bpf_visits__shared(left);
		clear_counts(w);
		visit_no_more(w, "%s", why.what);
		return 0;
	}
	bpf_visits__free(left);
	memcpy(w->shared->banned, old.banned, sizeof(old.banned));
	memcpy(w->shared->banned_users, old.banned_users, sizeof(old.banned_users));
	w->shared->banned[w->restarts] = old.visited_process;
	w->shared->banned_users[w->restarts++] = old.visited_user;
	pass_programs(w);
	return 0;
}

static uint64_t due_until_now(const struct wall *w)
{
	return w->due + (w->due_until - w->hz_since) * w->options.hz / NS_PER_SECOND;
}

static int push_books(struct wall *w, uint64_t time)
{
	struct visit_books_event e = {
		.header = {.size = sizeof(e), .type = EVENT_VISIT_BOOKS, .time = time},
		.lines = VISIT_LINE_COUNT,
		.hz = w->options.hz,
		.cpu = w->past_cpu + w->shared->cpu,
		.made_at = __atomic_load_n(&w->shared->made_at, __ATOMIC_RELAXED),
	};

	for (int line = 0; line < VISIT_LINE_COUNT; line++)
		e.count[line] = w->past_count[line] +
				__atomic_load_n(&w->shared->count[line], __ATOMIC_RELAXED);
	if (w->child.socket >= 0)
		w->due_until = time;
	e.count[VISIT_LINE_DUE] = max_u64(due_until_now(w) + 1, e.count[VISIT_LINE_MADE]);
	return w->options.push(w->options.context, &e.header);
}

/* ---- loading in the background --------------------------------------------------------------- */

/* Keeps memory that threads use reachable at the process's end, so that it is no leak. */
static struct wall *volatile still_loading;

static void *run_loader(void *wall)
{
	struct wall *w = wall;

	if (bpf_visits__open(w->session, w->options.small, &w->found, &w->unfound))
		w->found = NULL;
	atomic_store(&w->loaded, true);
	return NULL;
}

static void start_loader(struct wall *w)
{
	int err = w->child.socket < 0 ? 0 : thread__start(&w->loader, run_loader, w);

	w->loading = w->child.socket >= 0 && !err;
	if (err)
		visit_no_more(w, "cannot start a thread: %s", strerror(-err));
}

static void begin_visits(struct wall *w)
{
	pass_programs(w);
	if (w->child.socket >= 0)
		w->started = w->due_until = w->hz_since = monotonic_ns();
}

static void finish_loading(struct wall *w)
{
	pthread_join(w->loader, NULL);
	w->loading = false;
	w->visits = steal_ptr(w->found);
	if (w->visits) {
		w->shared = bpf_visits__shared(w->visits);
		begin_visits(w);
	} else {
		visit_no_more(w, "%s", w->unfound.what);
	}
}

/* ---- the part -------------------------------------------------------------------------------- */

/*
 * A visit must be at its random moment: one that waits for a CPU gets it when another thread leaves
 * it, and finds that thread at the start of a wait. So short visits displace any thread, if
 * permitted.
 */
static void choose_priority(struct wall *w)
{
	uint64_t made = w->shared->count[VISIT_LINE_MADE] - w->made;
	bool first = w->shared->cpu - w->cpu < made * SHORT_NS;
	const struct sched_param priority = {.sched_priority = first ? PRIORITY : 0};

	if (!made)
		return;
	w->made += made;
	w->cpu = w->shared->cpu;
	if (first != w->first_in_line)
		sched_setscheduler(w->child.pid, first ? SCHED_FIFO : SCHED_OTHER, &priority);
	w->first_in_line = first;
}

static int follow_visits(struct wall *w, uint64_t now)
{
	uint32_t visited = __atomic_load_n(&w->shared->visited, __ATOMIC_RELAXED);
	uint64_t made_at = __atomic_load_n(&w->shared->made_at, __ATOMIC_RELAXED);
	int err = 0;

	if (w->started && w->child.socket >= 0 && helper_process__has_ended(&w->child))
		visit_no_more(w, "the process that visits threads has ended");
	if (w->started && w->child.socket >= 0) {
		if (!visited || visited != w->visited_seen || made_at != w->visits_seen)
			w->child.liveness.since = now;
		w->visited_seen = visited;
		w->visits_seen = made_at;
		if (liveness__is_stuck(&w->child.liveness, w->child.pid, now,
				       helper_classes[HELPER_VISITOR].silence))
			err = leave_behind(w);
	}
	if (w->started && !err)
		err = bpf_visits__drain(w->visits, w->options.push, w->options.context);
	if (err || made_at == w->books_of)
		return err;
	if (w->child.socket >= 0)
		choose_priority(w);
	w->books_of = made_at;
	return push_books(w, now);
}

static int wall__tick(void *wall, uint64_t now)
{
	struct wall *w = wall;

	if (w->loading && atomic_load(&w->loaded))
		finish_loading(w);
	return w->visits ? follow_visits(w, now) : 0;
}

/* The last visit accounts for every thread; then the child ends. */
static void wall__stop(void *wall)
{
	struct wall *w = wall;
	struct pollfd fd = {.fd = w->child.socket, .events = POLLIN};

	if (w->child.socket < 0 || !w->started)
		return;
	w->due_until = monotonic_ns();
	shutdown(w->child.socket, SHUT_WR);
	close_child(w, poll(&fd, 1, LAST_VISIT) <= 0);
}

static int wall__finish(void *wall, uint64_t time)
{
	struct wall *w = wall;

	return w->started ? push_books(w, time) : 0;
}

static void wall__free(void *wall)
{
	struct wall *w = wall;

	close_child(w, false);
	if (w->loading && !atomic_load(&w->loaded)) {
		w->loading_before = still_loading; /* ends with the process */
		still_loading = w;
		return;
	}
	if (w->loading)
		pthread_join(w->loader, NULL);
	bpf_visits__free(w->found);
	bpf_visits__free(w->visits);
	free(w);
}

static void wall__started(void *wall)
{
	struct wall *w = wall;

	if (w->options.if_possible)
		start_loader(w);
	else
		begin_visits(w);
}

static void wall__window_ended(void *wall)
{
	struct wall *w = wall;

	w->window++;
	if (w->shared)
		__atomic_store_n(&w->shared->window, w->window, __ATOMIC_RELAXED);
}

static void wall__look_at_waits(void *wall)
{
	struct wall *w = wall;

	w->round++;
	if (w->shared)
		__atomic_store_n(&w->shared->round, w->round, __ATOMIC_RELAXED);
}

static void wall__set_visits(void *wall, unsigned int hz, unsigned int budget)
{
	struct wall *w = wall;

	if (w->started && w->child.socket >= 0)
		w->due_until = monotonic_ns();
	w->due = due_until_now(w);
	w->hz_since = w->due_until;
	w->options.hz = hz;
	w->options.budget = budget;
	if (w->shared)
		set_rate(w);
}

static const char *wall__refused(const void *wall)
{
	const struct wall *w = wall;

	return w->why[0] ? w->why : NULL;
}

int wall_part__new(const struct wall_options *options, struct bpf_session *session,
		   struct live_part *part, struct failure *failure)
{
	struct wall *w = calloc(1, sizeof(*w));
	struct failure why = {};
	int err;

	if (!w)
		return fail(failure, -ENOMEM, "out of memory");
	w->options = *options;
	w->session = session;
	w->child = HELPER_PROCESS_NONE;
	err = start_child(w, &why);
	if (!err && !options->if_possible)
		err = open_visits(w, &why);
	if (err && !options->if_possible) {
		*failure = why;
		wall__free(w);
		return err;
	}
	if (err)
		visit_no_more(w, "%s", why.what);
	*part = (struct live_part){.object = w,
				   .started = wall__started,
				   .tick = wall__tick,
				   .window_ended = wall__window_ended,
				   .look_at_waits = wall__look_at_waits,
				   .set_visits = wall__set_visits,
				   .refused = wall__refused,
				   .stop = wall__stop,
				   .finish = wall__finish,
				   .free = wall__free,
				   .uses_kernel = true};
	return 0;
}

bool wall_parts__still_use(const struct bpf_session *session)
{
	return still_loading && still_loading->session == session;
}
