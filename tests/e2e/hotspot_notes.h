/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way of a stack's names from the notes of its frames to a profile: as the programs in the kernel note them, as a reader
 * answers, and as a profile then has them. Nothing of the stack but its notes gets there.
 */
#ifndef TESTS_E2E_HOTSPOT_NOTES_H
#define TESTS_E2E_HOTSPOT_NOTES_H

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sysprof/profile_builder.h>

#include "base/clocks.h"
#include "models/hotspot_walk.h"
#include "runtimes/hotspot/answers.h"
#include "runtimes/hotspot/heap.h"
#include "runtimes/hotspot/hotspot.h"
#include "runtimes/hotspot/layout.h"
#include "runtimes/hotspot/names.h"
#include "runtimes/place/code_functions.h"
#include "runtimes/place/managed_frames.h"
#include "runtimes/runtime.h"
#include "stream/event_decode.h"
#include "world/recorder.h"

#define NOTED_FRAMES 512
#define ANSWER_LIMIT (2u << 20)

struct naming {
	struct hotspot_found found;
	bool began;
	struct code_functions *functions; /* all events so far */
	struct profile_builder *builder;  /* of the stack */
	struct managed_frames *managed;
	const struct profile *profile;
	union {
		struct sample_event e;
		char bytes[sizeof(struct sample_event) + NOTED_FRAMES * 8 +
			   FRAME_NOTES_MAX * sizeof(struct frame_note)];
	} sample;
	__u64 frames[NOTED_FRAMES];
	uint64_t requested, stale, unanswered;
	/* of methods: with that name, with another one, with none, flagged */
	uint64_t methods, right, other, unnamed, ambiguous, lines, lines_right;
	uint64_t stubs, stubs_named, shown;
};

/* A method of the stack, as it was read at the stop. */
struct expected_frame {
	char name[MANAGED_NAME_MAX];
	uint32_t line; /* 0: not known */
	size_t frame;  /* of the stack */
};

/* 0, -ENOMEM. */
static inline int naming__init(struct naming *n, const struct hotspot_layout *layout,
			       const struct hotspot_code *code)
{
	*n = (struct naming){.functions = code_functions__new()};
	n->found.is_read = true;
	n->found.layout = *layout;
	n->found.code = *code;
	return n->functions ? 0 : -ENOMEM;
}

static inline void expected_frame__read(struct expected_frame *e,
					const struct hotspot_layout *layout,
					struct target_memory *memory, uint64_t method,
					int32_t index, size_t frame)
{
	struct managed_function f = {};
	const struct managed_row *row;
	struct hotspot_method m;

	e->name[0] = '\0';
	e->line = 0;
	e->frame = frame;
	if (hotspot_method__read(layout, memory, method, &m) ||
	    hotspot_method__describe(layout, memory, &m, &f))
		return;
	memcpy(e->name, f.name, sizeof(e->name));
	row = index < 0 ? NULL : managed_function__row(&f, (uint32_t)index);
	e->line = row ? row->line : 0;
	managed_function__fini(&f);
}

/* What the walk has seen of a frame, as a note. False: it has none. */
static inline bool make_note(const struct hotspot_layout *l, struct target_memory *memory,
			     const struct hotspot_seen *seen, struct frame_note *note)
{
	uint32_t compile_id, method;
	uint64_t check;

	if (seen->what == HOTSPOT_FRAME_INTERPRETED) {
		note->kind = FRAME_NOTE_HOTSPOT;
		note->function = seen->method;
		if (target_memory__word(memory, &check, seen->method + l->at[HOTSPOT_CONST_METHOD]))
			return false;
		note->check = check;
		note->place = seen->bytecode ? (uint32_t)(seen->bytecode - check) : 0;
		return true;
	}
	if (!seen->blob.address ||
	    target_memory__u32(memory, &compile_id,
			       seen->blob.address + l->at[HOTSPOT_COMPILE_ID]) ||
	    target_memory__u32(memory, &method, seen->blob.address + l->at[HOTSPOT_METHOD_OF]))
		return false;
	note->kind = FRAME_NOTE_HOTSPOT_CODE;
	note->function = seen->blob.address;
	note->check = (uint64_t)compile_id << 32 | method;
	note->place = (uint32_t)(seen->pc - seen->blob.address);
	return true;
}

