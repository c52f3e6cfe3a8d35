/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A free helper gets the next request (tenants/requests.c). A request without an answer after 20 ms
 * is slow: another helper serves other owners meanwhile. The stream of events waits for requests
 * that `hold`, so that time is charged to their owner; without credit, the stream continues without
 * the answer.
 */
#include "tenants/pool.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/proc_task.h"
#include "tenants/filter.h"
#include "tenants/helper_process.h"
#include "tenants/keeper.h"
#include "tenants/requests.h"

#define HELPERS_MAX    8
#define HELPERS	       2
#define START_PATIENCE 10	   /* times `silence`, for a helper to be forked */
#define RETRY	       20000000ull /* ns: after a helper that ended before it had a request */

enum helper_state { HELPER_NONE, HELPER_STARTING, HELPER_IDLE, HELPER_BUSY };

struct helper {
	enum helper_state state;
	struct helper_process process;
	uint64_t since; /* time of the last change of state */
	struct request *serving;
	uint64_t ticket;    /* of the frame */
	uint64_t cpu_begin; /* ns, when it got the request */
	uint64_t run_delay; /* at the last look, see newly_waited() */
};

struct helper_pool {
	struct helper_pool_options options;
	struct helper_process keeper; /* its pid stays when its control is closed */
	int epoll;
	struct helper helpers[HELPERS_MAX];
	struct requests requests;
	uint64_t tickets;
	uint64_t retry;	    /* do not start helpers before this time */
	uint64_t run_delay; /* of this thread */
	struct message_buffer buffer;
};

/* ---- in a helper ----------------------------------------------------------------------------- */

/* One message at a time, in a process of its own. */
static struct message_buffer request, answer;

static int send_answer(const struct helper_job *job)
{
	answer.frame = (struct message_frame){.ticket = request.frame.ticket,
					      .service = request.frame.service,
					      .flags = MESSAGE_DONE,
					      .size = job->answer_size};
	if (!job->answer_fd_count)
		return message__write(CHILD_SOCKET, &answer);
	return message__send(CHILD_SOCKET,
			     &(struct message){.frame = answer.frame,
					       .bytes = answer.bytes,
					       .fds = job->answer_fds,
					       .fd_count = job->answer_fd_count},
			     0);
}

static int serve_one(const struct helper_pool_options *options)
{
	struct helper_job job = {.request = request.bytes,
				 .request_size = request.frame.size,
				 .fds = request.fds,
				 .fd_count = request.fd_count,
				 .answer = answer.bytes};
	int err;

	memset(answer.bytes, 0, sizeof(answer.bytes));
	options->services[request.frame.service](&job);
	err = send_answer(&job);
	/* after the answer: closing a file can hang as well */
	message__close_fds(job.answer_fds, job.answer_fd_count);
	message__close_fds(job.fds, job.fd_count);
	return err;
}

/* The pool reads the kernel's account of this process before it closes the socket. */
static int await_end(void)
{
	char byte;

	return read(CHILD_SOCKET, &byte, 1) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int run_helper(const struct child_self *self)
{
	const struct helper_pool_options *options = self->data;

	if (helper_process__send_start())
		return EXIT_FAILURE;
	for (;;) {
		int got = message__receive(CHILD_SOCKET, &request, 0);

		if (got <= 0)
			return got ? EXIT_FAILURE : EXIT_SUCCESS;
		if (options->once && filter__enter(self->filter))
			return EXIT_FAILURE;
		if (serve_one(options))
			return EXIT_FAILURE;
		if (options->once)
			return await_end();
	}
}

/* ---- requests -------------------------------------------------------------------------------- */

int helper_pool__request(struct helper_pool *p, const struct helper_request *request)
{
	if (request->size > MESSAGE_SIZE_MAX || !request->size ||
	    request->fd_count > MESSAGE_FDS_MAX || request->service >= p->options.service_count)
		return -EINVAL;
	return requests__add(&p->requests, request,
			     p->keeper.socket < 0 ? HELPER_ENDED : HELPER_ANSWERED);
}

void helper_pool__forget(struct helper_pool *p, const void *context)
{
	for (struct request *request = p->requests.first; request; request = request->next)
		if (request->context == context)
			request->answer = NULL;
	for (size_t i = 0; i < HELPERS_MAX; i++)
		if (p->helpers[i].serving && p->helpers[i].serving->context == context)
			p->helpers[i].serving->answer = NULL;
}

void helper_pool__set_hurry(struct helper_pool *p, bool hurry)
{
	p->requests.hurry = hurry;
}

void helper_pool__set_at_once(struct helper_pool *p, unsigned int at_once)
{
	p->options.at_once = at_once;
}

/* ---- helpers --------------------------------------------------------------------------------- */

static void set_state(struct helper *helper, enum helper_state state)
{
	helper->state = state;
	helper->since = monotonic_ns();
}

static void drop_keeper(struct helper_pool *p)
{
	log_debug(LOG_SESSION, "the keeper of %s has ended", helper_classes[p->options.class].name);
	close(p->keeper.socket);
	p->keeper.socket = -1;
}

static void close_helper(struct helper *helper, bool kill_it)
{
	if (kill_it)
		helper_process__kill(&helper->process);
	helper_process__let_go(&helper->process);
	*helper = (struct helper){.process = helper->process};
}

static int start_helper(struct helper_pool *p, struct helper *helper)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = helper};
	int err = helper_process__start(&helper->process, &p->keeper, NULL);

	if (err) {
		if (err != -EAGAIN)
			drop_keeper(p);
		return err;
	}
	set_state(helper, HELPER_STARTING);
	if (!epoll_ctl(p->epoll, EPOLL_CTL_ADD, helper->process.socket, &event))
		return 0;
	err = -errno;
	close_helper(helper, true);
	return err;
}

