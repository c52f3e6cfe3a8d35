/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * index_oracle FILE [DEBUG-FILE [DWZ-FILE [COUNT]]]
 *
 * Makes the index of a module in this process and compares its answers with those of the module at COUNT random
 * offsets of .text, all fields. Prints "rows N bytes N debug BYTES build NS/ROW open NS/ROW lookup NS resolve NS", and
"peak KB", the highest memory of the process until the index was made.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "elf/elf_file.h"
#include "elf/elf_image.h"
#include "elf/elf_sections.h"
#include "symbolize/module.h"
#include "symbolize/module_index.h"
#include "symbolize/symbol_index.h"
#include "symbolize/symbol_index_private.h"

#define COUNT 5000

struct comparison {
	const struct symbol_index *index;
	const uint64_t *offsets;
	size_t missing, different;
};

/* Others may use the CPU as well. */
static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static long peak_kb(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

static void die(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static bool same_text(const char *a, const char *b)
{
	return !strcmp(a ? a : "", b ? b : "");
}

static bool same_frame(const struct symbol_frame *a, const struct symbol_frame *b)
{
	return same_text(a->function, b->function) && a->function_address == b->function_address &&
	       a->function_size == b->function_size && same_text(a->file, b->file) &&
	       a->line == b->line && a->column == b->column &&
	       same_text(a->definition_file, b->definition_file) &&
	       a->definition_line == b->definition_line &&
	       a->definition_column == b->definition_column;
}

static void print_result(const char *who, const struct symbol_result *r)
{
	fprintf(stderr, " %s: %" PRIx64 "\n", who, r->elf_address);
	for (size_t i = 0; i < r->frame_count; i++) {
		const struct symbol_frame *f = &r->frames[i];

		fprintf(stderr, "   %s %" PRIx64 "+%" PRIx64 " %s:%u:%u %s:%u:%u\n", f->function,
			f->function_address, f->function_size, f->file ? f->file : "-", f->line,
			f->column, f->definition_file ? f->definition_file : "-",
			f->definition_line, f->definition_column);
	}
}

static int compare(void *context, size_t i, const struct symbol_result *result)
{
	struct comparison *c = context;
	size_t frames = result->frame_count < SYMBOL_CHAIN_MAX ? result->frame_count
							       : SYMBOL_CHAIN_MAX;
	static struct symbol_answer answer;
	bool same;

	if (!c->index)
		return 0;
	if (!symbol_index__find(c->index, c->offsets[i], &answer)) {
		c->missing++;
		return 0;
	}
	same = answer.result.elf_address == result->elf_address &&
	       answer.result.frame_count == frames;
	for (size_t k = 0; k < frames && same; k++)
		same = same_frame(&answer.frames[k], &result->frames[k]);
	if (same)
		return 0;
	if (c->different++ < 3) {
		fprintf(stderr, "different at %" PRIx64 "\n", c->offsets[i]);
		print_result("module", result);
		print_result("index", &answer.result);
	}
	return 0;
}

static int ascending(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Code, and a few that lie elsewhere. */
static uint64_t *random_offsets(int fd, size_t count)
{
	uint64_t *offsets = calloc(count, sizeof(*offsets));
	struct elf_section text = {};
	struct elf_file *file;

	if (!offsets || elf_file__open(fd, &file) || elf_file__find_section(file, ".text", &text) ||
	    !text.size)
		die("no code");
	elf_file__free(file);
	srandom(1);
	for (size_t i = 0; i < count; i++) {
		uint64_t number = (uint64_t)random() << 31 ^ (uint64_t)random();

		offsets[i] = i % 16 ? text.offset + number % text.size
				    : number % (text.offset + 2 * text.size);
	}
	qsort(offsets, count, sizeof(*offsets), ascending);
	return offsets;
}

int main(int argc, char **argv)
{
	struct module_files files = {.kind = DSO_FILE, .elf_fd = -1, .debug_fd = -1, .alt_fd = -1};
	size_t count = argc > 4 ? strtoul(argv[4], NULL, 0) : COUNT, size, distinct = 0;
	struct comparison comparison = {};
	struct symbol_index *index;
	struct module_report report;
	struct symbol_answer answer;
	struct elf_file *debug;
	uint64_t *offsets, built, opened, found, resolved, rows;
	struct module *module;
	long peak;
	void *data;
	int err;

	if (argc < 2)
		return 2;
	files.elf_fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (argc > 2 && *argv[2])
		files.debug_fd = open(argv[2], O_RDONLY | O_CLOEXEC);
	if (argc > 3 && *argv[3])
		files.alt_fd = open(argv[3], O_RDONLY | O_CLOEXEC);
	if (files.elf_fd < 0)
		die(argv[1]);
	offsets = random_offsets(files.elf_fd, count);
	for (size_t i = 0; i < count; i++)
		if (!distinct || offsets[distinct - 1] != offsets[i])
			offsets[distinct++] = offsets[i];
	comparison.offsets = offsets;

	if (module__open(&files, &module) ||
	    module__resolve(module, offsets, 1, compare, &comparison, &report))
		die("module");
	built = cpu_ns();
	err = module__index(module, offsets, distinct, &data, &size);
	built = cpu_ns() - built;
	peak = peak_kb();
	if (err) {
		printf("no index: %s\n", strerror(-err));
		return 1;
	}
	rows = ((const struct index_header *)data)->rows;
	opened = cpu_ns();
	if (symbol_index__open(data, size, &index))
		die("the index is bad");
	opened = cpu_ns() - opened;
	found = cpu_ns();
	for (size_t i = 0; i < distinct; i++)
		symbol_index__find(index, offsets[i], &answer);
	found = cpu_ns() - found;
	comparison.index = index;
	resolved = cpu_ns();
	if (module__resolve(module, offsets, distinct, compare, &comparison, &report))
		die("resolve");
	resolved = cpu_ns() - resolved;
	if (elf_file__open(files.debug_fd >= 0 ? files.debug_fd : files.elf_fd, &debug))
		die("debug file");
	printf("rows %" PRIu64 " bytes %zu debug %" PRIu64
	       " build %.3f open %.3f lookup %.3f resolve %.3f "
	       "checked %zu missing %zu different %zu peak %ld\n",
	       rows, size, elf_file__debug_size(debug), (double)built / (double)rows,
	       (double)opened / (double)rows, (double)found / (double)distinct,
	       (double)resolved / (double)distinct, distinct, comparison.missing,
	       comparison.different, peak);
	elf_file__free(debug);
	symbol_index__free(index);
	module__free(module);
	free(offsets);
	return comparison.different ? 1 : 0;
}