/* A sample with the notes of a stack, and its frames in a profile of its own. */
static inline void naming__sample(struct naming *n, struct target_memory *memory,
				  const uint64_t *ips, const struct hotspot_seen *seen,
				  const bool *is_java, size_t count)
{
	const struct process_life process = {.number.serial = 1};
	struct sample_event *e = &n->sample.e;
	struct sample_frames frames;
	struct frame_note *notes;

	if (!n->began)
		java_runtime.memory->begin(&n->found, memory);
	n->began = true;
	memset(e, 0, sizeof(*e));
	e->header.time = monotonic_ns();
	e->user_frames = count;
	for (size_t i = 0; i < count; i++)
		e->frames[i] = frame_pack(i ? FRAME_TABLE : FRAME_IP, ips[i]);
	notes = (struct frame_note *)(e->frames + count);
	for (size_t i = 0; i < count && e->notes < FRAME_NOTES_MAX; i++) {
		struct frame_note note = {.frame = i};

		if (is_java[i] && make_note(n->found.code.layout, memory, &seen[i], &note))
			notes[e->notes++] = note;
	}
	n->builder = profile_builder__new();
	n->managed = managed_frames__new(n->builder, NULL, n->functions);
	managed_frames__of(n->managed, &process, e, &frames);
	memcpy(n->frames, frames.frames, frames.count * sizeof(n->frames[0]));
}

/* As runtimes/ask/code asks. */
static inline struct code_question question_of_note(const struct sample_event *e,
						    const struct frame_note *note)
{
	struct code_question q = {.kind = note->kind,
				  .function = note->function,
				  .check = note->check,
				  .time = e->header.time};

	if (note->kind == FRAME_NOTE_HOTSPOT_CODE)
		q.address = note_code_address(note, e->frames[note->frame]);
	return q;
}

static inline void report(struct naming *n, struct event_header *event)
{
	const struct code_function_event *f = (void *)event;
	const struct code_chain_event *c = (void *)event;
	const struct code_words words = {
		.life = 1, .kind = f->kind, .function = f->function, .check = f->check};

	if (event->type == EVENT_CODE_CHAIN) {
		n->stale += c->state == CODE_STATE_STALE;
		code_functions__add_chain(n->functions, 1, c);
		return;
	}
	n->stale += f->state == CODE_STATE_STALE;
	/* as runtimes/ask/code reports it: that something is gone counts where it had been there */
	if (f->state == CODE_STATE_CONFIRMED ||
	    (f->state == CODE_STATE_STALE && code_functions__versions(n->functions, &words)))
		code_functions__add(n->functions, 1, f);
}

/* What the process says of them now. */
static inline void naming__read(struct naming *n, struct target_memory memory, uint64_t now)
{
	struct sample_event *e = &n->sample.e;
	struct code_answers answers = {.pid = 1, .limit = ANSWER_LIMIT};

	for (size_t i = 0; i < e->notes; i++) {
		struct code_question q = question_of_note(e, &sample_notes(e)[i]);

		n->requested++;
		n->unanswered += java_runtime.memory->answer(&n->found, &answers, &memory, &q) != 0;
	}
	for (size_t at = 0; at < answers.bytes.count;) {
		struct event_header *event = (void *)(answers.bytes.data + at);

		if (event_check(event, answers.bytes.count - at))
			abort();
		event->time = now;
		at += event->size;
		report(n, event);
	}
	code_answers__fini(&answers);
}

/* The frame as the profile has it; NULL: it is no frame of a runtime. The profile is that of the sample. */
static inline const struct profile_location *naming__location(struct naming *n, size_t frame)
{
	char why[200] = "";

	if (!n->profile) {
		managed_frames__resolve(n->managed);
		if (profile_builder__finish(n->builder, &n->profile, why, sizeof(why))) {
			fprintf(stderr, "profile: %s\n", why);
			abort();
		}
	}
	if (n->frames[frame] >> FRAME_KIND_SHIFT != FRAME_MANAGED)
		return NULL;
	return &n->profile->locations[managed_frames__location(n->managed, n->frames[frame]).v];
}

/* ---- right or wrong -------------------------------------------------------------------------- */

static inline const char *name_of(const struct profile *p, const struct profile_line *line)
{
	const struct profile_function *f = &p->functions[line->function.v];

	return profile__string(p, f->full_name.v ? f->full_name : f->name);
}

