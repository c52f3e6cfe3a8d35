/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/v8/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "runtimes/runtime.h"
#include "runtimes/table.h"
#include "runtimes/v8/answers.h"
#include "runtimes/v8/code.h"
#include "runtimes/v8/heap.h"
#include "runtimes/v8/layout.h"
#include "runtimes/v8/script.h"
#include "runtimes/v8/v8.h"
#include "runtimes/v8/wasm.h"
#include "tenants/tenant_user.h"

/* ---- in a reader ----------------------------------------------------------------------------- */

#define KNOWN_FILES 8u

struct cached_layout {
	struct file_stamp stamp;
	uint32_t user;
	bool is_there;
	struct v8_layout layout;
	struct v8_bytecodes bytecodes;
};

/*
 * The constants of a file. To find the bytecodes takes a search of all constants of a program, a
 * millisecond or more, so they are kept for programs that are started often. What a file system
 * says of its files counts for the user of the process only.
 */
static bool read_file(const struct runtime_lookup *lookup, struct v8_found *found)
{
	static struct cached_layout files[KNOWN_FILES]; /* a reader has one thread */
	static unsigned int next;

	for (unsigned int i = 0; i < KNOWN_FILES; i++) {
		const struct cached_layout *known = &files[i];

		if (!known->is_there || known->user != lookup->user ||
		    memcmp(&known->stamp, &lookup->stamp, sizeof(known->stamp)) != 0)
			continue;
		found->layout = known->layout;
		found->bytecodes = known->bytecodes;
		return true;
	}
	if (!v8_layout__read(&found->layout, lookup->file))
		return false;
	v8_bytecodes__read(lookup->file, &found->bytecodes);
	if (lookup->user != TENANT_UNKNOWN)
		files[next++ % KNOWN_FILES] = (struct cached_layout){
			lookup->stamp, lookup->user, true, found->layout, found->bytecodes};
	return true;
}

static void find(void *state, struct runtime_lookup *lookup)
{
	struct v8_found *found = state;
	bool readable;

	if (found->is_read)
		return;
	readable = read_file(lookup, found);
	if (found->layout.verdict != V8_ABSENT) {
		found->verdict = found->layout.verdict;
		found->was_looked_for = true;
	}
	if (!readable)
		return;
	found->scripts = v8_scripts__new();
	found->reported = calloc(V8_FUNCTIONS_REPORTED, sizeof(*found->reported));
	if (!found->scripts || !found->reported)
		return;
	v8_reader__init(&found->reader, &found->layout, found->scripts);
	found->is_read = true;
}

static void fini(void *state)
{
	struct v8_found *found = state;

	v8_scripts__free(found->scripts);
	free(found->reported);
	v8_wasm__free(found->wasm);
}

static void begin(void *state, struct target_memory *memory)
{
	struct v8_found *found = state;

	(void)memory;
	if (found->wasm)
		v8_wasm__begin(found->wasm);
}

static int answer(void *state, struct code_answers *answers, struct target_memory *memory,
		  const struct code_question *q)
{
	struct v8_found *found = state;

	found->reader.memory = memory;
	return q->kind == FRAME_NOTE_V8	       ? v8_answers__function(answers, found, q)
	       : q->kind == FRAME_NOTE_V8_WASM ? v8_answers__wasm(answers, found, q)
					       : v8_answers__frame(answers, found, q);
}

#define CLOSURE 24 /* of a JSFunction: the fields behind those of any object */

struct runtime_v8 v8_info(const struct v8_layout *v8)
{
	struct runtime_v8 info = {
		.context = v8->off_context,
		.function = v8->off_function,
		.bytecode_offset = v8->off_bytecode_offset,
		.shared = v8->off_shared - 1, /* less the tag */
		.typed = v8->frames_made,
		.typed_leaf = v8->frames_made_leaf,
		.wasm = v8->frame_wasm > 0 && v8->frame_wasm < V8_FRAME_TYPES
				? (uint32_t)v8->frame_wasm
				: 0,
	};

