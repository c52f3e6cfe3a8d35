/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/hotspot/bytecodes.h"

#include <errno.h>
#include <string.h>

#define CODE_MAX   65536u
#define PASSES_MAX 64u /* over a method: a loop in it takes one more */

enum {
	OP_IINC = 0x84,
	OP_FIRST_IF = 0x99, /* to if_acmpne */
	OP_LAST_IF = 0xa6,
	OP_GOTO = 0xa7,
	OP_JSR = 0xa8,
	OP_RET = 0xa9,
	OP_TABLESWITCH = 0xaa,
	OP_LOOKUPSWITCH = 0xab,
	OP_FIRST_RETURN = 0xac,
	OP_LAST_RETURN = 0xb1,
	OP_FIRST_INVOKE = 0xb6, /* invokevirtual, to invokedynamic */
	OP_INVOKESPECIAL = 0xb7,
	OP_INVOKESTATIC = 0xb8,
	OP_LAST_INVOKE = 0xba,
	OP_ATHROW = 0xbf,
	OP_WIDE = 0xc4,
	OP_IFNULL = 0xc6,
	OP_IFNONNULL = 0xc7,
	OP_GOTO_W = 0xc8,
	OP_JSR_W = 0xc9,
	OP_FAST_INVOKEVFINAL = 0xe3,
	OP_FAST_LINEARSWITCH = 0xe4,
	OP_FAST_BINARYSWITCH = 0xe5,
	OP_RETURN_REGISTER_FINALIZER = 0xe8,
	OP_INVOKEHANDLE = 0xe9,
	OP_COUNT = 0xee,
};

/*
 * Bytes of each, from 0x00 on; 0: not of one length, or not to be met. A fast one that stands for
 * two (0xdd and others) has left the second in place.
 */
static const char lengths[OP_COUNT + 1] =
	/* 00 */ "1111111111111111"
		 /* 10 */ "2323322222111111"
		 /* 20 */ "1111111111111111"
		 /* 30 */ "1111112222211111"
		 /* 40 */ "1111111111111111"
		 /* 50 */ "1111111111111111"
		 /* 60 */ "1111111111111111"
		 /* 70 */ "1111111111111111"
		 /* 80 */ "1111311111111111"
		 /* 90 */ "1111111113333333"
		 /* a0 */ "3333333332001111"
		 /* b0 */ "1133333335532311"
		 /* c0 */ "3311043355033333"
		 /* d0 */ "3333333333331111"
		 /* e0 */ "22230023133312";

static int32_t read_s2(const unsigned char *at)
{
	return (int16_t)(at[0] << 8 | at[1]);
}

static int32_t read_s4(const unsigned char *at)
{
	return (int32_t)((uint32_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3]);
}

static bool is_switch(unsigned int op)
{
	return op == OP_TABLESWITCH || op == OP_LOOKUPSWITCH || op == OP_FAST_LINEARSWITCH ||
	       op == OP_FAST_BINARYSWITCH;
}

static bool is_invoke(unsigned int op)
{
	return (op >= OP_FIRST_INVOKE && op <= OP_LAST_INVOKE) || op == OP_FAST_INVOKEVFINAL ||
	       op == OP_INVOKEHANDLE;
}

enum hotspot_call hotspot_call__read(const unsigned char *code, uint32_t size, uint32_t at,
				     uint16_t *index)
{
	unsigned int op = at + 3 <= size ? code[at] : OP_COUNT;

	if (op == OP_COUNT)
		return HOTSPOT_CALL_OTHER;
	memcpy(index, code + at + 1, sizeof(*index)); /* the JVM has put its own there */
	if (op == OP_FIRST_INVOKE || op == OP_FAST_INVOKEVFINAL)
		return HOTSPOT_CALL_FINAL;
	return op == OP_INVOKESPECIAL || op == OP_INVOKESTATIC ? HOTSPOT_CALL_DIRECT
							       : HOTSPOT_CALL_OTHER;
}

static bool is_return(unsigned int op)
{
	return (op >= OP_FIRST_RETURN && op <= OP_LAST_RETURN) ||
	       op == OP_RETURN_REGISTER_FINALIZER;
}

