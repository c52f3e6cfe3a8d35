/* SPDX-License-Identifier: BSD-2-Clause */
/* Jobs for sealed children that read no module, and what these answer. To be included after cmocka.h. */
#ifndef TESTS_UNIT_SEALED_SUPPORT_H
#define TESTS_UNIT_SEALED_SUPPORT_H

#include "symbolize/sealed.h"

#define ADDRESSES 8

/* ---- jobs, and a sink that keeps its results --------------------------------------------- */

struct answer {
	char name[64], file[64];
	size_t frames;
	uint64_t elf_address;
	uint32_t line, definition_line;
};

struct test_job {
	uint64_t addresses[ADDRESSES];
	struct answer answers[ADDRESSES];
	size_t reported;
	int stop_with; /* the sink returns it at the first address */
	unsigned int *turn, came;
};

static inline int keep(void *context, size_t index, const struct symbol_result *result)
{
	struct test_job *job = context;
	struct answer *answer = &job->answers[index];

	assert_int_equal(index, job->reported);
	if (!job->reported++ && job->turn)
		job->came = ++*job->turn;
	answer->frames = result->frame_count;
	answer->elf_address = result->elf_address;
	if (result->frame_count) {
		const struct symbol_frame *f = &result->frames[0];

		snprintf(answer->name, sizeof(answer->name), "%s", f->function);
		snprintf(answer->file, sizeof(answer->file), "%s", f->file ? f->file : "");
		answer->line = f->line;
		answer->definition_line = f->definition_line;
	}
	return job->stop_with;
}

static inline void make_jobs(struct sealed_job *jobs, struct test_job *tests, size_t count)
{
	memset(tests, 0, count * sizeof(*tests));
	for (size_t i = 0; i < count; i++) {
		for (size_t n = 0; n < ADDRESSES; n++)
			tests[i].addresses[n] = 0x1000 * (i + 1) + n;
		jobs[i] = (struct sealed_job){
			.files = {.kind = DSO_FILE, .elf_fd = -1, .debug_fd = -1, .alt_fd = -1},
			.root_fd = -1,
			.addresses = tests[i].addresses,
			.count = ADDRESSES,
			.sink = keep,
			.context = &tests[i],
		};
	}
}

/* A name and a line for each address, both made from it. */
static inline int answer_all(const struct module_files *files, const uint64_t *addresses,
			     size_t count, symbol_sink_fn sink, void *context,
			     struct module_report *report)
{
	for (size_t i = 0; i < count; i++) {
		char name[64];
		struct symbol_frame frames[2] = {
			{.function = name, .file = "file.c", .line = addresses[i] & 0xff},
			{.function = "outer", .function_address = 1, .definition_line = 7},
		};
		struct symbol_result result = {
			.elf_address = addresses[i] + 1, .frames = frames, .frame_count = 2};
		int err;

		frames[0].definition_line = 3;
		if (files->symbols_only)
			frames[0].file = NULL;
		snprintf(name, sizeof(name), "f_%llx", (unsigned long long)addresses[i]);
		err = sink(context, i, &result);
		if (err)
			return err;
	}
	*report = (struct module_report){
		.state = SYMBOL_STATE_RESOLVED,
		.dwarf = files->symbols_only ? DWARF_STATE_NONE : DWARF_STATE_READ,
		.addresses = count,
		.with_symbol = count,
		.with_lines = files->symbols_only ? 0 : count,
	};
	return 0;
}

static inline void assert_answered(const struct test_job *job, bool with_lines)
{
	assert_int_equal(job->reported, ADDRESSES);
	for (size_t i = 0; i < ADDRESSES; i++) {
		char name[64];

		snprintf(name, sizeof(name), "f_%llx", (unsigned long long)job->addresses[i]);
		assert_string_equal(job->answers[i].name, name);
		assert_string_equal(job->answers[i].file, with_lines ? "file.c" : "");
		assert_int_equal(job->answers[i].line, job->addresses[i] & 0xff);
		assert_int_equal(job->answers[i].definition_line, 3);
		assert_int_equal(job->answers[i].frames, 2);
		assert_int_equal(job->answers[i].elf_address, job->addresses[i] + 1);
	}
}

#endif
