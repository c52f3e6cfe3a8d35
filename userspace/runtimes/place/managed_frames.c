/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/place/managed_frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/minmax.h"
#include "base/suffix.h"
#include "base/vec.h"
#include "runtimes/java_name.h"
#include "runtimes/runtime.h"
#include "runtimes/table.h"
#include "world/image_table.h"
#include "world/mapping_table.h"
#include "world/recorder.h"

#define MANY_DOUBTFUL 100u	    /* one frame in so many */
#define NOTES_PASS    1000000000ull /* ns from a process's first map until no note is from before it */

struct managed_location {
	struct code_words words;
	uint32_t place;
	uint64_t address;  /* of compiled code; 0 */
	uint32_t versions; /* of its function, when the sample was taken, */
	uint32_t chains;   /* … and what is inlined at the address */
	struct location_id location;
	uint64_t frames; /* of samples */
};

static uint64_t hash_place(const struct managed_location *p)
{
	uint64_t hash = hash_combine(hash_u64(p->words.life), hash_u64(p->words.function));

	hash = hash_combine(hash, hash_u64(p->words.check));
	hash = hash_combine(hash, hash_u64(p->address));
	return hash_combine(hash, hash_u64((uint64_t)(p->versions + p->chains) << 32 | p->place));
}

static bool same_place(const struct managed_location *a, const struct managed_location *b)
{
	return a->words.life == b->words.life && a->words.kind == b->words.kind &&
	       a->words.function == b->words.function && a->words.check == b->words.check &&
	       a->place == b->place && a->address == b->address && a->versions == b->versions &&
	       a->chains == b->chains;
}

DEFINE_MAP_OF(place_map, struct managed_location, hash_place, same_place);

/* A life with places, that was forked. */
struct forked_life {
	uint64_t life;
	struct code_kin kin[CODE_KIN_MAX];
};

DEFINE_MAP_BY(forked_map, struct forked_life, uint64_t, life);

static uint64_t hash_words(const struct code_words *w)
{
	return hash_combine(hash_u64(w->life), hash_u64(w->address));
}

static bool same_words(const struct code_words *a, const struct code_words *b)
{
	return a->life == b->life && a->address == b->address && a->kind == b->kind;
}

DEFINE_MAP_OF(words_map, struct code_words, hash_words, same_words);

struct managed_frames {
	struct profile_builder *builder;
	const struct image_table *images;
	const struct code_functions *functions;
	const struct process_life *process; /* of the sample */
	struct note_table notes;
	struct place_map places;
	struct words_map unconfirmed; /* notes of native frames: NAMED_IF_CONFIRMED */
	struct forked_map forked;
	struct dso_id dsos[FRAME_NOTE_COUNT];
	VEC(__u64) frames;
};

/* Names of runtimes, and as names of what their frames are in. */
static const struct {
	const char *name, *bracketed;
} runtimes[FRAME_NOTE_COUNT] = {
#define X(id, runtime) [FRAME_NOTE_##id] = {runtime, "[" runtime "]"},
	FRAME_NOTES(X)
#undef X
};

struct managed_frames *managed_frames__new(struct profile_builder *builder,
					   const struct image_table *images,
					   const struct code_functions *functions)
{
	struct managed_frames *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->builder = builder;
	m->images = images;
	m->functions = functions;
	note_table__init(&m->notes);
	return m;
}

