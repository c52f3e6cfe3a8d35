/* SPDX-License-Identifier: BSD-2-Clause */
/* What processes say about themselves: environments, command lines and contexts, forged in every way; and real ones. */
#include <sysprof/event.h>

#include "unit.h"
#include "base/clocks.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "live/parts/facts.h"
#include "live/proc/command_line.h"
#include "live/proc/environment.h"
#include "live/proc/fact_reader.h"
#include "live/proc/otel_context.h"
#include "stream/event_decode.h"
#include "tenants/quota.h"

#define S 1000000000ull

/* ---- a list of facts ------------------------------------------------------------------------- */

static char space[8192];
static struct fact_text facts;

static void begin(size_t room)
{
	facts = (struct fact_text){.text = space, .room = room, .most = 64};
}

/* "key=value|" of each */
static const char *reported(void)
{
	static char text[16384];
	const char *at = facts.text;
	size_t used = 0;

	text[0] = '\0';
	for (unsigned int i = 0; i < facts.count; i++) {
		const char *value = at + strlen(at) + 1;

		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s=%s|", at, value);
		at = value + strlen(value) + 1;
	}
	assert_ptr_equal(at, facts.text + facts.size);
	return text;
}

TEST(facts_are_kept_once_and_within_their_room)
{
	begin(32);
	assert_true(fact_text__add(&facts, "a:", "b", "value", 5));
	assert_false(fact_text__add(&facts, "a:", "b", "other", 5)); /* the first one counts */
	assert_true(fact_text__add(&facts, "", "value", "is no key", 2));
	assert_false(fact_text__add(&facts, "", "", "x", 1));
	assert_int_equal(facts.left, 0);
	assert_false(fact_text__add(&facts, "c", "", "01234567890", 11));
	assert_int_equal(facts.left, 1); /* no room */
	assert_string_equal(reported(), "a:b=value|value=is|");
	assert_true(fact_text__add(&facts, "c", "", "0123456789", 10));
	assert_int_equal(facts.size, 32);
	assert_false(fact_text__add(&facts, "d", "", "", 0));
}

/* ---- environment ----------------------------------------------------------------------------- */

/* A copy that ends where it ends, for ASan to guard. */
static void pick(const void *text, size_t size, const char *names, size_t names_size)
{
	_cleanup_free_ char *copy = malloc(size ? size : 1);

	memcpy(copy, text, size);
	begin(sizeof(space));
	environment__pick(copy, size, names, names_size, &facts);
}

TEST(large_environments_are_picked_from)
{
	size_t size = 1 << 20;
	_cleanup_free_ char *text = malloc(size);

	memset(text, 'x', size);
	memcpy(text, "A=", 2);
	text[size - 1] = '\0';
	pick(text, size, "A", 2); /* a megabyte in one variable */
	assert_string_equal(reported(), "");
	for (size_t i = 0; i + 4 <= size; i += 4)
		memcpy(text + i, "A=1", 4);
	pick(text, size, "A", 2); /* 262,144 of them */
	assert_string_equal(reported(), "env:A=1|");
	memset(text, 0, size);
	pick(text, size, "A", 2);
	assert_string_equal(reported(), "");
}

TEST(only_valid_variable_names_may_be_requested)
{
	char name[ENVIRONMENT_NAME_MAX + 1];

	for (const char *const *n = environment_names; *n; n++)
		assert_true(environment_name_is_valid(*n));
	memset(name, 'A', sizeof(name));
	name[ENVIRONMENT_NAME_MAX] = '\0';
	assert_false(environment_name_is_valid(name));
	name[ENVIRONMENT_NAME_MAX - 1] = '\0';
	assert_true(environment_name_is_valid(name));
}

/* ---- command lines --------------------------------------------------------------------------- */

