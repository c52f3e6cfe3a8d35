/* SPDX-License-Identifier: BSD-2-Clause */
/* What the agent measures of itself: threads by name, children that live, have ended, and have children of their own. */
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "unit.h"
#include "agent/usage.h"
#include "base/clocks.h"
#include "base/minmax.h"
#include "live/proc/descendants.h"

#define MS 1000000ull

static void burn(uint64_t ns)
{
	uint64_t end = thread_cpu_ns() + ns;

	while (thread_cpu_ns() < end)
		;
}

/* A report at a time of our choice. */
static struct usage_report report_at(struct usage *u, uint64_t now)
{
	struct usage_report report = {};
	uint64_t next;

	assert_true(usage__step(u, NULL, now, &next, &report));
	assert_int_equal(report.time, now);
	assert_true(next > now && next < now + USAGE_INTERVAL);
	/* the second of statistics, for which there is no session */
	assert_false(usage__step(u, NULL, now + USAGE_INTERVAL - MS, &next, &report));
	return report;
}

static uint64_t more(const struct usage_report *now, const struct usage_report *before,
		     enum usage_cpu_part part)
{
	assert_true(now->cpu_ns[part] >= before->cpu_ns[part]);
	return now->cpu_ns[part] - before->cpu_ns[part];
}

struct worker {
	const char *name;
	int ready[2], end[2];
};

static void *work(void *context)
{
	struct worker *w = context;
	char byte = 0;

	prctl(PR_SET_NAME, w->name);
	burn(60 * MS);
	assert_int_equal(write(w->ready[1], &byte, 1), 1);
	assert_int_equal(read(w->end[0], &byte, 1), 1);
	return NULL;
}

TEST(cpu_time_of_threads_is_counted_by_their_names)
{
	struct worker workers[] = {
		{.name = "sysprof-finish"}, {.name = "sysprof-sender"}, {.name = "any"}};
	pthread_t threads[3];
	struct usage *u = usage__new();
	struct usage_report first = report_at(u, 1000 * MS), second, third;
	char byte = 0;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(pipe(workers[i].ready) | pipe(workers[i].end), 0);
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
		assert_int_equal(read(workers[i].ready[0], &byte, 1), 1);
	}
	burn(30 * MS);
	second = report_at(u, 11000 * MS);
	assert_int_equal(second.threads, first.threads + 3);
	assert_true(more(&second, &first, USAGE_CPU_FINISHER) >= 50 * MS);
	assert_true(more(&second, &first, USAGE_CPU_THREADS) >= 100 * MS);
	assert_true(more(&second, &first, USAGE_CPU_COLLECTOR) >= 30 * MS);
	/* 210 ms of 10 s at least */
	assert_true(second.cpu >= 0.0205);
	assert_int_equal(first.cpu, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(write(workers[i].end[1], &byte, 1), 1);
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		close(workers[i].ready[0]), close(workers[i].ready[1]);
		close(workers[i].end[0]), close(workers[i].end[1]);
	}
	third = report_at(u, 21000 * MS);
	for (int i = 0; i < USAGE_CPU_PART_COUNT; i++)
		more(&third, &second, i);
	assert_int_equal(third.threads, first.threads);
	usage__free(u);
}

/* Burns, says so, and lives until it is killed; `child`: what it forks before. */
static pid_t fork_worker(const char *name, uint64_t burned, int ready, const char *child)
{
	pid_t pid = fork();
	char byte = 0;

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, name);
	if (child)
		fork_worker(child, burned, ready, NULL);
	burn(burned);
	if (write(ready, &byte, 1) == 1)
		for (;;)
			pause();
	_exit(1);
}

static uint64_t ns_of(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000 * MS + (uint64_t)time.tv_usec * 1000;
}

/* What the kernel counts of the children that were waited for. */
static uint64_t ended_ns(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_CHILDREN, &usage), 0);
	return ns_of(usage.ru_utime) + ns_of(usage.ru_stime);
}

