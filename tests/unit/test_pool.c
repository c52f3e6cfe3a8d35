/* SPDX-License-Identifier: BSD-2-Clause */
/* Reader processes: answers, descriptors, and requests that hang, crash, burn CPU time or never end. */
#include <sys/resource.h>

#include "unit.h"

#include "base/clocks.h"
#include "failing_call.h"
#include "tenants/pool.h"

#define DEADLINE 100000000ull /* ns */
#define LONG	 120000000000ull

enum kind { ECHO, READ_FD, GIVE_FD, HANG, DIE, BURN, WHO };

struct question {
	enum kind kind;
	uint32_t value;
};

static void burn(uint64_t ns)
{
	uint64_t until = thread_cpu_ns() + ns;

	while (thread_cpu_ns() < until)
		;
}

static void serve(struct helper_job *job)
{
	struct question q;
	uint32_t *answer = job->answer;
	int ends[2];

	memcpy(&q, job->request, sizeof(q));
	job->answer_size = sizeof(*answer);
	*answer = q.value;
	switch (q.kind) {
	case READ_FD:
		*answer = 0;
		for (size_t i = 0; i < job->fd_count; i++) {
			char byte = 0;

			if (read(job->fds[i], &byte, 1) == 1)
				*answer = *answer * 10 + byte;
		}
		break;
	case GIVE_FD:
		if (!pipe(ends) && write(ends[1], "x", 1) == 1) {
			job->answer_fds[job->answer_fd_count++] = ends[0];
			close(ends[1]);
		}
		break;
	case HANG:
		for (;;)
			pause();
	case DIE:
		raise(SIGKILL);
		break;
	case BURN:
		burn(1000000ull * q.value);
		break;
	case WHO:
		*answer = (uint32_t)getpid();
		break;
	default:
		break;
	}
}

static const helper_serve_fn services[] = {serve};

static struct helper_pool *make_pool(const struct helper_pool_options *more)
{
	struct helper_pool_options options = {.silence = DEADLINE};
	struct helper_pool *pool;

	if (more)
		options = *more;
	options.services = services;
	options.service_count = 1;
	options.class = HELPER_READER;
	options.keeper = HELPER_READER_KEEPER;
	assert_int_equal(helper_pool__new(&options, &pool), 0);
	return pool;
}

struct reported {
	unsigned int answers, count[HELPER_ENDED + 1];
	uint32_t value;
	size_t fd_count;
	int fd;
};

static void take(void *context, const struct helper_answer *answer)
{
	struct reported *reported = context;

	reported->answers++;
	reported->count[answer->refusal]++;
	if (answer->refusal) {
		assert_int_equal(answer->size, 0);
		return;
	}
	assert_int_equal(answer->size, sizeof(reported->value));
	memcpy(&reported->value, answer->data, sizeof(reported->value));
	reported->fd_count = answer->fd_count;
	if (answer->fd_count) {
		reported->fd = answer->fds[0];
		answer->fds[0] = -1;
	}
}

static bool others_wait; /* for what is asked from now on */

static void request_with(struct helper_pool *pool, uint64_t owner, enum kind kind, uint32_t value,
			 const int *fds, size_t fd_count, struct reported *reported)
{
	struct question q = {kind, value};
	struct helper_request request = {.owner = owner,
					 .holds = others_wait,
					 .data = &q,
					 .size = sizeof(q),
					 .fds = fds,
					 .fd_count = fd_count,
					 .answer = take,
					 .context = reported};

	assert_int_equal(helper_pool__request(pool, &request), 0);
}

static void send_request(struct helper_pool *pool, uint64_t owner, enum kind kind, uint32_t value,
			 struct reported *reported)
{
	request_with(pool, owner, kind, value, NULL, 0, reported);
}

TEST(answers_come)
{
	struct helper_pool *pool = make_pool(NULL);
	struct reported reported[300] = {};

	for (uint32_t i = 0; i < 300; i++)
		send_request(pool, i % 7, ECHO, i, &reported[i]);
	assert_int_equal(reported[0].answers, 0);
	assert_int_equal(helper_pool__waiting(pool), 300);
	assert_true(helper_pool__settle(pool, LONG));
	for (uint32_t i = 0; i < 300; i++) {
		assert_int_equal(reported[i].answers, 1);
		assert_int_equal(reported[i].value, i);
	}
	helper_pool__free(pool);
}

