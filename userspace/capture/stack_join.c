/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/stack_join.h"

#include <stdlib.h>
#include <string.h>

#include "stream/event_decode.h"

#define PIECES_SIZE (STACK_PIECES * STACK_PIECE_MAX)

void stack_join__fini(struct stack_join *j)
{
	free(j->pieces);
	free(j->joined);
	*j = (struct stack_join){};
}

void stack_join__piece(struct stack_join *j, const struct stack_piece *piece)
{
	size_t size = piece->header.size > sizeof(*piece) ? piece->header.size - sizeof(*piece) : 0;

	if (!j->pieces)
		j->pieces = malloc(PIECES_SIZE);
	if (!j->joined)
		j->joined = malloc(EVENT_LIVE_MAX);
	if (!j->pieces || !j->joined)
		return;
	if (!j->size || piece->start != j->start + j->size || piece->header.time != j->time) {
		j->time = piece->header.time;
		j->start = piece->start;
		j->size = 0;
		j->holes = 0;
	}
	if (size > PIECES_SIZE - j->size)
		return;
	memcpy(j->pieces + j->size, piece->stack, size);
	j->holes |= piece->holes << (j->size / STACK_PAGE);
	j->size += size;
}

struct event_header *stack_join__sample(struct stack_join *j, struct event_header *sample)
{
	const struct sample_event *s = (const struct sample_event *)sample;
	size_t pieces = j->size, at;
	struct stack_copy *copy;

	j->size = 0;
	if (!pieces || j->time != sample->time || !(sample->flags & EVENT_STACK_COPY) ||
	    event_check(sample, sample->size))
		return sample;
	at = sizeof(*s) + ((size_t)s->kernel_frames + s->user_frames) * sizeof(s->frames[0]);
	copy = (struct stack_copy *)((char *)sample + at);
	at += sizeof(*copy) + copy->size;
	if (copy->start + copy->size != j->start || copy->size > STACK_PIECE_MAX + STACK_PAGE ||
	    at % EVENT_ALIGN || at + pieces > EVENT_LIVE_MAX)
		return sample;
	memcpy(j->joined, sample, at);
	memcpy((char *)j->joined + at, j->pieces, pieces);
	copy = (struct stack_copy *)((char *)j->joined + at - sizeof(*copy) - copy->size);
	copy->size += pieces;
	copy->holes |= j->holes << (j->start / STACK_PAGE - copy->start / STACK_PAGE);
	j->joined->size = at + pieces;
	return j->joined;
}