/* CPU time for its request; if it cannot be read (the helper has ended), the wall time. */
static uint64_t cpu_used(const struct helper *helper, uint64_t now)
{
	uint64_t cpu;

	if (!process_cpu_ns_of(helper->process.pid, &cpu))
		return now - helper->since;
	return cpu > helper->cpu_begin ? cpu - helper->cpu_begin : 0;
}

static uint64_t charge_cpu(struct helper_pool *p, const struct helper *helper, uint64_t now)
{
	uint64_t used = cpu_used(helper, now);

	requests__charge_cpu(&p->requests, helper->serving->owner, used, now);
	return used;
}

/*
 * Refuses its request and charges the owner with a hang. If each request has its own helper, only a
 * real hang counts: any process may have killed the helper.
 */
static void abandon(struct helper_pool *p, struct helper *helper, enum helper_refusal why)
{
	struct request *serving = helper->serving;
	uint64_t now = monotonic_ns(), cpu_ns = 0;

	log_debug(LOG_SESSION, "helper %d is abandoned: %s", helper->process.pid,
		  why == HELPER_HUNG   ? "no progress"
		  : why == HELPER_DIED ? "it ended"
				       : "invalid message");
	if (serving)
		cpu_ns = charge_cpu(p, helper, now);
	else
		p->retry = now + RETRY;
	close_helper(helper, true);
	if (!serving)
		return;
	p->requests.stats.hung++;
	if (why == HELPER_HUNG || !p->options.once)
		requests__note_hang(&p->requests, serving->owner);
	request__refuse(&p->requests, serving, why, cpu_ns);
}

static void check_progress(struct helper_pool *p, struct helper *helper, uint64_t now)
{
	const struct helper_pool_options *o = &p->options;
	struct helper_process *process = &helper->process;
	uint64_t took = now - helper->since;

	if (helper->state == HELPER_STARTING && took > START_PATIENCE * o->silence)
		abandon(p, helper, HELPER_HUNG);
	if (helper->state == HELPER_BUSY &&
	    (took > o->wall_time ||
	     liveness__is_stuck(&process->liveness, process->pid, now, o->silence)))
		abandon(p, helper, HELPER_HUNG);
}

static void take_answer(struct helper_pool *p, struct helper *helper, struct message_buffer *buffer)
{
	struct helper_answer answer = {.data = buffer->bytes,
				       .size = buffer->frame.size,
				       .fds = buffer->fds,
				       .fd_count = buffer->fd_count};
	struct request *request = helper->serving;

	answer.cpu_ns = charge_cpu(p, helper, monotonic_ns());
	helper->serving = NULL;
	if (p->options.once)
		close_helper(helper, true);
	else
		set_state(helper, HELPER_IDLE);
	request__end(&p->requests, request, &answer);
}

static bool is_answer(const struct helper *helper, const struct message_frame *frame)
{
	return helper->state == HELPER_BUSY && frame->flags == MESSAGE_DONE &&
	       frame->ticket == helper->ticket && frame->service == helper->serving->service;
}

/* Reads one message: a helper sends the next one only after a request. */
static void take_message(struct helper_pool *p, struct helper *helper)
{
	struct message_buffer *buffer = &p->buffer;
	int got = helper_process__receive(&helper->process, buffer);

	if (helper->state == HELPER_STARTING && helper->process.pid)
		set_state(helper, HELPER_IDLE);
	if (got == -EAGAIN)
		return;
	if (got > 0 && is_answer(helper, &buffer->frame)) {
		take_answer(p, helper, buffer);
		return;
	}
	if (got > 0)
		message__close_fds(buffer->fds, buffer->fd_count);
	abandon(p, helper, got > 0 || got == -EBADMSG ? HELPER_FORGED : HELPER_DIED);
}