TEST(malformed_command_lines_have_no_subject)
{
	char subject[COMMAND_SUBJECT_SIZE], long_name[512];

	assert_false(command_line__subject("python3", "python3\0cut", 11, subject));
	assert_false(command_line__subject("python3", "", 0, subject));
	assert_false(command_line__subject("python3", "no end", 6, subject));
	memset(long_name, 'x', sizeof(long_name));
	memcpy(long_name, "sh", 3);
	long_name[sizeof(long_name) - 1] = '\0';
	assert_false(command_line__subject("sh", long_name, sizeof(long_name), subject));
	for (size_t i = 0; i < sizeof(long_name); i++)
		long_name[i] = i % 2 ? '\0' : '-';
	assert_false(command_line__subject("sh", long_name, sizeof(long_name), subject));
}

/* ---- OpenTelemetry's context ----------------------------------------------------------------- */

static size_t put_field(uint8_t *at, unsigned int field, const void *bytes, size_t size)
{
	assert_true(size < 128);
	at[0] = (uint8_t)(field << 3 | 2);
	at[1] = (uint8_t)size;
	memcpy(at + 2, bytes, size);
	return size + 2;
}

/* KeyValue {1 key, 2 AnyValue {1 text}} as field `field` */
static size_t put_attribute(uint8_t *at, unsigned int field, const char *key, const char *value)
{
	uint8_t inner[128], any[128];
	size_t size = put_field(inner, 1, key, strlen(key));

	size += put_field(inner + size, 2, any, put_field(any, 1, value, strlen(value)));
	return put_field(at, field, inner, size);
}

static void decode(const void *message, size_t size)
{
	_cleanup_free_ uint8_t *copy = malloc(size ? size : 1);

	memcpy(copy, message, size);
	begin(sizeof(space));
	otel_context__decode(copy, size, &facts);
}

static size_t make_resource(uint8_t *at)
{
	size_t size = put_attribute(at, 1, "service.name", "shop");

	size += put_attribute(at + size, 1, "secret.key", "hidden");
	at[size++] = 2 << 3; /* dropped_attributes_count, a number */
	at[size++] = 5;
	return size + put_attribute(at + size, 1, "service.version", "1.2");
}

TEST(contexts_are_read_as_far_as_they_are_sound)
{
	static const char WHOLE[] = "otel:service.name=shop|otel:service.version=1.2|"
				    "otel:k8s.pod.name=shop-0|";
	uint8_t resource[128], message[256];
	size_t size = make_resource(resource), whole;

	decode(resource, size);
	assert_string_equal(reported(), "otel:service.name=shop|otel:service.version=1.2|");
	whole = put_field(message, 1, resource, size);
	whole += put_attribute(message + whole, 2, "k8s.pod.name", "shop-0");
	decode(message, whole);
	assert_string_equal(reported(), WHOLE);
	/* cut anywhere, it is read as far as it goes */
	for (size_t i = 0; i < whole; i++) {
		decode(message, i);
		assert_int_equal(strncmp(WHOLE, reported(), strlen(reported())), 0);
	}
	/* any byte changed: nothing but what may be reported is */
	for (size_t i = 0; i < whole; i++)
		for (unsigned int value = 0; value < 256; value += 15) {
			uint8_t kept = message[i];

			message[i] = (uint8_t)value;
			decode(message, whole);
			assert_true(facts.count <= 3 && !strstr(reported(), "hidden"));
			message[i] = kept;
		}
	/* messages in messages in messages */
	memset(message, 0x0a, sizeof(message));
	decode(message, sizeof(message));
	assert_string_equal(reported(), "");
	assert_true(otel_context_has_name("[anon:OTEL_CTX]"));
	assert_true(otel_context_has_name("/memfd:OTEL_CTX (deleted)"));
	assert_false(otel_context_has_name("/tmp/OTEL_CTX"));
}

/* ---- real processes -------------------------------------------------------------------------- */

/* Of the running test. */
static struct {
	VEC(struct facts_event *) events;
	unsigned int cgroups;
} received;

/* An event_push_fn. */
static int receive(void *context, struct event_header *event)
{
	struct facts_event *copy;

	assert_int_equal(event_check(event, event->size), 0);
	if (event->type == EVENT_CGROUP) {
		received.cgroups++;
		return 0;
	}
	assert_int_equal(event->type, EVENT_FACTS);
	copy = malloc(event->size);
	memcpy(copy, event, event->size);
	return vec_push(&received.events, copy);
}

