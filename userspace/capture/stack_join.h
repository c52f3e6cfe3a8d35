/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts a sample and the pieces of its stack that came before it in the same ring together, into one
 * EVENT_SAMPLE of EVENT_LIVE_MAX bytes at most.
 */
#ifndef CAPTURE_STACK_JOIN_H
#define CAPTURE_STACK_JOIN_H

#include <stddef.h>

#include <sysprof/event.h>

/* Of one CPU; all zero at first. */
struct stack_join {
	__u64 time;  /* of the sample that `pieces` are of */
	__u64 start; /* of the stack that is in them */
	size_t size; /* 0: none */
	__u64 holes; /* pages of it that could not be read */
	unsigned char *pieces;
	struct event_header *joined;
};

void stack_join__fini(struct stack_join *j);

/* One more piece. If it does not follow on the last one, it replaces that; without memory it is left out. */
void stack_join__piece(struct stack_join *j, const struct stack_piece *piece);

/*
 * The sample with the pieces that follow on its own copy, valid until the next call; the sample itself, where
 * there are none. Pieces are forgotten in any case: they were of a sample that found no room.
 */
struct event_header *stack_join__sample(struct stack_join *j, struct event_header *sample);

#endif