	info.closure = info.shared - 16; /* the words on both sides */
	if (!v8->has_number)
		return info;
	info.closure = CLOSURE - 1;
	info.number = v8->sfi_literal_id - 1;
	if (v8->sfi_unique_id > 0)
		return info;
	info.script = v8->sfi_script - 1;
	info.script_id = v8->script_id + 4 - 1; /* the upper half of a Smi */
	return info;
}

/* Are the words within what the kernel reads below the frame pointer? */
static bool are_near(const struct runtime_v8 *info)
{
	const int32_t offsets[] = {info->context, info->function, info->bytecode_offset};

	return !any_of(offsets, sizeof(offsets) / sizeof(offsets[0]), offset,
		       *offset >= 0 || *offset < -(int32_t)RUNTIME_V8_FRAME || *offset % 8);
}

static void describe(const void *state, struct runtime_findings *findings,
		     struct runtime_finding *own)
{
	const struct v8_found *found = state;

	*own = (struct runtime_finding){
		.is_seen = found->is_read,
		.is_there = found->is_read,
		.is_read = found->is_read,
		.verdict = found->was_looked_for ? found->verdict : V8_ABSENT,
		.version = {found->layout.major, found->layout.minor, found->layout.build},
	};
	if (!found->is_read)
		return;
	findings->info.v8 = v8_info(&found->layout);
	if (are_near(&findings->info.v8))
		findings->info.has |= RUNTIME_V8;
}

/* ---- in the collector ------------------------------------------------------------------------ */

static bool returns_to(uint64_t frame)
{
	enum frame_kind kind = frame_kind(frame);

	return kind == FRAME_POINTER || kind == FRAME_TABLE || kind == FRAME_INFERRED ||
	       kind == FRAME_LEAF_PEEK;
}

/* The place in the code of the frame. False: its address is unknown. */
static bool place_question(const struct sample_event *e, const struct frame_note *note,
			   struct code_question *question)
{
	uint64_t frame = e->frames[e->kernel_frames + note->frame];

	question->is_leaf = !note->frame;
	question->address = frame_address(frame) - !question->is_leaf;
	return question->is_leaf || returns_to(frame);
}

static unsigned int list_questions(const struct sample_event *e, const struct frame_note *note,
				   struct code_question *questions)
{
	questions[1] = questions[0];
	return 1 + place_question(e, note, &questions[1]);
}

/* The innermost frame, unless it has a note: maybe another function of its caller's module. */
static bool leaf_question(const struct sample_event *e, struct code_question *question)
{
	const struct frame_note *notes = sample_notes(e);

	for (size_t i = 0; i < e->notes; i++)
		if (notes[i].kind == FRAME_NOTE_V8_WASM && !notes[i].frame)
			return false;
	question->is_leaf = true;
	question->address = frame_address(e->frames[e->kernel_frames]);
	return true;
}

/* The instance of a module alone identifies no function. */
static unsigned int wasm_questions(const struct sample_event *e, const struct frame_note *note,
				   struct code_question *questions)
{
	unsigned int count;

	questions[1] = questions[0];
	count = note->frame == 1 && leaf_question(e, &questions[0]);
	return count + place_question(e, note, &questions[count]);
}

/*
 * The function of WebAssembly around the frame comes first: its place shows where such code is, also
 * that between functions and JavaScript.
 */
static unsigned int typed_questions(const struct sample_event *e, const struct frame_note *note,
				    struct code_question *questions)
{
	const struct code_question type = questions[0];
	const struct frame_note *wasm = note, *end = sample_notes(e) + e->notes;
	unsigned int count = 0;

	while (wasm < end && wasm->kind != FRAME_NOTE_V8_WASM)
		wasm++;
	if (wasm < end && wasm->frame) {
		questions[0] = (struct code_question){
			.function = wasm->function, .time = type.time, .kind = wasm->kind};
		count = place_question(e, wasm, &questions[0]);
	}
	questions[count++] = type;
	questions[count] = type;
	return count + place_question(e, note, &questions[count]);
}