TEST(cpu_time_of_live_and_ended_children_is_counted)
{
	struct usage *u = usage__new();
	struct usage_report first = report_at(u, 1000 * MS), second, third;
	uint64_t ended = ended_ns(), counted;
	pid_t reader, sealed, builder, short_lived;
	int ready[2];
	char bytes[4];

	assert_int_equal(first.processes, 0);
	assert_int_equal(pipe(ready), 0);
	reader = fork_worker("sysprof-reader", 80 * MS, ready[1], "sysprof-reader");
	sealed = fork_worker("sysprof-sealed", 60 * MS, ready[1], NULL);
	builder = fork_worker("sysprof-builder", 60 * MS, ready[1], NULL);
	for (int i = 0; i < 4; i++)
		assert_int_equal(read(ready[0], bytes, 1), 1);
	second = report_at(u, 11000 * MS);
	assert_int_equal(second.processes, 4);
	assert_true(more(&second, &first, USAGE_CPU_BUILDER) >= 55 * MS);
	assert_true(more(&second, &first, USAGE_CPU_READERS) >= 150 * MS);
	assert_true(more(&second, &first, USAGE_CPU_SYMBOLIZER) >= 55 * MS);
	assert_true(second.memory_by[USAGE_MEMORY_CHILDREN] > 0);

	/* one that was never seen, and the end of one that was */
	short_lived = fork_worker("sysprof-sealed", 100 * MS, ready[1], NULL);
	assert_int_equal(read(ready[0], bytes, 1), 1);
	kill(short_lived, SIGKILL), kill(sealed, SIGKILL), kill(reader, SIGKILL);
	kill(builder, SIGKILL);
	for (int i = 0; i < 4; i++)
		assert_true(wait(NULL) > 0);
	third = report_at(u, 21000 * MS);
	for (int i = 0; i < USAGE_CPU_PART_COUNT; i++)
		more(&third, &second, i);
	/* the kernel reports the sum of ended children in microseconds, by ticks on some machines */
	assert_true(more(&third, &second, USAGE_CPU_SYMBOLIZER) >= 80 * MS);
	/*
	 * and nothing of it twice: the least that a child burned is 60 ms. The reader's child
	 * burned 80 ms, and no process has waited for it.
	 */
	ended = ended_ns() - ended;
	counted = more(&third, &first, USAGE_CPU_SYMBOLIZER) +
		  more(&third, &first, USAGE_CPU_READERS) + more(&third, &first, USAGE_CPU_BUILDER);
	assert_in_range(counted, ended - 30 * MS, ended + (80 + 50) * MS);
	close(ready[0]), close(ready[1]);
	usage__free(u);
}

/* A keeper's helper that lives for less than an interval: its CPU time is in the keeper's part. */
TEST(a_keeper_has_the_cpu_time_of_ended_helpers)
{
	struct usage *u = usage__new();
	struct usage_report first = report_at(u, 1000 * MS), second;
	uint64_t family = family_cpu_ns(0);
	pid_t keeper, helper;
	int burned[2], ready[2], status;
	char byte;

	assert_int_equal(pipe(burned) | pipe(ready), 0);
	keeper = fork();
	assert_true(keeper >= 0);
	if (!keeper) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "sysprof-builder");
		helper = fork_worker("sysprof-builder", 80 * MS, burned[1], NULL);
		if (read(burned[0], &byte, 1) == 1 && !kill(helper, SIGKILL) &&
		    waitpid(helper, &status, 0) == helper && write(ready[1], &byte, 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	second = report_at(u, 11000 * MS);
	assert_int_equal(second.processes, 1);
	assert_true(more(&second, &first, USAGE_CPU_BUILDER) >= 60 * MS);
	assert_true(family_cpu_ns(keeper) < family_cpu_ns(0) - 60 * MS);
	kill(keeper, SIGKILL);
	assert_int_equal(waitpid(keeper, &status, 0), keeper);
	assert_true(family_cpu_ns(0) >= family + 60 * MS);
	close(burned[0]), close(burned[1]), close(ready[0]), close(ready[1]);
	usage__free(u);
}

TEST(touched_pages_are_in_the_memory_of_the_process)
{
	const size_t size = 64u << 20;
	struct usage *u = usage__new();
	struct usage_report first = report_at(u, 1000 * MS), second;
	char *block;

	assert_true(first.memory > 100000);
	assert_true(first.memory_by[USAGE_MEMORY_PROCESS] > 100000);
	assert_int_equal(first.memory_by[USAGE_MEMORY_KERNEL], 0);
	assert_true(first.descriptors >= 3);
	block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(block, MAP_FAILED);
	memset(block, 1, size);
	second = report_at(u, 11000 * MS);
	assert_in_range(second.memory_by[USAGE_MEMORY_PROCESS] -
				first.memory_by[USAGE_MEMORY_PROCESS],
			size - (1u << 20), size + (8u << 20));
	munmap(block, size);
	usage__free(u);
	usage__free(NULL);
}

/* Else it keeps what is freed, and memory grows with each report. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=1";
}

TEST(memory_rises_and_falls_with_each_report)
{
	const size_t size = 32u << 20;
	struct usage *u = usage__new();
	char *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t first, now;

	assert_ptr_not_equal(block, MAP_FAILED);
	memset(block, 1, size); /* what the sanitizers keep of it is there from now on */
	madvise(block, size, MADV_DONTNEED);
	first = report_at(u, 1000 * MS).memory_by[USAGE_MEMORY_PROCESS];
	for (uint64_t i = 1; i < 14; i++) {
		memset(block, 1, size);
		now = report_at(u, (1000 + i * 20000) * MS).memory_by[USAGE_MEMORY_PROCESS];
		assert_in_range(now, first + size - (4u << 20), first + size + (8u << 20));
		madvise(block, size, MADV_DONTNEED);
		now = report_at(u, (11000 + i * 20000) * MS).memory_by[USAGE_MEMORY_PROCESS];
		assert_in_range(now, first - min_u64(first, 4u << 20), first + (8u << 20));
	}
	munmap(block, size);
	usage__free(u);
}
