/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sealed children that are queried again: they answer as new ones do, and one that cannot answer any more costs nothing but a
 * new one. The children are real, and read this test itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "elf/elf_file.h"
#include "symbolize/sealed.h"
#include "symbolize/sealed_child.h"
#include "symbolize/sealed_protocol.h"
#include "symbolize/symbol_index.h"
#include "tenants/quota.h"

#define ADDRESSES 3
#define ENOUGH	  ((size_t)1 << 30)

static const struct symbol_key key = {.identity = 1}, other_key = {.identity = 2};
static int self = -1;
static uint64_t offsets[ADDRESSES];

struct answers {
	size_t count;
	char names[ADDRESSES][64];
	uint32_t lines[ADDRESSES];
};

static int keep_answer(void *context, size_t index, const struct symbol_result *result)
{
	struct answers *a = context;

	a->count++;
	if (!result->frame_count)
		return 0;
	snprintf(a->names[index], sizeof(a->names[index]), "%s", result->frames[0].function);
	a->lines[index] = result->frames[0].line;
	return 0;
}

static struct answers run_job(struct sealed_pool *pool, const struct symbol_key *of, size_t first,
			      size_t count, struct symbol_index **index)
{
	struct answers answers = {};
	struct sealed_job job = {
		.files = {.elf_fd = self, .debug_fd = -1, .alt_fd = -1, .kind = DSO_FILE},
		.root_fd = -1,
		.key = of,
		.wants_index = index != NULL,
		.addresses = offsets + first,
		.count = count,
		.sink = keep_answer,
		.context = &answers,
	};

	assert_int_equal(sealed_run(&job, 1, 1, NULL, NULL, &(struct sealed_work){.pool = pool}),
			 0);
	assert_int_equal(job.report.state, SYMBOL_STATE_RESOLVED);
	assert_int_equal(answers.count, count);
	assert_true(job.cpu_time > 0);
	if (index)
		*index = job.index;
	else
		assert_null(job.index);
	return answers;
}

static struct answers run(struct sealed_pool *pool, const struct symbol_key *of, size_t first,
			  size_t count)
{
	return run_job(pool, of, first, count, NULL);
}

static pid_t kept_pid(struct sealed_pool *pool, const struct symbol_key *of)
{
	struct kept_child child;

	if (!sealed_pool__take(pool, of, &child))
		return 0;
	sealed_pool__put(pool, of, &child);
	return child.pid;
}

static bool is_gone(pid_t pid)
{
	return kill(pid, 0) && errno == ESRCH;
}

static void a_kept_child_answers_as_a_new_one_does(void **state)
{
	struct sealed_pool *pool = sealed_pool__new(ENOUGH);
	struct answers all = run(NULL, NULL, 0, ADDRESSES), first, rest;
	pid_t pid;

	(void)state;
	first = run(pool, &key, 0, 1);
	pid = kept_pid(pool, &key);
	assert_true(pid > 0);
	rest = run(pool, &key, 1, ADDRESSES - 1);
	assert_int_equal(kept_pid(pool, &key), pid);
	assert_non_null(strstr(all.names[0], "a_kept_child_"));
	assert_string_equal(first.names[0], all.names[0]);
	assert_true(all.lines[0] > 0);
	assert_int_equal(first.lines[0], all.lines[0]);
	for (size_t i = 1; i < ADDRESSES; i++) {
		assert_string_equal(rest.names[i - 1], all.names[i]);
		assert_int_equal(rest.lines[i - 1], all.lines[i]);
	}
	sealed_pool__free(pool);
	assert_true(is_gone(pid));
}

/* Another module's child gets no request, and without a key there is none. */
static void a_kept_child_gets_no_request_of_another_module(void **state)
{
	struct sealed_pool *pool = sealed_pool__new(ENOUGH);
	pid_t pid;

	(void)state;
	run(pool, &key, 0, 1);
	pid = kept_pid(pool, &key);
	assert_int_equal(kept_pid(pool, &other_key), 0);
	run(pool, &other_key, 0, 1);
	assert_int_not_equal(kept_pid(pool, &other_key), pid);
	assert_int_equal(kept_pid(pool, &key), pid);
	run(pool, NULL, 0, 1);
	assert_int_equal(kept_pid(pool, &key), pid);
	sealed_pool__free(pool);
}

static void a_kept_child_that_died_is_replaced(void **state)
{
	struct sealed_pool *pool = sealed_pool__new(ENOUGH);
	struct answers answers;
	pid_t pid;

	(void)state;
	run(pool, &key, 0, 1);
	pid = kept_pid(pool, &key);
	kill(pid, SIGKILL);
	answers = run(pool, &key, 0, 1);
	assert_non_null(strstr(answers.names[0], "a_kept_child_"));
	assert_true(answers.lines[0] > 0);
	assert_true(kept_pid(pool, &key) > 0);
	assert_int_not_equal(kept_pid(pool, &key), pid);
	sealed_pool__free(pool);
}

/* A child that sends its first answer, which is wrong, and ends. */
static void put_broken(struct sealed_pool *pool)
{
	const struct symbol_frame frame = {.function = "wrong"};
	const struct symbol_result wrong = {.frames = (void *)&frame, .frame_count = 1};
	struct kept_child child = {.listener = -1};
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	child.pid = fork();
	if (!child.pid) {
		static struct message_buffer request;
		static struct sealed_writer writer;

		close(ends[0]);
		_exit(dup2(ends[1], CHILD_SOCKET) != CHILD_SOCKET ||
		      message__read(CHILD_SOCKET, &request) != 1 ||
		      sealed_writer__result(&writer, 0, &wrong));
	}
	close(ends[1]);
	child.socket = ends[0];
	sealed_pool__put(pool, &key, &child);
}

