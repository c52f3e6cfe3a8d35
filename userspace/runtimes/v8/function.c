/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The place of a function's name: a compiled function has a ScopeInfo, with or without a name.
 * Another one has the name itself, and its place in the source beside the parser's data.
 */
#include "runtimes/v8/function.h"

#include <errno.h>
#include <stdio.h>

#include "runtimes/answers.h"
#include "runtimes/v8/heap.h"
#include "runtimes/v8/layout.h"
#include "runtimes/v8/script.h"

#define LOOKS	      2
#define SFI_DATA      8	 /* what it is run by, or from Node.js 23 on what of that is trusted … */
#define SFI_UNTRUSTED 16 /* … and what is not */
#define DEBUG_SCRIPT                                                                               \
	24 /* DebugInfo: the script of the function that is debugged, in Node.js 18 and 20 */
#define MAX_LOCALS	  (1u << 20)
#define MANY_LOCALS	  75 /* from so many on their names are in a table */
#define SCOPE_FLAGS	  8
#define SCOPE_SLOTS	  8 /* slot 0 is the flags */
#define SCOPE_KIND(f)	  ((f)&15)
#define SCOPE_CLASS(f)	  ((f) >> 10 & 1) /* has a variable for the class */
#define SCOPE_NAME(f)	  ((f) >> 12 & 3)
#define SCOPE_INFERRED(f) ((f) >> 14 & 1)

static int number_of(struct v8_reader *r, const struct v8_object *o, uint64_t *number)
{
	const struct v8_layout *l = r->layout;
	uint32_t literal = v8_object__u32(o, l->sfi_literal_id), script;
	int err;

	*number = 0;
	if (!l->has_number)
		return 0;
	if (l->sfi_unique_id > 0) {
		*number = (uint64_t)v8_object__u32(o, l->sfi_unique_id) << 32 | literal;
		return 0;
	}
	/* the upper half of a Smi */
	err = target_memory__u32(r->memory, &script,
				 v8_object__word(o, l->sfi_script) - 1 + l->script_id + 4);
	if (!err)
		*number = (uint64_t)script << 32 | literal;
	return err;
}

int v8_function__number(struct v8_reader *r, uint64_t sfi, uint64_t *number)
{
	struct v8_object o;
	int err = v8_object__read(r, sfi, &o);

	*number = 0;
	return err ? err : number_of(r, &o, number);
}

