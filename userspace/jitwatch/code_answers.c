/* SPDX-License-Identifier: BSD-2-Clause */
#include "jitwatch/code_answers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "jitwatch/code_answers_private.h"
#include "runtimes/cpython_code.h"
#include "runtimes/managed_function.h"
#include "runtimes/v8_function.h"
#include "runtimes/v8_lines.h"
#include "runtimes/v8_place.h"
#include "runtimes/v8_wasm.h"

_Static_assert(MANAGED_NAME_MAX <= CODE_NAME_MAX && MANAGED_FILE_MAX <= EVENT_PATH_MAX,
	       "what is read fits into an event");

/* ---- events ---------------------------------------------------------------------------------- */

int code_answers__append(struct code_answers *answers, const void *data, size_t size)
{
	if (answers->bytes.count + size > answers->limit)
		return -E2BIG;
	if (vec_reserve(&answers->bytes, answers->bytes.count + size))
		return -ENOMEM;
	memcpy(answers->bytes.data + answers->bytes.count, data, size);
	answers->bytes.count += size;
	return 0;
}

/* Rows ascend in an event; of two at one offset the last one counts. */
static size_t copy_rows(struct code_row *to, const struct managed_function *f)
{
	size_t count = 0;

	for (size_t i = 0; i < f->rows.count; i++) {
		const struct managed_row *row = &f->rows.data[i];

		if (count && row->offset <= to[count - 1].offset)
			count--;
		if (count == CODE_ROWS_MAX)
			break;
		to[count++] = (struct code_row){row->offset, row->line, row->column};
	}
	return count;
}

int code_answers__function(struct code_answers *answers, const struct code_question *q,
			   enum code_state state, uint32_t base, const struct managed_function *f,
			   uint16_t flags)
{
	static union {
		struct code_function_event event;
		char bytes[sizeof(struct code_function_event) +
			   CODE_ROWS_MAX * sizeof(struct code_row) + CODE_NAME_MAX +
			   EVENT_PATH_MAX + EVENT_ALIGN];
	} e; /* a reader has one thread, and one of the collector's reads copies */
	struct code_function_event *event = &e.event;
	const char *name = f ? f->name : "", *file = f ? f->file : "";
	size_t size;
	char *text;

	*event = (struct code_function_event){
		.header = {.type = EVENT_CODE_FUNCTION, .flags = flags},
		.pid = answers->pid,
		.kind = q->kind,
		.state = state,
		.name_size = strlen(name) + 1,
		.file_size = strlen(file) + 1,
		.function = q->function,
		.check = q->check,
		.line = f ? f->line : 0,
		.column = f ? f->column : 0,
		.base = base,
	};
	event->row_count = f ? copy_rows(event->rows, f) : 0;
	text = (char *)&event->rows[event->row_count];
	size = (size_t)(text - e.bytes) + event->name_size + event->file_size;
	memset(text, 0, event_aligned(size) - (size_t)(text - e.bytes));
	memcpy(text, name, event->name_size);
	memcpy(text + event->name_size, file, event->file_size);
	event->header.size = event_aligned(size);
	return code_answers__append(answers, event, event->header.size);
}

static int add_function(struct code_answers *answers, const struct code_question *q,
			enum code_state state, uint32_t base, const struct managed_function *f)
{
	return code_answers__function(answers, q, state, base, f, 0);
}

/* ---- CPython --------------------------------------------------------------------------------- */

/* What the code has now, if that is what the note had. */
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

static int add_python(struct code_answers *answers, struct found_runtimes *found,
		      const struct code_question *q)
{
	static const enum code_state states[] = {
		[CPYTHON_CONFIRMED] = CODE_STATE_CONFIRMED,
		[CPYTHON_STALE] = CODE_STATE_STALE,
		[CPYTHON_UNKNOWN] = CODE_STATE_UNKNOWN,
	};
	struct managed_function f = {};
	struct cpython_identity identity;
	enum code_state state;
	int err;

	if (!found->has_python)
		return add_function(answers, q, CODE_STATE_UNKNOWN, 0, NULL);
	state = python_identity(&found->python, &found->memory, q, &identity);
	if (state == CODE_STATE_CONFIRMED)
		state = states[cpython_code__read(&found->python, &found->memory, q->function,
						  &identity, &f)];
	err = add_function(answers, q, state, found->python.layout.code_bytecode,
			   state == CODE_STATE_CONFIRMED ? &f : NULL);
	managed_function__fini(&f);
	return err;
}