/*
 * Compiled code is known by its address: what it has in the word for a place may look like one. A
 * leaf may be two frames: code in V8's file is called by compiled code without a frame of its own,
 * and the words beside the frame pointer are the caller's. But V8's own functions of JavaScript
 * have frames, and no file.
 */
static struct note_placing place(const struct frame_note *note, uint64_t native,
				 bool (*is_made)(const void *context, uint64_t address),
				 const void *context)
{
	uint64_t address = frame_user_address(native);

	if (is_made(context, address))
		return (struct note_placing){.address = address};
	return (struct note_placing){
		.has_callee = !note->frame && !note->place && frame_kind(native) == FRAME_IP,
		.is_native = note->kind == FRAME_NOTE_V8_WASM && note->frame,
	};
}

static const struct note_ops notes[] = {
	{.kind = FRAME_NOTE_V8,
	 .counted_as = FRAME_NOTE_V8,
	 .calls = FRAME_NOTE_V8,
	 .is_urgent = true,
	 .lasting = CODE_NUMBERED,
	 .needs_check = true, /* old recordings have functions by their addresses alone */
	 .questions = list_questions,
	 .place = place},
	{.kind = FRAME_NOTE_V8_WASM,
	 .counted_as = FRAME_NOTE_V8_WASM,
	 .calls = FRAME_NOTE_V8_WASM,
	 .naming = NAMED_BY_MODULE,
	 .names_leaf = true,
	 .questions = wasm_questions,
	 .place = place},
	{.kind = FRAME_NOTE_V8_FRAME,
	 .counted_as = FRAME_NOTE_V8,
	 .calls = FRAME_NOTE_V8_FRAME,
	 .naming = NAMED_IF_CONFIRMED,
	 .lasting = CODE_STAYS,
	 .questions = typed_questions},
};

static void judge(const struct runtime_finding *found, const struct runtime *runtime,
		  const char *version, struct surveyed_runtime *judgement)
{
	(void)version;
	if (!found->is_read) {
		surveyed_runtime__judge(judgement, SURVEY_BAD, "%s: %s", runtime->lacks,
					v8_verdict__text(found->verdict));
		judgement->remedy = runtime->remedy;
		return;
	}
	if (found->version[0])
		snprintf(judgement->version, sizeof(judgement->version), "V8 %u.%u.%u",
			 found->version[0], found->version[1], found->version[2]);
	surveyed_runtime__judge(
		judgement, found->verdict == V8_NAMES_ONLY ? SURVEY_PARTLY : SURVEY_GOOD,
		"functions are read from its memory: %s", v8_verdict__text(found->verdict));
}

static const struct runtime_memory v8_memory = {
	.home = &node_runtime,
	.bits = RUNTIME_V8,
	.notes = notes,
	.note_count = sizeof(notes) / sizeof(notes[0]),
	.state_size = sizeof(struct v8_found),
	.find = find,
	.fini = fini,
	.begin = begin,
	.answer = answer,
	.describe = describe,
	.judge = judge,
};

#define ON_V8(id, NAME, REMEDY, ...)                                                               \
	const struct runtime id##_runtime = {.name = NAME,                                         \
					     .files = {__VA_ARGS__},                               \
					     .remedy = REMEDY,                                     \
					     .lacks = NO_NAMES,                                    \
					     .keeps_frame_pointers = true,                         \
					     .memory = &v8_memory}
#define CHROME "start it with --js-flags=--perf-basic-prof --no-sandbox"

ON_V8(node, "Node.js", "start it with node --perf-basic-prof (NODE_OPTIONS works too)",
      {"node", true}, {"nodejs", true}, {"libnode.so", false}, {"nsolid", true});
ON_V8(deno, "Deno", "start it with --v8-flags=--perf-basic-prof", {"deno", true});
ON_V8(chrome, "Chrome", CHROME, {"chrome", true}, {"chromium", true});
ON_V8(electron, "Electron", CHROME, {"electron", true});
