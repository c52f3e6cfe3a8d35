/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtime.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "runtimes/answers.h"
#include "runtimes/runtime.h"
#include "runtimes/table.h"

struct found {
	uint64_t heap, version; /* 0: none */
};

extern const struct runtime madeup_runtime;

/* ---- in a reader ----------------------------------------------------------------------------- */

static void find(void *state, struct runtime_lookup *lookup)
{
	struct found *found = state;
	uint64_t magic;

	if (target_memory__word(&lookup->memory, &magic, lookup->bias) || magic != MADEUP_MAGIC)
		return;
	found->heap = lookup->bias; /* its file is its heap */
	target_memory__word(&lookup->memory, &found->version, found->heap + 8);
	lookup->may_come |= found->heap && !found->version;
}

static int answer(void *state, struct code_answers *answers, struct target_memory *memory,
		  const struct code_question *q)
{
	const struct found *found = state;
	uint64_t from = found->heap + offsetof(struct madeup_heap, functions);
	struct madeup_function read = {};
	struct managed_function f = {.line = 0};
	enum code_state code_state = CODE_STATE_UNKNOWN;
	int err;

	if (found->version && q->function >= from &&
	    q->function - from < MADEUP_FUNCTIONS * sizeof(read) &&
	    !target_memory__read(memory, &read, sizeof(read), q->function))
		code_state = read.number == q->check ? CODE_STATE_CONFIRMED : CODE_STATE_STALE;
	f.line = read.line;
	snprintf(f.name, sizeof(f.name), "%.*s", (int)sizeof(read.name), read.name);
	err = code_answers__function(answers, q, code_state, 0,
				     code_state == CODE_STATE_CONFIRMED ? &f : NULL, 0);
	managed_function__fini(&f);
	return err;
}

static void describe(const void *state, struct runtime_findings *findings,
		     struct runtime_finding *own)
{
	const struct found *found = state;

	*own = (struct runtime_finding){
		.is_seen = found->heap != 0,
		.is_there = found->version != 0,
		.is_read = found->version != 0,
		.version = {(uint32_t)found->version},
	};
	if (own->is_read)
		findings->info.has |= RUNTIME_V8;
}

/* ---- in the collector ------------------------------------------------------------------------ */

static const struct note_ops notes[] = {
	{.kind = MADEUP_NOTE,
	 .counted_as = MADEUP_NOTE,
	 .calls = MADEUP_NOTE,
	 .lasting = CODE_NUMBERED},
};

static void judge(const struct runtime_finding *found, const struct runtime *runtime,
		  const char *version, struct surveyed_runtime *judgement)
{
	(void)version;
	snprintf(judgement->version, sizeof(judgement->version), "%u", found->version[0]);
	surveyed_runtime__judge(judgement, found->is_read ? SURVEY_GOOD : SURVEY_BAD, "%s",
				found->is_read ? "its objects are read" : runtime->lacks);
	judgement->remedy = found->is_read ? NULL : runtime->remedy;
}

static const struct runtime_memory madeup_memory = {
	.home = &madeup_runtime,
	.bits = RUNTIME_V8,
	.notes = notes,
	.note_count = 1,
	.state_size = sizeof(struct found),
	.find = find,
	.answer = answer,
	.describe = describe,
	.judge = judge,
};

const struct runtime madeup_runtime = {
	.name = "Madeup",
	.files = {{"madeup", true}},
	.remedy = "start it",
	.lacks = "it has not begun",
	.memory = &madeup_memory,
};