/* ---- handing out ----------------------------------------------------------------------------- */

/* `now` is the start of the step, so `since` may be later. */
static bool is_slow(const struct helper *helper, uint64_t now)
{
	return helper->state == HELPER_BUSY && now > helper->since + REQUEST_SLOW;
}

static struct request *next_request(struct helper_pool *p, uint64_t now)
{
	uint64_t slow[HELPERS_MAX];
	size_t count = 0;

	for (size_t i = 0; i < HELPERS_MAX; i++)
		if (is_slow(&p->helpers[i], now))
			slow[count++] = p->helpers[i].serving->owner;
	return requests__next(&p->requests, slow, count, now);
}

/* The other end is closed: the message was not delivered. */
static bool has_no_reader(int error)
{
	return error == -EPIPE || error == -ECONNRESET;
}

static void serve_next(struct helper_pool *p, struct helper *helper, uint64_t now)
{
	struct request *request = next_request(p, now);
	struct message message;
	int err;

	if (!request)
		return;
	helper->ticket = ++p->tickets;
	message = (struct message){.frame = {.ticket = helper->ticket,
					     .service = (uint32_t)request->service,
					     .size = request->size},
				   .bytes = request->data,
				   .fds = request->fds,
				   .fd_count = request->fd_count};
	helper->cpu_begin = 0;
	if (!p->options.once)
		process_cpu_ns_of(helper->process.pid, &helper->cpu_begin);
	err = message__send(helper->process.socket, &message, MSG_DONTWAIT);
	if (message__is_for_now(err) || has_no_reader(err)) {
		requests__put_back(&p->requests, request);
		if (has_no_reader(err)) /* it ended while it was idle */
			abandon(p, helper, HELPER_DIED);
		return;
	}
	helper->serving = request;
	helper->run_delay = 0;
	helper->process.liveness = (struct liveness){.cpu_ns = helper->cpu_begin, .since = now};
	set_state(helper, HELPER_BUSY);
	if (err)
		abandon(p, helper, HELPER_DIED);
}

static bool wants_helper(const struct helper_pool *p, uint64_t now)
{
	unsigned int fast = 0, ready = 0, all = 0;

	for (size_t i = 0; i < HELPERS_MAX; i++) {
		const struct helper *helper = &p->helpers[i];

		all += helper->state != HELPER_NONE;
		fast += helper->state != HELPER_NONE && !is_slow(helper, now);
		ready += helper->state == HELPER_IDLE || helper->state == HELPER_STARTING;
	}
	if (p->keeper.socket < 0 || all >= p->options.most || now < p->retry)
		return false;
	return p->options.once ? !ready : p->requests.first && fast < p->options.at_once;
}

static bool may_serve(const struct helper_pool *p, uint64_t now)
{
	unsigned int fast = 0;

	for (size_t i = 0; i < HELPERS_MAX; i++)
		fast += p->helpers[i].state == HELPER_BUSY && !is_slow(&p->helpers[i], now);
	return p->requests.first && fast < p->options.at_once;
}

/* Slow helpers do not count: others are started instead, up to the maximum. */
static void hand_out(struct helper_pool *p, uint64_t now)
{
	for (size_t i = 0; i < HELPERS_MAX; i++) {
		struct helper *helper = &p->helpers[i];

		if (helper->state == HELPER_IDLE && may_serve(p, now))
			serve_next(p, helper, now);
	}
	for (size_t i = 0; i < HELPERS_MAX && wants_helper(p, now); i++)
		if (p->helpers[i].state == HELPER_NONE && start_helper(p, &p->helpers[i]))
			break;
}

/* ---- the pool -------------------------------------------------------------------------------- */

static void set_options(struct helper_pool *p, const struct helper_pool_options *options)
{
	const struct helper_class *class = &helper_classes[options->class];
	struct helper_pool_options *own = &p->options;

	*own = *options;
	own->at_once = own->at_once ?: HELPERS;
	own->most = own->most && own->most < HELPERS_MAX ? own->most : HELPERS_MAX;
	own->silence = own->silence ?: class->silence;
	own->wall_time = own->wall_time ?: class->wall_time / class->silence * own->silence;
	own->hangs = own->hangs ?: class->hangs;
	requests__init(&p->requests, own);
}

static int start_keeper(struct helper_pool *p)
{
	const struct child_plan plan = {
		.class = p->options.class, .run = run_helper, .data = &p->options};

	return keeper__start(p->options.keeper, &plan, &p->keeper);
}

