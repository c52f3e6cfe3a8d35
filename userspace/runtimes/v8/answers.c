/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/v8/answers.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "runtimes/v8/code.h"
#include "runtimes/v8/function.h"
#include "runtimes/v8/heap.h"
#include "runtimes/v8/layout.h"
#include "runtimes/v8/lines.h"
#include "runtimes/v8/v8.h"
#include "runtimes/v8/wasm.h"

static struct v8_reported *answer_of(struct v8_found *found, uint64_t sfi)
{
	return &found->reported[(sfi >> 3 ^ sfi >> 9) & (V8_FUNCTIONS_REPORTED - 1)];
}

/*
 * For a function that was reported, checking that it is the same is enough. An incomplete one, or
 * one without a number, is read anew.
 */
static bool is_unchanged(struct v8_found *found, const struct code_question *q)
{
	const struct v8_reported *reported = answer_of(found, q->function);
	uint64_t number;

	return q->is_answered && reported->sfi == q->function && reported->number &&
	       !v8_function__number(&found->reader, q->function, &number) &&
	       number == reported->number;
}

static void note_reported(struct v8_found *found, const struct code_question *q,
			  const struct v8_function *about, const struct managed_function *f)
{
	bool whole = about->sfi == q->function && !about->lost_script &&
		     (about->is_builtin || f->rows.count);

	*answer_of(found, q->function) = (struct v8_reported){whole ? q->function : 0,
							      about->number};
}

/* Is the function that was sampled there? Its address alone does not identify it. */
static bool is_the_one(struct v8_reader *r, const struct code_question *q, uint64_t sfi)
{
	uint64_t number;

	return !q->check || (!v8_function__number(r, sfi, &number) && number == q->check);
}

/* -ENODATA: another function is there, or has come meanwhile: checked last, without the pages. */
static int read_v8_function(struct code_answers *answers, struct v8_reader *r,
			    const struct code_question *q, struct managed_function *f,
			    struct v8_function *about)
{
	struct target_memory *memory = r->memory;
	int err;

	code_answers__keep_pages(answers, memory);
	err = v8_function__read(r, q->function, f, about);
	if (!err && q->check && about->number != q->check)
		err = -ENODATA;
	if (!err)
		v8_lines__read(r, about->sfi, f); /* on failure it has no lines */
	memory->pages = NULL;
	return !err && !is_the_one(r, q, about->sfi) ? -ENODATA : err;
}

static int add_v8_function(struct code_answers *answers, struct v8_found *found,
			   const struct code_question *q)
{
	struct v8_reader *r = &found->reader;
	struct managed_function f = {};
	struct v8_function about;
	int err;

	if (is_unchanged(found, q))
		return 0;
	err = read_v8_function(answers, r, q, &f, &about);
	if (!err)
		note_reported(found, q, &about, &f);
	err = err ? code_answers__function(answers, q,
					   err == -ENODATA ? CODE_STATE_STALE : CODE_STATE_UNKNOWN,
					   0, NULL, 0)
		  : code_answers__function(answers, q, CODE_STATE_CONFIRMED,
					   (uint32_t)v8_layout__bytecode_bias(&found->layout), &f,
					   0);
	managed_function__fini(&f);
	return err;
}

/* Once in an answer. */
static int add_inlined(struct code_answers *answers, struct v8_found *found,
		       const struct code_question *q)
{
	if (code_answers__has(answers, q))
		return 0;
	return add_v8_function(answers, found, q) ?: vec_push(&answers->methods, *q);
}

/*
 * As v8_place__chain(). If the thread was in no code of V8's heap, the words of the frame are its
 * caller's: a function of WebAssembly that was just entered.
 */
static int find_chain(struct code_answers *answers, struct v8_found *found,
		      const struct code_question *q, struct v8_chain *chain)
{
	struct v8_reader *r = &found->reader;
	int err;

	code_answers__keep_pages(answers, r->memory);
	err = v8_place__chain(r, &found->bytecodes, q->function, q->address, q->is_leaf, chain);
	r->memory->pages = NULL;
	if (err != -ENOENT || !q->is_leaf)
		return err;
	*chain = (struct v8_chain){.is_blind = true, .count = 1};
	chain->at[0].sfi = q->function;
	chain->at[0].position = -1;
	return 0;
}

