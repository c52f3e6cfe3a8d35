/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines of code symbols are copied into the current event; a full event is pushed. While all
 * addresses are zero, only a few lines are kept: if that does not change, they show that the symbols
 * are hidden.
 */
#include "stream/kallsyms_pieces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ZERO_LINES 16u

_Static_assert(sizeof(struct kallsyms_event) + KALLSYMS_PIECE_MAX + EVENT_ALIGN <= EVENT_SIZE_MAX,
	       "a piece fits an event");

int kallsyms_pieces__init(struct kallsyms_pieces *p, uint64_t time, event_push_fn push,
			  void *context)
{
	*p = (struct kallsyms_pieces){.time = time, .push = push, .context = context};
	p->event = calloc(1, EVENT_SIZE_MAX);
	return p->event ? 0 : -ENOMEM;
}

void kallsyms_pieces__fini(struct kallsyms_pieces *p)
{
	free(p->event);
}

static int push_piece(struct kallsyms_pieces *p, bool last)
{
	struct kallsyms_event *e = p->event;
	size_t size = sizeof(*e) + e->text_size;
	size_t aligned = event_aligned(size);
	int err;

	memset((char *)e + size, 0, aligned - size);
	e->header = (struct event_header){
		.size = aligned,
		.type = EVENT_KALLSYMS,
		.flags = EVENT_FROM_PROC | (p->modules ? EVENT_KALLSYMS_MODULES : 0) |
			 (last ? EVENT_KALLSYMS_LAST : 0),
		.time = p->time,
	};
	e->piece = p->piece++;
	err = p->push(p->context, &e->header);
	e->text_size = 0;
	return err;
}

/* "address type name": is it code? */
static bool is_code(const char *line, const char *end)
{
	const char *space = memchr(line, ' ', end - line);

	return space && end - space > 3 && space[2] == ' ' && strchr("tTwWi", space[1]);
}

static bool is_zero(const char *line)
{
	while (*line == '0')
		line++;
	return *line == ' ';
}

bool kallsyms_line_has_module(const char *line, size_t size)
{
	return size > 2 && line[size - 2] == ']';
}

int kallsyms_pieces__add(struct kallsyms_pieces *p, const char *line, size_t size)
{
	int err;

	if (!is_code(line, line + size) || size > KALLSYMS_PIECE_MAX)
		return 0;
	if (!p->seen_address) {
		p->seen_address = !is_zero(line);
		if (!p->seen_address && p->zero_lines++ >= ZERO_LINES)
			return 0;
	}
	if (p->modules && !kallsyms_line_has_module(line, size))
		return 0;
	if (p->event->text_size + size > KALLSYMS_PIECE_MAX) {
		err = push_piece(p, false);
		if (err)
			return err;
	}
	memcpy(p->event->text + p->event->text_size, line, size);
	p->event->text_size += size;
	return 0;
}

int kallsyms_pieces__end(struct kallsyms_pieces *p)
{
	return p->modules || p->event->text_size ? push_piece(p, true) : 0;
}