/* A wrong name without a mark, and all that it came from. */
static inline void show_other(const struct naming *n, const struct profile_location *l, size_t k,
			      const struct expected_frame *expected)
{
	const struct sample_event *e = &n->sample.e;
	const struct profile_line *lines = &n->profile->lines[l->first_line];

	printf("noted: %s, not %s; frame %zu of %u; %" PRIu64 " unloads since %" PRIu64
	       ", sample %" PRIu64 "\n",
	       k < l->line_count ? name_of(n->profile, &lines[k]) : "-", expected->name,
	       expected->frame, e->user_frames, n->found.unloads.count, n->found.unloads.since,
	       (uint64_t)e->header.time);
	for (size_t i = 0; i < e->notes; i++) {
		const struct frame_note *note = &sample_notes(e)[i];
		const struct code_words words = {.life = 1,
						 .kind = note->kind,
						 .function = note->function,
						 .check = note->check};
		const struct code_function_event *f;

		if (note->frame != expected->frame)
			continue;
		printf("    kind %u function %#" PRIx64 " check %#" PRIx64 " place %u\n",
		       note->kind, (uint64_t)note->function, (uint64_t)note->check, note->place);
		for (size_t v = 0; (f = code_functions__get(n->functions, &words, v)); v++)
			printf("    told at %" PRIu64 ": state %u, flags %#x, %s\n",
			       (uint64_t)f->header.time, f->state, f->header.flags,
			       code_function__name(f));
	}
}

/* The methods of a frame: all of them, in this order and at these lines, or none. */
static inline void judge_frame(struct naming *n, const struct profile_location *l,
			       const struct expected_frame *expected, size_t count)
{
	const struct profile_line *lines = &n->profile->lines[l->first_line];
	size_t k = 0;

	n->methods += count;
	n->ambiguous += l->ambiguous ? count : 0;
	if (l->unnamed) {
		n->unnamed += count;
		return;
	}
	for (; k < count && l->line_count == count; k++) {
		if (strcmp(name_of(n->profile, &lines[k]), expected[k].name))
			break;
		n->lines += expected[k].line != 0;
		n->lines_right += expected[k].line && lines[k].line == expected[k].line;
	}
	n->right += k;
	n->other += l->ambiguous ? 0 : count - k;
	if (k < count && !l->ambiguous && n->shown++ < 6)
		show_other(n, l, k, &expected[k]);
}

static inline void judge_stub(struct naming *n, const struct profile_location *l)
{
	n->stubs++;
	n->stubs_named += !l->unnamed && l->line_count == 1 &&
			  *name_of(n->profile, &n->profile->lines[l->first_line]) == '[';
}

static inline void naming__judge(struct naming *n, const struct hotspot_seen *seen, size_t count,
				 const struct expected_frame *expected, size_t expected_count)
{
	for (size_t i = 0, k = 0; i < count; i++) {
		const struct profile_location *l = naming__location(n, i);
		size_t first = k;

		while (k < expected_count && expected[k].frame == i)
			k++;
		if (!l)
			continue;
		if (seen[i].what == HOTSPOT_FRAME_STUB)
			judge_stub(n, l);
		else if (seen[i].what != HOTSPOT_FRAME_UNMOUNTED && k > first)
			judge_frame(n, l, expected + first, k - first);
	}
}

/* "code ADDRESS NAME" of each compiled method. */
static inline void print_compiled(const struct hotspot_blobs *blobs,
				  const struct hotspot_layout *layout, struct target_memory *memory)
{
	for (size_t i = 0; i < blobs->list.count; i++) {
		const struct hotspot_blob *b = &blobs->list.data[i];
		struct managed_function f = {};
		struct hotspot_method m;

		if (b->method && !hotspot_method__read(layout, memory, b->method, &m) &&
		    !hotspot_method__describe(layout, memory, &m, &f))
			printf("code %#" PRIx64 " %s\n", b->code, f.name);
		managed_function__fini(&f);
	}
}

static inline void naming__print(const struct naming *n)
{
	if (!n->functions)
		return;
	printf("total noted %" PRIu64 "\ntotal noted_right %" PRIu64 "\ntotal noted_other %" PRIu64
	       "\ntotal noted_unnamed %" PRIu64 "\ntotal noted_ambiguous %" PRIu64 "\n",
	       n->methods, n->right, n->other, n->unnamed, n->ambiguous);
	printf("total noted_lines %" PRIu64 "\ntotal noted_lines_right %" PRIu64
	       "\ntotal stubs_noted %" PRIu64 "\ntotal stubs_named %" PRIu64 "\n",
	       n->lines, n->lines_right, n->stubs, n->stubs_named);
	printf("total notes_asked %" PRIu64 "\ntotal notes_stale %" PRIu64
	       "\ntotal notes_unanswered %" PRIu64 "\n",
	       n->requested, n->stale, n->unanswered);
}

static inline void naming__end(struct naming *n)
{
	managed_frames__free(n->managed);
	profile_builder__free(n->builder);
	n->managed = NULL;
	n->builder = NULL;
	n->profile = NULL;
}

#endif
