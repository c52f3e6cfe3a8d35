/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/hotspot/known.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtimes/hotspot/answers.h"
#include "runtimes/hotspot/heap.h"
#include "runtimes/hotspot/layout.h"
#include "runtimes/hotspot/scopes.h"

MAP_FUNCTIONS_BY(hotspot_nmethods, struct hotspot_nmethod, uint64_t, address);
MAP_FUNCTIONS_BY(hotspot_latest_map, struct hotspot_latest, uint64_t, method);

static size_t all_bytes; /* a reader has one thread */

static void add_bytes(struct hotspot_known *k, size_t bytes)
{
	k->bytes += bytes;
	all_bytes += bytes;
}

void hotspot_known__fini(struct hotspot_known *k)
{
	all_bytes -= k->bytes;
	for (size_t i = 0; i < k->nmethods.count; i++)
		hotspot_debug__fini(&k->nmethods.data[i].debug);
	vec_free_with(&k->texts, text, free(text->event));
	hotspot_nmethods__fini(&k->nmethods);
	hotspot_latest_map__fini(&k->latest);
	*k = (struct hotspot_known){};
}

void hotspot_known__limit(struct hotspot_known *k)
{
	size_t limit = all_bytes > HOTSPOT_KNOWN_ALL ? HOTSPOT_KNOWN_FEW : HOTSPOT_KNOWN_MAX;

	if (k->bytes > limit)
		hotspot_known__fini(k);
}

/* ---- nmethods -------------------------------------------------------------------------------- */

static void forget_nmethod(struct hotspot_known *k, struct hotspot_nmethod *n)
{
	hotspot_debug__fini(&n->debug);
	add_bytes(k, -n->bytes);
	n->check = n->bytes = n->text_count = 0;
}

struct hotspot_nmethod *hotspot_known__nmethod(struct hotspot_known *k,
					       const struct hotspot_blob *blob)
{
	struct hotspot_nmethod *n = hotspot_nmethods__need(
		&k->nmethods, &(struct hotspot_nmethod){.address = blob->address}, NULL);

	if (n && (n->check != blob->check || !blob->compile_id))
		forget_nmethod(k, n);
	if (n)
		n->check = blob->check;
	return n;
}

static size_t bytes_of(const struct hotspot_nmethod *n)
{
	return sizeof(*n) + n->debug.place_count * sizeof(n->debug.places[0]) +
	       n->debug.blocks.count * sizeof(n->debug.blocks.data[0]) + n->debug.scopes_size +
	       n->debug.named.count * sizeof(n->debug.named.data[0]) +
	       n->debug.bytecodes.count * sizeof(n->debug.bytecodes.data[0]) +
	       n->debug.bytecode_bytes;
}

void hotspot_known__keep(struct hotspot_known *k, struct hotspot_nmethod *n, bool is_sure)
{
	size_t bytes = bytes_of(n);

	if (!is_sure || bytes > HOTSPOT_DEBUG_MAX) {
		forget_nmethod(k, n);
		hotspot_nmethods__remove(&k->nmethods, n);
		return;
	}
	add_bytes(k, bytes - n->bytes);
	n->bytes = bytes;
}

/* ---- texts of methods ------------------------------------------------------------------------ */

enum code_state hotspot_state_of_error(int err)
{
	return err == -ENODATA || err == -ENOENT || err == -ELOOP ? CODE_STATE_STALE
								  : CODE_STATE_UNKNOWN;
}

/* Ends the lines behind the bytecode. */
static int end_rows(struct managed_function *f, uint32_t code_size, struct target_memory *memory)
{
	struct managed_row end = {.offset = code_size};

	if (!f->rows.count)
		return 0;
	if (f->rows.count >= CODE_ROWS_MAX) {
		memory->left = true;
		f->rows.count = CODE_ROWS_MAX - 1;
		end.offset = f->rows.data[CODE_ROWS_MAX - 1].offset;
	}
	return vec_push(&f->rows, end);
}

