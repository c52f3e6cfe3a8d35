/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resolve FILE [DEBUG-FILE [DWZ-FILE]] <ADDRESSES: hexadecimal ELF virtual addresses, ascending, a
 * line each, to the chains that the program itself would show, for tests that compare them with
 * other judges. With QUIET=1 only the last two lines, for measurements.
 *
 * "A address", then a line for each level, innermost first, fields separated by tabs:
 *   D linkage-name file line column definition-file line column      what the DWARF says
 *   M function file line function-address                            what the module's frames are
 * Last "S units indexed skipped inflated" and "R state dwarf-state with-symbol with-lines".
 * "?" is unknown.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "elf/elf_file.h"
#include "symbolize/dwarf.h"
#include "symbolize/module.h"

#define MEMORY_LIMIT (UINT64_C(8) << 30)

struct run {
	VEC(uint64_t) addresses, offsets;
	struct dwarf_reader *reader;
	bool quiet;
};

static const char *shown(const char *text)
{
	return text && *text ? text : "?";
}

static void print_dwarf(struct run *run, uint64_t address)
{
	struct dwarf_chain chain;
	int err = dwarf_reader__resolve(run->reader, address, &chain);

	if (err) {
		fprintf(stderr, "0x%" PRIx64 ": %s\n", address, strerror(-err));
		exit(1);
	}
	for (size_t i = 0; i < chain.count && !run->quiet; i++) {
		const struct dwarf_frame *frame = &chain.frames[i];
		const struct symbol_frame *f = &frame->where;

		printf("D\t%s\t%s\t%u\t%u\t%s\t%u\t%u\n",
		       shown(frame->linkage ? frame->linkage : frame->name), shown(f->file),
		       f->line, f->column, shown(f->definition_file), f->definition_line,
		       f->definition_column);
	}
}

static int print_module(void *context, size_t index, const struct symbol_result *result)
{
	struct run *run = context;

	if (run->quiet)
		return 0;
	printf("A\t%" PRIx64 "\n", run->addresses.data[index]);
	if (run->reader)
		print_dwarf(run, run->addresses.data[index]);
	for (size_t i = 0; i < result->frame_count; i++) {
		const struct symbol_frame *f = &result->frames[i];

		printf("M\t%s\t%s\t%u\t%" PRIx64 "\n", f->function, shown(f->file), f->line,
		       f->function_address);
	}
	return 0;
}

static void read_addresses(struct run *run, int fd)
{
	struct elf_file *file;
	char line[64];

	if (elf_file__open(fd, &file)) {
		fprintf(stderr, "not an ELF file\n");
		exit(1);
	}
	while (fgets(line, sizeof(line), stdin)) {
		uint64_t address = strtoull(line, NULL, 16), offset;

		if (elf_file__offset_of_address(file, address, &offset)) {
			fprintf(stderr, "no segment covers 0x%" PRIx64 "\n", address);
			exit(1);
		}
		if (vec_push(&run->addresses, address) || vec_push(&run->offsets, offset))
			exit(1);
	}
	elf_file__free(file);
}

static int open_argument(int argc, char **argv, int index)
{
	int fd;

	if (index >= argc || !*argv[index])
		return -1;
	fd = open(argv[index], O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		perror(argv[index]);
		exit(1);
	}
	return fd;
}

int main(int argc, char **argv)
{
	struct run run = {.quiet = getenv("QUIET") != NULL};
	struct module_files files = {
		.kind = DSO_FILE,
		.elf_fd = open_argument(argc, argv, 1),
		.debug_fd = open_argument(argc, argv, 2),
		.alt_fd = open_argument(argc, argv, 3),
		.memory_limit = MEMORY_LIMIT,
	};
	struct dwarf_options options = {.alt_fd = files.alt_fd, .memory_limit = MEMORY_LIMIT};
	struct module_report report = {};
	struct dwarf_stats stats = {};
	int err;

	read_addresses(&run, files.elf_fd);
	if (!run.quiet) {
		err = dwarf_reader__open(files.debug_fd >= 0 ? files.debug_fd : files.elf_fd,
					 &options, &run.reader);
		if (err)
			fprintf(stderr, "no DWARF: %s\n", strerror(-err));
	}
	err = module_resolve(&files, run.offsets.data, run.offsets.count, print_module, &run,
			     &report);
	if (err) {
		fprintf(stderr, "module: %s\n", strerror(-err));
		return 1;
	}
	if (run.reader)
		dwarf_reader__stats(run.reader, &stats);
	printf("S\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", stats.units,
	       stats.units_indexed, stats.units_skipped, stats.inflated);
	printf("R\t%d\t%d\t%" PRIu64 "\t%" PRIu64 "\n", report.state, report.dwarf,
	       report.with_symbol, report.with_lines);
	dwarf_reader__free(run.reader);
	vec_free(&run.addresses);
	vec_free(&run.offsets);
	return 0;
}
