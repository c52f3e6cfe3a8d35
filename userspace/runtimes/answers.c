/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/answers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(MANAGED_NAME_MAX <= CODE_NAME_MAX && MANAGED_FILE_MAX <= EVENT_PATH_MAX,
	       "what is read fits into an event");

/* ---- events ---------------------------------------------------------------------------------- */

static int append(struct code_answers *answers, const void *data, size_t size)
{
	if (answers->bytes.count + size > answers->limit)
		return -E2BIG;
	return vec_append(&answers->bytes, data, size);
}

/* Rows ascend in an event; of two at one offset the last one counts. */
static size_t copy_rows(struct code_row *to, const struct managed_function *f)
{
	size_t count = 0;

	for (size_t i = 0; i < f->rows.count; i++) {
		const struct managed_row *row = &f->rows.data[i];

		if (count && row->offset <= to[count - 1].offset)
			count--;
		if (count == CODE_ROWS_MAX)
			break;
		to[count++] = (struct code_row){row->offset, row->line, row->column};
	}
	return count;
}

int code_answers__function(struct code_answers *answers, const struct code_question *q,
			   enum code_state state, uint32_t base, const struct managed_function *f,
			   uint16_t flags)
{
	static union {
		struct code_function_event event;
		char bytes[sizeof(struct code_function_event) +
			   CODE_ROWS_MAX * sizeof(struct code_row) + CODE_NAME_MAX +
			   EVENT_PATH_MAX + EVENT_ALIGN];
	} e; /* a reader has one thread, and one of the collector's reads copies */
	struct code_function_event *event = &e.event;
	const char *name = f ? f->name : "", *file = f ? f->file : "";
	size_t size;
	char *text;

	*event = (struct code_function_event){
		.header = {.type = EVENT_CODE_FUNCTION, .flags = flags},
		.pid = answers->pid,
		.kind = q->kind,
		.state = state,
		.name_size = strlen(name) + 1,
		.file_size = strlen(file) + 1,
		.function = q->function,
		.check = q->check,
		.line = f ? f->line : 0,
		.column = f ? f->column : 0,
		.base = base,
	};
	event->row_count = f ? copy_rows(event->rows, f) : 0;
	text = (char *)&event->rows[event->row_count];
	size = (size_t)(text - e.bytes) + event->name_size + event->file_size;
	memset(text, 0, event_aligned(size) - (size_t)(text - e.bytes));
	memcpy(text, name, event->name_size);
	memcpy(text + event->name_size, file, event->file_size);
	event->header.size = event_aligned(size);
	return append(answers, event, event->header.size);
}

int code_answers__chain(struct code_answers *answers, const struct code_question *q,
			enum code_state state, const struct code_call *calls, unsigned int count)
{
	struct {
		struct code_chain_event event;
		struct code_call calls[CODE_CALLS_MAX];
	} e;
	size_t size = count * sizeof(*calls);

	e.event = (struct code_chain_event){
		.header = {.type = EVENT_CODE_CHAIN, .size = (uint32_t)(sizeof(e.event) + size)},
		.pid = answers->pid,
		.kind = q->kind,
		.state = state,
		.call_count = count,
		.function = q->function,
		.address = q->address,
	};
	memcpy(e.calls, calls, size);
	return append(answers, &e, e.event.header.size);
}

/* From here on pages are read once. If there is no memory for them, each object is. */
void code_answers__keep_pages(struct code_answers *answers, struct target_memory *memory)
{
	if (!answers->pages)
		answers->pages = calloc(1, sizeof(*answers->pages));
	memory->pages = answers->pages;
	target_memory__forget(memory);
}

bool code_answers__has(const struct code_answers *answers, const struct code_question *q)
{
	for (size_t i = 0; i < answers->methods.count; i++)
		if (answers->methods.data[i].kind == q->kind &&
		    answers->methods.data[i].function == q->function &&
		    answers->methods.data[i].check == q->check)
			return true;
	return false;
}

/* ---- questions ------------------------------------------------------------------------------- */

void code_answers__begin(struct found_runtimes *found)
{
	const struct runtime_memory *memory;

	for (unsigned int i = 0; (memory = runtime_memory(i)); i++)
		if (memory->begin && found->state[i])
			memory->begin(found->state[i], &found->memory);
}

int code_answers__add(struct code_answers *answers, struct found_runtimes *found,
		      const struct code_question *question)
{
	const struct runtime_memory *memory;

	if (!found->memory.reads_left)
		return -EDQUOT;
	answers->found = found;
	for (unsigned int i = 0; (memory = runtime_memory(i)); i++)
		for (size_t k = 0; found->state[i] && k < memory->note_count; k++)
			if (memory->notes[k].kind == question->kind)
				return memory->answer(found->state[i], answers, &found->memory,
						      question);
	return 0;
}

void code_answers__fini(struct code_answers *answers)
{
	vec_free(&answers->bytes);
	vec_free(&answers->methods);
	free(answers->pages);
	answers->pages = NULL;
}
