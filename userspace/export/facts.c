/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/facts.h"

#include <string.h>

struct described {
	const char *name, *text;
	bool flag; /* of a line: it is a loss; of an end: the stack is complete; of a frame: exact */
};

static const struct described book_lines[] = {
#define X(id, name, loss, text) [BOOK_##id] = {name, text, loss},
	BOOK_LINES(X)
#undef X
};

static const struct described stack_ends[] = {
#define X(id, name, complete, text) [STACK_END_##id] = {name, text, complete},
	STACK_ENDS(X)
#undef X
};

static const struct described frame_kinds[] = {
#define X(id, name, exact, text) [FRAME_##id] = {name, text, exact},
	FRAME_KINDS(X)
#undef X
};

static const char *const lost_sources[LOST_SOURCE_COUNT] = {
	[LOST_SAMPLES] = "samples that the kernel could not write",
	[LOST_SIDEBAND] = "process and mapping records that the kernel could not write",
	[LOST_LATE] = "events that came too late to be put in order",
	[LOST_RECORDING] = "damaged chunks of the recording",
};

const char *frame_kind_name(enum frame_kind kind)
{
	return frame_kinds[kind].name;
}

const char *frame_kind_text(enum frame_kind kind)
{
	return frame_kinds[kind].text;
}

bool book_line_is_loss(enum book_line line)
{
	return book_lines[line].flag;
}

const char *book_line_name(enum book_line line)
{
	return book_lines[line].name;
}

const char *book_line_text(enum book_line line)
{
	return book_lines[line].text;
}

const char *stack_end_name(enum stack_end end)
{
	return stack_ends[end].name;
}

const char *stack_end_text(enum stack_end end)
{
	return stack_ends[end].text;
}

bool stack_end_is_complete(enum stack_end end)
{
	return stack_ends[end].flag;
}

const char *lost_source_text(enum lost_source source)
{
	return lost_sources[source];
}

static void add_books(struct export_facts *facts, const struct profile_cpu_books *books)
{
	if (books->period) {
		facts->due_known = true;
		facts->due += books->due;
	}
	facts->received += books->received;
	for (unsigned int line = 0; line < BOOK_COUNT; line++) {
		facts->lines[line] += books->count[line];
		if (book_line_is_loss(line))
			facts->lost += books->count[line];
	}
}

void export_facts__init(struct export_facts *facts, const struct profile *p)
{
	*facts = (struct export_facts){
		.duration = p->end > p->start ? p->end - p->start : 0,
	};
	for (size_t i = 1; i < p->thread_count; i++) {
		uint64_t cpu = profile_thread__cpu(&p->threads[i]);

		facts->cpu += cpu;
		if (p->threads[i].sample_count) {
			facts->threads++;
		} else {
			facts->silent_threads++;
			facts->silent_cpu += cpu;
		}
	}
	for (size_t i = 0; i < p->books_count; i++)
		add_books(facts, &p->books[i]);
}

const char *dso_display_name(const struct profile *p, struct dso_id id)
{
	const struct profile_dso *dso = &p->dsos[id.v];
	const char *name = profile__string(p, dso->name);

	switch (dso->kind) {
	case DSO_KERNEL:
		return *name && strcmp(name, "[kernel]") ? name : "[kernel.kallsyms]";
	case DSO_JIT:
		return "[jit]";
	case DSO_VDSO:
		return *name ? name : "[vdso]";
	case DSO_FILE:
		return *name ? name : "[unknown]";
	case DSO_NONE:
	case DSO_UNKNOWN:
		break;
	}
	return "[unknown]";
}
