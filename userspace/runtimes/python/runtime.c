/* SPDX-License-Identifier: BSD-2-Clause */
/* CPython by the contract of runtimes/runtime.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/minmax.h"
#include "runtimes/answers.h"
#include "runtimes/python/code.h"
#include "runtimes/python/find.h"
#include "runtimes/python/layout.h"
#include "runtimes/python/thread.h"
#include "runtimes/runtime.h"
#include "runtimes/table.h"

extern const struct runtime python_runtime;

_Static_assert(CPYTHON_HEAD_MAX <= CODE_COPY_HEAD, "what is read of a code object is copied");
_Static_assert(sizeof(struct cpython_layout) <= RUNTIME_LAYOUT_MAX, "it goes to the collector");

struct python_found {
	bool was_looked_for; /* else `verdict` is none */
	enum cpython_verdict verdict;
	struct cpython python;
	struct cpython_thread_word word;
	struct cpython_main_gil gil;
};

static enum cpython_verdict verdict_of(const struct python_found *found)
{
	return found->was_looked_for ? found->verdict : CPYTHON_ABSENT;
}

/* ---- in a reader ----------------------------------------------------------------------------- */

static void find(void *state, struct runtime_lookup *lookup)
{
	struct python_found *found = state;
	struct cpython_symbols symbols;
	struct cpython_image image = {.symbols = &symbols, .bias = lookup->bias};

	if (verdict_of(found) == CPYTHON_OK || !lookup->has_bias ||
	    cpython_symbols__read(lookup->file, &symbols))
		return;
	found->was_looked_for = true;
	found->verdict = cpython__find(&image, &lookup->memory, &found->python);
	if (found->verdict == CPYTHON_OK)
		found->verdict = cpython_thread_word__find(&found->python, &image, &lookup->memory,
							   &found->word);
	if (found->verdict == CPYTHON_OK)
		cpython_gil__of_main(&found->python, &lookup->memory, &found->gil);
	lookup->may_come |= found->verdict == CPYTHON_NOT_STARTED;
}

/* The present state of the code, if it is that of the note. */
static enum code_state python_identity(const struct cpython *py, struct target_memory *m,
				       const struct code_question *q,
				       struct cpython_identity *identity)
{
	uint8_t head[CPYTHON_HEAD_MAX];

	if (target_memory__read(m, head, cpython_head__size(py), q->function) ||
	    cpython_identity__of_head(py, m, head, identity))
		return CODE_STATE_UNKNOWN;
	return cpython_identity__has(identity, q->check) ? CODE_STATE_CONFIRMED : CODE_STATE_STALE;
}

static int answer(void *state_of, struct code_answers *answers, struct target_memory *memory,
		  const struct code_question *q)
{
	const struct python_found *found = state_of;
	struct managed_function f = {};
	struct cpython_identity identity;
	enum code_state state;
	int err;

	if (verdict_of(found) != CPYTHON_OK)
		return code_answers__function(answers, q, CODE_STATE_UNKNOWN, 0, NULL, 0);
	state = python_identity(&found->python, memory, q, &identity);
	if (state == CODE_STATE_CONFIRMED)
		state = cpython_code__read(&found->python, memory, q->function, &identity, &f);
	err = code_answers__function(answers, q, state, found->python.layout.code_bytecode,
				     state == CODE_STATE_CONFIRMED ? &f : NULL, 0);
	managed_function__fini(&f);
	return err;
}

/* The part of a code object that the kernel reads at once. False: its fields are too far apart. */
static bool set_code_range(struct runtime_python *info)
{
	uint32_t first = min_u64(info->code_line, info->code_version);
	uint32_t end = max_u64(info->code_line, info->code_version) + sizeof(uint32_t);

	if (info->code_name != RUNTIME_NONE) {
		first = min_u64(first, min_u64(info->code_name, info->code_filename));
		end = max_u64(end,
			      max_u64(info->code_name, info->code_filename) + sizeof(uint64_t));
	}
	info->code_from = info->code_type ? RUNTIME_OBJECT_TYPE : first;
	if (info->code_from > first || end - info->code_from > RUNTIME_CODE_BYTES)
		return false;
	info->code_size = end - info->code_from;
	return true;
}