TEST(descriptors_pass)
{
	struct helper_pool *pool = make_pool(NULL);
	struct reported reported = {};
	int ends[2][2], fds[2];
	char byte;

	for (int i = 0; i < 2; i++) {
		byte = (char)(i + 4);
		assert_int_equal(pipe(ends[i]), 0);
		assert_int_equal(write(ends[i][1], &byte, 1), 1);
		fds[i] = ends[i][0];
	}
	request_with(pool, 1, READ_FD, 0, fds, 2, &reported);
	for (int i = 0; i < 2; i++) { /* a copy was taken */
		close(ends[i][0]);
		close(ends[i][1]);
	}
	assert_true(helper_pool__settle(pool, LONG));
	assert_int_equal(reported.value, 45);
	send_request(pool, 1, GIVE_FD, 0, &reported);
	assert_true(helper_pool__settle(pool, LONG));
	assert_int_equal(reported.fd_count, 1);
	assert_int_equal(read(reported.fd, &byte, 1), 1);
	assert_int_equal(byte, 'x');
	assert_true(fcntl(reported.fd, F_GETFD) & FD_CLOEXEC);
	close(reported.fd);
	helper_pool__free(pool);
}

TEST(who_hangs_is_left)
{
	static const enum outside_thing things[] = {OUTSIDE_RUNTIMES};
	struct outside_books *books = outside_books__new();
	const struct helper_pool_options counting = {
		.silence = DEADLINE, .books = books, .things = things};
	struct helper_pool *pool = make_pool(&counting);
	struct outside_row row;
	struct reported bad = {}, good = {};
	struct helper_pool_stats stats;

	for (int i = 0; i < 50; i++) {
		send_request(pool, 1, HANG, 0, &bad);
		send_request(pool, 2, ECHO, 5, &good);
	}
	assert_true(helper_pool__settle(pool, LONG));
	assert_int_equal(good.count[HELPER_ANSWERED], 50);
	assert_int_equal(bad.answers, 50);
	assert_in_range(bad.count[HELPER_HUNG], 2, 3); /* two at the same time, and the last */
	assert_int_equal(bad.count[HELPER_BANNED], 50 - bad.count[HELPER_HUNG]);
	helper_pool__stats(pool, &stats);
	assert_int_equal(stats.owners_banned, 1);
	assert_int_equal(stats.hung, bad.count[HELPER_HUNG]);
	send_request(pool, 1, ECHO, 0, &bad);
	assert_true(helper_pool__settle(pool, LONG));
	assert_int_equal(bad.count[HELPER_ANSWERED], 0);
	/* its owner is in the books */
	assert_true(outside_books__take(books, &row));
	assert_true(row.user == 1 && row.thing == OUTSIDE_RUNTIMES);
	assert_int_equal(row.reason, OUTSIDE_BY_NO_ANSWER);
	assert_int_equal(row.count, bad.count[HELPER_HUNG]);
	assert_true(outside_books__take(books, &row));
	assert_int_equal(row.reason, OUTSIDE_BY_BANNED);
	assert_int_equal(row.count, bad.count[HELPER_BANNED]);
	assert_false(outside_books__take(books, &row));
	outside_books__free(books);
	helper_pool__free(pool);
}

TEST(who_dies_is_replaced)
{
	const struct helper_pool_options many = {.silence = DEADLINE, .hangs = 100};
	struct helper_pool *pool = make_pool(&many);
	struct reported dead = {}, reported = {};

	for (int i = 0; i < 10; i++)
		send_request(pool, 1, DIE, 0, &dead);
	send_request(pool, 1, ECHO, 7, &reported);
	assert_true(helper_pool__settle(pool, LONG));
	assert_int_equal(dead.count[HELPER_DIED], 10);
	assert_int_equal(reported.value, 7);
	helper_pool__free(pool);
}

/* A reader that works is not left behind at once, and its owner pays for it. */
TEST(cpu_time_is_an_owners)
{
	const struct helper_pool_options options = {.silence = 200000000, .credit = 50000000};
	struct helper_pool *pool = make_pool(&options);
	struct reported bad = {}, good = {};

	for (int i = 0; i < 20; i++)
		send_request(pool, 1, BURN, 60, &bad);
	for (int i = 0; i < 20; i++)
		send_request(pool, 2, ECHO, 3, &good);
	assert_true(helper_pool__settle(pool, LONG));
	assert_int_equal(good.count[HELPER_ANSWERED], 20);
	assert_int_equal(bad.answers, 20);
	/* some at first, and after each wait for credit; the others waited for too long */
	assert_true(bad.count[HELPER_ANSWERED] >= 1);
	assert_true(bad.count[HELPER_OVER_BUDGET] >= 10);
	helper_pool__free(pool);
}

TEST(too_many_wait)
{
	struct helper_pool *pool = make_pool(NULL);
	struct reported reported = {};

	for (int i = 0; i < 10000; i++)
		send_request(pool, 1, ECHO, 1, &reported);
	assert_true(helper_pool__settle(pool, LONG));
	assert_int_equal(reported.answers, 10000);
	assert_true(reported.count[HELPER_OVER_BUDGET] > 0);
	assert_true(reported.count[HELPER_ANSWERED] >= 4096);
	helper_pool__free(pool);
}

