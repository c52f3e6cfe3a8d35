/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A forged CPython of one of five versions, and one of an unknown version, with words of it changed: whatever its
 * memory says, it is found or refused, walked, named and merged within the limits. The first byte chooses the version,
 * the rest are changes: {offset, 2 bytes; what, 1 byte; value, 8 bytes}.
 */
#include <string.h>

#include "../unit/forge_cpython.h"
#include "fuzz.h"
#include "runtimes/answers.h"
#include "runtimes/python/code.h"
#include "runtimes/python/cpython.h"
#include "models/cpython_merge.h"
#include "models/cpython_walk.h"
#include "runtimes/python/find.h"
#include "runtimes/python/layout.h"
#include "runtimes/python/thread.h"
#include "stream/event_decode.h"

#define CHANGE 11u
#define FRAMES 100u
#define GROUPS 20u
#define READS  20000u

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	(void)seed;
	return LLVMFuzzerMutate(data, size, max_size);
}

/* A value as it is, the address of something that is there, a small number, or bytes. */
static void change(struct forged *f, const uint8_t *c)
{
	uint32_t offset = c[0] | c[1] << 8;
	uint64_t value;

	memcpy(&value, c + 3, sizeof(value));
	switch (c[2] & 3) {
	case 0:
		forged_word(f, offset & ~7u, value);
		break;
	case 1:
		forged_word(f, offset & ~7u, forged_address(value & (FORGED_SIZE - 1)));
		break;
	case 2:
		forged_put(f, offset & ~3u, value & 0xff, 4);
		break;
	default:
		forged_put(f, offset, value, c[2] >> 5);
	}
}

static void read_functions(const struct cpython *py, struct forged *f,
			   const struct cpython_stack *s)
{
	for (size_t i = 0; i < s->frame_count; i++) {
		struct target_memory m = {.read = forged_read,
					  .context = f,
					  .bytes_left = CPYTHON_CODE_SPENT,
					  .reads_left = CPYTHON_CODE_READS};
		struct managed_function function = {};
		enum code_state state = cpython_code__read(py, &m, s->frames[i].code,
							   &s->frames[i].identity, &function);

		MUST(function.rows.count <= MANAGED_ROWS_MAX);
		MUST(state == CODE_STATE_CONFIRMED || (!function.name[0] && !function.rows.count));
		MUST(strlen(function.name) < MANAGED_NAME_MAX);
		MUST(strlen(function.file) < MANAGED_FILE_MAX);
		for (size_t k = 1; k < function.rows.count; k++)
			MUST(function.rows.data[k].offset > function.rows.data[k - 1].offset);
		managed_function__fini(&function);
	}
}

/* What the kernel would copy of a function says no more than reading it does. */
static void report_copies(const struct cpython *py, struct forged *f, const struct cpython_stack *s)
{
	static union {
		struct code_copy_event copy;
		char bytes[sizeof(struct code_copy_event) + CODE_COPY_TABLE];
	} e;

	for (size_t i = 0; i < s->frame_count; i++) {
		const struct cpython_identity *identity = &s->frames[i].identity;
		uint64_t check = (uint64_t)identity->version << 32 | identity->firstline;
		struct code_answers answers = {.pid = 1, .limit = EVENT_SIZE_MAX};
		const struct event_header *reported;

		if (!forged_copy(f, &py->layout, s->frames[i].code, check, &e.copy))
			continue;
		MUST(!event_check(&e.copy.header, sizeof(e)));
		if (!forged_read_copy(&answers, &e.copy, &py->layout)) {
			reported = (const struct event_header *)answers.bytes.data;
			MUST(reported->size == answers.bytes.count &&
			     !event_check(reported, answers.bytes.count));
		}
		code_answers__fini(&answers);
	}
}

static void walk(const struct cpython *py, struct forged *f, struct target_memory *m,
		 uint64_t thread)
{
	const struct cpython_native native[] = {
		{forged_address(FORGED_CFRAMES), forged_address(FORGED_CFRAMES + 0x100)},
		{forged_address(FORGED_CFRAMES + 0x100), forged_address(FORGED_CFRAMES + 0x200)}};
	struct cpython_frame frames[FRAMES];
	struct cpython_group groups[GROUPS];
	struct cpython_place places[GROUPS];
	struct cpython_stack s = {.frames = frames,
				  .groups = groups,
				  .frames_max = FRAMES,
				  .groups_max = GROUPS,
				  .passed_max = 200};
	uint32_t at = 0;

	cpython__walk(py, m, thread, &s);
	MUST(s.frame_count <= FRAMES && s.group_count <= GROUPS && s.end < CPYTHON_ENDS);
	MUST(s.end != CPYTHON_END_TORN || !s.frame_count);
	for (size_t i = 0; i < s.group_count; i++) {
		MUST(groups[i].first == at);
		at += groups[i].count;
	}
	MUST(at <= s.frame_count &&
	     (at == s.frame_count || s.group_count == GROUPS || s.end != CPYTHON_END_ROOT));
	cpython__merge(native, 2, groups, s.group_count, places);
	for (size_t i = 0; i < s.group_count; i++)
		MUST(places[i].frame <= 2 && (!i || places[i].frame >= places[i - 1].frame));
	read_functions(py, f, &s);
	report_copies(py, f, &s);
}

static void look(struct forged *f)
{
	struct cpython_symbols s = {.runtime = FORGED_BASE,
				    .runtime_size = f->py.version < 0x030c0000 ? 0x28b20 : 0x704a8};
	const struct cpython_image image = {.symbols = &s};
	struct target_memory m = {
		.read = forged_read, .context = f, .bytes_left = 16u << 20, .reads_left = READS};
	struct cpython_thread_word word;
	struct cpython_main_gil gil;
	uint64_t thread;
	struct cpython py;

	if (cpython__find(&image, &m, &py))
		return;
	if (!cpython_thread_word__find(&py, &image, &m, &word) &&
	    !cpython_thread_word__state(&word, &m, forged_address(FORGED_FS), &thread) && thread)
		walk(&py, f, &m, thread);
	walk(&py, f, &m, forged_address(FORGED_THREAD));
	cpython_gil__of_main(&py, &m, &gil);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t versions[] = {0x030b02f0, 0x030c01f0, 0x030d05f0, 0x030e0af0,
					    0x030f02f0};
	static struct forged f;
	unsigned int version = size ? data[0] % 6 : 0;

	MUST(forged_program(&f, versions[version < 5 ? version : 4]));
	if (version == 5)
		forged_put(&f, 8, 0x031000f0, 4);
	for (size_t at = 1; at + CHANGE <= size; at += CHANGE)
		change(&f, data + at);
	look(&f);
	return 0;
}