/* The functions at an address, inlined ones as well, with their names. */
static int add_v8_chain(struct code_answers *answers, struct v8_found *found,
			const struct code_question *q)
{
	struct code_call calls[V8_INLINED_MAX];
	struct v8_reader *r = &found->reader;
	struct v8_chain chain;
	int err = 0;

	/* most functions are interpreted while a program starts, by code that is in V8's file */
	if (found_runtimes__is_file_code(answers->found, q->address) ||
	    find_chain(answers, found, q, &chain) || chain.is_cut || !chain.count ||
	    !is_the_one(r, q, q->function))
		return 0;
	for (unsigned int i = 0; i < chain.count && !err; i++) {
		struct code_question inlined = {.kind = q->kind, .function = chain.at[i].sfi};
		struct code_call *call = &calls[i];

		if (q->check && inlined.function == q->function)
			inlined.check = q->check;
		else if (q->check && v8_function__number(r, inlined.function, &inlined.check))
			return 0;
		*call = (struct code_call){.function = inlined.function, .check = inlined.check};
		v8_lines__place(r, chain.at[i].sfi, chain.at[i].position, &call->line,
				&call->column);
		if (inlined.function != q->function)
			err = add_inlined(answers, found, &inlined);
	}
	return err ? err
		   : code_answers__chain(answers, q,
					 chain.is_blind || chain.is_deoptimized
						 ? CODE_STATE_INFERRED
						 : CODE_STATE_CONFIRMED,
					 calls, chain.count);
}

/* Each word is tried once. */
static bool is_v8(struct v8_found *found, uint64_t sfi)
{
	struct v8_trust *trust = &found->trust;

	if (!found->is_read)
		return false;
	if (trust->state == V8_TRUST_OPEN) {
		for (uint32_t i = 0; i < trust->seen && i < V8_TRUST_CANDIDATES; i++)
			if (found->seen[i] == sfi)
				return true;
		if (trust->seen < V8_TRUST_CANDIDATES)
			found->seen[trust->seen] = sfi;
		v8_trust__see(trust, &found->reader, sfi);
	}
	return trust->state != V8_REFUSED;
}

int v8_answers__function(struct code_answers *answers, struct v8_found *found,
			 const struct code_question *q)
{
	if (q->address)
		return found->is_read && found->trust.state != V8_REFUSED
			       ? add_v8_chain(answers, found, q)
			       : 0;
	if (!is_v8(found, q->function))
		return code_answers__function(answers, q, CODE_STATE_UNKNOWN, 0, NULL, 0);
	return add_v8_function(answers, found, q);
}

/* ---- frames that are no functions of JavaScript ---------------------------------------------- */

/* Allocated at the first frame of WebAssembly. */
static struct v8_wasm *wasm_of(struct v8_found *found)
{
	if (!found->wasm)
		found->wasm = v8_wasm__new();
	return found->wasm;
}

/* The function by its number, once in an answer. */
static int add_wasm_function(struct code_answers *answers, struct v8_found *found,
			     const struct code_question *q, uint32_t number)
{
	struct managed_function f = {};
	int err;

	if (code_answers__has(answers, q))
		return 0;
	err = v8_wasm__describe(found->wasm, &found->reader, q->function, number, &f);
	if (err)
		return err;
	return code_answers__function(answers, q, CODE_STATE_CONFIRMED, 0, &f, 0)
		       ?: vec_push(&answers->methods, *q);
}

int v8_answers__wasm(struct code_answers *answers, struct v8_found *found,
		     const struct code_question *q)
{
	struct code_call calls[2];
	struct code_question function = {.kind = q->kind, .function = q->function};
	struct v8_wasm *wasm;
	struct v8_wasm_function code;
	int err;

	if (!found->is_read || !q->address || found->trust.state == V8_REFUSED ||
	    found_runtimes__is_file_code(answers->found, q->address))
		return 0;
	wasm = wasm_of(found);
	if (!wasm)
		return -ENOMEM;
	err = v8_wasm__function(wasm, &found->reader, q->function, q->address, q->is_leaf, &code);
	if (err)
		return err == -ENOMEM || err == -EDQUOT ? err : 0;
	function.check = (uint64_t)code.number + 1;
	err = add_wasm_function(answers, found, &function, code.number);
	if (err)
		return err == -ENOMEM || err == -E2BIG || err == -EDQUOT ? err : 0;
	calls[0] = (struct code_call){.function = function.function, .check = function.check};
	calls[1] = (struct code_call){.function = q->function, .check = q->check};
	return code_answers__chain(answers, q,
				   q->is_leaf && code.has_inlined && !code.is_start
					   ? CODE_STATE_INFERRED
					   : CODE_STATE_CONFIRMED,
				   calls, 2);
}

