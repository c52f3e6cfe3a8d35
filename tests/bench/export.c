/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * export SAMPLES THREADS DIRECTORY [FORMAT…]
 *
 * What each exporter takes to write a big profile: 8 programs, each in 5 processes of several threads, with inline
 * chains, kernel stacks and gaps. 100,000 distinct stacks: a quarter of them are call paths, the others differ from
 * one of these in the instruction of the innermost function. A few are hot and most are not. The nth threads of the
 * processes of a program do the same work, and the others do something else. Each file is written by a child of its own, and the child's need beyond the profile is reported.
 * Prints a line a file:
 *
 *   SUFFIX CPU-SECONDS SECONDS MB PEAK-MB
 *
 * and before them "stacks COUNT", "locations COUNT", "profile-MB MB".
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sysprof/profile_builder.h>

#include "base/gzip.h"
#include "formats/out/exporters.h"

#define PROGRAMS	     8
#define PROCESSES	     5	   /* of each program */
#define STACKS		     12500 /* of each program */
#define FUNCTIONS	     3000  /* of each program */
#define KERNEL_FUNCTIONS     2000
#define PERIOD		     1000000
#define MAX_DEPTH	     40
#define LOCATIONS_A_FUNCTION 8

static uint64_t state = 88172645463325252u;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

/* 0 .. n - 1, the first ones most often. */
static uint32_t skewed(uint32_t n)
{
	double u = (double)(next_random() >> 11) / 9007199254740992.0;

	return (uint32_t)((double)n * u * u * u * u * u);
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

struct program {
	struct dso_id dso, library;
	struct location_id locations[FUNCTIONS][LOCATIONS_A_FUNCTION];
	struct stack_id stacks[STACKS];
};

static struct profile_builder *b;
static struct program programs[PROGRAMS];
static struct location_id kernel[KERNEL_FUNCTIONS];

static struct dso_id add_dso(const char *path, enum dso_kind kind)
{
	const char *slash = strrchr(path, '/');
	struct profile_dso dso = {
		.kind = kind,
		.path = profile_builder__string(b, path),
		.name = profile_builder__string(b, slash ? slash + 1 : path),
		.file_state = FILE_STATE_RIGHT,
		.symbol_state = SYMBOL_STATE_RESOLVED,
		.build_id_size = 20,
		.is_library = strstr(path, ".so") != NULL,
	};

	memcpy(dso.build_id, path, strlen(path) < 20 ? strlen(path) : 20);
	return profile_builder__dso(b, &dso);
}

static struct profile_line make_line(struct dso_id dso, const char *prefix, uint32_t number,
				     uint32_t line)
{
	char name[96], file[96];
	struct profile_function function = {.dso = dso, .size = 200};

	snprintf(name, sizeof(name), "%s::component_%u::handle_request_%u(int, char const*)",
		 prefix, number % 60, number);
	snprintf(file, sizeof(file), "/usr/src/%s/src/component_%u.cc", prefix, number % 60);
	function.name = profile_builder__string(b, name);
	function.address = 0x401000 + (uint64_t)number * 256;
	function.definition_file = profile_builder__string(b, file);
	function.definition_line = number % 900 + 10;
	function.definition_column = 5;
	return (struct profile_line){
		.function = profile_builder__function(b, &function),
		.file = function.definition_file,
		.line = function.definition_line + line,
	};
}

static void add_locations(struct program *program, const char *prefix)
{
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		bool in_library = i % 3 == 0;
		struct dso_id dso = in_library ? program->library : program->dso;

		for (uint32_t j = 0; j < LOCATIONS_A_FUNCTION; j++) {
			struct profile_line lines[3] = {make_line(dso, prefix, i, 3 * j + 1)};
			size_t count = 1;

			/* a fourth of the places has an inline chain */
			if (next_random() % 4 == 0) {
				lines[1] = lines[0];
				lines[0] = make_line(dso, "inlined", skewed(FUNCTIONS), j + 1);
				count = 2;
			}
			program->locations[i][j] = profile_builder__location(
				b, dso, 0x1000 + (uint64_t)i * 256 + 16 * j, (struct process_id){0},
				in_library ? CATEGORY_LIBRARY : CATEGORY_USER);
			profile_builder__resolve(b, program->locations[i][j],
						 0x401000 + (uint64_t)i * 256 + 16 * j, lines,
						 count);
		}
	}
}