static struct runtime_python python_info(const struct python_found *found)
{
	const struct cpython *py = &found->python;
	const struct cpython_thread_word *word = &found->word;
	const struct cpython_layout *l = &py->layout;
	struct runtime_python info = {
		.hops = word->hops,
		.state_frame = l->thread_frame,
		.cframe_frame = l->has_cframes ? l->cframe_frame : RUNTIME_NONE,
		.cframe_previous = l->has_cframes ? l->cframe_previous : RUNTIME_NONE,
		.frame_is_entry = l->has_own_anchors ? RUNTIME_NONE : l->frame_is_entry,
		.frame_previous = l->frame_previous,
		.frame_code = l->frame_code,
		.frame_instruction = l->frame_instruction,
		.frame_owner = l->frame_owner,
		.code_line = l->code_firstline,
		.code_version = l->code_version ? l->code_version : l->code_qualname,
		.code_name = l->code_version ? RUNTIME_NONE : l->code_name,
		.str_hash = l->str_hash,
		.str_length = l->str_length,
		.str_ascii = l->str_ascii,
		.head_size = cpython_layout__is_sound(l) ? cpython_head__size(py) : 0,
		.code_qualname = l->code_qualname,
		.code_filename = l->code_filename,
		.code_linetable = l->code_linetable,
		.bytes_size = l->bytes_size,
		.bytes_data = l->bytes_data,
		.code_type = l->has_cframes ? py->code_type : 0,
		.state_holds = l->thread_holds_gil ? l->thread_holds_gil : RUNTIME_NONE,
		.has_waits = l->thread_holds_gil &&
			     l->thread_requests_gil == l->thread_holds_gil + sizeof(uint32_t),
		.gil = found->gil.address,
		.gil_interpreter = found->gil.interpreter,
		.state_interpreter = l->thread_interp,
		.state_thread = l->has_own_anchors ? 0 : l->thread_id,
		.state_number = l->thread_native,
	};

	for (uint32_t i = 0; i < RUNTIME_HOPS && i < CPYTHON_HOPS; i++)
		info.hop[i] = word->offset[i];
	return info;
}

static void describe(const void *state, struct runtime_findings *findings,
		     struct runtime_finding *own)
{
	static const enum code_runtime_state states[CPYTHON_VERDICTS] = {
#define X(verdict, state, text) CODE_RUNTIME_##state,
		CPYTHON_VERDICTS_OF(X)
#undef X
	};
	const struct python_found *found = state;
	enum cpython_verdict verdict = verdict_of(found);

	*own = (struct runtime_finding){
		.is_seen = verdict != CPYTHON_ABSENT,
		.is_there = verdict != CPYTHON_ABSENT && verdict != CPYTHON_NOT_STARTED,
		.is_read = verdict == CPYTHON_OK,
		.verdict = verdict,
		.version = {found->python.version >> 24, found->python.version >> 16 & 0xff,
			    found->python.version >> 8 & 0xff},
	};
	if (own->is_there)
		own->state = states[verdict];
	if (!own->is_read)
		return;
	findings->info.python = python_info(found);
	if (set_code_range(&findings->info.python))
		findings->info.has |= RUNTIME_PYTHON;
	if (!findings->info.python.head_size)
		return;
	findings->layout.size = sizeof(found->python.layout);
	memcpy(findings->layout.bytes, &found->python.layout, sizeof(found->python.layout));
}

/* ---- in the collector ------------------------------------------------------------------------ */

