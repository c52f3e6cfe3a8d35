/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Methods of HotSpot. Answers about compiled code are certain: it is checked before and after its
 * methods are read, which live as long. An interpreted method's words may be another's by now.
 */
#include "runtimes/hotspot/answers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/minmax.h"
#include "base/utf8.h"
#include "runtimes/hotspot/hotspot.h"
#include "runtimes/hotspot/scopes.h"

#define BLOB_NAME_MAX 128u

/*
 * A class unloaded since the sample may have left its address to another one. Without a count of
 * unloaded classes only an answer that is the same again is trusted.
 */
static bool is_doubtful(const struct hotspot_unloads *unloads, const struct code_question *q)
{
	return unloads->is_known ? q->time < unloads->since : !q->is_answered;
}

static uint16_t flags_of(const struct hotspot_found *found, const struct code_question *q)
{
	return is_doubtful(&found->unloads, q) ? EVENT_DOUBTFUL : 0;
}

int hotspot_answers__method(struct code_answers *answers, struct hotspot_found *found,
			    const struct code_question *q)
{
	enum code_state state = CODE_STATE_UNKNOWN;
	uint32_t text;

	hotspot_known__limit(&found->known);
	if (found->is_read)
		state = hotspot_known__text(answers, found, q->function, q->check, q->time, &text);
	if (state == CODE_STATE_CONFIRMED)
		return code_answers__add_event(answers, found->known.texts.data[text - 1].event,
					       flags_of(found, q));
	return code_answers__function(answers, q, state,
				      (uint32_t)found->layout.at[HOTSPOT_CONST_METHOD_SIZE], NULL,
				      flags_of(found, q));
}

/* ---- compiled code of HotSpot's -------------------------------------------------------------- */

static bool is_compiled(const struct hotspot_blob *blob)
{
	return blob->kind == HOTSPOT_NMETHOD || blob->kind == HOTSPOT_NATIVE;
}

/* Is the note's blob still there? A stub without a header like a method's has code in its words. */
static enum code_state find_blob(struct hotspot_found *found, const struct code_question *q,
				 struct hotspot_blob *blob)
{
	struct hotspot_code *code = &found->code;
	uint64_t address;
	int err = hotspot_code__find(code, found->memory, q->function, &address);

	if (!err && address != q->function)
		return CODE_STATE_STALE;
	if (!err)
		err = hotspot_code__blob(code, found->memory, address, blob);
	if (err)
		return hotspot_state_of_error(err);
	if (q->address - q->function >= blob->size)
		return CODE_STATE_STALE;
	if (!q->check && !is_compiled(blob))
		return CODE_STATE_CONFIRMED;
	return blob->check == q->check ? CODE_STATE_CONFIRMED : CODE_STATE_STALE;
}

struct compiled_code {
	enum code_state state;
	struct code_call calls[CODE_CALLS_MAX];
	unsigned int count;
	unsigned int sure; /* of the outermost calls, if it is INFERRED */
};

/* 1: unknown. */
static int find_text(struct code_answers *answers, struct hotspot_found *found,
		     struct hotspot_nmethod *n, uint64_t method, uint64_t time, uint32_t *text)
{
	struct hotspot_named *named = NULL;
	size_t i = 0;

	while (i < n->debug.named.count && n->debug.named.data[i].method != method)
		i++;
	if (i == n->debug.named.count &&
	    vec_push(&n->debug.named, (struct hotspot_named){.method = method}))
		return -ENOMEM;
	named = &n->debug.named.data[i];
	if (!named->text) {
		if (hotspot_known__text(answers, found, method, 0, time, &named->text) !=
		    CODE_STATE_CONFIRMED)
			return 1;
		n->text_count++;
	}
	*text = named->text;
	return 0;
}

static const struct code_row *row_at(const struct code_function_event *event, int32_t index)
{
	size_t at = partition_point(event->rows, event->row_count, row,
				    (int64_t)row->offset <= index);

	return at ? &event->rows[at - 1] : NULL;
}

