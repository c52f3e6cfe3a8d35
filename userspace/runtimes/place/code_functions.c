/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies of events, and an index by their words. A chain is an entry as a function is. */
#include "runtimes/place/code_functions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/order.h"

#define ENTRY_BYTES  96	 /* of an entry and its place in the index, about */
#define VERSIONS_MAX 64u /* of one function */

struct entry {
	struct code_words words;
	uint32_t used; /* number of the window in which it was last looked up or reported */
	bool is_cut;   /* more was reported than is kept */
	VEC(struct event_header *) versions;
};

struct life_bytes {
	uint64_t life;
	size_t bytes;
};

static bool same_entry(const struct entry *a, const struct entry *b)
{
	return a->words.life == b->words.life && a->words.kind == b->words.kind &&
	       a->words.function == b->words.function && a->words.check == b->words.check &&
	       a->words.address == b->words.address && a->words.is_chain == b->words.is_chain;
}

static uint64_t hash_entry(const struct entry *entry)
{
	uint64_t hash = hash_combine(hash_u64(entry->words.life), hash_u64(entry->words.function));

	hash = hash_combine(hash, hash_u64(entry->words.check));
	hash = hash_combine(hash, hash_u64(entry->words.address));
	return hash_combine(hash, hash_u64(entry->words.kind * 2u + entry->words.is_chain));
}

DEFINE_MAP_OF(entry_map, struct entry, hash_entry, same_entry);
DEFINE_MAP_BY(life_map, struct life_bytes, uint64_t, life);

struct code_functions {
	struct entry_map entries;
	struct life_map lives;
	size_t bytes;
	uint32_t window; /* calls of code_functions__forget() */
};

struct code_functions *code_functions__new(void)
{
	return calloc(1, sizeof(struct code_functions));
}

static size_t bytes_of(const struct entry *entry)
{
	size_t bytes = ENTRY_BYTES;

	for (size_t i = 0; i < entry->versions.count; i++)
		bytes += entry->versions.data[i]->size;
	return bytes;
}

static void free_entry(struct code_functions *f, struct entry *entry)
{
	f->bytes -= bytes_of(entry);
	vec_free_with(&entry->versions, version, free(*version));
}

void code_functions__free(struct code_functions *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->entries.count; i++)
		free_entry(f, &f->entries.data[i]);
	entry_map__fini(&f->entries);
	life_map__fini(&f->lives);
	free(f);
}

static struct entry *find_entry(const struct code_functions *f, const struct code_words *words)
{
	struct entry *entry = entry_map__find(&f->entries, &(struct entry){.words = *words});

	if (entry)
		entry->used = f->window;
	return entry;
}

/* Is it the last report, but for its time? A function that is no longer in doubt is different. */
static bool says_the_same(const struct event_header *last, const struct event_header *event)
{
	if (last->flags & EVENT_DOUBTFUL && !(event->flags & EVENT_DOUBTFUL))
		return false;
	return last->size == event->size &&
	       !memcmp(last + 1, event + 1, last->size - sizeof(*last));
}

static int keep(struct code_functions *f, const struct entry *wanted,
		const struct event_header *event)
{
	struct life_bytes *life =
		life_map__need(&f->lives, &(struct life_bytes){.life = wanted->words.life}, NULL);
	struct entry *entry = find_entry(f, &wanted->words);
	size_t size = event->size + (entry ? 0 : ENTRY_BYTES);
	struct event_header *copy;
	bool is_new;

	if (!life)
		return -ENOMEM;
	if (entry && entry->versions.count &&
	    says_the_same(entry->versions.data[entry->versions.count - 1], event))
		return 0;
	if (f->bytes + size > CODE_FUNCTIONS_BYTES || life->bytes + size > CODE_LIFE_BYTES ||
	    (entry && entry->versions.count == VERSIONS_MAX)) {
		if (entry)
			entry->is_cut = true;
		return 0;
	}
	entry = entry_map__need(&f->entries, wanted, &is_new);
	if (entry && is_new) {
		f->bytes += ENTRY_BYTES;
		life->bytes += ENTRY_BYTES;
	}
	copy = entry ? malloc(event->size) : NULL;
	if (!copy)
		return -ENOMEM;
	memcpy(copy, event, event->size);
	if (vec_push(&entry->versions, copy)) {
		free(copy);
		return -ENOMEM;
	}
	f->bytes += event->size;
	life->bytes += event->size;
	return 0;
}

int code_functions__add(struct code_functions *f, uint64_t life,
			const struct code_function_event *event)
{
	const struct entry wanted = {.words = {life, event->kind, event->function, event->check},
				     .used = f->window};

	return keep(f, &wanted, &event->header);
}

/* Chains that follow one another at an address are distinguished by their last call. */
static uint64_t check_of_chain(const struct code_chain_event *event)
{
	return event->call_count ? event->calls[event->call_count - 1].check : 0;
}

int code_functions__add_chain(struct code_functions *f, uint64_t life,
			      const struct code_chain_event *event)
{
	const struct entry wanted = {.words = {life, event->kind, event->function,
					       check_of_chain(event), event->address, true},
				     .used = f->window};

	return keep(f, &wanted, &event->header);
}