static bool is_sound(const struct runtime_info *info)
{
	return info->python.hops <= RUNTIME_HOPS;
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Some bytes of the process. */
struct piece {
	uint64_t address, size;
	const void *bytes;
};

/* False: not all of it is in there. */
static bool read_piece(const struct piece *piece, void *to, size_t size, uint64_t address)
{
	uint64_t at = address - piece->address;

	if (address < piece->address || at > piece->size || size > piece->size - at)
		return false;
	memcpy(to, (const char *)piece->bytes + at, size);
	return true;
}

/* A target_read_fn. */
static int read_from_copy(void *context, void *to, size_t size, uint64_t address)
{
	const struct code_copy_event *e = context;
	const struct piece pieces[] = {
		{e->function, e->head_size, e->head},
		{e->name, e->name_size, e->name_bytes},
		{e->file, e->file_size, e->file_bytes},
		{e->lines, e->lines_size, e->lines_bytes},
		{e->hash_at, e->hash_at ? sizeof(e->hash) : 0, &e->hash},
	};

	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
		if (read_piece(&pieces[i], to, size, address))
			return 0;
	return -ENODATA;
}

/*
 * A function from the bytes that the kernel has copied at its first sample: the process is not
 * read, and may have ended. code.c reads these few bytes.
 */
static int read_copy(struct code_answers *answers, const struct code_copy_event *copy,
		     const struct runtime_layout *layout)
{
	struct cpython py = {};
	struct target_memory m = {.read = read_from_copy,
				  .context = (void *)copy,
				  .bytes_left = CPYTHON_CODE_SPENT,
				  .reads_left = CPYTHON_CODE_READS};
	const struct code_question question = {
		.function = copy->function, .check = copy->check, .kind = FRAME_NOTE_PYTHON};
	struct cpython_identity identity;
	struct managed_function f = {};
	int err = -ENODATA;

	if (layout->size != sizeof(py.layout))
		return -ENODATA;
	memcpy(&py.layout, layout->bytes, sizeof(py.layout));
	if (!cpython_layout__is_sound(&py.layout) || copy->head_size < cpython_head__size(&py) ||
	    cpython_identity__of_head(&py, &m, copy->head, &identity) ||
	    !cpython_identity__has(&identity, copy->check))
		return -ENODATA;
	if (cpython_code__read(&py, &m, copy->function, &identity, &f) == CODE_STATE_CONFIRMED)
		err = code_answers__function(answers, &question, CODE_STATE_CONFIRMED,
					     py.layout.code_bytecode, &f, 0);
	answers->is_cut |= m.left;
	managed_function__fini(&f);
	return err == -E2BIG ? -ENODATA : err;
}

/* ---- notes ----------------------------------------------------------------------------------- */

static const struct note_ops notes[] = {
	{.kind = FRAME_NOTE_PYTHON,
	 .counted_as = FRAME_NOTE_PYTHON,
	 .calls = FRAME_NOTE_PYTHON,
	 .order = NOTE_IN_GROUP,
	 .is_urgent = true,
	 .is_interpreted = true,
	 .is_inherited = true,
	 .lasting = CODE_LASTS,
	 /* from 3.13 on a frame of no function, without line or version, precedes each __init__ */
	 .only_checked = true},
	{.kind = FRAME_NOTE_PYTHON_LOOP, .order = NOTE_PLACES_GROUP},
};

static void judge(const struct runtime_finding *found, const struct runtime *runtime,
		  const char *version, struct surveyed_runtime *judgement)
{
	(void)version;
	if (found->version[0])
		snprintf(judgement->version, sizeof(judgement->version), "%u.%u.%u",
			 found->version[0], found->version[1], found->version[2]);
	if (found->is_read) {
		surveyed_runtime__judge(judgement, SURVEY_GOOD, NAMED_BY_MEMORY);
		return;
	}
	surveyed_runtime__judge(judgement, SURVEY_BAD, "%s: %s", runtime->lacks,
				cpython_verdict__text(found->verdict));
	/* a later request may succeed */
	judgement->remedy = found->verdict == CPYTHON_NOT_STARTED ? NULL : runtime->remedy;
}

static const struct runtime_memory python_memory = {
	.home = &python_runtime,
	.bits = RUNTIME_PYTHON,
	.notes = notes,
	.note_count = sizeof(notes) / sizeof(notes[0]),
	.state_size = sizeof(struct python_found),
	.find = find,
	.answer = answer,
	.describe = describe,
	.is_sound = is_sound,
	.read_copy = read_copy,
	.reports = FRAME_NOTE_PYTHON,
	.judge = judge,
	.is_absent_unless_read = true,
	.is_interpreted = true,
};

const struct runtime python_runtime = {
	.name = "Python",
	.files = {{"python", true}, {"libpython", false}},
	.modules = ".cpython-",
	.remedy = "start it with python3 -X perf (Python 3.12 or newer)",
	.lacks = NO_INTERPRETED,
	.memory = &python_memory,
};