/* Describes a method, then checks that it is the same. The caller frees `f`. */
static enum code_state describe_method(struct code_answers *answers, struct hotspot_found *found,
				       const struct hotspot_method *m, struct managed_function *f)
{
	const struct hotspot_layout *l = &found->layout;
	int err;

	code_answers__keep_pages(answers, found->memory);
	err = hotspot_method__describe(l, found->memory, m, f)
		      ?: end_rows(f, m->code_size, found->memory);
	found->memory->pages = NULL;
	return err ? hotspot_state_of_error(err) : hotspot_method__check(l, found->memory, m);
}

static bool is_same(const struct hotspot_method *a, const struct hotspot_method *b)
{
	return a->const_method == b->const_method && a->pool == b->pool &&
	       a->code_size == b->code_size && a->name_index == b->name_index &&
	       a->signature_index == b->signature_index && a->has_lines == b->has_lines;
}

static bool is_current(const struct hotspot_found *found, const struct hotspot_text *text,
		       const struct hotspot_method *m)
{
	return text->is_shared && found->unloads.is_known &&
	       found->unloads.count == text->unloads && is_same(&text->method, m);
}

/* A text that it replaces stays, because nmethods may have it. */
static int add_text(struct hotspot_known *k, const struct hotspot_text *text, uint32_t *number)
{
	struct hotspot_latest *latest = hotspot_latest_map__need(
		&k->latest, &(struct hotspot_latest){.method = text->method.method}, NULL);

	if (!latest || vec_push(&k->texts, *text))
		return -ENOMEM;
	add_bytes(k, sizeof(*text) + sizeof(*latest) + text->event->header.size);
	latest->text = *number = k->texts.count;
	return 0;
}

static int keep_text(struct code_answers *answers, struct hotspot_found *found,
		     struct hotspot_text *text, const struct managed_function *f, uint32_t *number)
{
	const struct code_question q = {.kind = FRAME_NOTE_HOTSPOT,
					.function = text->method.method,
					.check = text->method.const_method};
	const struct code_function_event *event =
		code_answers__event(answers, &q, CODE_STATE_CONFIRMED,
				    (uint32_t)found->layout.at[HOTSPOT_CONST_METHOD_SIZE], f);
	int err;

	text->event = malloc(event->header.size);
	if (!text->event)
		return -ENOMEM;
	memcpy(text->event, event, event->header.size);
	err = add_text(&found->known, text, number);
	if (err)
		free(text->event);
	return err;
}

enum code_state hotspot_known__text(struct code_answers *answers, struct hotspot_found *found,
				    uint64_t method, uint64_t check, uint64_t time,
				    uint32_t *number)
{
	struct hotspot_known *k = &found->known;
	struct managed_function f = {};
	struct hotspot_latest *latest;
	struct hotspot_text text = {};
	enum code_state state;
	int err = hotspot_method__read(&found->layout, found->memory, method, &text.method);

	if (err)
		return hotspot_state_of_error(err);
	if (check && text.method.const_method != check)
		return CODE_STATE_STALE;
	latest = hotspot_latest_map__find(&k->latest, method);
	if (latest)
		hotspot_unloads__look(&found->unloads, &found->layout, found->memory);
	if (latest && is_current(found, &k->texts.data[latest->text - 1], &text.method)) {
		*number = latest->text;
		return CODE_STATE_CONFIRMED;
	}
	text.unloads = found->unloads.count;
	text.is_shared = found->unloads.is_known && time >= found->unloads.since;
	state = describe_method(answers, found, &text.method, &f);
	hotspot_unloads__look(&found->unloads, &found->layout, found->memory);
	if (state == CODE_STATE_CONFIRMED && keep_text(answers, found, &text, &f, number))
		state = CODE_STATE_UNKNOWN;
	managed_function__fini(&f);
	return state;
}