/* ---- V8 -------------------------------------------------------------------------------------- */

static struct v8_told *answer_of(struct found_runtimes *found, uint64_t sfi)
{
	return &found->v8_told[(sfi >> 3 ^ sfi >> 9) & (V8_FUNCTIONS_TOLD - 1)];
}

/* One look at what was told already is enough, if it is the same function. What lacked something is read anew. */
static bool is_unchanged(struct found_runtimes *found, const struct code_question *q)
{
	const struct v8_told *told = answer_of(found, q->function);
	uint64_t now_at;

	return q->is_told && told->sfi == q->function &&
	       v8_function__check(&found->v8_reader, q->function, &told->identity, &now_at) ==
		       V8_CONFIRMED;
}

static void note_told(struct found_runtimes *found, const struct code_question *q,
		      const struct v8_function *about, const struct managed_function *f)
{
	bool whole = about->sfi == q->function && !about->lost_script &&
		     (about->is_builtin || f->rows.count);

	*answer_of(found, q->function) = (struct v8_told){whole ? q->function : 0, about->identity};
}

/* Is the function that was sampled there? By its address alone nobody knows. */
static bool is_the_one(struct v8_reader *r, const struct code_question *q, uint64_t sfi)
{
	uint64_t number;

	return !q->check || (!v8_function__number(r, sfi, &number) && number == q->check);
}

/* From here on pages are read once. If there is no memory for them, each object is. */
static void keep_pages(struct code_answers *answers, struct target_memory *memory)
{
	if (!answers->pages)
		answers->pages = calloc(1, sizeof(*answers->pages));
	memory->pages = answers->pages;
	target_memory__forget(memory);
}

/* -ENODATA: another function is there, or has come while name and lines were read: looked at last, without the pages. */
static int read_v8_function(struct code_answers *answers, struct v8_reader *r,
			    const struct code_question *q, struct managed_function *f,
			    struct v8_function *about)
{
	struct target_memory *memory = r->memory;
	uint64_t bytecodes;
	int err;

	keep_pages(answers, memory);
	err = v8_function__read(r, q->function, f, about);
	if (!err && q->check && about->number != q->check)
		err = -ENODATA;
	if (!err)
		v8_lines__read(r, about->sfi, f, &bytecodes); /* else it has no lines */
	memory->pages = NULL;
	return !err && !is_the_one(r, q, about->sfi) ? -ENODATA : err;
}

static int add_v8_function(struct code_answers *answers, struct found_runtimes *found,
			   const struct code_question *q)
{
	struct v8_reader *r = &found->v8_reader;
	struct managed_function f = {};
	struct v8_function about;
	int err;

	if (is_unchanged(found, q))
		return 0;
	err = read_v8_function(answers, r, q, &f, &about);
	if (!err)
		note_told(found, q, &about, &f);
	err = err ? add_function(answers, q,
				 err == -ENODATA ? CODE_STATE_STALE : CODE_STATE_UNKNOWN, 0, NULL)
		  : add_function(answers, q, CODE_STATE_CONFIRMED,
				 (uint32_t)v8_layout__bytecode_bias(&found->v8), &f);
	managed_function__fini(&f);
	return err;
}

/*
 * As v8_place__chain(). Where the thread was in no code of V8's heap the words of the frame are its caller's: a function of
 * WebAssembly that was just entered.
 */
static int find_chain(struct code_answers *answers, struct found_runtimes *found,
		      const struct code_question *q, struct v8_chain *chain)
{
	struct v8_reader *r = &found->v8_reader;
	int err;

	keep_pages(answers, r->memory);
	err = v8_place__chain(r, &found->v8_bytecodes, q->function, q->address, q->is_leaf, chain);
	r->memory->pages = NULL;
	if (err != -ENOENT || !q->is_leaf)
		return err;
	*chain = (struct v8_chain){.is_blind = true, .count = 1};
	chain->at[0].sfi = q->function;
	chain->at[0].position = -1;
	return 0;
}

