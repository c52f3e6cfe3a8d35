/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks one event and passes it on.
 *
 * A table has a row for each type: its callback, the size of its fixed part, and its rule, a
 * function. Types of a newer recorder pass and are skipped.
 */
#include "stream/event_decode.h"

#include <errno.h>
#include <string.h>

#include "base/list_column.h"
#include "stream/symbol_blob.h"

static bool string_ends(const char *s, size_t available, size_t limit)
{
	size_t length = strnlen(s, available);

	return length < available && length < limit;
}

/* The text at `offset` of the event ends within it. */
static bool tail_ends(const void *event, size_t offset, size_t limit)
{
	const struct event_header *header = event;

	return string_ends((const char *)event + offset, header->size - offset, limit);
}

/* ---- one rule for each type ------------------------------------------------------------------ */

static bool check_cpu(uint32_t cpu)
{
	return cpu < EVENT_CPU_LIMIT || cpu == EVENT_CPU_UNKNOWN;
}

static bool check_copy(const struct sample_event *e, size_t frames)
{
	size_t left = e->header.size - sizeof(*e) - frames * sizeof(e->frames[0]);
	const struct stack_copy *copy = (const void *)&e->frames[frames];

	return left >= sizeof(*copy) && copy->size <= left - sizeof(*copy);
}