static int add_scope(struct code_answers *answers, struct hotspot_found *found,
		     const struct hotspot_scope *scope, uint32_t number, uint64_t time,
		     struct compiled_code *e)
{
	const struct hotspot_text *text = &found->known.texts.data[number - 1];
	const struct code_question q = {.kind = FRAME_NOTE_HOTSPOT,
					.function = text->method.method,
					.check = text->method.const_method,
					.time = time};
	const struct code_row *row = row_at(text->event, scope->index);

	e->calls[e->count++] = (struct code_call){q.function, q.check, row ? row->line : 0, 0};
	if (code_answers__has(answers, &q))
		return 0;
	return code_answers__add_event(answers, text->event, flags_of(found, &q))
		       ?: vec_push(&answers->methods, q);
}

/*
 * If it is not certain what is inlined, the chain is the compiled method alone, without a line. It is
 * not sure then: an inlined method may run.
 */
static int read_chain(struct hotspot_found *found, const struct hotspot_blob *blob,
		      struct hotspot_nmethod *n, uint64_t address, struct hotspot_chain *chain)
{
	int err = hotspot_chain__read(&found->code, found->memory, blob, &n->debug, address, chain);

	if (err)
		return err;
	found->memory->left |= chain->count >= CODE_CALLS_MAX;
	if (chain->is_cut || chain->count >= CODE_CALLS_MAX ||
	    chain->scopes[chain->count - 1].method != blob->method) {
		chain->scopes[0] = (struct hotspot_scope){.method = blob->method, .index = -1};
		chain->count = 1;
		chain->sure = 0;
	}
	return 0;
}

/* 0; 1: unknown; negative errno. */
static int add_scopes(struct code_answers *answers, struct hotspot_found *found,
		      const struct code_question *q, const struct hotspot_blob *blob,
		      struct hotspot_nmethod *n, struct compiled_code *e)
{
	struct hotspot_chain chain;
	uint32_t texts[CODE_CALLS_MAX];
	int err = read_chain(found, blob, n, q->address, &chain);

	if (err)
		return err == -ENOMEM ? err : 1;
	if (chain.sure < chain.count) {
		e->state = CODE_STATE_INFERRED;
		e->sure = chain.sure;
	}
	for (unsigned int i = 0; i < chain.count && !err; i++)
		err = find_text(answers, found, n, chain.scopes[i].method, q->time, &texts[i]);
	for (unsigned int i = 0; i < chain.count && !err; i++)
		err = add_scope(answers, found, &chain.scopes[i], texts[i], q->time, e);
	return err;
}

/* An nmethod that is known is not read again; *state is that of its last reading. */
static int add_compiled(struct code_answers *answers, struct hotspot_found *found,
			const struct code_question *q, struct hotspot_blob *blob,
			enum code_state *state, struct compiled_code *e)
{
	struct hotspot_nmethod *n = hotspot_known__nmethod(&found->known, blob);
	struct hotspot_nmethod before;
	int err;

	if (!n)
		return -ENOMEM;
	before = *n;
	err = add_scopes(answers, found, q, blob, n, e);
	if (!err && n->text_count == before.text_count && n->debug.places == before.debug.places &&
	    n->debug.named.count == before.debug.named.count &&
	    n->debug.bytecodes.count == before.debug.bytecodes.count)
		return 0;
	if (!err)
		*state = find_blob(found, q, blob);
	hotspot_known__keep(&found->known, n, !err && *state == CODE_STATE_CONFIRMED);
	return err;
}

/* Not a function of the program's: its name is in brackets. */
static int add_stub(struct code_answers *answers, struct hotspot_found *found, uint64_t function,
		    uint64_t check, const struct hotspot_blob *blob)
{
	struct code_question stub = {
		.kind = FRAME_NOTE_HOTSPOT_CODE, .function = function, .check = check};
	struct managed_function f = {};
	char text[BLOB_NAME_MAX] = "call stub", name[BLOB_NAME_MAX + 2];
	int err = blob ? hotspot_blob__name(blob, found->memory, text, sizeof(text)) : 0;

	if (err && err != -ENAMETOOLONG)
		return 1;
	snprintf(name, sizeof(name), "[%s]", text);
	utf8_sanitize(f.name, sizeof(f.name), name);
	return code_answers__function(answers, &stub, CODE_STATE_CONFIRMED, 0, &f, 0);
}