/* Two are kept for one module. If the first breaks off, the other one answers from the start. */
static void a_second_child_answers_if_the_first_breaks_off(void **state)
{
	struct sealed_pool *pool = sealed_pool__new(ENOUGH);
	struct answers all = run(NULL, NULL, 0, ADDRESSES), second;
	struct kept_child good;

	(void)state;
	run(pool, &other_key, 0, 1);
	assert_true(sealed_pool__take(pool, &other_key, &good));
	put_broken(pool);
	sealed_pool__put(pool, &key, &good);
	second = run(pool, &key, 0, ADDRESSES);
	for (size_t i = 0; i < ADDRESSES; i++)
		assert_string_equal(second.names[i], all.names[i]);
	assert_int_equal(kept_pid(pool, &key), good.pid);
	sealed_pool__free(pool);
}

/* A child over the limit is not kept, and nothing stays behind. */
static void a_child_over_the_limit_is_not_kept(void **state)
{
	struct sealed_pool *pool = sealed_pool__new(1);

	(void)state;
	run(pool, &key, 0, 1);
	assert_int_equal(kept_pid(pool, &key), 0);
	sealed_pool__limit(pool, ENOUGH);
	run(pool, &key, 0, 1);
	assert_true(kept_pid(pool, &key) > 0);
	sealed_pool__limit(pool, 0);
	assert_int_equal(kept_pid(pool, &key), 0);
	sealed_pool__free(pool);
	sealed_pool__free(NULL);
}

static void check_index(struct sealed_pool *pool, const struct answers *all)
{
	static struct symbol_answer answer;
	struct symbol_index *index;
	struct answers some = run_job(pool, &key, 1, 1, &index);

	assert_string_equal(some.names[0], all->names[1]);
	assert_non_null(index);
	for (size_t i = 0; i < ADDRESSES; i++) {
		assert_true(symbol_index__find(index, offsets[i], &answer));
		assert_true(answer.result.frame_count > 0);
		assert_string_equal(answer.frames[0].function, all->names[i]);
		assert_int_equal(answer.frames[0].line, all->lines[i]);
	}
	symbol_index__free(index);
}

/* While the index of a large file is made no other child is kept; while a small one is, it is. */
static void no_child_is_kept_while_indexing_a_large_file(void **state)
{
	struct sealed_pool *pool = sealed_pool__new(ENOUGH);
	_Atomic int64_t large = 0;

	(void)state;
	for (uint64_t size = 1; size <= QUOTA_LARGE_FILE; size += QUOTA_LARGE_FILE - 1) {
		struct answers answers = {};
		struct sealed_job job = {
			.files = {.elf_fd = self, .debug_fd = -1, .alt_fd = -1, .kind = DSO_FILE},
			.size = size,
			.root_fd = -1,
			.key = &other_key,
			.wants_index = true,
			.addresses = offsets,
			.count = 1,
			.sink = keep_answer,
			.context = &answers,
		};

		run(pool, &key, 0, 1);
		assert_true(kept_pid(pool, &key) > 0);
		assert_int_equal(sealed_run(&job, 1, 1, NULL, NULL,
					    &(struct sealed_work){.pool = pool, .large = &large}),
				 0);
		assert_non_null(job.index);
		symbol_index__free(job.index);
		assert_int_equal(kept_pid(pool, &key) > 0, size < QUOTA_LARGE_FILE);
		assert_int_equal(large, 0);
	}
	sealed_pool__free(pool);
}

/* The index comes from a new child and from one that was kept; either ends. A module without a key has none. */
static void an_index_has_all_answers_and_its_child_ends(void **state)
{
	struct sealed_pool *pool = sealed_pool__new(ENOUGH);
	struct answers all = run(NULL, NULL, 0, ADDRESSES);
	struct symbol_index *index;
	pid_t pid;

	(void)state;
	check_index(pool, &all);
	assert_int_equal(kept_pid(pool, &key), 0);
	run(pool, &key, 0, 1);
	pid = kept_pid(pool, &key);
	assert_true(pid > 0);
	check_index(pool, &all);
	assert_int_equal(kept_pid(pool, &key), 0);
	assert_true(is_gone(pid));
	check_index(NULL, &all);
	run_job(pool, NULL, 0, 1, &index);
	assert_null(index);
	sealed_pool__free(pool);
}

static int compare_offsets(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* As a session does: by their offsets in the file, ascending. */
static int find_offsets(void **state)
{
	const uintptr_t functions[ADDRESSES] = {
		(uintptr_t)a_kept_child_answers_as_a_new_one_does,
		(uintptr_t)a_kept_child_gets_no_request_of_another_module,
		(uintptr_t)a_kept_child_that_died_is_replaced};
	unsigned long start, end, offset;
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "re");

	(void)state;
	self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	while (maps && fgets(line, sizeof(line), maps))
		for (size_t i = 0; i < ADDRESSES; i++)
			if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 &&
			    functions[i] >= start && functions[i] < end)
				offsets[i] = functions[i] - start + offset;
	if (maps)
		fclose(maps);
	qsort(offsets, ADDRESSES, sizeof(*offsets), compare_offsets);
	return self < 0 || !offsets[0];
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kept_child_answers_as_a_new_one_does),
		cmocka_unit_test(a_kept_child_gets_no_request_of_another_module),
		cmocka_unit_test(a_kept_child_that_died_is_replaced),
		cmocka_unit_test(a_second_child_answers_if_the_first_breaks_off),
		cmocka_unit_test(a_child_over_the_limit_is_not_kept),
		cmocka_unit_test(an_index_has_all_answers_and_its_child_ends),
		cmocka_unit_test(no_child_is_kept_while_indexing_a_large_file),
	};

	return cmocka_run_group_tests(tests, find_offsets, NULL);
}