void managed_frames__free(struct managed_frames *m)
{
	if (!m)
		return;
	place_map__fini(&m->places);
	words_map__fini(&m->unconfirmed);
	forked_map__fini(&m->forked);
	vec_free(&m->frames);
	free(m);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static struct dso_id dso_of(struct managed_frames *m, enum frame_note_kind kind)
{
	struct profile_dso dso = {.kind = DSO_RUNTIME};

	if (m->dsos[kind].v)
		return m->dsos[kind];
	dso.path = dso.name = profile_builder__string(m->builder, runtimes[kind].bracketed);
	m->dsos[kind] = profile_builder__dso(m->builder, &dso);
	return m->dsos[kind];
}

/* A function that an interpreter runs is in its source file. */
static struct dso_id dso_of_function(struct managed_frames *m, enum frame_note_kind kind,
				     const char *file)
{
	struct profile_dso dso = {.kind = DSO_RUNTIME, .is_interpreted = true};
	const char *base = path_base(file);

	if (!m->notes.of[kind]->is_interpreted || !*base)
		return dso_of(m, kind);
	dso.path = profile_builder__string(m->builder, file);
	dso.name = profile_builder__string(m->builder, base);
	return profile_builder__dso(m->builder, &dso);
}

/* Find or add a place. 0; -E2BIG: too many; -ENOMEM. *known is valid until one is added. */
static int intern(struct managed_frames *m, const struct managed_location *place,
		  struct managed_location **known)
{
	*known = place_map__find(&m->places, place);
	if (!*known && m->places.count >= MANAGED_PLACES_MAX && place->words.life)
		return -E2BIG;
	if (*known)
		return 0;
	*known = place_map__need(&m->places, place, NULL);
	if (!*known)
		return -ENOMEM;
	(*known)->location = profile_builder__location(m->builder, dso_of(m, place->words.kind),
						       m->places.count - 1, (struct process_id){0},
						       CATEGORY_JIT);
	return 0;
}

/* The words by which inlined functions are looked up. */
static struct code_words words_of_chain(const struct managed_location *place)
{
	return (struct code_words){place->words.life,  place->words.kind, place->words.function,
				   place->words.check, place->address,	  true};
}

static const struct note_ops *ops_of(const struct managed_frames *m, const struct code_words *words)
{
	return m->notes.of[words->kind];
}

static bool has_number(const struct managed_frames *m, const struct code_words *words)
{
	return note_lasting(ops_of(m, words), words->check) == CODE_NUMBERED;
}

/*
 * The version is the last one reported by now. Compiled code that is described once and functions
 * with numbers have words that no others get: reports of any time are of them.
 */
static void note_versions(const struct managed_frames *m, struct managed_location *place)
{
	struct code_words words = words_of_chain(place);

	if (ops_of(m, &words)->naming == NAMED_BY_CODE)
		return;
	if (!has_number(m, &place->words))
		place->versions = (uint32_t)code_functions__versions(m->functions, &place->words);
	if (place->address)
		place->chains = (uint32_t)code_functions__versions(m->functions, &words);
}

/* Where the process comes from, for when its places get their names. 0 or -ENOMEM. */
static int note_kin(struct managed_frames *m, const struct process_life *process)
{
	struct forked_life forked = {.life = process->number.serial};

	if (!process->kin[0].life)
		return 0;
	memcpy(forked.kin, process->kin, sizeof(forked.kin));
	return forked_map__need(&m->forked, &forked, NULL) ? 0 : -ENOMEM;
}

/* `address`: of compiled code, by which it is known; 0: by its place. */
static int push_note(struct managed_frames *m, const struct process_life *process,
		     const struct frame_note *note, uint64_t address)
{
	struct managed_location place = {
		.words = {process->number.serial, note->kind, note->function, note->check},
		.place = address ? 0 : note->place,
		.address = address,
	};
	struct managed_location *known;
	int err;

	note_versions(m, &place);
	err = intern(m, &place, &known);
	if (err == -E2BIG)
		err = intern(m, &(struct managed_location){.words = {.kind = note->kind}}, &known);
	if (err)
		return err;
	known->frames++;
	return vec_push(&m->frames, (uint64_t)FRAME_MANAGED << FRAME_KIND_SHIFT |
					    (uint64_t)(known - m->places.data));
}

struct cursor {
	const struct frame_note *next, *end;
};

static enum note_order order_of(const struct managed_frames *m, const struct frame_note *note)
{
	return m->notes.of[note->kind]->order;
}

/* The frames up to a group, with those of earlier groups that were not placed. */
static int push_groups(struct managed_frames *m, const struct process_life *process,
		       struct cursor *grouped, uint32_t group)
{
	int err = 0;

	for (; grouped->next < grouped->end && !err; grouped->next++) {
		const struct frame_note *note = grouped->next;

		if (order_of(m, note) != NOTE_IN_GROUP)
			continue;
		if (note->frame > group)
			break;
		if (note->check || !note->function)
			err = push_note(m, process, note, 0);
	}
	return err;
}

/* The note of frame number `frame`, or NULL. Notes ascend by frame. */
static const struct frame_note *note_of(const struct managed_frames *m, struct cursor *notes,
					size_t frame)
{
	while (notes->next < notes->end &&
	       (order_of(m, notes->next) == NOTE_IN_GROUP || notes->next->frame < frame))
		notes->next++;
	return notes->next < notes->end && notes->next->frame == frame ? notes->next : NULL;
}

/* Is it an address of JIT code of the sample's process? */
static bool is_made_code(const void *context, uint64_t address)
{
	const struct managed_frames *m = context;
	const struct mapping *mapping = mapping_table__find(m->process->maps, address);

	return mapping && image_table__get(m->images, mapping->image)->dso.kind == DSO_JIT;
}

/* Is it known as a function without a file? Such a function has a frame of its own. */
static bool has_no_file(const struct managed_frames *m, const struct process_life *process,
			const struct frame_note *note)
{
	const struct code_words words = {.life = process->number.serial,
					 .kind = note->kind,
					 .function = note->function,
					 .check = note->check};
	const struct code_function_event *event = code_functions__at(m->functions, &words,
								     UINT64_MAX);

	return event && event->state == CODE_STATE_CONFIRMED && !*code_function__file(event);
}

/*
 * Code that has no frame yet, or none any more, was called by the next frame, whose note has the
 * candidates; the address selects one.
 */
static const struct frame_note *note_of_leaf(const struct managed_frames *m,
					     const struct cursor *notes,
					     const struct frame_note *note, uint64_t native,
					     struct frame_note *leaf)
{
	const struct frame_note *caller = note ? note + 1 : notes->next;

	if (caller >= notes->end || !m->notes.of[caller->kind]->names_leaf || caller->frame != 1 ||
	    (note && note->kind == caller->kind) || frame_kind(native) != FRAME_IP ||
	    !is_made_code(m, frame_user_address(native)))
		return note;
	*leaf = *caller;
	leaf->frame = 0;
	return leaf;
}

/* Keeps the note of a native frame for managed_frames__suggest(). The last one counts. */
static int note_native(struct managed_frames *m, const struct process_life *process,
		       const struct frame_note *note, uint64_t native)
{
	const struct code_words words = {
		process->number.serial,	    note->kind, note->function, note->check,
		frame_user_address(native), true};
	struct code_words *known;

	if (m->unconfirmed.count >= MANAGED_PLACES_MAX || !is_made_code(m, words.address))
		return 0;
	known = words_map__need(&m->unconfirmed, &words, NULL);
	if (known)
		*known = words;
	return known ? 0 : -ENOMEM;
}

static int push_user_frame(struct managed_frames *m, const struct process_life *process,
			   const struct frame_note *note, struct cursor *grouped, uint64_t native)
{
	const struct note_ops *ops = note ? m->notes.of[note->kind] : NULL;
	struct note_placing at = {};
	int err = 0;

	if (!note)
		return vec_push(&m->frames, native);
	if (ops->order == NOTE_PLACES_GROUP)
		return push_groups(m, process, grouped, note->place);
	if (ops->naming == NAMED_IF_CONFIRMED)
		return note_native(m, process, note, native) ?: vec_push(&m->frames, native);
	if (ops->place)
		at = ops->place(note, native, is_made_code, m);
	if (at.is_native || (at.has_callee && !has_no_file(m, process, note)))
		err = vec_push(&m->frames, native);
	return err || at.is_native ? err : push_note(m, process, note, at.address);
}

/*
 * A process with a perf map has native frames for its functions: trampolines, copies. So notes from
 * before its map was found do not count. Later ones are intended: the map lacks their names.
 */
static bool is_plain(const struct process_life *process, const struct sample_event *e)
{
	return process->has_followed_file && e->header.time < process->followed_since + NOTES_PASS;
}

/* Has each of its notes a runtime that is listed, and does it count? */
static bool do_count(const struct managed_frames *m, const struct process_life *process,
		     const struct sample_event *e)
{
	const struct frame_note *notes = sample_notes(e);
	const bool plain = is_plain(process, e);

	for (size_t i = 0; i < e->notes; i++) {
		const struct note_ops *ops = m->notes.of[notes[i].kind];

		if (!ops || (plain && !ops->is_beside_map))
			return false;
	}
	return true;
}

int managed_frames__of(struct managed_frames *m, const struct process_life *process,
		       const struct sample_event *e, struct sample_frames *frames)
{
	const struct frame_note *first = sample_notes(e);
	struct cursor grouped = {first, first + e->notes}, others = grouped;
	struct frame_note leaf;
	int err = 0;

	*frames = (struct sample_frames){e->frames, e->kernel_frames,
					 (size_t)e->kernel_frames + e->user_frames};
	if (!e->notes || !do_count(m, process, e))
		return 0;
	err = note_kin(m, process);
	m->process = process;
	m->frames.count = 0;
	for (size_t i = 0; i < e->kernel_frames && !err; i++)
		err = vec_push(&m->frames, e->frames[i]);
	for (size_t i = 0; i < e->user_frames && !err; i++) {
		uint64_t native = e->frames[e->kernel_frames + i];
		const struct frame_note *note = note_of(m, &others, i);

		if (!i)
			note = note_of_leaf(m, &others, note, native, &leaf);
		err = push_user_frame(m, process, note, &grouped, native);
	}
	if (!err)
		err = push_groups(m, process, &grouped, UINT32_MAX);
	frames->frames = m->frames.data;
	frames->count = m->frames.count;
	return err;
}

struct location_id managed_frames__location(const struct managed_frames *m, uint64_t frame)
{
	uint64_t number = frame & FRAME_ADDRESS_MASK;

	return number < m->places.count ? m->places.data[number].location : (struct location_id){0};
}

bool managed_frames__is_made(const struct managed_frames *m, uint64_t frame)
{
	uint64_t number = frame & FRAME_ADDRESS_MASK;

	return number < m->places.count && m->places.data[number].address;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* A recording has the full name. */
static void name_function(struct managed_frames *m, enum frame_note_kind kind,
			  const struct code_function_event *event,
			  struct profile_function *function)
{
	const char *text = code_function__name(event);
	struct java_name java;

	if (!m->notes.of[kind]->has_signatures || !java_name__parse(&java, text, strlen(text))) {
		function->name = profile_builder__string(m->builder, text);
		return;
	}
	function->name = profile_builder__string(m->builder, java.brief);
	function->full_name = profile_builder__string(m->builder, java.full);
}

static struct function_id function_of(struct managed_frames *m, enum frame_note_kind kind,
				      const struct code_function_event *event)
{
	struct profile_function function = {
		.dso = dso_of_function(m, kind, code_function__file(event)),
		.address = PROFILE_UNKNOWN_ADDRESS,
		.definition_file = profile_builder__string(m->builder, code_function__file(event)),
		.definition_line = event->line,
		.definition_column = event->column,
	};

	name_function(m, kind, event, &function);
	if (!function.name.v)
		function.name = profile_builder__string(m->builder, "(anonymous)");
	return profile_builder__function(m->builder, &function);
}

/* The parent's version of the function, from before the fork; a later one is in doubt. */
static const struct code_function_event *
inherited(const struct managed_frames *m, const struct managed_location *place, bool *ambiguous)
{
	const struct forked_life *forked = ops_of(m, &place->words)->is_inherited
						   ? forked_map__find(&m->forked, place->words.life)
						   : NULL;
	const struct code_function_event *event;
	bool sure;

	if (!forked)
		return NULL;
	event = code_functions__inherited(m->functions, &place->words, forked->kin, &sure);
	if (event)
		*ambiguous = !sure;
	return event;
}

static bool is_one_function(const struct code_function_event *a,
			    const struct code_function_event *b)
{
	return a->line == b->line && a->column == b->column &&
	       !strcmp(code_function__name(a), code_function__name(b)) &&
	       !strcmp(code_function__file(a), code_function__file(b));
}

/*
 * The last confirmed version of a function with a number; versions differ in how much could be
 * read. If two functions are named, two isolates, which number separately, had the same memory.
 */
static const struct code_function_event *numbered(const struct managed_frames *m,
						  const struct code_words *words, bool *ambiguous)
{
	const struct code_function_event *found = NULL, *event = NULL;
	size_t versions = code_functions__versions(m->functions, words);

	*ambiguous = false;
	for (size_t i = 0; i < versions; i++) {
		const struct code_function_event *next = code_functions__get(m->functions, words,
									     i);

		event = next ? next : event;
		if (!next || next->state != CODE_STATE_CONFIRMED)
			continue;
		*ambiguous |= found && !is_one_function(found, next);
		found = next;
	}
	return found ? found : event;
}

/*
 * If a version differs from a later one, the words became another function's at an unknown time. A
 * version read in doubt may never have been a function, because its memory may have been freed. A
 * later reading that is not in doubt confirms it.
 */
static bool is_doubted(const struct managed_frames *m, const struct code_words *words,
		       size_t version, const struct code_function_event *event)
{
	size_t versions = code_functions__versions(m->functions, words);
	bool is_sure = !(event->header.flags & EVENT_DOUBTFUL);

	for (size_t i = version + 1; i < versions; i++) {
		const struct code_function_event *next = code_functions__get(m->functions, words,
									     i);

		if (!next || next->state != CODE_STATE_CONFIRMED || !is_one_function(event, next))
			return true;
		is_sure |= !(next->header.flags & EVENT_DOUBTFUL);
	}
	return !is_sure;
}

/* The version at the place's time; NULL: none. *ambiguous: the words may have been another's. */
static const struct code_function_event *
event_of(const struct managed_frames *m, const struct managed_location *place, bool *ambiguous)
{
	size_t version = place->versions ? place->versions - 1 : 0;
	const struct code_function_event *event, *of_parent;

	if (has_number(m, &place->words))
		return numbered(m, &place->words, ambiguous);
	event = code_functions__get(m->functions, &place->words, version);
	if (place->versions)
		*ambiguous = event && is_doubted(m, &place->words, version, event);
	else
		*ambiguous = event && event->header.flags & EVENT_DOUBTFUL;
	if (event && event->state == CODE_STATE_CONFIRMED)
		return event;
	of_parent = inherited(m, place, ambiguous);
	return of_parent ? of_parent : event;
}

/* The name of a place. */
struct naming {
	struct profile_line lines[CODE_CALLS_MAX];
	size_t count;  /* of lines; 0: there is no name */
	bool is_stale; /* … because something else was there when it was read */
	bool ambiguous;
	bool is_inferred; /* … because the runtime does not describe the place */
	uint32_t sure;	  /* of the outermost lines, which are not ambiguous */
	enum code_tier tier;
};

static struct profile_line line_of(struct managed_frames *m, enum frame_note_kind kind,
				   const struct code_function_event *event, uint32_t line,
				   uint32_t column)
{
	return (struct profile_line){
		.function = function_of(m, kind, event),
		.file = profile_builder__string(m->builder, code_function__file(event)),
		.line = line,
		.column = column,
	};
}

static struct profile_line line_at_place(struct managed_frames *m,
					 const struct managed_location *place,
					 const struct code_function_event *event)
{
	const struct code_row *row = place->address ? NULL
						    : code_function__row(event, place->place);

	return line_of(m, place->words.kind, event, row ? row->line : 0, row ? row->column : 0);
}

static struct code_words words_of_call(const struct managed_location *place,
				       enum frame_note_kind kind, const struct code_call *call)
{
	return (struct code_words){.life = place->words.life,
				   .kind = kind,
				   .function = call->function,
				   .check = call->check};
}

static bool is_known(const struct code_chain_event *chain)
{
	return chain->state == CODE_STATE_CONFIRMED || chain->state == CODE_STATE_INFERRED;
}

/* The chain at a place when it was sampled; NULL: not known. Sets *ambiguous if it is in doubt. */
static const struct code_chain_event *
chain_then(const struct managed_frames *m, const struct managed_location *place, bool *ambiguous)
{
	const struct code_words words = words_of_chain(place);
	size_t version = place->chains ? place->chains - 1 : 0;
	const struct code_chain_event *chain =
		place->address ? code_functions__get(m->functions, &words, version) : NULL;

	if (!chain || !is_known(chain))
		return NULL;
	*ambiguous |= chain->state == CODE_STATE_INFERRED;
	*ambiguous |= place->chains && code_functions__versions(m->functions, &words) > version + 1;
	return chain;
}

/* ---- the function of a note ------------------------------------------------------------------ */

static const struct code_function_event *called_now(const struct managed_frames *m,
						    const struct code_words *words, bool *ambiguous)
{
	const struct code_function_event *event;
	bool doubtful;

	if (has_number(m, words)) {
		event = numbered(m, words, &doubtful);
	} else {
		event = code_functions__get(m->functions, words, 0);
		doubtful = code_functions__versions(m->functions, words) > 1;
	}
	*ambiguous |= doubtful;
	return event;
}

/* The functions that are inlined there; none: the function itself. */
static void name_by_chain(struct managed_frames *m, const struct managed_location *place,
			  struct naming *n)
{
	bool ambiguous = false;
	const struct code_chain_event *chain = chain_then(m, place, &ambiguous);

	for (size_t i = 0; chain && i < chain->call_count; i++) {
		const struct code_call *call = &chain->calls[i];
		const struct code_words called = words_of_call(place, place->words.kind, call);
		const struct code_function_event *event = called_now(m, &called, &n->ambiguous);

		if (!event || event->state != CODE_STATE_CONFIRMED) {
			n->count = 0;
			return;
		}
		n->lines[n->count++] = line_of(m, place->words.kind, event, call->line,
					       call->column);
	}
	n->ambiguous |= ambiguous;
}

/* Where frames are missing: the chain was too long, or is not one. */
static void name_cut(struct managed_frames *m, const struct managed_location *place,
		     struct naming *n)
{
	struct profile_function function = {
		.name = profile_builder__string(m->builder, "[truncated]"),
		.dso = dso_of(m, place->words.kind),
		.address = PROFILE_UNKNOWN_ADDRESS,
	};

	n->lines[n->count++].function = profile_builder__function(m->builder, &function);
}

static void name_by_function(struct managed_frames *m, const struct managed_location *place,
			     struct naming *n)
{
	const struct code_function_event *event = event_of(m, place, &n->ambiguous);

	n->is_stale = event && event->state == CODE_STATE_STALE;
	if (!event || event->state != CODE_STATE_CONFIRMED)
		return;
	n->tier = place->place ? CODE_TIER_INTERPRETED : CODE_TIER_NONE;
	name_by_chain(m, place, n);
	if (!n->count)
		n->lines[n->count++] = line_at_place(m, place, event);
}

/* ---- compiled code that is described once --------------------------------------------------- */

/* Compiled code is described once; other answers for the same code are ignored. */
static const struct code_chain_event *confirmed_chain(const struct managed_frames *m,
						      const struct managed_location *place,
						      bool *ambiguous)
{
	const struct code_words words = words_of_chain(place);
	size_t versions = code_functions__versions(m->functions, &words);
	const struct code_chain_event *found = NULL;

	*ambiguous = false;
	for (size_t i = 0; i < versions; i++) {
		const struct code_chain_event *chain = code_functions__get(m->functions, &words, i);

		if (!chain || !is_known(chain) || !chain->call_count)
			continue;
		*ambiguous = found != NULL;
		found = chain;
	}
	return found;
}

/* Was each version the same function? */
static bool is_always_one(const struct managed_frames *m, const struct code_words *words,
			  const struct code_function_event *event)
{
	size_t versions = code_functions__versions(m->functions, words);

	for (size_t i = 0; i < versions; i++) {
		const struct code_function_event *other = code_functions__get(m->functions, words,
									      i);

		if (!other || !is_one_function(event, other))
			return false;
	}
	return true;
}

/* A call's function when the chain was read; the address of a freed method may be another's. */
static const struct code_function_event *called_at(const struct managed_frames *m,
						   const struct code_words *words,
						   const struct code_chain_event *chain,
						   bool *ambiguous)
{
	const struct code_function_event *event = code_functions__at(m->functions, words,
								     chain->header.time);

	if (!event || event->state != CODE_STATE_CONFIRMED)
		return NULL;
	*ambiguous |= !is_always_one(m, words, event);
	return event;
}

/* Methods, or the stub where there are none. */
static void name_by_code(struct managed_frames *m, const struct managed_location *place,
			 struct naming *n)
{
	const struct code_chain_event *chain = confirmed_chain(m, place, &n->ambiguous);
	bool is_inferred = chain && chain->state == CODE_STATE_INFERRED && !n->ambiguous;
	bool is_stub = chain && chain->call_count == 1;
	size_t count = !chain ? 0 : is_stub ? 1 : chain->call_count - 1u;
	enum frame_note_kind kind = is_stub ? place->words.kind : ops_of(m, &place->words)->calls;

	for (; n->count < count; n->count++) {
		const struct code_call *call = &chain->calls[n->count];
		const struct code_words words = words_of_call(place, kind, call);
		const struct code_function_event *event = called_at(m, &words, chain,
								    &n->ambiguous);

		if (!event) {
			n->count = 0;
			return;
		}
		n->lines[n->count] = line_of(m, kind, event, call->line, call->column);
	}
	n->tier = is_stub ? CODE_TIER_STUB : CODE_TIER_NONE;
	if (is_inferred && !n->ambiguous)
		n->sure = (uint32_t)min_u64(chain->calls[chain->call_count - 1].line, count);
	n->ambiguous |= is_inferred;
	n->is_inferred = is_inferred;
}

/* ---- functions of a module ------------------------------------------------------------------ */

/* The function that the code at the place was, when it was sampled. */
static void name_by_module(struct managed_frames *m, const struct managed_location *place,
			   struct naming *n)
{
	const struct code_chain_event *chain = chain_then(m, place, &n->ambiguous);
	const struct code_function_event *event = NULL;

	if (chain && chain->call_count >= 2) {
		const struct code_words words = words_of_call(place, place->words.kind,
							      &chain->calls[0]);

		event = called_at(m, &words, chain, &n->ambiguous);
	}
	if (event)
		n->lines[n->count++] = line_at_place(m, place, event);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* True: its frames are a runtime's, with a name or without. */
static bool name_place(struct managed_frames *m, const struct managed_location *place,
		       struct naming *n)
{
	static void (*const name[])(struct managed_frames *, const struct managed_location *,
				    struct naming *) = {
		[NAMED_BY_FUNCTION] = name_by_function,
		[NAMED_BY_CODE] = name_by_code,
		[NAMED_BY_MODULE] = name_by_module,
		[NAMED_IF_CONFIRMED] = NULL, /* has no place */
	};
	enum note_naming naming = ops_of(m, &place->words)->naming;
	bool is_cut = naming == NAMED_BY_FUNCTION && place->words.life && !place->words.function;

	if (is_cut)
		name_cut(m, place, n);
	else
		name[naming](m, place, n);
	return !is_cut;
}

/* How many frames are in doubt because the runtime does not describe their place. */
static uint64_t resolve_place(struct managed_frames *m, const struct managed_location *place,
			      struct profile_runtime *runtime)
{
	struct naming n = {.tier = CODE_TIER_NONE};

	if (name_place(m, place, &n)) {
		runtime->frames += place->frames;
		if (!n.count)
			*(n.is_stale ? &runtime->stale : &runtime->unknown) += place->frames;
		else if (n.ambiguous)
			runtime->ambiguous += place->frames;
	}
	if (!n.count)
		return 0;
	profile_builder__resolve(m->builder, place->location, PROFILE_UNKNOWN_ADDRESS, n.lines,
				 n.count);
	profile_builder__code(m->builder, place->location, n.tier, n.ambiguous);
	profile_builder__sure_lines(m->builder, place->location, n.sure);
	return n.is_inferred ? place->frames : 0;
}

void managed_frames__resolve(struct managed_frames *m)
{
	struct profile_runtime counts[FRAME_NOTE_COUNT] = {};
	uint64_t inferred[FRAME_NOTE_COUNT] = {};

	for (size_t i = 0; i < m->places.count; i++) {
		const struct managed_location *place = &m->places.data[i];
		enum frame_note_kind kind = ops_of(m, &place->words)->counted_as;

		inferred[kind] += resolve_place(m, place, &counts[kind]);
	}
	for (unsigned int kind = 0; kind < FRAME_NOTE_COUNT; kind++) {
		const char *remedy;

		if (!counts[kind].frames)
			continue;
		counts[kind].name = profile_builder__string(m->builder, runtimes[kind].name);
		remedy = runtime_of_note(kind)->memory->doubt_remedy;
		if (remedy && inferred[kind] > counts[kind].frames / MANY_DOUBTFUL)
			counts[kind].remedy = profile_builder__string(m->builder, remedy);
		profile_builder__runtime(m->builder, &counts[kind]);
	}
}

/* ---- frames without a note ------------------------------------------------------------------- */

/* The life of a location in JIT code; 0: it is another one. */
static uint64_t life_of(const struct managed_frames *m, const struct profile_location *l,
			const uint64_t *lives, size_t count)
{
	bool is_jit = l->process.v < count &&
		      profile_builder__get_dso(m->builder, l->dso)->kind == DSO_JIT;

	return is_jit ? lives[l->process.v] : 0;
}

static int suggest_of_kind(struct managed_frames *m, enum frame_note_kind kind,
			   const uint64_t *lives, size_t count)
{
	struct code_pieces pieces = {};
	int err = code_functions__pieces(m->functions, kind, &pieces);

	for (uint32_t i = 1;
	     !err && pieces.all.count && i < profile_builder__location_count(m->builder); i++) {
		const struct location_id id = {i};
		const struct profile_location *l = profile_builder__get_location(m->builder, id);
		const uint64_t life = life_of(m, l, lives, count);
		const struct code_piece *piece;

		piece = life ? code_pieces__at(&pieces, life, l->address) : NULL;
		if (piece)
			profile_builder__fallback(m->builder, id,
						  function_of(m, kind, piece->event));
	}
	vec_free(&pieces.all);
	return err;
}

/* The function of a note at a native frame, if the code there was found to be of its kind. */
static const struct code_function_event *confirmed(const struct managed_frames *m, uint64_t life,
						   uint64_t address, enum frame_note_kind *kind)
{
	for (*kind = 0; *kind < FRAME_NOTE_COUNT; ++*kind) {
		const struct code_words *words = words_map__find(
			&m->unconfirmed,
			&(struct code_words){.life = life, .kind = *kind, .address = address});
		struct code_words function = words ? *words : (struct code_words){};
		const struct code_function_event *event;

		if (!words || !code_functions__versions(m->functions, words))
			continue;
		function.address = 0;
		function.is_chain = false;
		event = code_functions__get(m->functions, &function, 0);
		if (event && event->state == CODE_STATE_CONFIRMED)
			return event;
	}
	return NULL;
}

static void suggest_confirmed(struct managed_frames *m, const uint64_t *lives, size_t count)
{
	for (uint32_t i = 1;
	     m->unconfirmed.count && i < profile_builder__location_count(m->builder); i++) {
		const struct location_id id = {i};
		const struct profile_location *l = profile_builder__get_location(m->builder, id);
		const uint64_t life = life_of(m, l, lives, count);
		const struct code_function_event *event;
		enum frame_note_kind kind;

		event = life ? confirmed(m, life, l->address, &kind) : NULL;
		if (event)
			profile_builder__fallback(m->builder, id, function_of(m, kind, event));
	}
}

int managed_frames__suggest(struct managed_frames *m, const uint64_t *lives, size_t count)
{
	int err = 0;

	suggest_confirmed(m, lives, count);

	for (unsigned int kind = 0; kind < FRAME_NOTE_COUNT && !err; kind++)
		if (m->notes.of[kind] && m->notes.of[kind]->has_pieces)
			err = suggest_of_kind(m, kind, lives, count);
	return err;
}