size_t code_functions__versions(const struct code_functions *f, const struct code_words *words)
{
	const struct entry *entry = find_entry(f, words);

	return entry ? entry->versions.count + entry->is_cut : 0;
}

const struct code_function_event *code_functions__at(const struct code_functions *f,
						     const struct code_words *words, uint64_t time)
{
	const struct entry *entry = find_entry(f, words);
	size_t at;

	if (!entry || !entry->versions.count)
		return NULL;
	at = partition_point(entry->versions.data, entry->versions.count, v, (*v)->time <= time);
	return (const struct code_function_event *)entry->versions.data[at ? at - 1 : 0];
}

const struct code_function_event *code_functions__inherited(const struct code_functions *f,
							    const struct code_words *words,
							    const struct code_kin kin[CODE_KIN_MAX],
							    bool *sure)
{
	const struct code_function_event *later = NULL;

	for (size_t i = 0; i < CODE_KIN_MAX && kin[i].life; i++) {
		struct code_words theirs = *words;
		const struct code_function_event *event;

		theirs.life = kin[i].life;
		for (size_t k = 0; (event = code_functions__get(f, &theirs, k)); k++) {
			if (event->state != CODE_STATE_CONFIRMED)
				continue;
			if (event->header.time <= kin[i].until) {
				*sure = true;
				return event;
			}
			later = later ? later : event;
		}
	}
	*sure = false;
	return later;
}

const void *code_functions__get(const struct code_functions *f, const struct code_words *words,
				size_t version)
{
	const struct entry *entry = find_entry(f, words);

	return entry && version < entry->versions.count ? entry->versions.data[version] : NULL;
}

/* ---- pieces of code -------------------------------------------------------------------------- */

#define PIECES_NESTED 4u /* that one may have before it with the same address */

DEFINE_ORDER(compare_pieces, struct code_piece, ASCENDING(life) ?: ASCENDING(start) ?: DESCENDING(end));

int code_functions__pieces(const struct code_functions *f, enum frame_note_kind kind,
			   struct code_pieces *pieces)
{
	for (size_t i = 0; i < f->entries.count; i++) {
		const struct entry *entry = &f->entries.data[i];
		const struct code_words *w = &entry->words;
		struct code_piece piece = {w->life, w->function, w->function + w->check, NULL};

		if (w->is_chain || w->kind != kind || !w->check || w->check >> 32 ||
		    piece.end < piece.start || !entry->versions.count)
			continue;
		piece.event = (const struct code_function_event *)entry->versions.data[0];
		if (vec_push(&pieces->all, piece))
			return -ENOMEM;
	}
	vec_sort(&pieces->all, compare_pieces);
	return 0;
}

const struct code_piece *code_pieces__at(const struct code_pieces *pieces, uint64_t life,
					 uint64_t address)
{
	size_t at = partition_point(pieces->all.data, pieces->all.count, p,
				    p->life < life || (p->life == life && p->start <= address));

	for (unsigned int i = 0; i < PIECES_NESTED && at; i++) {
		const struct code_piece *piece = &pieces->all.data[--at];

		if (piece->life == life && address < piece->end)
			return piece;
	}
	return NULL;
}

/* ---- forgetting ------------------------------------------------------------------------------ */

/* It was not looked up for some windows, and room is wanted. */
static bool is_outdated(const struct code_functions *f, const struct entry *entry,
			const struct life_bytes *life)
{
	if (f->window - entry->used < CODE_WINDOWS_KEPT)
		return false;
	return f->bytes > CODE_FUNCTIONS_BYTES / 2 || (life && life->bytes > CODE_LIFE_BYTES / 2);
}

void code_functions__forget(struct code_functions *f,
			    bool (*is_known)(void *context, uint64_t life), void *context)
{
	size_t kept = 0;

	f->window++;
	for (size_t i = 0; i < f->entries.count; i++) {
		struct entry *entry = &f->entries.data[i];
		struct life_bytes *life = life_map__find(&f->lives, entry->words.life);

		if (is_known(context, entry->words.life) && !is_outdated(f, entry, life)) {
			f->entries.data[kept++] = *entry;
			continue;
		}
		if (life)
			life->bytes -= bytes_of(entry);
		free_entry(f, entry);
	}
	f->entries.count = kept;
	entry_map__reindex(&f->entries);
	for (size_t i = f->lives.count; i-- > 0;)
		if (!is_known(context, f->lives.data[i].life))
			life_map__remove(&f->lives, &f->lives.data[i]);
}

size_t code_functions__bytes(const struct code_functions *f)
{
	return f->bytes;
}

/* ---- the fields of an event ------------------------------------------------------------------ */

const char *code_function__name(const struct code_function_event *event)
{
	return (const char *)&event->rows[event->row_count];
}

const char *code_function__file(const struct code_function_event *event)
{
	return code_function__name(event) + event->name_size;
}

const struct code_row *code_function__row(const struct code_function_event *event, uint32_t place)
{
	uint32_t offset = place - event->base;
	size_t at;

	if (place < event->base)
		return NULL;
	at = partition_point(event->rows, event->row_count, row, row->offset <= offset);
	return at ? &event->rows[at - 1] : NULL;
}
