/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the function of a symbol without a size ends (hand-written assembly).
 *
 * In a whole symbol table every function has a symbol, so the next one is its end, or the next FDE.
 * A table of exported symbols alone lacks most functions, and what follows a symbol may be
 * anything. Then the end is that of the FDE which covers it, or of the code that its first
 * instruction reaches in a straight line and over short branches. Long jumps may lead to other
 * functions; assemblers write the short form to a place that they know, in the same source.
 */
#include "symbolize/symbol_extent.h"

#include "base/minmax.h"
#include "elf/elf_file.h"
#include "elf/elf_frames.h"
#include "elf/x86_code.h"

#define UNSIZED_EXTENT (64 << 10)
#define CODE_MAX       4096 /* bytes of a function that are followed */
#define SHORT_BRANCH   2    /* bytes of the instruction */

uint64_t symbol_extent_limit(const struct elf_symbol *symbol)
{
	uint64_t end = saturating_add_u64(symbol->address, UNSIZED_EXTENT);

	return symbol->section_end && symbol->section_end < end ? symbol->section_end : end;
}

static bool ends_here(const struct x86_instruction *i)
{
	return i->effect == X86_JUMP || i->effect == X86_JUMP_AWAY || i->effect == X86_RETURN ||
	       i->effect == X86_STOP;
}

static uint64_t end_by_code(const struct elf_file *file, uint64_t start)
{
	uint8_t code[CODE_MAX];
	ssize_t size = elf_file__read_at(file, start, code, sizeof(code));
	int64_t at = 0, reached = 0; /* the farthest target */
	struct x86_instruction i;

	while (at < size && x86_decode(code + at, size - at, &i)) {
		at += i.size;
		if (i.effect == X86_BRANCH && i.size == SHORT_BRANCH && at + i.amount > reached)
			reached = at + i.amount;
		if (ends_here(&i) && reached < at)
			break;
	}
	return start + at;
}

uint64_t symbol_extent_end(struct elf_file *file, bool whole, uint64_t start, uint64_t limit)
{
	struct elf_frame frame;
	bool found;

	if (!file || !elf_file__is_x86_64(file))
		return whole ? limit : start;
	found = elf_file__find_frame(file, start, &frame);
	if (whole)
		return min_u64(limit, frame.next);
	return min_u64(limit, found ? frame.end : min_u64(frame.next, end_by_code(file, start)));
}