/* Requests that were answered or refused. */
static uint64_t count_answers(void)
{
	uint64_t count = 0;

	for (size_t i = 0; i < received.events.count; i++)
		count += received.events.data[i]->state != FACTS_STATE_FIRST;
	return count;
}

static bool says(const struct facts_event *e, const char *key, const char *value)
{
	const char *at = e->text;

	for (uint32_t i = 0; i < e->count; i++) {
		bool is_it = !strcmp(at, key);

		at += strlen(at) + 1;
		if (is_it)
			return !strcmp(at, value);
		at += strlen(at) + 1;
	}
	return false;
}

static const helper_serve_fn services[] = {fact_reader__serve};

/* A child with a context and an environment of its own. */
static pid_t start_child(char *const *arguments, char *const *environment)
{
	int ends[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		execve(arguments[0], arguments, environment);
		_exit(127);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 0); /* closed by the execve */
	close(ends[0]);
	return pid;
}

/* In this process: a header, and the message behind it. */
static void publish_context(void)
{
	int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
	struct {
		char signature[8];
		uint32_t version, size;
		uint64_t published, message;
	} header = {.version = 2, .published = 1};
	uint8_t *at;

	if (fd < 0 || ftruncate(fd, 4096))
		_exit(1);
	at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		_exit(1);
	header.message = (uint64_t)(uintptr_t)(at + 64);
	header.size = (uint32_t)make_resource(at + 64);
	memcpy(header.signature, "OTEL_CTX", 8);
	memcpy(at, &header, sizeof(header));
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* The part, with a table and readers of its own. */
static struct tasks *tasks;
static struct helper_pool *pool;
static struct fact_readers *readers;
static struct live_part part;

static void given_part(void)
{
	const struct helper_pool_options options = {.services = services,
						    .service_count = 1,
						    .class = HELPER_READER,
						    .keeper = HELPER_READER_KEEPER};
	static const char *const names[] = {"TEAM"};

	tasks = tasks__new(&(struct tasks_options){});
	assert_non_null(tasks);
	assert_int_equal(helper_pool__new(&options, &pool), 0);
	assert_int_equal(fact_readers__new(&(struct fact_readers_options){.pool = pool,
									  .names = names,
									  .name_count = 1},
					   &readers),
			 0);
	assert_int_equal(facts_part__new(&(struct facts_options){.tasks = tasks,
								 .readers = readers,
								 .push = receive},
					 &part),
			 0);
}

static void tear_down(void)
{
	if (!pool)
		return;
	helper_pool__free(pool);
	part.free(part.object);
	fact_readers__free(readers);
	tasks__free(tasks);
	pool = NULL;
	for (size_t i = 0; i < received.events.count; i++)
		free(received.events.data[i]);
	vec_free(&received.events);
	received.cgroups = 0;
}

static void sampled(pid_t pid, uint64_t time)
{
	struct sample_event sample = {.header.time = time};
	struct task *task = tasks__need(tasks, pid);

	assert_non_null(task);
	assert_int_equal(part.sampled(part.object, task, &sample), 0);
}

static void request(pid_t pid, uint64_t time)
{
	sampled(pid, time);
	assert_int_equal(part.tick(part.object, time), 0);
	assert_true(helper_pool__settle(pool, 20 * S));
	assert_int_equal(part.tick(part.object, time), 0);
}

/* Another program in the same process. */
static void exec_in(pid_t pid)
{
	assert_int_equal(tasks__exec(tasks, pid, 1), 0);
}

TEST(a_process_gets_one_request_per_life)
{
	char *arguments[] = {"/bin/sh", "-c", "kill -STOP $$; :", NULL};
	char *environment[] = {"DD_SERVICE=shop", "TEAM=red", "PASSWORD=secret", NULL};
	pid_t pid = start_child(arguments, environment);
	uint64_t began = monotonic_ns();

	given_part();
	request(pid, S);
	assert_int_equal(received.events.count, 2);
	assert_int_equal(received.cgroups, 1);
	/* the part for memory does not read it once more */
	assert_true(tasks__find(tasks, pid)->slots.program.cgroup_next > began + 15 * S);
	assert_int_equal(received.events.data[0]->state, FACTS_STATE_FIRST);
	assert_int_equal(received.events.data[0]->count, 1);
	assert_int_equal(received.events.data[1]->state, FACTS_STATE_WHOLE);
	assert_true(says(received.events.data[1], "env:DD_SERVICE", "shop"));
	assert_true(says(received.events.data[1], "env:TEAM", "red"));
	assert_null(
		memmem(received.events.data[1]->text, received.events.data[1]->size, "secret", 6));
	assert_null(
		memmem(received.events.data[1]->text, received.events.data[1]->size, "script", 6));
	/* not again, until a second later: then without the first one */
	request(pid, S + 1);
	assert_int_equal(received.events.count, 2);
	request(pid, 2 * S);
	assert_int_equal(received.events.count, 3);
	for (uint64_t i = 0; i < 100; i++)
		request(pid, (3 + 10 * i) * S);
	assert_int_equal(received.events.count, 5);
	/* another life gets a new request */
	exec_in(pid);
	request(pid, 2000 * S);
	assert_int_equal(received.events.count, 7);
	exec_in(pid);
	end_child(pid);
	request(pid, 3000 * S); /* it is gone */
	assert_int_equal(received.events.count, 7);
	assert_int_equal(count_answers(), 5);
}

TEST(what_is_read_elsewhere_is_not_requested)
{
	char *arguments[] = {"/bin/sh", "-c", "kill -STOP $$; :", NULL}, *environment[] = {NULL};
	pid_t pid = start_child(arguments, environment);

	given_part();
	tasks__need(tasks, pid)->slots.program.facts_looks = FACTS_READ_ELSEWHERE;
	for (uint64_t i = 1; i < 100; i++)
		request(pid, i * S);
	assert_int_equal(received.events.count, 1);
	assert_int_equal(received.events.data[0]->state, FACTS_STATE_FIRST);
	assert_int_equal(received.cgroups, 1);
	end_child(pid);
}

TEST(a_program_that_was_started_by_its_loader_is_the_program)
{
	char loader[] = "/lib64/ld-linux-x86-64.so.2", option[] = "--library-path", path[] = "/x";
	char *arguments[] = {loader, option, path, "/bin/sh", "-c", "kill -STOP $$; :", NULL};
	char *environment[] = {NULL};
	pid_t pid;

	if (access(loader, X_OK))
		skip();
	pid = start_child(arguments, environment);
	assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid); /* the shell runs */
	given_part();
	request(pid, S);
	end_child(pid);
	assert_int_equal(received.events.count, 2);
	assert_int_equal(received.events.data[0]->count, 0); /* the loader is no program */
	assert_int_equal(received.events.data[1]->state, FACTS_STATE_WHOLE);
	assert_true(says(received.events.data[1], "exe", "/bin/sh"));
}

