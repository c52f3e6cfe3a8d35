/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * big_profile SAMPLES THREADS STACKS FORMAT PATH [SERVICES]: writes a made-up profile of this size in a
 * format, and prints how long the writing took (s), the peak memory of the whole (MB), and that before the
 * writing. With SERVICES each of them is a process with a part of the threads and of the stacks.
 *
 * Harder than most: no two samples in a row have the same stack, times and CPU times vary by some µs.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <sysprof/profile_builder.h>

#include "base/cleanup.h"
#include "base/gzip.h"
#include "formats/out/exporters.h"

#define PERIOD	  1001001u
#define FUNCTIONS 5000u
#define DEEPEST	  60u
#define START	  1000000000u

static uint64_t state = 88172645463325252u;

static uint32_t pick(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 16) % below);
}

static struct location_id *make_locations(struct profile_builder *b)
{
	struct location_id *locations = calloc(FUNCTIONS, sizeof(*locations));
	struct profile_dso dso = {.kind = DSO_FILE, .symbol_state = SYMBOL_STATE_RESOLVED};
	struct dso_id dsos[8];
	char text[96];

	for (uint32_t i = 0; i < 8; i++) {
		snprintf(text, sizeof(text), "/usr/lib/libmade%" PRIu32 ".so", i);
		dso.path = profile_builder__string(b, text);
		dso.name = profile_builder__string(b, text + strlen("/usr/lib/"));
		dso.inode = i;
		dsos[i] = profile_builder__dso(b, &dso);
	}
	for (uint32_t i = 0; locations && i < FUNCTIONS; i++) {
		struct profile_function function = {.dso = dsos[i % 8], .size = 64};
		struct profile_line line = {.line = i % 997 + 1};

		locations[i] = profile_builder__location(b, dsos[i % 8], 64ull * i,
							 (struct process_id){0},
							 i % 8 ? CATEGORY_LIBRARY : CATEGORY_USER);
		snprintf(text, sizeof(text), "made_up::module_%" PRIu32 "::function_%" PRIu32,
			 i % 61, i);
		function.name = profile_builder__string(b, text);
		function.address = 64ull * i;
		snprintf(text, sizeof(text), "/src/made/up/file_%" PRIu32 ".cc", i % 307);
		line.file = profile_builder__string(b, text);
		line.function = profile_builder__function(b, &function);
		profile_builder__resolve(b, locations[i], 64ull * i, &line, 1);
	}
	return locations;
}

/* Each grows out of an earlier one by one or some frames. */
static struct stack_id *make_stacks(struct profile_builder *b, const struct location_id *locations,
				    uint32_t count)
{
	struct stack_id *stacks = calloc(count, sizeof(*stacks));
	uint32_t *depths = calloc(count, sizeof(*depths));

	for (uint32_t i = 0; stacks && depths && i < count; i++) {
		uint32_t from = i ? pick(i) : 0, more = 1 + pick(3);

		if (i && depths[from] + more < DEEPEST) {
			stacks[i] = stacks[from];
			depths[i] = depths[from];
		}
		for (; more; more--, depths[i]++)
			stacks[i] = profile_builder__stack(b, stacks[i],
							   locations[pick(FUNCTIONS)]);
	}
	free(depths);
	return stacks;
}

struct size {
	uint64_t samples;
	uint32_t threads, stacks, services;
};

static void add_thread(struct profile_builder *b, struct process_id process, uint32_t tid,
		       uint64_t samples, const struct stack_id *stacks, uint32_t stack_count)
{
	char name[32];
	struct thread_id thread;
	uint64_t time = START + pick(PERIOD);

	snprintf(name, sizeof(name), "worker-%" PRIu32, tid);
	thread = profile_builder__thread(b, process, tid, false, profile_builder__string(b, name),
					 START);
	for (uint64_t i = 0; i < samples; i++) {
		uint64_t passed = PERIOD - 20000 + pick(40000);
		struct profile_sample sample = {
			.kind = SAMPLE_CPU,
			.time = time += passed,
			.weight = passed - pick(4000),
			.stack = stacks[pick(1 + pick(stack_count))],
			.comm = profile_builder__string(b, name),
			.end = STACK_END_ROOT,
		};

		profile_builder__sample(b, thread, &sample);
	}
}

static struct process_id add_process(struct profile_builder *b, uint32_t number, bool has_service)
{
	struct profile_process process = {.pid = 1000 + number, .ppid = 1, .start = START};
	char name[32] = "made-up";

	if (has_service) {
		snprintf(name, sizeof(name), "service-%" PRIu32, number);
		process.names.service = profile_builder__string(b, name);
	}
	process.name = profile_builder__string(b, name);
	return profile_builder__process(b, &process);
}

static void fill(struct profile_builder *b, const struct size *size)
{
	struct profile *session = profile_builder__session(b);
	struct location_id *locations = make_locations(b);
	uint32_t processes = size->services ?: 1, part = size->stacks / processes;

	session->start = START;
	session->end = START + (size->samples / size->threads + 2) * (PERIOD + 20000ull);
	session->start_realtime = 1700000000123456789u;
	session->period = PERIOD;
	for (uint32_t p = 0, thread = 0; locations && p < processes; p++) {
		struct process_id id = add_process(b, p, size->services != 0);
		struct stack_id *stacks = make_stacks(b, locations, part);

		for (; stacks && thread < (p + 1) * size->threads / processes; thread++)
			add_thread(b, id, 10000 + thread, size->samples / size->threads, stacks,
				   part);
		free(stacks);
	}
	free(locations);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double peak_mb(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)usage.ru_maxrss / 1024;
}

static int write_profile(const struct profile *p, const struct exporter *exporter, const char *path)
{
	_cleanup_fclose_ FILE *file = fopen(path, "we");
	size_t length = strlen(path);
	bool packed = length > 3 && !strcmp(path + length - 3, ".gz");
	FILE *out = file && packed ? gzip_writer(file, NULL) : file;
	struct export_request request = {.profile = p, .out = out};
	int err;

	if (!out)
		return -errno;
	err = exporter->write(&request);
	if (packed && fclose(out) && !err)
		err = -EIO;
	return !err && fflush(file) ? -EIO : err;
}

int main(int argc, char **argv)
{
	const struct exporter *exporter = argc == 6 || argc == 7 ? exporter_by_name(argv[4]) : NULL;
	struct profile_builder *b = profile_builder__new();
	const struct profile *p;
	double before, begin;
	struct size size;
	char why[256];
	int err;

	if (!exporter || !b) {
		fprintf(stderr,
			"usage: big_profile SAMPLES THREADS STACKS FORMAT PATH [SERVICES]\n");
		return 2;
	}
	size.samples = strtoull(argv[1], NULL, 10);
	size.threads = (uint32_t)strtoul(argv[2], NULL, 10);
	size.stacks = (uint32_t)strtoul(argv[3], NULL, 10);
	size.services = argc == 7 ? (uint32_t)strtoul(argv[6], NULL, 10) : 0;
	fill(b, &size);
	err = profile_builder__finish(b, &p, why, sizeof(why));
	if (err) {
		fprintf(stderr, "finish: %s\n", why);
		return 1;
	}
	before = peak_mb();
	begin = now();
	err = write_profile(p, exporter, argv[5]);
	printf("%.3f %.0f %.0f\n", now() - begin, peak_mb(), before);
	profile_builder__free(b);
	return err ? 1 : 0;
}