/* The targets of a switch: the default one, then `count` others, each `step` bytes on. */
struct targets {
	uint32_t first, count, step, end;
};

static bool read_switch(const unsigned char *code, uint32_t size, uint32_t at, struct targets *t)
{
	const uint32_t operands = (at + 4) & ~3u;
	int64_t count;

	if (operands + 12 > size)
		return false;
	t->first = operands;
	if (code[at] == OP_TABLESWITCH) {
		count = (int64_t)read_s4(code + operands + 8) - read_s4(code + operands + 4) + 1;
		t->step = 4;
		t->end = operands + 12;
	} else {
		count = read_s4(code + operands + 4);
		t->step = 8;
		t->end = operands + 8;
	}
	if (count < 0 || count > (int64_t)(size - t->end) / t->step)
		return false;
	t->count = (uint32_t)count;
	t->end += t->count * t->step;
	return true;
}

/* 0: it is none, or cut off. */
static uint32_t length_at(const unsigned char *code, uint32_t size, uint32_t at)
{
	unsigned int op = code[at];
	uint32_t length = op < OP_COUNT ? (uint32_t)(lengths[op] - '0') : 0;
	struct targets t;

	if (is_switch(op))
		length = read_switch(code, size, at, &t) ? t.end - at : 0;
	else if (op == OP_WIDE)
		length = at + 1 < size && code[at + 1] == OP_IINC ? 6 : 4;
	return length <= size - at ? length : 0;
}

/* ---- reaching -------------------------------------------------------------------------------- */

enum { STARTS = 1, FORWARD = 2, BACKWARD = 4, AROUND = 8 };

struct method {
	const unsigned char *code;
	uint32_t size;
	const struct hotspot_way *way;
	unsigned char *marks; /* of each byte */
	bool has_changed, is_bad;
	uint32_t at;	/* whose successors are met */
	int64_t target; /* the first of them */
};

static bool is_end(const struct method *m, uint32_t at)
{
	return m->way->to < 0 ? is_return(m->code[at]) : at == (uint32_t)m->way->to;
}

/* Is one of the successors marked? Or marks them all. */
static bool meet(struct method *m, int64_t to, unsigned char mark, bool set)
{
	if (to < 0 || to >= m->size || !(m->marks[to] & STARTS)) {
		m->is_bad = true;
		return false;
	}
	m->target = to < m->target ? to : m->target;
	if (set && !(m->marks[to] & mark)) {
		m->marks[to] |= mark;
		m->has_changed = true;
	}
	return m->marks[to] & mark;
}

static bool meet_switch(struct method *m, uint32_t at, unsigned char mark, bool set)
{
	struct targets t;
	bool met;

	if (!read_switch(m->code, m->size, at, &t))
		return false;
	met = meet(m, (int64_t)at + read_s4(m->code + t.first), mark, set);
	for (uint32_t i = 0; i < t.count; i++) {
		uint32_t entry = t.end - (i + 1) * t.step + t.step - 4;

		met |= meet(m, (int64_t)at + read_s4(m->code + entry), mark, set);
	}
	return met;
}

static bool meet_successors(struct method *m, uint32_t at, unsigned char mark, bool set)
{
	const unsigned char *code = m->code + at;
	unsigned int op = *code;
	bool is_if = (op >= OP_FIRST_IF && op <= OP_LAST_IF) || op == OP_IFNULL ||
		     op == OP_IFNONNULL || op == OP_JSR;
	bool met = false;

	m->at = at;
	if (is_return(op) || op == OP_ATHROW || op == OP_RET)
		return false;
	if (is_switch(op))
		return meet_switch(m, at, mark, set);
	if (is_if || op == OP_GOTO)
		met = meet(m, (int64_t)at + read_s2(code + 1), mark, set);
	if (op == OP_GOTO_W || op == OP_JSR_W)
		met = meet(m, (int64_t)at + read_s4(code + 1), mark, set);
	if (op != OP_GOTO && op != OP_GOTO_W)
		met |= meet(m, (int64_t)at + length_at(m->code, m->size, at), mark, set);
	return met;
}