/* The SFI at this word, or where it was moved. -ENODATA: none is there. */
static int read_sfi(struct v8_reader *r, uint64_t sfi, struct v8_object *o)
{
	int err = v8_object__read(r, sfi, o);

	if (!err && o->type < 0 && v8_object__moved_to(o))
		err = v8_object__read(r, v8_object__moved_to(o), o);
	if (err)
		return err == -EINVAL ? -ENODATA : err;
	return o->type == r->layout->type_sfi && o->got >= r->layout->sfi_size ? 0 : -ENODATA;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* The ScopeInfo without the variables, which come before it. */
struct scope {
	uint64_t name, inferred; /* words; 0: it has none */
	int32_t start;		 /* -1: it does not say */
};

static int32_t smi_or(uint64_t word, int32_t otherwise)
{
	return v8_is_smi(word) ? v8_smi(word) : otherwise;
}

/* In which slot what comes behind the variables begins; 0: this is no sound ScopeInfo. */
static uint32_t slot_behind_locals(const struct v8_layout *l, const struct v8_object *o,
				   uint32_t flags)
{
	uint64_t locals = v8_object__word(o, SCOPE_SLOTS + 8 * l->scope_locals);
	uint32_t count, slot = l->scope_first;

	if (!v8_is_smi(locals) || v8_smi(locals) < 0 || v8_smi(locals) > (int32_t)MAX_LOCALS)
		return 0;
	count = v8_smi(locals);
	if (l->scope_counts_module && SCOPE_KIND(flags) == (uint32_t)l->scope_module)
		slot++;
	slot += count < MANY_LOCALS ? count : 1; /* names */
	return slot + count;			 /* and what each is */
}

/* Kinds that have their positions behind the names, in the older layout. */
static bool has_positions(uint32_t flags)
{
	return SCOPE_KIND(flags) <= 4 || SCOPE_KIND(flags) == 8;
}

static int read_scope(struct v8_reader *r, const struct v8_object *o, struct scope *scope)
{
	const struct v8_layout *l = r->layout;
	uint32_t flags = l->scope_flags_raw ? v8_object__u32(o, SCOPE_FLAGS)
					    : (uint32_t)v8_smi(v8_object__word(o, SCOPE_FLAGS));
	uint32_t slot = slot_behind_locals(l, o, flags);
	unsigned int wanted, used = 0;
	uint64_t words[4];
	int err;

	*scope = (struct scope){.start = -1};
	if (!slot)
		return -EAGAIN;
	if (l->scope_flags_raw) /* the slot before the last of the fixed ones */
		scope->start = smi_or(v8_object__word(o, SCOPE_SLOTS + 8 * (l->scope_first - 2)),
				      -1);
	slot += SCOPE_CLASS(flags);
	wanted = (SCOPE_NAME(flags) ? 2 : 0) + SCOPE_INFERRED(flags) +
		 (!l->scope_flags_raw && has_positions(flags));
	if (!wanted)
		return 0;
	err = target_memory__read(r->memory, words, wanted * sizeof(*words),
				  o->tagged - 1 + SCOPE_SLOTS + 8ull * slot);
	if (err)
		return err;
	if (SCOPE_NAME(flags)) {
		scope->name = words[0];
		used = 2;
	}
	if (SCOPE_INFERRED(flags))
		scope->inferred = words[used++];
	if (used < wanted)
		scope->start = smi_or(words[used], -1);
	return 0;
}

/* A name, or "" where the word has none: it is Smi 0, or undefined. */
static int read_name(struct v8_reader *r, uint64_t word, char *name)
{
	struct v8_object o;
	int err = v8_object__read(r, word, &o);

	name[0] = '\0';
	if (err == -EINVAL)
		return 0;
	if (err)
		return err;
	if (o.type < 0)
		return -EAGAIN;
	return v8_object__is_string(r, &o) ? v8_string__text(r, word, name, MANAGED_NAME_MAX) : 0;
}

/* The parser's data about a function that was not compiled; none if it was. */
static int read_uncompiled(struct v8_reader *r, const struct v8_object *sfi, struct scope *scope)
{
	const struct v8_layout *l = r->layout;
	const bool is_split = l->sfi_name > SFI_UNTRUSTED;

	*scope = (struct scope){.start = -1};
	if (l->type_uncompiled_first <= 0 || l->uncompiled_name < 0 || l->uncompiled_start < 0)
		return 0;
	for (int slot = SFI_DATA; slot <= (is_split ? SFI_UNTRUSTED : SFI_DATA); slot += 8) {
		struct v8_object o;
		int err = v8_object__read(r, v8_object__word(sfi, slot), &o);

		if (err == -EINVAL)
			continue;
		if (err)
			return err;
		if (o.type >= l->type_uncompiled_first && o.type <= l->type_uncompiled_last) {
			scope->inferred = v8_object__word(&o, l->uncompiled_name);
			scope->start = (int32_t)v8_object__u32(&o, l->uncompiled_start);
			return 0;
		}
	}
	return 0;
}

static int read_naming(struct v8_reader *r, const struct v8_object *sfi, char *name,
		       struct v8_function *about)
{
	uint64_t word = v8_object__word(sfi, r->layout->sfi_name);
	struct scope scope;
	struct v8_object o;
	int err = v8_object__read(r, word, &o);

	if (err && err != -EINVAL)
		return err;
	if (!err && o.type < 0)
		return -EAGAIN;
	if (!err && o.type == r->layout->type_scope_info) {
		err = read_scope(r, &o, &scope);
		word = scope.name;
	} else {
		err = read_uncompiled(r, sfi, &scope);
	}
	about->start = scope.start;
	if (!err)
		err = read_name(r, word, name);
	/* without a name of its own: what it was assigned to */
	return err || *name || !scope.inferred ? err : read_name(r, scope.inferred, name);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* 0 and NULL: it has none. */
static int find_script(struct v8_reader *r, uint64_t word, struct v8_script **script)
{
	const struct v8_layout *l = r->layout;
	struct v8_object o;
	int err;

	*script = NULL;
	if (!v8_is_object(word))
		return 0;
	err = v8_script__find(r, word, script);
	if (err != -ENODATA)
		return err;
	err = v8_object__read(r, word, &o);
	if (err)
		return err;
	if (l->type_debug_info > 0 && o.type == l->type_debug_info)
		return v8_script__find(r, v8_object__word(&o, DEBUG_SCRIPT), script);
	return 0;
}

int v8_function__script(struct v8_reader *r, uint64_t sfi, struct v8_script **script)
{
	struct v8_object o;
	return read_sfi(r, sfi, &o)
		       ?: find_script(r, v8_object__word(&o, r->layout->sfi_script), script);
}

static int read_place(struct v8_reader *r, const struct v8_object *sfi, struct managed_function *f,
		      struct v8_function *about)
{
	struct v8_script *script;
	int err = find_script(r, v8_object__word(sfi, r->layout->sfi_script), &script);

	if (err)
		return err;
	about->is_builtin = !script;
	if (!script)
		return 0;
	snprintf(f->file, sizeof(f->file), "%s", script->url);
	return about->start < 0 ? 0
				: v8_script__place(r, script, about->start, &f->line, &f->column);
}

static int read_once(struct v8_reader *r, uint64_t sfi, struct managed_function *f,
		     struct v8_function *about)
{
	struct v8_object o;
	int err = read_sfi(r, sfi, &o);

	if (err)
		return err;
	*about = (struct v8_function){.sfi = o.tagged};
	f->name[0] = f->file[0] = '\0';
	f->line = f->column = 0;
	if (number_of(r, &o, &about->number))
		about->number = 0;
	err = read_naming(r, &o, f->name, about);
	if (err)
		return err;
	err = read_place(r, &o, f, about);
	about->lost_script = err;
	return err;
}

int v8_function__read(struct v8_reader *r, uint64_t sfi, struct managed_function *f,
		      struct v8_function *about)
{
	struct v8_function read = {};
	int err = 0;

	for (unsigned int i = 0; i < LOOKS; i++) {
		target_memory__forget(r->memory);
		err = read_once(r, sfi, f, &read);
		if (err != -EAGAIN && err != -ENODATA)
			break;
	}
	/* its name is known, and is worth having by itself */
	if ((err == -EAGAIN || err == -ENODATA || err == -ELOOP) && read.lost_script)
		err = 0;
	if (!err)
		*about = read;
	return err;
}