static struct location_id some_location(const struct program *program)
{
	return program->locations[skewed(FUNCTIONS)][next_random() % LOCATIONS_A_FUNCTION];
}

/* The same call path, with another instruction of its innermost function, which is program->locations[function]. */
static struct stack_id vary_leaf(const struct program *program, struct stack_id stack,
				 uint32_t function)
{
	return profile_builder__stack(
		b, profile_builder__get_stack(b, stack)->parent,
		program->locations[function][next_random() % LOCATIONS_A_FUNCTION]);
}

/* A call path that branches off another one somewhere near its end. */
static struct stack_id branch_off(const struct program *program, struct stack_id stack,
				  uint32_t *function)
{
	uint32_t up = (uint32_t)(next_random() % 6), down = 1 + (uint32_t)(next_random() % 6);

	while (stack.v && up--)
		stack = profile_builder__get_stack(b, stack)->parent;
	if (stack.v && profile_builder__get_stack(b, stack)->depth > MAX_DEPTH)
		down = 1;
	while (--down)
		stack = profile_builder__stack(b, stack, some_location(program));
	if (next_random() % 5 == 0) /* in a system call */
		for (uint32_t k = 0; k < 4; k++)
			stack = profile_builder__stack(b, stack, kernel[skewed(KERNEL_FUNCTIONS)]);
	*function = skewed(FUNCTIONS);
	return profile_builder__stack(b, stack, program->locations[*function][0]);
}

static void add_stacks(struct program *program)
{
	uint32_t function[STACKS] = {0};
	struct stack_id at = {0};

	for (uint32_t depth = 0; depth < 15; depth++)
		at = profile_builder__stack(b, at, some_location(program));
	program->stacks[0] = profile_builder__stack(b, at, program->locations[0][0]);
	for (uint32_t i = 1; i < STACKS; i++) {
		uint32_t old = (uint32_t)(next_random() % i);

		function[i] = function[old];
		program->stacks[i] =
			next_random() % 4 ? vary_leaf(program, program->stacks[old], function[old])
					  : branch_off(program, program->stacks[old], &function[i]);
	}
}

/* `stacks`: which of them are its work. */
static void add_thread(const struct stack_id *stacks, uint32_t stack_count,
		       struct process_id process, uint32_t tid, bool is_main, uint64_t samples)
{
	char name[16];
	uint64_t time = 1000000000 + next_random() % PERIOD;
	struct string_id comm;
	struct thread_id thread;

	snprintf(name, sizeof(name), "worker-%u", tid % 10);
	comm = profile_builder__string(b, name);
	thread = profile_builder__thread(b, process, tid, is_main, comm, time);
	for (uint64_t i = 0; i < samples; i++) {
		struct profile_sample sample = {
			.kind = SAMPLE_CPU, .comm = comm, .end = STACK_END_ROOT};

		if (i % 20 == 19)
			time += (10 + next_random() % 40) * PERIOD; /* it waited */
		time += PERIOD - 50000 + next_random() % 100000;
		sample.time = time;
		sample.weight = PERIOD - 30000 + next_random() % 30000;
		sample.stack = stacks[skewed(stack_count)];
		profile_builder__sample(b, thread, &sample);
	}
	profile_builder__thread_cpu_tail(b, thread, next_random() % PERIOD);
}