/* There may be as many groups as notes. */
static bool check_notes(const struct sample_event *e)
{
	const struct frame_note *notes = sample_notes(e);

	for (size_t i = 0; i < e->notes; i++) {
		unsigned int limit = frame_note_has_group(notes[i].kind) ? FRAME_NOTES_MAX
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
	if (e->user_end >= STACK_END_COUNT || e->from_user > 1 || !check_cpu(e->cpu))
		return false;
	for (size_t i = e->kernel_frames; i < frames; i++) {
		enum frame_kind kind = frame_kind(e->frames[i]);

		if (kind < FRAME_IP || kind >= FRAME_KIND_COUNT)
			return false;
	}
	return true;
}

static bool check_visit(const struct visit_event *e)
{
	const struct visit_account *a = &e->account;

	return e->stack.header.size == a->header.size - sizeof(*a) &&
	       e->stack.header.type == EVENT_SAMPLE && !e->stack.header.flags &&
	       check_sample(&e->stack) && a->seen <= a->header.time && a->unchanged <= a->seen &&
	       a->call >= VISIT_CALL_UNKNOWN && !(a->found & ~VISIT_ALL);
}

static bool check_visit_books(const struct visit_books_event *e)
{
	size_t room = e->header.size - offsetof(struct visit_books_event, count);

	return e->lines >= VISIT_LINE_COUNT && e->lines <= room / sizeof(e->count[0]) && e->hz;
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
	return e->source < LOST_SOURCE_COUNT && check_cpu(e->cpu);
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

/* "key\0value\0", as many as its count; keys are not empty. */
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

static bool check_cpu_times(const struct cpu_times_event *e)
{
	size_t room = e->header.size - offsetof(struct cpu_times_event, time);

	return e->cpu < EVENT_CPU_LIMIT && e->kinds >= CPU_TIME_COUNT &&
	       e->kinds <= room / sizeof(e->time[0]);
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

static bool check_jit_clock(const struct jit_clock_event *e)
{
	return e->file && e->known <= 1;
}

static bool is_runtime(unsigned int kind)
{
	static const char *const runtimes[FRAME_NOTE_COUNT] = {FRAME_NOTES(SECOND_COLUMN)};

	return kind < FRAME_NOTE_COUNT && *runtimes[kind];
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

static bool check_code_text(const struct code_text_event *e)
{
	return e->size && e->size <= CODE_TEXT_MAX && e->offset < e->size &&
	       e->count <= e->size - e->offset && e->count <= e->header.size - sizeof(*e);
}

static bool check_code_lines(const struct code_lines_event *e)
{
	size_t room = e->header.size - sizeof(*e), size = e->count * sizeof(e->rows[0]);
	const struct symbol_event *places = (const void *)&e->rows[e->count];

	if (e->count > CODE_LINES_MAX || room < size + sizeof(*places) ||
	    places->header.type != EVENT_SYMBOL || places->header.size != room - size ||
	    !check_symbol(places))
		return false;
	for (size_t i = 0; i < e->count; i++)
		if (e->rows[i].place >= places->frames ||
		    (i && e->rows[i].offset <= e->rows[i - 1].offset))
			return false;
	return true;
}

static bool check_source(const struct source_event *e)
{
	size_t room = e->header.size - sizeof(*e);

	return e->size && e->size <= SOURCE_TEXT_MAX && e->root != SOURCE_ROOT_NONE &&
	       e->offset < e->size && e->count <= e->size - e->offset && e->path_size > 1 &&
	       e->path_size <= EVENT_PATH_MAX && e->path_size <= room &&
	       e->count <= room - e->path_size &&
	       strnlen(e->data, e->path_size) == e->path_size - 1u;
}

static bool check_source_root(const struct source_root_event *e)
{
	return e->root <= SOURCE_ROOT_LAST || e->root == SOURCE_ROOT_NONE;
}

static bool check_comm(const struct comm_event *e)
{
	return string_ends(e->comm, EVENT_COMM_SIZE, EVENT_COMM_SIZE);
}

static bool check_thread(const struct thread_event *e)
{
	return string_ends(e->comm, EVENT_COMM_SIZE, EVENT_COMM_SIZE);
}

/* ---- all types ------------------------------------------------------------------------------- */

#define CALL(callback) (handler->callback ? handler->callback(handler->context, e) : 0)

static int decode_meta(const struct meta_event *e, const struct event_handler *handler)
{
	if (!handler->meta)
		return 0;
	return handler->meta(handler->context, e->text, e->text + strlen(e->text) + 1);
}

/* X(ID, the call, 0: no handler gets it; size of its fixed part, its rule), of event `e`. */
#define EVENTS(X)                                                                                  \
	X(SAMPLE, CALL(sample), sizeof(struct sample_event), check_sample(e))                      \
	X(VISIT, CALL(visit), sizeof(struct visit_event), check_visit(e))                          \
	X(VISIT_BOOKS, CALL(visit_books), sizeof(struct visit_books_event), check_visit_books(e))  \
	X(THREAD_CPU, CALL(thread_cpu), sizeof(struct thread_cpu_event), true)                     \
	X(MMAP, CALL(mmap), offsetof(struct mmap_event, path) + 1, check_mmap(e))                  \
	X(COMM, CALL(comm), sizeof(struct comm_event), check_comm(e))                              \
	X(FORK, CALL(fork), sizeof(struct task_event), true)                                       \
	X(EXIT, CALL(exit), sizeof(struct task_event), true)                                       \
	X(LOST, CALL(lost), sizeof(struct lost_event), check_lost(e))                              \
	X(PROCESS, CALL(process), offsetof(struct process_event, name) + 1, check_process(e))      \
	X(THREAD, CALL(thread), sizeof(struct thread_event), check_thread(e))                      \
	X(MAPS_READ, CALL(maps_read), sizeof(struct maps_read_event), true)                        \
	X(MEMORY, CALL(memory), sizeof(struct memory_event), true)                                 \
	X(CGROUP, CALL(cgroup), offsetof(struct cgroup_event, path) + 2, check_cgroup(e))          \
	X(FACTS, CALL(facts), sizeof(struct facts_event), check_facts(e))                          \
	X(CLOCK_ANCHOR, CALL(clock_anchor), sizeof(struct clock_anchor_event), true)               \
	X(BOOKS, CALL(books), sizeof(struct books_event), check_books(e))                          \
	X(CPU_TIMES, CALL(cpu_times), sizeof(struct cpu_times_event), check_cpu_times(e))          \
	X(META, decode_meta(e, handler), offsetof(struct meta_event, text) + 2, check_meta(e))     \
	X(OUTSIDE, CALL(outside), sizeof(struct outside_event), true)                              \
	X(KALLSYMS, CALL(kallsyms), sizeof(struct kallsyms_event), check_kallsyms(e))              \
	X(END, CALL(end), sizeof(struct event_header), true)                                       \
	X(JIT_FILE, CALL(jit_file), offsetof(struct jit_file_event, path) + 1, check_jit_file(e))  \
	X(JIT_BYTES, CALL(jit_bytes), sizeof(struct jit_bytes_event), check_jit_bytes(e))          \
	X(JIT_CLOCK, 0, sizeof(struct jit_clock_event), check_jit_clock(e))                        \
	X(CODE_FUNCTION, CALL(code_function), sizeof(struct code_function_event) + 2,              \
	  check_code_function(e))                                                                  \
	X(CODE_CHAIN, CALL(code_chain), sizeof(struct code_chain_event), check_code_chain(e))      \
	X(CODE_COPY, 0, sizeof(struct code_copy_event), check_code_copy(e))                        \
	X(CODE_RUNTIME, CALL(code_runtime), sizeof(struct code_runtime_event),                     \
	  check_code_runtime(e))                                                                   \
	X(SYMBOL_DSO, CALL(symbol_dso), sizeof(struct symbol_dso_event), true)                     \
	X(SYMBOL, CALL(symbol), sizeof(struct symbol_event), check_symbol(e))                      \
	X(CODE_TEXT, CALL(code_text), sizeof(struct code_text_event), check_code_text(e))          \
	X(CODE_LINES, CALL(code_lines), sizeof(struct code_lines_event), check_code_lines(e))      \
	X(SOURCE, CALL(source), sizeof(struct source_event), check_source(e))                      \
	X(SOURCE_ROOT, CALL(source_root), sizeof(struct source_root_event), check_source_root(e))  \
	X(SYMBOLS_END, CALL(symbols_end), sizeof(struct event_header), true)

static bool check_contents(const struct event_header *event)
{
	const void *e = event;

	switch (event->type) {
#define X(id, call, least, check)                                                                  \
	case EVENT_##id:                                                                           \
		return event->size >= (least) && (check);
		EVENTS(X)
#undef X
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
	bool is_sound = available >= sizeof(*event) && event->size <= available &&
			event_size_is_sound(event) && check_contents(event);

	return is_sound ? 0 : -EBADMSG;
}

int event_decode(const struct event_header *event, const struct event_handler *handler)
{
	const void *e = event;
	int err = event_check(event, event->size);

	if (err)
		return err;
	switch (event->type) {
#define X(id, call, size, check)                                                                   \
	case EVENT_##id:                                                                           \
		return call;
		EVENTS(X)
#undef X
	default:
		return 0;
	}
}
