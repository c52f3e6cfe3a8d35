/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checking and handing on one event.
 *
 * Two tables by type would do for the fixed structs, but nearly every type has one rule of its own;
 * so each is a small function, and the fixed size comes from one switch. Types of a newer
 * recorder are let through and skipped.
 */
#include "stream/event_decode.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "stream/symbol_blob.h"

static bool string_ends(const char *s, size_t available, size_t limit)
{
	size_t length = strnlen(s, available);

	return length < available && length < limit;
}

/* Does the text that starts at `offset` of the event end within it? */
static bool tail_ends(const void *event, size_t offset, size_t limit)
{
	const struct event_header *header = event;

	return string_ends((const char *)event + offset, header->size - offset, limit);
}

/* ---- one rule for each type ------------------------------------------------------------------ */

static bool check_copy(const struct sample_event *e, size_t frames)
{
	size_t left = e->header.size - sizeof(*e) - frames * sizeof(e->frames[0]);
	const struct stack_copy *copy = (const void *)&e->frames[frames];

	return left >= sizeof(*copy) && copy->size <= left - sizeof(*copy);
}

/* A Python frame has the number of its group, and there may be as many groups as notes. */
static bool check_notes(const struct sample_event *e)
{
	const struct frame_note *notes = sample_notes(e);

	for (size_t i = 0; i < e->notes; i++) {
		unsigned int limit = notes[i].kind == FRAME_NOTE_PYTHON ? FRAME_NOTES_MAX
									: e->user_frames;

		if (notes[i].kind == FRAME_NOTE_NONE || notes[i].kind >= FRAME_NOTE_COUNT ||
		    notes[i].frame >= limit)
			return false;
	}
	return true;
}

/* A sample has notes or a copy. */
static bool check_sample(const struct sample_event *e)
{
	size_t frames = (size_t)e->kernel_frames + e->user_frames;
	size_t room = e->header.size - sizeof(*e);

	if (e->kernel_frames > SAMPLE_KERNEL_DEPTH_MAX || e->user_frames > SAMPLE_USER_DEPTH_MAX ||
	    e->notes > FRAME_NOTES_MAX ||
	    frames * sizeof(e->frames[0]) + e->notes * sizeof(struct frame_note) > room)
		return false;
	if (e->header.flags & EVENT_STACK_COPY && (e->notes || !check_copy(e, frames)))
		return false;
	if (!check_notes(e))
		return false;
	if (e->user_end >= STACK_END_COUNT || e->from_user > 1 || e->cpu >= EVENT_CPU_LIMIT)
		return false;
	for (size_t i = e->kernel_frames; i < frames; i++) {
		enum frame_kind kind = frame_kind(e->frames[i]);

		if (kind < FRAME_IP || kind >= FRAME_KIND_COUNT)
			return false;
	}
	return true;
}

static bool check_mmap(const struct mmap_event *e)
{
	return e->build_id_size <= BUILD_ID_SIZE && e->file_state < FILE_STATE_COUNT &&
	       (e->build_id_size > 0 || !(e->header.flags & EVENT_BUILD_ID)) &&
	       e->length <= UINT64_MAX - e->start &&
	       tail_ends(e, offsetof(struct mmap_event, path), EVENT_PATH_MAX);
}

static bool check_lost(const struct lost_event *e)
{
	return e->source < LOST_SOURCE_COUNT && (e->cpu < EVENT_CPU_LIMIT || e->cpu == ~0u);
}

static bool check_process(const struct process_event *e)
{
	return e->is_target <= 1 && e->is_kernel <= 1 &&
	       tail_ends(e, offsetof(struct process_event, name), EVENT_PATH_MAX);
}

static bool check_cgroup(const struct cgroup_event *e)
{
	return e->path[0] && tail_ends(e, offsetof(struct cgroup_event, path), EVENT_PATH_MAX);
}

/* "key\0value\0", as many as it says; keys are not empty. */
static bool check_facts(const struct facts_event *e)
{
	const char *at = e->text, *end = e->text + e->size;

	if (e->state == FACTS_STATE_NONE || e->state >= FACTS_STATE_COUNT ||
	    e->count > PROCESS_FACTS_MAX || e->size > PROCESS_FACTS_SIZE ||
	    e->size > e->header.size - sizeof(*e) || e->since > e->header.time)
		return false;
	for (unsigned int i = 0; i < 2 * e->count; i++) {
		const char *zero = memchr(at, '\0', end - at);

		if (!zero || (i % 2 == 0 && zero == at))
			return false;
		at = zero + 1;
	}
	return at == end;
}

static bool check_books(const struct books_event *e)
{
	size_t room = e->header.size - offsetof(struct books_event, count);

	return e->cpu < EVENT_CPU_LIMIT && e->lines >= BOOK_COUNT &&
	       e->lines <= room / sizeof(e->count[0]);
}