int helper_pool__new(const struct helper_pool_options *options, struct helper_pool **pool)
{
	struct helper_pool *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	set_options(p, options);
	p->keeper = HELPER_PROCESS_NONE;
	for (size_t i = 0; i < HELPERS_MAX; i++)
		p->helpers[i] = (struct helper){.process = HELPER_PROCESS_NONE};
	p->epoll = epoll_create1(EPOLL_CLOEXEC);
	err = p->epoll < 0 ? -errno : start_keeper(p);
	for (unsigned int i = 0; i < p->options.at_once && !err; i++)
		err = start_helper(p, &p->helpers[i]);
	return finish_new(err, p, helper_pool__free, pool);
}

static void end_helpers(struct helper_pool *p)
{
	for (size_t i = 0; i < HELPERS_MAX; i++) {
		struct request *serving = p->helpers[i].serving;

		close_helper(&p->helpers[i], serving != NULL);
		if (serving)
			request__refuse(&p->requests, serving, HELPER_ENDED, 0);
	}
	while (p->requests.first)
		requests__refuse_hopeless(&p->requests, true, monotonic_ns());
}

void helper_pool__end(struct helper_pool *p)
{
	struct helper_process keeper = p->keeper;

	p->keeper = HELPER_PROCESS_NONE;
	end_helpers(p);
	keeper__stop(&keeper);
}

void helper_pool__free(struct helper_pool *p)
{
	if (!p)
		return;
	helper_pool__end(p);
	if (p->epoll >= 0)
		close(p->epoll);
	free(p);
}

static bool is_old(const struct request *request, uint64_t now)
{
	return request && now > request->time + REQUEST_SLOW / 2;
}

/* How long a thread has waited for a CPU since the last look. The first look sets *before. */
static uint64_t newly_waited(pid_t tid, uint64_t *before)
{
	uint64_t delay = proc_run_delay(tid), last = *before;

	*before = delay;
	return last && delay > last ? delay - last : 0;
}

/* A busy host is not the owner's doing. Looks only at steps in which a request could be charged. */
static uint64_t waited_for_cpus(struct helper_pool *p, uint64_t now)
{
	bool any_old = is_old(p->requests.first, now);
	uint64_t waited = 0;

	for (size_t i = 0; i < HELPERS_MAX; i++)
		any_old |= is_old(p->helpers[i].serving, now);
	if (!any_old || !p->requests.hurry) {
		p->run_delay = 0;
		return 0;
	}
	for (size_t i = 0; i < HELPERS_MAX; i++)
		if (p->helpers[i].serving)
			waited += newly_waited(p->helpers[i].process.pid, &p->helpers[i].run_delay);
	return waited + newly_waited((pid_t)syscall(SYS_gettid), &p->run_delay);
}

/* Helpers of late requests continue: if they end, the owner's files do not hang. */
static void charge_requests(struct helper_pool *p, uint64_t now)
{
	struct request *serving[HELPERS_MAX];

	for (size_t i = 0; i < HELPERS_MAX; i++)
		serving[i] = p->helpers[i].serving;
	/* charge all requests before refusing any */
	requests__charge_step(&p->requests, serving, HELPERS_MAX, waited_for_cpus(p, now), now);
	for (size_t i = 0; i < HELPERS_MAX; i++)
		if (serving[i])
			request__release_late(&p->requests, serving[i], now);
}

void helper_pool__step(struct helper_pool *p)
{
	struct epoll_event events[HELPERS_MAX];
	int ready = epoll_wait(p->epoll, events, HELPERS_MAX, 0);
	uint64_t now;

	for (int i = 0; i < ready; i++)
		take_message(p, events[i].data.ptr);
	now = monotonic_ns();
	for (size_t i = 0; i < HELPERS_MAX; i++)
		check_progress(p, &p->helpers[i], now);
	charge_requests(p, now);
	requests__refuse_hopeless(&p->requests, p->keeper.socket < 0, now);
	hand_out(p, now);
}

bool helper_pool__settle(struct helper_pool *p, uint64_t patience)
{
	uint64_t until = monotonic_ns() + patience;

	for (;;) {
		struct pollfd fd = {.fd = p->epoll, .events = POLLIN};
		uint64_t now, left;
		struct timespec timeout;

		helper_pool__step(p);
		now = monotonic_ns();
		if (!p->requests.unanswered || now >= until)
			return !p->requests.unanswered;
		left = min_u64(until - now, p->options.silence / 4);
		timeout = (struct timespec){left / 1000000000, left % 1000000000};
		ppoll(&fd, 1, &timeout, NULL);
	}
}

int helper_pool__fd(const struct helper_pool *p)
{
	return p->epoll;
}

size_t helper_pool__waiting(const struct helper_pool *p)
{
	return p->requests.unanswered;
}

bool helper_pool__queues(const struct helper_pool *p)
{
	return p->requests.first;
}

void helper_pool__stats(const struct helper_pool *p, struct helper_pool_stats *stats)
{
	*stats = p->requests.stats;
}