/* What runs at an address, inlined functions as well, and what they are. */
static int add_v8_chain(struct code_answers *answers, struct found_runtimes *found,
			const struct code_question *q)
{
	struct {
		struct code_chain_event event;
		struct code_call calls[V8_INLINED_MAX];
	} e = {};
	struct v8_reader *r = &found->v8_reader;
	struct v8_chain chain;
	int err = 0;

	/* most functions are interpreted while a program starts, by code that is in V8's file */
	if (found_runtimes__is_file_code(found, q->address) ||
	    find_chain(answers, found, q, &chain) || chain.is_cut || !chain.count ||
	    !is_the_one(r, q, q->function))
		return 0;
	for (unsigned int i = 0; i < chain.count && !err; i++) {
		struct code_question inlined = {.kind = q->kind, .function = chain.at[i].sfi};
		struct code_call *call = &e.calls[i];

		if (q->check && inlined.function == q->function)
			inlined.check = q->check;
		else if (q->check && v8_function__number(r, inlined.function, &inlined.check))
			return 0;
		*call = (struct code_call){.function = inlined.function, .check = inlined.check};
		v8_lines__place(r, chain.at[i].sfi, chain.at[i].position, &call->line,
				&call->column);
		if (inlined.function != q->function)
			err = add_v8_function(answers, found, &inlined);
	}
	if (err)
		return err;
	e.event = (struct code_chain_event){
		.header = {.type = EVENT_CODE_CHAIN,
			   .size = sizeof(e.event) + chain.count * sizeof(e.calls[0])},
		.pid = answers->pid,
		.kind = q->kind,
		.state = chain.is_blind || chain.is_deoptimized ? CODE_STATE_INFERRED
								: CODE_STATE_CONFIRMED,
		.call_count = chain.count,
		.function = q->function,
		.address = q->address,
	};
	return code_answers__append(answers, &e, e.event.header.size);
}

/* Each word is tried once. */
static bool is_v8(struct found_runtimes *found, uint64_t sfi)
{
	struct v8_trust *trust = &found->v8_trust;

	if (!found->has_v8)
		return false;
	if (trust->state == V8_TRUST_OPEN) {
		for (uint32_t i = 0; i < trust->seen && i < V8_TRUST_CANDIDATES; i++)
			if (found->v8_seen[i] == sfi)
				return true;
		if (trust->seen < V8_TRUST_CANDIDATES)
			found->v8_seen[trust->seen] = sfi;
		v8_trust__see(trust, &found->v8_reader, sfi);
	}
	return trust->state != V8_REFUSED;
}

static int add_v8(struct code_answers *answers, struct found_runtimes *found,
		  const struct code_question *q)
{
	found->v8_reader.memory = &found->memory;
	if (q->address)
		return found->has_v8 && found->v8_trust.state != V8_REFUSED
			       ? add_v8_chain(answers, found, q)
			       : 0;
	if (!is_v8(found, q->function))
		return add_function(answers, q, CODE_STATE_UNKNOWN, 0, NULL);
	return add_v8_function(answers, found, q);
}

void code_answers__begin(struct found_runtimes *found)
{
	if (found->has_hotspot)
		hotspot_unloads__look(&found->hotspot_unloads, &found->hotspot, &found->memory);
	if (found->v8_wasm)
		v8_wasm__begin(found->v8_wasm);
}

int code_answers__add(struct code_answers *answers, struct found_runtimes *found,
		      const struct code_question *question)
{
	if (!found->memory.reads_left)
		return -EDQUOT;
	switch (question->kind) {
	case FRAME_NOTE_PYTHON:
		return add_python(answers, found, question);
	case FRAME_NOTE_V8:
		return add_v8(answers, found, question);
	case FRAME_NOTE_HOTSPOT:
		return hotspot_answers__method(answers, found, question);
	case FRAME_NOTE_HOTSPOT_CODE:
		return hotspot_answers__code(answers, found, question);
	case FRAME_NOTE_V8_WASM:
		return v8_answers__wasm(answers, found, question);
	case FRAME_NOTE_V8_FRAME:
		return v8_answers__frame(answers, found, question);
	default:
		return 0;
	}
}

void code_answers__fini(struct code_answers *answers)
{
	vec_free(&answers->bytes);
	vec_free(&answers->methods);
	free(answers->pages);
	answers->pages = NULL;
}