TEST(a_context_is_read_by_the_second_request)
{
	int ends[2];
	char byte;
	pid_t pid;

	given_part();
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (!pid) {
		publish_context();
		if (write(ends[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	request(pid, S);
	assert_false(says(received.events.data[1], "otel:service.name", "shop")); /* not at first */
	request(pid, 2 * S);
	assert_int_equal(received.events.count, 3);
	assert_true(says(received.events.data[2], "otel:service.name", "shop"));
	assert_true(says(received.events.data[2], "otel:service.version", "1.2"));
	end_child(pid);
	close(ends[0]);
	close(ends[1]);
}

TEST(ended_processes_of_a_storm_get_no_requests)
{
	unsigned int waiting = 0;

	given_part();
	for (pid_t pid = 5000000; pid < 5010000; pid++)
		sampled(pid, S);
	for (pid_t pid = 5000000; pid < 5010000; pid++) {
		waiting += tasks__find(tasks, pid)->slots.program.facts_waits;
		exec_in(pid);
	}
	assert_int_equal(waiting, FACT_WAITING_MAX);
	assert_int_equal(part.tick(part.object, S), 0);
	request(getpid(), S);
	assert_int_equal(received.events.count, 2);
	/* living ones get requests, so many at once and so many a second */
	for (uint64_t i = 0; i < 2 * quota_row(QUOTA_FACT_READINGS)->all.limit; i++) {
		exec_in(getpid());
		request(getpid(), S + i);
	}
	assert_in_range(count_answers(), quota_row(QUOTA_FACT_LOOKS)->all.limit,
			quota_row(QUOTA_FACT_READINGS)->all.limit);
	exec_in(getpid());
	request(getpid(), 3 * S);
	for (uint64_t i = 0; i < 100; i++) {
		exec_in(getpid());
		request(getpid(), 3 * S);
	}
	assert_true(count_answers() <= quota_row(QUOTA_FACT_READINGS)->all.limit + 80);
}

static const struct task_program *program_of(pid_t pid)
{
	return &tasks__find(tasks, pid)->slots.program;
}

/* As programs that start all the time: until one of them has to wait. The time. */
static uint64_t take_all_turns(pid_t pid, uint64_t now)
{
	do {
		exec_in(pid);
		now += S / 100;
		request(pid, now);
	} while (!program_of(pid)->facts_reported || program_of(pid)->facts_answered);
	exec_in(pid);
	return now;
}

TEST(first_readings_precede_second_ones)
{
	const struct quota_limit *limit = &quota_row(QUOTA_FACT_READINGS)->all;
	char *arguments[] = {"/bin/sh", "-c", "kill -STOP $$; :", NULL}, *environment[] = {NULL};
	pid_t starting = start_child(arguments, environment);
	pid_t fresh = start_child(arguments, environment);
	uint64_t now;

	given_part();
	request(getpid(), S);
	now = take_all_turns(starting, 3 * S);
	sampled(getpid(), now);
	for (sampled(fresh, now); !program_of(fresh)->facts_answered && now < 100 * S;) {
		now += limit->period / limit->limit / 4;
		request(fresh, now);
	}
	assert_true(program_of(fresh)->facts_answered);
	assert_int_equal(program_of(getpid())->facts_looks, 1);
	request(getpid(), now + S);
	assert_int_equal(program_of(getpid())->facts_looks, 2);
	end_child(starting);
	end_child(fresh);
}

TEST(invalid_variable_names_are_refused)
{
	static const char *const names[] = {"A=B"};
	struct fact_readers *refused = NULL;
	struct fact_readers_options options = {.names = names, .name_count = 1};

	assert_int_equal(fact_readers__new(&options, &refused), -EINVAL);
	assert_null(refused);
}

TEST(malformed_answers_are_refused)
{
	static uint8_t bytes[MESSAGE_SIZE_MAX];
	struct helper_answer answer = {.data = bytes, .size = PROCESS_FACTS_SIZE};
	uint32_t *counts = (uint32_t *)bytes;
	const struct fact_reading reading = {.path = "/bin/cat"};

	begin(sizeof(space));
	assert_true(fact_reading__take(&reading, &answer, &facts)); /* there are none */
	memcpy(bytes + 16, "a\0b", 4);
	counts[0] = 1;
	counts[1] = 4;
	counts[2] = 2; /* what the reader left out */
	assert_true(fact_reading__take(&reading, &answer, &facts));
	assert_int_equal(facts.left, 2);
	assert_string_equal(reported(), "exe=/bin/cat|a=b|");
	for (uint32_t size = 0; size < 4; size++) {
		counts[1] = size;
		assert_false(fact_reading__take(&reading, &answer, &facts));
	}
	counts[1] = UINT32_MAX;
	assert_false(fact_reading__take(&reading, &answer, &facts));
	counts[1] = 4;
	counts[0] = UINT32_MAX;
	assert_false(fact_reading__take(&reading, &answer, &facts));
	counts[0] = 0;
	assert_false(fact_reading__take(&reading, &answer, &facts));
	counts[0] = 1;
	answer.size--;
	assert_false(fact_reading__take(&reading, &answer, &facts));
	answer.size++;
	answer.refusal = HELPER_HUNG;
	assert_false(fact_reading__take(&reading, &answer, &facts));
}

EACH_TEST_WITH(NULL, tear_down);