/* Descriptors are copied for as long as a request waits. Where none is left, the request is answered like one too many. */
TEST(no_descriptor_is_left)
{
	struct helper_pool *pool = make_pool(NULL);
	struct reported refused = {}, answered = {};
	struct rlimit before, few;
	int fd = STDERR_FILENO;

	send_request(pool, 1, ECHO, 1, &answered);
	assert_true(helper_pool__settle(pool, LONG));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){.rlim_cur = 3, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	request_with(pool, 1, ECHO, 2, &fd, 1, &refused);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	request_with(pool, 1, ECHO, 2, &fd, 1, &answered);
	assert_true(helper_pool__settle(pool, LONG));
	assert_int_equal(refused.count[HELPER_OVER_BUDGET], 1);
	assert_int_equal(answered.count[HELPER_ANSWERED], 2);
	helper_pool__free(pool);
}

static void one_step(void *pool)
{
	helper_pool__step(pool);
}

/* The kernel has no memory to start a helper with: the next step tries again. */
TEST(no_memory_for_a_helper)
{
	static const int errors[] = {ENOBUFS, ENOMEM, ETOOMANYREFS};
	struct helper_pool *pool =
		make_pool(&(struct helper_pool_options){.silence = LONG, .at_once = 1, .hangs = 9});
	struct reported dead = {}, reported = {};

	for (unsigned int i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		send_request(pool, 1, DIE, 0, &dead);
		assert_true(helper_pool__settle(pool, LONG));
		assert_int_equal(dead.count[HELPER_DIED], i + 1);
		send_request(pool, 2, ECHO, 7, &reported);
		while_call_fails(SYS_sendmsg, (unsigned int)errors[i], one_step, pool);
		assert_int_equal(reported.answers, i);
		assert_true(helper_pool__settle(pool, LONG));
		assert_int_equal(reported.count[HELPER_ANSWERED], i + 1);
	}
	helper_pool__free(pool);
}

/* ... or to pass it a request: it is sent again, and no hang is counted. */
TEST(no_memory_for_a_request)
{
	struct helper_pool *pool =
		make_pool(&(struct helper_pool_options){.silence = LONG, .at_once = 1});
	struct helper_pool_stats stats;
	struct reported reported = {};

	send_request(pool, 1, ECHO, 7, &reported);
	assert_true(helper_pool__settle(pool, LONG));
	for (unsigned int i = 0; i < 5; i++) {
		send_request(pool, 1, ECHO, i, &reported);
		send_request(pool, 1, ECHO, i, &reported);
		while_call_fails(SYS_sendmsg, ENOBUFS, one_step, pool);
		assert_int_equal(reported.answers, 1 + 2 * i);
		assert_true(helper_pool__settle(pool, LONG));
		assert_int_equal(reported.count[HELPER_ANSWERED], 3 + 2 * i);
	}
	helper_pool__stats(pool, &stats);
	assert_int_equal(stats.hung, 0);
	helper_pool__free(pool);
}

TEST(both_serve)
{
	struct helper_pool *pool = make_pool(&(struct helper_pool_options){.silence = LONG});
	unsigned int differing = 0;

	/* the second one may begin late */
	for (int i = 0; i < 5000 && differing < 50; i++) {
		struct reported first = {}, second = {};

		send_request(pool, 3, WHO, 0, &first);
		send_request(pool, 3, WHO, 0, &second);
		assert_true(helper_pool__settle(pool, LONG));
		differing += first.value != second.value;
		usleep(10000);
	}
	assert_true(differing >= 50);
	helper_pool__free(pool);
}

