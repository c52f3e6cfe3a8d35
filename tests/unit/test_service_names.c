/* SPDX-License-Identifier: BSD-2-Clause */
/* Services of processes for targets by name: read by a reader, or by what the kernel side has of them. */
#include <limits.h>

#include "unit.h"
#include "base/clocks.h"
#include "base/vec.h"
#include "live/proc/fact_reader.h"
#include "live/service_names.h"
#include "stream/event_decode.h"
#include "tenants/quota.h"

#define S 1000000000ull

static const helper_serve_fn services[] = {fact_reader__serve};
static struct tasks *tasks;
static struct helper_pool *pool;
static struct fact_readers *readers;
static struct outside_books *books;
static struct service_names *names;
static int proc_fd = -1;
static pid_t child;
static int input_end;	  /* of the child */
static char judged[256];  /* the last name */
static char reported[64]; /* of a service, in the last event */

static const struct name_rules rules = {.include = NAMED_BY_SERVICE};

/* A name_judge_fn. */
static uint32_t judge(void *context, uint32_t kind, const char *name)
{
	assert_int_equal(kind, NAMED_BY_SERVICE);
	snprintf(judged, sizeof(judged), "%s", name);
	return strncmp(name, "shop", 4) ? 0 : NAME_INCLUDED;
}

/* An event_push_fn. */
static int receive(void *context, struct event_header *event)
{
	const struct facts_event *facts = (const struct facts_event *)event;
	const char *at = facts->text;

	assert_int_equal(event->type, EVENT_FACTS);
	assert_int_equal(event_check(event, event->size), 0);
	assert_int_equal(facts->state, FACTS_STATE_WHOLE);
	for (uint32_t i = 0; i < facts->count; i++) {
		const char *value = at + strlen(at) + 1;

		if (!strcmp(at, "env:OTEL_SERVICE_NAME"))
			snprintf(reported, sizeof(reported), "%s", value);
		at = value + strlen(value) + 1;
	}
	return 0;
}

static void set_up(void)
{
	const struct helper_pool_options options = {.services = services,
						    .service_count = 1,
						    .class = HELPER_READER,
						    .keeper = HELPER_READER_KEEPER};

	tasks = tasks__new(&(struct tasks_options){.everyone = true});
	books = outside_books__new();
	proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(tasks && books && proc_fd >= 0);
	assert_int_equal(helper_pool__new(&options, &pool), 0);
	assert_int_equal(
		fact_readers__new(&(struct fact_readers_options){.pool = pool, .owners = true},
				  &readers),
		0);
	assert_int_equal(
		service_names__new(&(struct service_names_options){.judge = {&rules, judge, NULL},
								   .tasks = tasks,
								   .readers = pool,
								   .facts = readers,
								   .proc_fd = proc_fd,
								   .books = books,
								   .push = receive},
				   &names),
		0);
	*judged = *reported = '\0';
}

static void end_child(void)
{
	if (!child)
		return;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(input_end);
	child = 0;
}

static void tear_down(void)
{
	end_child();
	helper_pool__free(pool);
	service_names__free(names);
	fact_readers__free(readers);
	outside_books__free(books);
	tasks__free(tasks);
	close(proc_fd);
}

/* An execve closes files before the process has its environment. */
static void await_environment(void)
{
	char path[32], byte;
	ssize_t size;

	snprintf(path, sizeof(path), "/proc/%d/environ", child);
	do {
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		size = read(fd, &byte, 1);
		close(fd);
	} while (!size);
	assert_int_equal(size, 1);
}

/* /bin/cat with that variable, once it is that. */
static void start_child(char *variable)
{
	char *arguments[] = {"cat", NULL}, *environment[] = {variable, NULL}, byte;
	int ready[2], input[2];

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(input, O_CLOEXEC), 0);
	child = fork();
	if (!child) {
		dup2(input[0], 0);
		execve("/bin/cat", arguments, environment);
		_exit(127);
	}
	close(ready[1]);
	close(input[0]);
	input_end = input[1];
	assert_int_equal(read(ready[0], &byte, 1), 0); /* execve closed it */
	close(ready[0]);
	await_environment();
}

