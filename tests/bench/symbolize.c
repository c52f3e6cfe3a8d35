/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * symbolize [-c] FILE ROOT <ADDRESSES: hexadecimal ELF virtual addresses, ascending, a line each
 *
 * Resolves them as a recording that ends does: in a sealed process, with the debug files that are
 * found below ROOT. -c: with the cache on disk. Prints "wall MS cpu MS peak KB cached N frames N
 * lines N state WORD", where peak is the largest sealed process and its parent together.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/vec.h"
#include "elf/elf_file.h"
#include <sysprof/symbolizer.h>

struct answers {
	size_t frames, lines;
};

static int count_answer(void *context, size_t index, const struct symbol_result *result)
{
	struct answers *answers = context;

	(void)index;
	answers->frames += result->frame_count;
	for (size_t i = 0; i < result->frame_count; i++)
		answers->lines += result->frames[i].line != 0;
	return 0;
}

static int say_done(void *context, const struct symbolizer_job *job)
{
	(void)context;
	if (job->lines_lost)
		fprintf(stderr, "lines are missing: %s\n", job->lines_lost);
	return 0;
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

int main(int argc, char **argv)
{
	struct symbolizer_options options = {};
	struct symbolizer_counts counts = {};
	VEC(uint64_t) offsets = {};
	struct answers answers = {};
	struct symbolizer *symbolizer;
	struct elf_file *file;
	uint8_t id[BUILD_ID_SIZE];
	struct rusage usage;
	char line[64];
	double begin;
	int fd, root, size;

	if (argc > 1 && !strcmp(argv[1], "-c")) {
		options.cache = true;
		argv++;
		argc--;
	}
	if (argc != 3)
		return 2;
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	root = open(argv[2], O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || root < 0 || elf_file__open(fd, &file))
		die(argv[1]);
	size = elf_file__build_id(file, id, sizeof(id));
	while (fgets(line, sizeof(line), stdin)) {
		uint64_t offset;

		if (!elf_file__offset_of_address(file, strtoull(line, NULL, 16), &offset) &&
		    vec_push(&offsets, offset))
			die("memory");
	}
	elf_file__free(file);

	begin = now_ms();
	symbolizer = symbolizer__new();
	struct symbolizer_job job = {
		.dso = {.kind = DSO_FILE,
			.fd = fd,
			.root_fd = root,
			.path = argv[1],
			.build_id = id,
			.build_id_size = size > 0 ? (uint8_t)size : 0},
		.addresses = offsets.data,
		.count = offsets.count,
		.sink = count_answer,
		.done = say_done,
		.context = &answers,
	};
	if (!symbolizer || symbolizer__resolve_all(symbolizer, &job, 1, &options, &counts))
		die("symbolize");
	begin = now_ms() - begin;
	getrusage(RUSAGE_SELF, &usage);
	printf("wall %.3f cpu %.3f peak %" PRIu64 " cached %zu frames %zu lines %zu state %d\n",
	       begin, (double)counts.cpu_time / 1e6,
	       counts.peak_memory / 1024 + (uint64_t)usage.ru_maxrss, counts.modules_cached,
	       answers.frames, answers.lines, (int)job.state);
	symbolizer__free(symbolizer);
	vec_free(&offsets);
	return 0;
}