TEST(the_end_answers_all)
{
	struct helper_pool *pool = make_pool(NULL);
	struct reported reported = {}, who = {};
	uint64_t begin;

	send_request(pool, 3, WHO, 0, &who);
	assert_true(helper_pool__settle(pool, LONG));
	for (int i = 0; i < 5; i++)
		send_request(pool, (uint64_t)i, HANG, 0, &reported);
	helper_pool__step(pool);
	begin = monotonic_ns();
	helper_pool__free(pool);
	assert_true(monotonic_ns() - begin < LONG);
	assert_int_equal(reported.count[HELPER_ENDED], 5);
	/* no helper is left: neither an idle one nor one that hung */
	for (int i = 0; i < 500 && !kill((pid_t)who.value, 0); i++)
		usleep(10000);
	assert_int_equal(kill((pid_t)who.value, 0), -1);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

TEST(bad_requests)
{
	static char data[MESSAGE_SIZE_MAX + 1];
	struct helper_pool *pool = make_pool(NULL);
	struct helper_request request = {.data = data, .size = sizeof(data), .answer = take};

	assert_int_equal(helper_pool__request(pool, &request), -EINVAL);
	request.size = 0;
	assert_int_equal(helper_pool__request(pool, &request), -EINVAL);
	request.size = 1;
	request.service = 1;
	assert_int_equal(helper_pool__request(pool, &request), -EINVAL);
	request.service = 0;
	request.fd_count = MESSAGE_FDS_MAX + 1;
	assert_int_equal(helper_pool__request(pool, &request), -EINVAL);
	assert_int_equal(helper_pool__waiting(pool), 0);
	helper_pool__free(pool);
}

/* ---- slow owners ----------------------------------------------------------------------------- */

/* Until so many answers have come. */
static void settle_for(struct helper_pool *pool, const struct reported *reported,
		       unsigned int answers)
{
	uint64_t until = monotonic_ns() + LONG;

	while (reported->answers < answers && monotonic_ns() < until)
		helper_pool__settle(pool, 5000000);
	assert_int_equal(reported->answers, answers);
}

/* More of them than there are readers: the others are served. */
TEST(slow_ones_are_replaced)
{
	struct helper_pool *pool =
		make_pool(&(struct helper_pool_options){.silence = LONG, .at_once = 2});
	struct reported slow = {}, other = {};

	for (uint64_t owner = 1; owner <= 5; owner++)
		send_request(pool, owner, HANG, 0, &slow);
	for (uint32_t i = 0; i < 20; i++)
		send_request(pool, 6, ECHO, i, &other);
	settle_for(pool, &other, 20);
	assert_int_equal(other.count[HELPER_ANSWERED], 20);
	assert_int_equal(slow.answers, 0);
	helper_pool__free(pool);
	assert_int_equal(slow.count[HELPER_ENDED], 5);
}

TEST(a_slow_owner_has_one_reader)
{
	struct helper_pool *pool =
		make_pool(&(struct helper_pool_options){.silence = LONG, .at_once = 2});
	struct reported slow = {}, other = {};

	send_request(pool, 1, HANG, 0, &slow);
	for (uint64_t until = monotonic_ns() + DEADLINE; monotonic_ns() < until;)
		helper_pool__settle(pool, 5000000);
	for (unsigned int i = 0; i < 20; i++)
		send_request(pool, 1, HANG, 0, &slow);
	for (unsigned int i = 0; i < 20; i++)
		send_request(pool, 2, ECHO, i, &other);
	settle_for(pool, &other, 20);
	assert_int_equal(slow.answers, 0);
	helper_pool__free(pool);
}

/* Others wait for the answers, and only for so long. A trusted owner may take the whole deadline. */
TEST(patience_ends)
{
	struct helper_pool *pool = make_pool(
		&(struct helper_pool_options){.silence = 10 * DEADLINE, .patience = DEADLINE});
	struct reported slow = {}, queued = {}, trusted = {}, nobody_waits = {};
	struct helper_pool_stats stats;

	others_wait = true;
	helper_pool__set_hurry(pool, true);
	send_request(pool, 1, HANG, 0, &slow);
	settle_for(pool, &slow, 1);
	assert_int_equal(slow.count[HELPER_LATE], 1);
	send_request(pool, 1, ECHO, 0, &queued); /* his reader still hangs */
	settle_for(pool, &queued, 1);
	assert_int_equal(queued.count[HELPER_LATE], 1);
	send_request(pool, 0, HANG, 0, &trusted);
	others_wait = false;
	send_request(pool, 2, HANG, 0, &nobody_waits);
	settle_for(pool, &trusted, 1);
	settle_for(pool, &nobody_waits, 1);
	assert_int_equal(trusted.count[HELPER_HUNG], 1);
	assert_int_equal(nobody_waits.count[HELPER_HUNG], 1);
	helper_pool__stats(pool, &stats);
	assert_int_equal(stats.late, 2);
	assert_int_equal(stats.hung,
			 3); /* an answer that came too late was none, but the reader did hang */
	assert_int_equal(slow.answers, 1);
	helper_pool__free(pool);
}

/* No other request waits: the same request has its whole deadline. */
TEST(patience_without_hurry)
{
	struct helper_pool *pool =
		make_pool(&(struct helper_pool_options){.silence = DEADLINE, .patience = 1000});
	struct reported slow = {};

	others_wait = true;
	send_request(pool, 1, HANG, 0, &slow);
	settle_for(pool, &slow, 1);
	others_wait = false;
	assert_int_equal(slow.count[HELPER_HUNG], 1);
	helper_pool__free(pool);
}