static bool find_starts(struct method *m)
{
	for (uint32_t at = 0, length; at < m->size; at += length) {
		length = length_at(m->code, m->size, at);
		if (!length)
			return false;
		m->marks[at] |= STARTS;
	}
	return true;
}

/* A way ends where it began, too: what is described there was passed. */
static void go_forward(struct method *m)
{
	for (uint32_t at = 0; at < m->size; at++)
		if ((m->marks[at] & FORWARD) && !is_end(m, at) && at != (uint32_t)m->way->from)
			meet_successors(m, at, FORWARD, true);
}

static void go_backward(struct method *m)
{
	for (uint32_t at = m->size; at-- > 0;) {
		bool is_marked = (m->marks[at] & (FORWARD | BACKWARD)) == FORWARD;
		bool is_passed = at == (uint32_t)m->way->from && m->way->is_done;

		if (is_marked && (!is_passed || is_end(m, at)) &&
		    (is_end(m, at) || meet_successors(m, at, BACKWARD, false))) {
			m->marks[at] |= BACKWARD;
			m->has_changed = true;
		}
	}
}

static bool repeat(struct method *m, void (*pass)(struct method *))
{
	for (unsigned int i = 0; i < PASSES_MAX; i++) {
		m->has_changed = false;
		pass(m);
		if (!m->has_changed)
			return !m->is_bad;
	}
	return false;
}

static void go_around(struct method *m)
{
	for (uint32_t at = 0; at < m->size; at++)
		if ((m->marks[at] & (AROUND | BACKWARD)) == (AROUND | BACKWARD) && !is_end(m, at) &&
		    (at != (uint32_t)m->way->from || !m->way->is_place))
			meet_successors(m, at, AROUND, true);
}

/* A loop that the way can go round, without its beginning. */
static void add_loop(struct method *m, struct hotspot_way *way, uint32_t first, uint32_t last)
{
	for (uint32_t at = 0; at < m->size; at++)
		m->marks[at] &= ~AROUND;
	m->marks[first] |= AROUND;
	if (first == (uint32_t)way->from && way->is_place)
		return;
	if (!repeat(m, go_around) || !(m->marks[last] & AROUND))
		return;
	if (way->loop_count < HOTSPOT_WAY_LOOPS) {
		way->loop[way->loop_count].first = first;
		way->loop[way->loop_count].last = last;
	}
	way->loop_count++;
}

int hotspot_way__find(const unsigned char *code, uint32_t size, struct hotspot_way *way)
{
	static unsigned char marks[CODE_MAX]; /* a reader has one thread */
	struct method m = {.code = code, .size = size, .way = way, .marks = marks};
	const uint32_t from = (uint32_t)way->from;

	way->is_there = way->loops = false;
	way->call_count = way->loop_count = way->length = 0;
	if (!size || size > CODE_MAX || from >= size || way->to >= (int64_t)size)
		return -ENODATA;
	memset(marks, 0, size);
	if (!find_starts(&m) || !(marks[from] & STARTS))
		return -ENODATA;
	marks[from] |= way->is_done ? 0 : FORWARD;
	meet_successors(&m, from, FORWARD, true);
	if (m.is_bad || !repeat(&m, go_forward) || !repeat(&m, go_backward))
		return -ENODATA;
	for (uint32_t at = 0; at < size; at++) {
		if (!(marks[at] & BACKWARD))
			continue;
		way->is_there |= is_end(&m, at);
		way->length++;
		m.target = size;
		meet_successors(&m, at, BACKWARD, false);
		if (m.target <= (int64_t)at) {
			way->loops = true;
			add_loop(&m, way, (uint32_t)m.target, at);
		}
		if (!is_invoke(code[at]) || is_end(&m, at) || (at == from && way->is_done))
			continue;
		if (way->call_count < HOTSPOT_WAY_CALLS)
			way->calls[way->call_count] = at;
		way->call_count++;
	}
	return 0;
}