/* "key\0value\0" */
static bool check_meta(const struct meta_event *e)
{
	size_t offset = offsetof(struct meta_event, text);

	if (!tail_ends(e, offset, EVENT_SIZE_MAX) || e->text[0] == '\0')
		return false;
	return tail_ends(e, offset + strlen(e->text) + 1, EVENT_SIZE_MAX);
}

static bool check_kallsyms(const struct kallsyms_event *e)
{
	return e->text_size <= e->header.size - offsetof(struct kallsyms_event, text);
}

static bool check_jit_file(const struct jit_file_event *e)
{
	return e->file && e->kind < JIT_FILE_KIND_COUNT && e->state < JIT_FILE_STATE_COUNT &&
	       tail_ends(e, offsetof(struct jit_file_event, path), EVENT_PATH_MAX);
}

static bool check_jit_bytes(const struct jit_bytes_event *e)
{
	return e->file && e->after <= e->before &&
	       e->size <= e->header.size - offsetof(struct jit_bytes_event, bytes);
}

static bool is_runtime(unsigned int kind)
{
	return kind == FRAME_NOTE_V8 || kind == FRAME_NOTE_PYTHON || kind == FRAME_NOTE_HOTSPOT ||
	       kind == FRAME_NOTE_HOTSPOT_CODE || kind == FRAME_NOTE_V8_WASM ||
	       kind == FRAME_NOTE_V8_FRAME;
}

static bool check_code_function(const struct code_function_event *e)
{
	size_t room = e->header.size - sizeof(*e), rows = e->row_count * sizeof(e->rows[0]);
	const char *name = (const char *)&e->rows[e->row_count];

	if (!is_runtime(e->kind) || e->state >= CODE_STATE_COUNT || e->row_count > CODE_ROWS_MAX ||
	    e->name_size > CODE_NAME_MAX || e->file_size > EVENT_PATH_MAX)
		return false;
	if (!e->name_size || !e->file_size || rows > room ||
	    (size_t)e->name_size + e->file_size > room - rows)
		return false;
	for (size_t i = 1; i < e->row_count; i++)
		if (e->rows[i].offset <= e->rows[i - 1].offset)
			return false;
	return strnlen(name, e->name_size) == e->name_size - 1u &&
	       strnlen(name + e->name_size, e->file_size) == e->file_size - 1u;
}

static bool check_code_chain(const struct code_chain_event *e)
{
	return is_runtime(e->kind) && e->state < CODE_STATE_COUNT &&
	       e->call_count <= CODE_CALLS_MAX &&
	       e->call_count * sizeof(e->calls[0]) <= e->header.size - sizeof(*e);
}

static bool check_code_runtime(const struct code_runtime_event *e)
{
	return is_runtime(e->kind) && e->state < CODE_RUNTIME_STATE_COUNT;
}

static bool check_code_copy(const struct code_copy_event *e)
{
	return e->head_size <= CODE_COPY_HEAD && e->name_size <= CODE_COPY_NAME &&
	       e->file_size <= CODE_COPY_FILE && e->lines_size <= e->header.size - sizeof(*e);
}

static bool check_symbol(const struct symbol_event *e)
{
	struct symbol_answer answer;

	return !symbol_event__decode(e, &answer);
}

/* ---- all types ------------------------------------------------------------------------------- */

/* The part of an event that is always there. */
static size_t fixed_size(__u16 type)
{
	switch (type) {
	case EVENT_SAMPLE:
		return sizeof(struct sample_event);
	case EVENT_THREAD_CPU:
		return sizeof(struct thread_cpu_event);
	case EVENT_MMAP:
		return offsetof(struct mmap_event, path) + 1;
	case EVENT_COMM:
		return sizeof(struct comm_event);
	case EVENT_FORK:
	case EVENT_EXIT:
		return sizeof(struct task_event);
	case EVENT_LOST:
		return sizeof(struct lost_event);
	case EVENT_PROCESS:
		return offsetof(struct process_event, name) + 1;
	case EVENT_THREAD:
		return sizeof(struct thread_event);
	case EVENT_MAPS_READ:
		return sizeof(struct maps_read_event);
	case EVENT_MEMORY:
		return sizeof(struct memory_event);
	case EVENT_CGROUP:
		return offsetof(struct cgroup_event, path) + 2;
	case EVENT_FACTS:
		return sizeof(struct facts_event);
	case EVENT_CLOCK_ANCHOR:
		return sizeof(struct clock_anchor_event);
	case EVENT_BOOKS:
		return sizeof(struct books_event);
	case EVENT_META:
		return offsetof(struct meta_event, text) + 2;
	case EVENT_OUTSIDE:
		return sizeof(struct outside_event);
	case EVENT_KALLSYMS:
		return sizeof(struct kallsyms_event);
	case EVENT_JIT_FILE:
		return offsetof(struct jit_file_event, path) + 1;
	case EVENT_JIT_BYTES:
		return sizeof(struct jit_bytes_event);
	case EVENT_CODE_FUNCTION:
		return sizeof(struct code_function_event) + 2;
	case EVENT_CODE_CHAIN:
		return sizeof(struct code_chain_event);
	case EVENT_CODE_COPY:
		return sizeof(struct code_copy_event);
	case EVENT_CODE_RUNTIME:
		return sizeof(struct code_runtime_event);
	case EVENT_SYMBOL:
		return sizeof(struct symbol_event);
	case EVENT_SYMBOL_DSO:
		return sizeof(struct symbol_dso_event);
	default: /* a header alone, or of a type that we do not know */
		return sizeof(struct event_header);
	}
}