static union {
	struct name_question_event event;
	char bytes[sizeof(struct name_question_event)];
} question;

static uint64_t question_time;

/* "cat\0bin\0usr\0" */
static const struct name_question_event *ask(pid_t pid, uint64_t exec_id, const char *path,
					     size_t size)
{
	struct name_question_event *q = &question.event;

	memset(&question, 0, sizeof(question));
	*q = (struct name_question_event){
		.header = {.type = EVENT_NAME_QUESTION, .time = question_time},
		.tgid = (uint32_t)pid,
		.unknown = NAMED_BY_SERVICE,
		.started = 1000,
		.exec_id = exec_id,
		.path_size = (uint32_t)size};
	memcpy(q->path, path, size);
	assert_int_equal(service_names__ask(names, q), 0);
	return q;
}

static void settle(void)
{
	assert_true(helper_pool__settle(pool, 20 * S));
	assert_int_equal(service_names__tick(names, monotonic_ns()), 0);
}

static uint64_t count_names(enum outside_reason reason)
{
	struct outside_row row;
	uint64_t count = 0;

	while (outside_books__take(books, &row))
		count += row.thing == OUTSIDE_NAMES && row.reason == reason ? row.count : 0;
	return count;
}

#define CAT "cat\0bin"

TEST(a_process_is_read_once_for_a_program)
{
	const struct name_question_event *q;
	struct service_news news;

	start_child("OTEL_SERVICE_NAME=shop-1");
	q = ask(child, 1, CAT, sizeof(CAT));
	assert_true(service_names__awaits(names, q));
	assert_string_equal(judged, "");
	settle();
	assert_false(service_names__awaits(names, q));
	assert_string_equal(judged, "shop-1");
	assert_string_equal(reported, "shop-1");
	/* its facts are read here alone */
	assert_int_equal(tasks__find(tasks, child)->slots.program.facts_looks,
			 FACTS_READ_ELSEWHERE);
	assert_int_equal(service_names__judge(names, q, "/bin/cat", "/"), NAME_INCLUDED);
	assert_int_equal(service_names__of_process(names, child), NAME_INCLUDED);
	news = service_names__take_news(names);
	assert_true(news.added && !news.changed);
	news = service_names__take_news(names);
	assert_false(news.added || news.changed);
	q = ask(child, 1, CAT, sizeof(CAT));
	assert_false(service_names__awaits(names, q));
	q = ask(child, 2, CAT, sizeof(CAT));
	assert_true(service_names__awaits(names, q));
}

TEST(a_process_that_ended_is_of_its_group_or_program)
{
	const struct name_question_event *q;

	start_child("OTEL_SERVICE_NAME=shop-1");
	q = ask(child, 1, CAT, sizeof(CAT));
	kill(child, SIGKILL);
	waitid(P_PID, (id_t)child, &(siginfo_t){}, WEXITED | WNOWAIT);
	settle();
	assert_int_equal(service_names__judge(names, q, "/bin/cat", "/system.slice/shop.service"),
			 NAME_INCLUDED);
	q = ask(child, 2, CAT, sizeof(CAT));
	assert_false(service_names__awaits(names, q));
	assert_int_equal(service_names__judge(names, q, "/bin/cat", "/system.slice/shop.service"),
			 NAME_INCLUDED);
	assert_string_equal(judged, "shop");
	q = ask(child, 3, CAT, sizeof(CAT));
	assert_int_equal(service_names__judge(names, q, "/bin/cat", "/"), 0);
	assert_string_equal(judged, "cat");
}

TEST(facts_of_a_later_program_are_not_those_of_the_first)
{
	const struct name_question_event *q;

	start_child("OTEL_SERVICE_NAME=shop-1");
	q = ask(child, 1, "env\0bin", sizeof("env\0bin"));
	assert_false(service_names__awaits(names, q));
	assert_int_equal(service_names__judge(names, q, "/bin/env", ""), 0);
	assert_string_equal(judged, "env");
}