/* The last call is the code itself. */
static int add_code(struct code_answers *answers, const struct code_question *q, uint64_t function,
		    enum code_state state, struct compiled_code *e)
{
	if (state != CODE_STATE_CONFIRMED) {
		e->count = 0;
		e->state = state;
	}
	e->calls[e->count++] = (struct code_call){function, q->check, e->sure, 0};
	return code_answers__chain(answers, q, e->state, e->calls, e->count);
}

/* The call that the call stub makes: a stub among many in its blob, and a caller of all of Java. */
static bool is_call_stub(const struct hotspot_found *found, uint64_t address)
{
	return found->code.call_return && address == found->code.call_return - 1;
}

/* ---- code that lasts as long as the process -------------------------------------------------- */

#define PIECES_MAX 1024u

struct listing {
	struct code_answers *answers;
	struct hotspot_found *found;
	struct hotspot_blob piece; /* blobs with one name that follow one another; size 0: none */
	unsigned int count;
};

static int end_piece(struct listing *l)
{
	struct hotspot_blob piece = l->piece;
	int err;

	l->piece.size = 0;
	if (!piece.size)
		return 0;
	if (++l->count > PIECES_MAX) {
		l->found->memory->left = true;
		return 0;
	}
	err = add_stub(l->answers, l->found, piece.address, piece.size, &piece);
	return err > 0 ? 0 : err;
}

static int list_blob(void *context, const struct hotspot_blob *blob)
{
	struct listing *l = context;
	uint64_t gap = blob->address - (l->piece.address + l->piece.size);
	bool goes_on = l->piece.size && l->piece.name == blob->name &&
		       gap < (1ull << l->found->code.shift) +
				       l->found->layout.at[HOTSPOT_HEAP_BLOCK_SIZE];
	int err = 0;

	if (!goes_on || is_compiled(blob))
		err = end_piece(l);
	if (err || is_compiled(blob))
		return err;
	if (!goes_on)
		l->piece = *blob;
	l->piece.size = (uint32_t)(blob->address + blob->size - l->piece.address);
	return 0;
}

/*
 * All code that is not of methods: the JVM makes it once, and does not free it. It names what has
 * no note: frames of copied stacks, and those from before the JVM was found.
 */
static int list_code(struct code_answers *answers, struct hotspot_found *found)
{
	struct listing l = {.answers = answers, .found = found};
	struct hotspot_code now;
	int err;

	code_answers__keep_pages(answers, found->memory); /* blobs are small and lie side by side */
	err = hotspot_code__read(&now, &found->layout, found->memory)
		      ?: hotspot_code__each(&now, found->memory, list_blob, &l)
		      ?: end_piece(&l);
	found->memory->pages = NULL;

	if (!err && now.call_return)
		err = add_stub(answers, found, now.call_return - 1, 1, NULL);
	return err == -ENOMEM || err == -E2BIG || err == -EDQUOT ? err : 0;
}

