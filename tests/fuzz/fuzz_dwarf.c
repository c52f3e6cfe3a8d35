/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * module_resolve(), behind which are libdw and the symbol tables, on any bytes: what a sealed child does
 * with a module. The addresses are those of the file's own symbols and a few of its text.
 */
#include <string.h>

#include "elf/elf_file.h"
#include "fuzz.h"
#include "symbolize/module.h"

#define ADDRESSES    64
#define MEMORY_LIMIT (64u << 20)

struct addresses {
	const struct elf_file *file;
	uint64_t list[ADDRESSES]; /* offsets in the file, as module_resolve() has them */
	size_t count;
};

static int note_symbol(void *context, const struct elf_symbol *symbol)
{
	struct addresses *a = context;
	uint64_t offset;

	/* room is left for the evenly spread ones */
	if (a->count == ADDRESSES / 2)
		return 1;
	if (!elf_file__offset_of_address(a->file, symbol->address + symbol->size / 2, &offset))
		a->list[a->count++] = offset;
	return 0;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void sort_distinct(struct addresses *a)
{
	size_t kept = 0;

	qsort(a->list, a->count, sizeof(*a->list), compare);
	for (size_t i = 0; i < a->count; i++)
		if (!kept || a->list[i] != a->list[kept - 1])
			a->list[kept++] = a->list[i];
	a->count = kept;
}

static void choose_addresses(int fd, struct addresses *a)
{
	struct elf_section text;
	struct elf_file *file;

	a->list[a->count++] = 0;
	a->list[a->count++] = UINT64_MAX - 1;
	if (!elf_file__open(fd, &file)) {
		a->file = file;
		elf_file__each_symbol(file, note_symbol, a);
		if (!elf_file__find_section(file, ".text", &text))
			for (uint64_t i = 0; a->count < ADDRESSES; i++)
				a->list[a->count++] = text.offset + i * (text.size / ADDRESSES + 1);
		elf_file__free(file);
	}
	sort_distinct(a);
}

static void look_at_string(const char *s)
{
	if (s)
		look_at(s, strlen(s));
}

static int look_at_result(void *context, size_t index, const struct symbol_result *result)
{
	size_t *expected = context;

	if (index != (*expected)++)
		abort();
	for (size_t i = 0; i < result->frame_count; i++) {
		look_at_string(result->frames[i].function);
		look_at_string(result->frames[i].file);
		look_at_string(result->frames[i].definition_file);
		look_at(&result->frames[i].line, sizeof(result->frames[i].line));
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct module_files files = {
		.kind = DSO_FILE, .debug_fd = -1, .alt_fd = -1, .memory_limit = MEMORY_LIMIT};
	struct addresses addresses = {0};
	struct module_report report;
	size_t answers = 0;

	files.elf_fd = input_file(bytes, size);
	choose_addresses(files.elf_fd, &addresses);
	if (!module_resolve(&files, addresses.list, addresses.count, look_at_result, &answers,
			    &report) &&
	    answers != addresses.count)
		abort();
	return 0;
}