TEST(a_question_about_an_earlier_program_may_come_later)
{
	const struct name_question_event *q;

	start_child("OTEL_SERVICE_NAME=shop-1");
	question_time = 20;
	ask(child, 2, CAT, sizeof(CAT));
	question_time = 10;
	q = ask(child, 1, "env\0bin", sizeof("env\0bin"));
	assert_false(service_names__awaits(names, q));
	assert_int_equal(service_names__judge(names, q, "/bin/env", ""), 0);
	settle();
	question_time = 20;
	q = ask(child, 2, CAT, sizeof(CAT));
	assert_string_equal(judged, "shop-1");
	assert_int_equal(service_names__judge(names, q, "/bin/cat", ""), NAME_INCLUDED);
	assert_int_equal(count_names(OUTSIDE_BY_NO_ANSWER), 1);
	question_time = 0;
}

TEST(what_was_read_at_the_start_has_its_verdict_at_once)
{
	const struct name_question_event *q;

	start_child("OTEL_SERVICE_NAME=shop-1");
	assert_int_equal(service_names__read_all(names), 0);
	assert_int_equal(service_names__of_process(names, child), NAME_INCLUDED);
	q = ask(child, 7, CAT, sizeof(CAT));
	assert_false(service_names__awaits(names, q));
	assert_int_equal(service_names__judge(names, q, "/bin/cat", ""), NAME_INCLUDED);
	assert_true(service_names__take_news(names).added);
	end_child();
	assert_int_equal(service_names__of_process(names, child), 0);
}

TEST(a_child_that_has_executed_nothing_is_of_its_parents_service)
{
	struct task_event fork = {.header.time = 1, .pid = INT_MAX, .tid = INT_MAX};
	const struct name_question_event *q;

	start_child("OTEL_SERVICE_NAME=shop-1");
	ask(child, 4, CAT, sizeof(CAT));
	settle();
	fork.ppid = fork.ptid = (uint32_t)child;
	assert_int_equal(tasks__fork(tasks, &fork), 0);
	q = ask(INT_MAX, 4, CAT, sizeof(CAT));
	assert_int_equal(service_names__judge(names, q, "/bin/cat", "/"), NAME_INCLUDED);
	q = ask(INT_MAX, 5, CAT, sizeof(CAT));
	assert_int_equal(service_names__judge(names, q, "/bin/cat", "/"), 0);
	q = ask(INT_MAX, 4, "env\0bin", sizeof("env\0bin"));
	assert_int_equal(tasks__exec(tasks, INT_MAX, 2), 0);
	q = ask(INT_MAX, 4, CAT, sizeof(CAT));
	assert_int_equal(service_names__judge(names, q, "/bin/cat", "/"), 0);
}

TEST(a_user_has_a_share_of_readings)
{
	const struct name_question_event *q;
	uint64_t begun = monotonic_ns(), most;

	start_child("OTEL_SERVICE_NAME=shop-1");
	for (uint64_t i = 1; i <= 2048; i++) {
		q = ask(child, i, CAT, sizeof(CAT));
		if (i % 64 == 0)
			settle();
	}
	most = 512 + (monotonic_ns() - begun) * 512 / (5 * S) + 65;
	assert_true(count_names(OUTSIDE_BY_TOO_OFTEN) + most >= 2048);
	assert_true(most >= 2048 || !service_names__awaits(names, q));
}

TEST(the_table_has_a_limit)
{
	for (uint32_t i = 0; i < SERVICE_PROCESSES_MAX + 100; i++)
		ask(INT_MAX - (pid_t)i, 1, CAT, sizeof(CAT));
	start_child("OTEL_SERVICE_NAME=shop-1");
	ask(child, 1, CAT, sizeof(CAT));
	settle();
	assert_int_equal(service_names__of_process(names, child), NAME_INCLUDED);
}

EACH_TEST_WITH(set_up, tear_down);
