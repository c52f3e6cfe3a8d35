/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Go's function table: all that it says of every function. What must hold whatever it contains: functions
 * ascend, an address is found in the function that has it, depths ascend without gaps, and chains end.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "elf/elf_file.h"
#include "elf/gopclntab.h"
#include "elf/gopclntab_open.h"
#include "fuzz.h"

#define MAX_FUNCTIONS 4096

static const char *const NAMES[] = {".gopclntab", ".data.rel.ro", ".data", ".rodata"};

struct depths {
	uint64_t next, end;
};

static int take_depth(void *context, uint64_t start, uint64_t end, int32_t depth)
{
	struct depths *d = context;

	(void)depth;
	MUST(start == d->next && end > start && end <= d->end);
	d->next = end;
	return 0;
}

static void read_frames(struct gopclntab *t, size_t number, uint64_t address)
{
	struct symbol_frame frames[GO_MAX_FRAMES];
	uint64_t until = UINT64_MAX;
	int count = gopclntab__frames(t, number, address, frames, &until);

	MUST(count >= 1 && count <= GO_MAX_FRAMES && until > address);
	for (int i = 0; i < count; i++) {
		fuzz_read(frames[i].function, strlen(frames[i].function));
		if (frames[i].file)
			fuzz_read(frames[i].file, strlen(frames[i].file));
	}
}

static void read_function(struct gopclntab *t, size_t number, uint64_t *last)
{
	struct go_function function;
	struct depths depths;
	const char *file;
	size_t found;
	int err;

	if (gopclntab__function(t, number, &function))
		return;
	MUST(function.start >= *last && function.end >= function.start);
	*last = function.end;
	fuzz_read(function.name, strlen(function.name));
	depths = (struct depths){.next = function.start, .end = function.end};
	err = gopclntab__each_depth(t, number, take_depth, &depths);
	MUST(err == 0 || err == -EBADMSG);
	file = gopclntab__file(t, number);
	if (file)
		fuzz_read(file, strlen(file));
	if (function.start == function.end)
		return;
	MUST(!gopclntab__find(t, function.start, &found) && found == number);
	MUST(!gopclntab__find(t, function.end - 1, &found) && found == number);
	for (uint64_t address = function.start; address < function.end;
	     address += 1 + (function.end - function.start) / 16)
		read_frames(t, number, address);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	return fuzz_mutate_section(NAMES, COUNT(NAMES), data, size, max_size, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = fuzz_file(data, size);
	struct gopclntab *table;
	struct elf_file *file;
	uint64_t last = 0;

	if (!elf_file__open(fd, &file)) {
		if (!gopclntab__open(file, &table)) {
			size_t count = gopclntab__count(table);

			for (size_t i = 0; i < count && i < MAX_FUNCTIONS; i++)
				read_function(table, i, &last);
			gopclntab__free(table);
		}
		elf_file__free(file);
	}
	close(fd);
	return 0;
}