static bool check_contents(const struct event_header *event)
{
	const void *e = event;

	switch (event->type) {
	case EVENT_SAMPLE:
		return check_sample(e);
	case EVENT_MMAP:
		return check_mmap(e);
	case EVENT_COMM:
		return string_ends(((const struct comm_event *)e)->comm, EVENT_COMM_SIZE,
				   EVENT_COMM_SIZE);
	case EVENT_LOST:
		return check_lost(e);
	case EVENT_PROCESS:
		return check_process(e);
	case EVENT_THREAD:
		return string_ends(((const struct thread_event *)e)->comm, EVENT_COMM_SIZE,
				   EVENT_COMM_SIZE);
	case EVENT_CGROUP:
		return check_cgroup(e);
	case EVENT_FACTS:
		return check_facts(e);
	case EVENT_BOOKS:
		return check_books(e);
	case EVENT_META:
		return check_meta(e);
	case EVENT_KALLSYMS:
		return check_kallsyms(e);
	case EVENT_JIT_FILE:
		return check_jit_file(e);
	case EVENT_JIT_BYTES:
		return check_jit_bytes(e);
	case EVENT_CODE_FUNCTION:
		return check_code_function(e);
	case EVENT_CODE_CHAIN:
		return check_code_chain(e);
	case EVENT_CODE_RUNTIME:
		return check_code_runtime(e);
	case EVENT_CODE_COPY:
		return check_code_copy(e);
	case EVENT_SYMBOL:
		return check_symbol(e);
	default:
		return true;
	}
}

bool event_size_is_sound(const struct event_header *event)
{
	bool copied = event->type == EVENT_SAMPLE && event->flags & EVENT_STACK_COPY;

	return event->size >= sizeof(*event) && event->size % EVENT_ALIGN == 0 &&
	       event->size <= (copied ? EVENT_LIVE_MAX : EVENT_SIZE_MAX);
}

int event_check(const struct event_header *event, size_t available)
{
	if (available < sizeof(*event) || event->size > available || !event_size_is_sound(event))
		return -EBADMSG;
	if (event->size < fixed_size(event->type) || !check_contents(event))
		return -EBADMSG;
	return 0;
}

#define CALL(callback) (handler->callback ? handler->callback(handler->context, e) : 0)

static int decode_meta(const struct meta_event *e, const struct event_handler *handler)
{
	if (!handler->meta)
		return 0;
	return handler->meta(handler->context, e->text, e->text + strlen(e->text) + 1);
}

int event_decode(const struct event_header *event, const struct event_handler *handler)
{
	const void *e = event;
	int err = event_check(event, event->size);

	if (err)
		return err;
	switch (event->type) {
	case EVENT_SAMPLE:
		return CALL(sample);
	case EVENT_THREAD_CPU:
		return CALL(thread_cpu);
	case EVENT_MMAP:
		return CALL(mmap);
	case EVENT_COMM:
		return CALL(comm);
	case EVENT_FORK:
		return CALL(fork);
	case EVENT_EXIT:
		return CALL(exit);
	case EVENT_LOST:
		return CALL(lost);
	case EVENT_PROCESS:
		return CALL(process);
	case EVENT_THREAD:
		return CALL(thread);
	case EVENT_MAPS_READ:
		return CALL(maps_read);
	case EVENT_MEMORY:
		return CALL(memory);
	case EVENT_CGROUP:
		return CALL(cgroup);
	case EVENT_FACTS:
		return CALL(facts);
	case EVENT_CLOCK_ANCHOR:
		return CALL(clock_anchor);
	case EVENT_BOOKS:
		return CALL(books);
	case EVENT_META:
		return decode_meta(e, handler);
	case EVENT_OUTSIDE:
		return CALL(outside);
	case EVENT_KALLSYMS:
		return CALL(kallsyms);
	case EVENT_END:
		return CALL(end);
	case EVENT_JIT_FILE:
		return CALL(jit_file);
	case EVENT_JIT_BYTES:
		return CALL(jit_bytes);
	case EVENT_CODE_FUNCTION:
		return CALL(code_function);
	case EVENT_CODE_CHAIN:
		return CALL(code_chain);
	case EVENT_CODE_RUNTIME:
		return CALL(code_runtime);
	case EVENT_SYMBOL_DSO:
		return CALL(symbol_dso);
	case EVENT_SYMBOL:
		return CALL(symbol);
	case EVENT_SYMBOLS_END:
		return CALL(symbols_end);
	default:
		return 0;
	}
}
