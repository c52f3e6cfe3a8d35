/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An index of a module's symbols, from a process that has read any file: what is opened can be searched, each answer
 * ends, and its strings end.
 */
#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "symbolize/symbol_index.h"
#include "symbolize/symbol_index_private.h"
#include "symbolize/symbol_index_writer.h"

#define LIMIT	      (1u << 20)
#define OFFSETS_TRIED 512

/* One as it is made, to begin with. */
static size_t make_good(uint8_t *to, size_t max_size)
{
	const struct symbol_frame frames[] = {
		{.function = "inner", .function_address = UINT64_MAX, .file = "a.c", .line = 7},
		{.function = "outer", .function_address = 16, .function_size = 64, .file = "b.c"},
		{.function = "std::vector<int, std::allocator<int> >::push_back(int)"},
		{.function = "std::vector<int, std::allocator<int> >::push_back(int&)"},
	};
	struct index_writer *w = index_writer__new(LIMIT, NULL);
	void *data = NULL;
	size_t size = 0;

	MUST(w && !index_writer__segment(w, 0, 4096, 0));
	for (uint64_t i = 0; i < 100; i++)
		MUST(!index_writer__answer(w, 16 * i, frames + i % 2, i % 3 + 1 + !(i % 2)));
	MUST(!index_writer__gap(w, 2000));
	MUST(!index_writer__finish(w, SYMBOL_STATE_RESOLVED, &data, &size));
	index_writer__free(w);
	if (size > max_size)
		size = 0;
	else
		memcpy(to, data, size);
	free(data);
	return size;
}

/* What is too short becomes a good one; the header is changed seldom. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	size_t header = sizeof(struct index_header);

	if (size <= header)
		return make_good(data, max_size);
	if (seed % 8 == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	LLVMFuzzerMutate(data + header, size - header, size - header);
	return size;
}

static void try_all(const struct symbol_index *x)
{
	static struct symbol_answer answer;

	for (uint64_t i = 0; i < OFFSETS_TRIED; i++) {
		symbol_index__find(x, i < OFFSETS_TRIED / 2 ? i * 9 : UINT64_MAX >> i % 64,
				   &answer);
		MUST(answer.result.frame_count <= SYMBOL_CHAIN_MAX);
		for (size_t k = 0; k < answer.result.frame_count; k++) {
			const struct symbol_frame *f = &answer.frames[k];

			fuzz_read(f->function, strlen(f->function) + 1);
			if (f->file)
				fuzz_read(f->file, strlen(f->file) + 1);
			if (f->definition_file)
				fuzz_read(f->definition_file, strlen(f->definition_file) + 1);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);
	struct symbol_index *x;
	int err;

	MUST(copy);
	memcpy(copy, data, size);
	err = symbol_index__open(copy, size, &x);
	MUST(!err || err == -EBADMSG);
	if (!err) {
		try_all(x);
		symbol_index__free(x);
	}
	return 0;
}
