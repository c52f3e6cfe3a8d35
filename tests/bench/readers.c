/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * readers ROUNDS
 *
 * What it takes to have a reader process do something, and to do it in place: nothing at all, the mappings of this
 * process, the search for a mapped file. One request at a time, each answered before the next one, and then as
 * many at a time as there are. Prints a line each: "NAME ROUND-TRIP-NS QUEUED-NS IN-PLACE-NS", medians of 9 turns.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clocks.h"
#include "files/file_search.h"
#include "live/proc/proc_maps.h"
#include "tenants/pool.h"

#define PATIENCE  60000000000ull /* ns */
#define TURNS	  9
#define FILE_NAME "/bin/sh"

enum service { NOTHING, FILES, MAPS, SERVICES };

static void serve_nothing(struct helper_job *job)
{
	job->answer_size = 1;
}

static const helper_serve_fn services[SERVICES] = {
	[NOTHING] = serve_nothing, [FILES] = file_search__serve, [MAPS] = proc_maps__serve};

static struct helper_pool *pool;
static int root, directory;
static struct file_question question;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void take(void *context, const struct helper_answer *answer)
{
	(void)context;
	if (answer->refusal || !answer->size) {
		fprintf(stderr, "a reader did not answer: %d\n", answer->refusal);
		exit(1);
	}
}

static int take_mapping(void *context, const struct proc_mapping *mapping)
{
	*(uint64_t *)context += mapping->start;
	return 0;
}

static void send_request(enum service service)
{
	struct helper_request request = {.service = service, .data = "", .size = 1, .answer = take};
	int err;

	if (service == MAPS) {
		err = proc_maps__request(pool, MAPS, getpid(), directory, take, NULL);
	} else {
		if (service == FILES) {
			request.data = &question;
			request.size = file_question__size(&question);
			request.fds = &root;
			request.fd_count = 1;
		}
		err = helper_pool__request(pool, &request);
	}
	if (err || !helper_pool__waiting(pool)) {
		fprintf(stderr, "the request failed: %d\n", err);
		exit(1);
	}
}

static void do_in_place(enum service service)
{
	int roots[SEARCH_ROOTS], fd;
	struct file_finding finding;
	struct proc_maps_result result;
	uint64_t sum = 0;
	pid_t tid;

	if (service == MAPS &&
	    proc_maps__read(directory, getpid(), &tid, take_mapping, &sum, &result))
		fail("maps");
	if (service != FILES)
		return;
	for (int i = 0; i < SEARCH_ROOTS; i++)
		roots[i] = i == SEARCH_PROCESS ? root : -1;
	fd = file_search__find(&question, roots, &finding);
	if (fd < 0)
		fail(FILE_NAME);
	close(fd);
}

static uint64_t time_turn(enum service service, int how, unsigned int rounds)
{
	uint64_t begin = monotonic_ns();

	for (unsigned int i = 0; i < rounds; i++) {
		if (how == 2)
			do_in_place(service);
		else
			send_request(service);
		if (how == 0)
			helper_pool__settle(pool, PATIENCE);
	}
	if (how == 1)
		helper_pool__settle(pool, PATIENCE);
	return (monotonic_ns() - begin) / rounds;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void measure(const char *name, enum service service, unsigned int rounds)
{
	uint64_t times[3][TURNS];

	for (int turn = 0; turn < TURNS; turn++)
		for (int how = 0; how < 3; how++)
			times[how][turn] = time_turn(service, how, rounds);
	printf("%s", name);
	for (int how = 0; how < 3; how++) {
		qsort(times[how], TURNS, sizeof(times[how][0]), compare);
		printf(" %llu", (unsigned long long)times[how][TURNS / 2]);
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	struct helper_pool_options options = {.services = services,
					      .service_count = SERVICES,
					      .class = HELPER_READER,
					      .keeper = HELPER_READER_KEEPER,
					      .credit = 3600000000000ull};
	unsigned int rounds = argc == 2 ? (unsigned int)strtoul(argv[1], NULL, 10) : 0;
	struct stat st;

	if (!rounds || rounds > 4000) {
		fprintf(stderr, "usage: readers ROUNDS, at most 4000\n");
		return 2;
	}
	if (helper_pool__new(&options, &pool))
		fail("readers");
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	directory = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || directory < 0 || stat(FILE_NAME, &st))
		fail("/");
	question.mapping.event.inode = st.st_ino;
	strcpy(question.mapping.event.path, FILE_NAME);
	question.has_root[SEARCH_PROCESS] = true;
	measure("nothing", NOTHING, rounds);
	measure("mappings", MAPS, rounds);
	measure("file", FILES, rounds);
	helper_pool__free(pool);
	return 0;
}