static const struct profile *build(uint64_t samples, uint32_t threads)
{
	const struct profile *p;
	struct profile *session;
	struct dso_id vmlinux;
	char why[256] = "";
	uint32_t each = threads / (PROGRAMS * PROCESSES), tid = 1000;

	b = profile_builder__new();
	if (!b)
		fail("profile_builder__new");
	session = profile_builder__session(b);
	session->start = 1000000000;
	session->start_realtime = 1700000000000000000;
	session->period = PERIOD;
	session->end = session->start + (samples / threads + 1) * 4 * PERIOD;
	vmlinux = add_dso("[kernel.kallsyms]", DSO_KERNEL);
	for (uint32_t i = 0; i < KERNEL_FUNCTIONS; i++) {
		struct profile_line line = make_line(vmlinux, "kernel", i, 1);
		uint64_t address = 0xffffffff81000000 + (uint64_t)i * 512;

		kernel[i] = profile_builder__location(b, vmlinux, address, (struct process_id){0},
						      CATEGORY_KERNEL);
		profile_builder__resolve(b, kernel[i], address, &line, 1);
	}
	for (uint32_t i = 0; i < PROGRAMS; i++) {
		char path[64], prefix[32];

		snprintf(prefix, sizeof(prefix), "program_%u", i);
		snprintf(path, sizeof(path), "/usr/bin/%s", prefix);
		programs[i].dso = add_dso(path, DSO_FILE);
		snprintf(path, sizeof(path), "/usr/lib/lib%s.so.1", prefix);
		programs[i].library = add_dso(path, DSO_FILE);
		add_locations(&programs[i], prefix);
		add_stacks(&programs[i]);
		for (uint32_t j = 0; j < PROCESSES; j++) {
			struct profile_process process = {
				.pid = tid,
				.name = profile_builder__string(b, prefix),
				.start = session->start,
				.is_target = true,
			};
			struct process_id id = profile_builder__process(b, &process);

			for (uint32_t k = 0; k < each; k++, tid++)
				add_thread(programs[i].stacks + k * (STACKS / each), STACKS / each,
					   id, tid, !k, samples / threads);
		}
	}
	if (profile_builder__finish(b, &p, why, sizeof(why))) {
		fprintf(stderr, "finish: %s\n", why);
		exit(1);
	}
	return p;
}

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int write_to(const struct exporter *exporter, const struct profile *p, const char *path)
{
	struct export_request request = {.profile = p};
	FILE *out = fopen(path, "we"), *gzip = NULL;
	size_t length = strlen(path);
	int err;

	if (!out)
		return -1;
	request.out = out;
	if (exporter->may_gzip && !strcmp(path + length - 3, ".gz")) {
		request.out = gzip = gzip_writer(out, NULL);
		if (!gzip)
			return -1;
	}
	err = exporter->write(&request);
	if (gzip && fclose(gzip))
		err = -1;
	return fclose(out) ? -1 : err;
}

static size_t resident(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long all, pages;

	if (!file || fscanf(file, "%lu %lu", &all, &pages) != 2)
		fail("/proc/self/statm");
	fclose(file);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void measure(const struct exporter *exporter, const char *suffix, const struct profile *p,
		    const char *directory)
{
	char path[4096];
	struct rusage usage;
	struct stat st;
	size_t before = resident();
	double begin = seconds(CLOCK_MONOTONIC);
	pid_t pid;
	int status;

	snprintf(path, sizeof(path), "%s/x%s", directory, suffix);
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (!pid)
		_exit(write_to(exporter, p, path) ? 1 : 0);
	if (wait4(pid, &status, 0, &usage) != pid || status || stat(path, &st))
		fail(path);
	printf("%s %.3f %.3f %.1f %.1f\n", suffix,
	       (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6 +
		       (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec / 1e6,
	       seconds(CLOCK_MONOTONIC) - begin, (double)st.st_size / 1e6,
	       (double)usage.ru_maxrss * 1024 / 1e6 - (double)before / 1e6);
	unlink(path);
}

static bool is_wanted(const struct exporter *exporter, int count, char **names)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(exporter->name, names[i]))
			return true;
	return !count;
}

int main(int argc, char **argv)
{
	const struct profile *p;

	if (argc < 4) {
		fprintf(stderr, "usage: export SAMPLES THREADS DIRECTORY [FORMAT…]\n");
		return 2;
	}
	p = build(strtoull(argv[1], NULL, 10), (uint32_t)strtoul(argv[2], NULL, 10));
	printf("stacks %zu\nlocations %zu\nprofile-MB %.0f\n", (size_t)PROGRAMS * STACKS,
	       p->location_count, (double)resident() / 1e6);
	for (const struct exporter *const *e = exporters(); *e; e++)
		for (size_t i = 0; (*e)->suffixes[i] && is_wanted(*e, argc - 4, argv + 4); i++)
			measure(*e, (*e)->suffixes[i], p, argv[3]);
	profile_builder__free(b);
	return 0;
}