/* The address is in code that V8 has made, and that is no function's of JavaScript. */
static int is_other_code(const struct code_answers *answers, struct v8_found *found,
			 uint64_t address, bool *is_it)
{
	struct v8_code code;
	int err;

	*is_it = false;
	if (found_runtimes__is_file_code(answers->found, address))
		return 0;
	*is_it = found->wasm && v8_wasm__is_near(found->wasm, address);
	if (*is_it)
		return 0;
	err = v8_code__at(&found->reader, address, &code);
	*is_it = !err && code.kind == V8_CODE_OTHER;
	return err == -ENOMEM || err == -EDQUOT ? err : 0;
}

/*
 * The type at an address: the words of a frame of any other code (a C++ function in memory without a
 * file, another JIT's) may look like those of a typed one.
 */
static int confirm_type(struct code_answers *answers, struct v8_found *found,
			const struct code_question *q)
{
	const struct code_call call = {.function = q->function};
	bool is_it;
	int err = found->is_read ? is_other_code(answers, found, q->address, &is_it) : -ENODATA;

	if (err || !is_it)
		return err == -ENODATA ? 0 : err;
	return code_answers__chain(answers, q, CODE_STATE_CONFIRMED, &call, 1);
}

int v8_answers__frame(struct code_answers *answers, struct v8_found *found,
		      const struct code_question *q)
{
	struct managed_function f = {};
	const char *type = NULL;

	if (q->address)
		return confirm_type(answers, found, q);
	if (found->is_read && q->function < V8_FRAME_TYPES)
		type = found->layout.frame_types[q->function];
	if (!type)
		return code_answers__function(answers, q, CODE_STATE_UNKNOWN, 0, NULL, 0);
	snprintf(f.name, sizeof(f.name), "[%s]", type);
	return code_answers__function(answers, q, CODE_STATE_CONFIRMED, 0, &f, 0);
}

/* ---- trust ----------------------------------------------------------------------------------- */

/* A map's own map is the map of all maps, which is its own. */
static int check_map(struct v8_reader *r, uint64_t map, bool *is_one)
{
	struct v8_object o, meta;
	int err = v8_object__read(r, map, &o);

	*is_one = false;
	if (!err)
		err = v8_object__read(r, v8_object__word(&o, 0), &meta);
	if (err)
		return err == -EINVAL ? 0 : err;
	*is_one = o.type == r->layout->type_map && meta.type == r->layout->type_map &&
		  v8_object__word(&meta, 0) == meta.tagged;
	return 0;
}

/* A script, one behind a DebugInfo, or undefined: an object in any case. */
static int check_script(struct v8_reader *r, uint64_t word, bool *is_sound)
{
	struct v8_object o;
	int err = v8_object__read(r, word, &o);

	if (!err && o.type == r->layout->type_script)
		*is_sound = true;
	else if (!err)
		err = check_map(r, v8_object__word(&o, 0), is_sound);
	return err == -EINVAL ? 0 : err;
}

static int look(struct v8_reader *r, uint64_t sfi, bool *is_sound)
{
	struct v8_object o;
	bool is_map;
	int err = v8_object__read(r, sfi, &o);

	if (!err && v8_object__moved_to(&o))
		err = v8_object__read(r, v8_object__moved_to(&o), &o);
	if (!err)
		err = check_map(r, v8_object__word(&o, 0), &is_map);
	if (err || !is_map || o.type != r->layout->type_sfi)
		return err == -EINVAL ? 0 : err;
	return check_script(r, v8_object__word(&o, r->layout->sfi_script), is_sound);
}

static enum v8_trust_state judge(const struct v8_trust *t)
{
	if (t->bad * 100 > V8_TRUST_CANDIDATES * (100 - V8_TRUST_PERCENT))
		return V8_REFUSED;
	return t->seen == V8_TRUST_CANDIDATES ? V8_TRUSTED : V8_TRUST_OPEN;
}

enum v8_trust_state v8_trust__see(struct v8_trust *t, struct v8_reader *r, uint64_t sfi)
{
	bool is_sound = false;
	int err;

	if (t->state != V8_TRUST_OPEN)
		return t->state;
	err = look(r, sfi, &is_sound);
	if (err && err != -ENODATA)
		return t->state;
	t->seen++;
	t->bad += err || !is_sound;
	t->state = judge(t);
	return t->state;
}
