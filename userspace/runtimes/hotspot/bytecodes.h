/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ways through the bytecodes of a method. The JVM replaces bytecodes by faster ones while it runs;
 * these are as long. Handlers of exceptions are not followed: compiled code seldom has them.
 */
#ifndef RUNTIMES_HOTSPOT_BYTECODES_H
#define RUNTIMES_HOTSPOT_BYTECODES_H

#include <stdbool.h>
#include <stdint.h>

#define HOTSPOT_WAY_CALLS 32u
#define HOTSPOT_WAY_LOOPS 8u

/* Ways in a method from one bytecode to another, without passing the first one again. */
struct hotspot_way {
	int32_t from;
	bool is_done;  /* `from` has run already: it is not on the way */
	bool is_place; /* `from` cannot be in a loop on the way */
	int32_t to;    /* -1: to any return */
	/* what is found */
	bool is_there;		 /* there is one */
	bool loops;		 /* … with a bytecode that leads back */
	unsigned int loop_count; /* of these, loops on it; all of them, */
	struct {
		uint32_t first, last;
	} loop[HOTSPOT_WAY_LOOPS];	   /* … of which these are kept */
	unsigned int length;		   /* bytecodes that can be on it */
	unsigned int call_count;	   /* of these, calls; all of them, */
	uint32_t calls[HOTSPOT_WAY_CALLS]; /* … of which these are kept */
	bool has_inlined;		   /* one of them may be inlined: between.c */
};

/* 0; -ENODATA: these are no bytecodes, or they are not understood. */
int hotspot_way__find(const unsigned char *code, uint32_t size, struct hotspot_way *way);

/* Calls that lead to one method, which the class's table of calls has. */
enum hotspot_call {
	HOTSPOT_CALL_OTHER,
	HOTSPOT_CALL_DIRECT,
	HOTSPOT_CALL_FINAL, /* or to a virtual method, which the table has no address of */
};

/* *index: in the table. */
enum hotspot_call hotspot_call__read(const unsigned char *code, uint32_t size, uint32_t at,
				     uint16_t *index);

#endif