/* Its methods at an address, if the code is the same before and after they were read. */
int hotspot_answers__code(struct code_answers *answers, struct hotspot_found *found,
			  const struct code_question *q)
{
	struct compiled_code e = {.state = CODE_STATE_CONFIRMED};
	size_t bytes = answers->bytes.count, methods = answers->methods.count;
	struct hotspot_blob blob;
	uint64_t function = q->function;
	enum code_state state;
	int err;

	if (!found->is_read)
		return 0;
	if (!q->function)
		return list_code(answers, found);
	if (!q->address)
		return 0;
	hotspot_known__limit(&found->known);
	state = find_blob(found, q, &blob);
	if (state == CODE_STATE_UNKNOWN)
		return 0;
	if (state == CODE_STATE_STALE)
		return add_code(answers, q, function, state, &e);
	if (is_call_stub(found, q->address))
		function = q->address;
	if (is_compiled(&blob))
		err = add_compiled(answers, found, q, &blob, &state, &e);
	else
		err = add_stub(answers, found, function, q->check,
			       function == q->function ? &blob : NULL);
	if (!err && !is_compiled(&blob))
		state = find_blob(found, q, &blob);
	if (!err && state == CODE_STATE_CONFIRMED)
		err = add_code(answers, q, function, state, &e);
	if (err || state != CODE_STATE_CONFIRMED) {
		answers->bytes.count = bytes;
		answers->methods.count = methods;
	}
	return err > 0 ? 0 : err;
}

/* ---- classes that were unloaded -------------------------------------------------------------- */

/* PerfMemory: a header, and entries one after another, each with its name. All may be forged. */

#define COUNTERS_MAX  4096u
#define PERF_SIZE_MAX (1u << 20)

#define PERF_MAGIC    0xc0c0feca

struct perf_header {
	uint32_t magic;
	uint8_t byte_order, major, minor, accessible;
	int32_t used, overflow;
	int64_t modified;
	uint32_t entry_offset, entries;
};

struct perf_entry {
	uint32_t size, name_offset, vector_length;
	uint8_t type, flags, unit, variability;
	uint32_t data_offset;
};

static uint64_t find_entry(const unsigned char *bytes, uint64_t size, const char *name)
{
	const struct perf_header *h = (const void *)bytes;
	uint64_t at = h->entry_offset, length = strlen(name) + 1;

	for (uint32_t i = 0; i < h->entries && i < COUNTERS_MAX; i++) {
		struct perf_entry e;

		if (at > size || size - at < sizeof(e))
			return 0;
		memcpy(&e, bytes + at, sizeof(e));
		if (e.size < sizeof(e) || e.size > size - at)
			return 0;
		if (e.name_offset <= e.size && length <= e.size - e.name_offset &&
		    !memcmp(bytes + at + e.name_offset, name, length) && e.data_offset <= e.size &&
		    e.size - e.data_offset >= sizeof(uint64_t))
			return at + e.data_offset;
		at += e.size;
	}
	return 0;
}

int hotspot_counter__find(const struct hotspot_layout *layout, struct target_memory *memory,
			  const char *name, uint64_t *address)
{
	_cleanup_free_ unsigned char *bytes = NULL;
	uint64_t start, top, size, at;
	int err;

	if (!layout->can[HOTSPOT_CAN_COUNT])
		return -ENOENT;
	err = target_memory__word(memory, &start, layout->at[HOTSPOT_PERF_START])
		      ?: target_memory__word(memory, &top, layout->at[HOTSPOT_PERF_TOP]);
	if (err)
		return err;
	size = top - start;
	if (top < start || size < sizeof(struct perf_header))
		return -ENOENT;
	size = min_u64(size, PERF_SIZE_MAX);
	bytes = malloc(size);
	if (!bytes)
		return -ENOMEM;
	err = target_memory__read(memory, bytes, size, start);
	if (err)
		return err;
	at = ((const struct perf_header *)bytes)->magic == PERF_MAGIC
		     ? find_entry(bytes, size, name)
		     : 0;
	*address = start + at;
	return at ? 0 : -ENOENT;
}

void hotspot_unloads__look(struct hotspot_unloads *u, const struct hotspot_layout *layout,
			   struct target_memory *memory)
{
	uint64_t count;

	if (!u->was_searched &&
	    hotspot_counter__find(layout, memory, "java.cls.unloadedClasses", &u->counter))
		u->counter = 0;
	u->was_searched = true;
	if (!u->counter || target_memory__word(memory, &count, u->counter)) {
		u->is_known = false;
		return;
	}
	if (u->is_known && u->count == count)
		return;
	u->is_known = true;
	u->count = count;
	u->since = monotonic_ns();
}
