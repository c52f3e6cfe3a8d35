/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where compiled code goes on. The place that is described next in memory need not be the next that is run: a loop goes
 * back before it gets there, and what lies behind a jump is something else.
 */
#include "runtimes/hotspot/ahead.h"

#include <string.h>

#include "base/minmax.h"
#include "base/x86_code.h"

#define AHEAD_BYTES 512u
#define CALL_BYTES  5u

/* Is it behind a call? Else an instruction begins one byte before. */
static bool is_behind_call(const uint8_t *end)
{
	return end[-5] == 0xe8 || (end[-2] == 0xff && (end[-1] & 0xf8) == 0xd0);
}

struct way {
	uint32_t from, to; /* of the code */
	int64_t target;	   /* of the jump that was met */
};

static bool is_inside(const struct hotspot_blob *blob, int64_t target)
{
	return target >= 0 && target < (int64_t)(blob->code_end - blob->code);
}

/* One instruction after the other, up to the first that leads elsewhere for sure or as a loop does. */
static enum hotspot_ahead walk(const struct hotspot_blob *blob, const uint8_t *code, struct way *w)
{
	struct x86_instruction i;

	for (uint32_t at = w->from; at < w->to; at += i.size) {
		if (!x86_decode(code + (at - w->from), w->to - at, &i))
			return HOTSPOT_AHEAD_ON;
		w->target = (int64_t)at + i.size + i.amount;
		if (i.effect == X86_RETURN)
			return HOTSPOT_AHEAD_RETURNS;
		if (i.effect == X86_JUMP)
			return is_inside(blob, w->target) ? HOTSPOT_AHEAD_AT : HOTSPOT_AHEAD_ON;
		if (i.effect == X86_JUMP_AWAY || i.effect == X86_STOP)
			return HOTSPOT_AHEAD_ON;
		if (i.effect == X86_BRANCH && w->target < (int64_t)w->from &&
		    is_inside(blob, w->target))
			return HOTSPOT_AHEAD_LOOPS;
	}
	return HOTSPOT_AHEAD_ON;
}

enum hotspot_ahead hotspot_ahead(struct target_memory *memory, const struct hotspot_blob *blob,
				 uint32_t distance, uint32_t next, uint32_t *target)
{
	uint32_t size = min_u64(next - distance, AHEAD_BYTES);
	uint8_t code[CALL_BYTES + AHEAD_BYTES];
	struct way w = {.from = distance, .to = distance + size};
	const uint8_t *from = code + CALL_BYTES;
	enum hotspot_ahead ahead;

	if (distance < CALL_BYTES || next <= distance ||
	    target_memory__read(memory, code, CALL_BYTES + size,
				blob->code + distance - CALL_BYTES))
		return HOTSPOT_AHEAD_ON;
	if (!is_behind_call(from)) {
		w.from--;
		from--;
	}
	ahead = walk(blob, from, &w);
	*target = (uint32_t)w.target;
	return ahead;
}
