/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PyPy's code uses the frame pointer for its own frame, which is in the heap (rpython/jit/backend/x86:
 * ebp is the jitframe). Its stack frame has one size in all of its code, FRAME_FIXED_SIZE words of
 * arch.py, which differs from version to version. Each piece ends with the same instructions, that
 * give both figures:
 *
 *	mov OFFSET(%rsp),%rbp; add $SIZE,%rsp; ret
 *
 * So memory without a file is searched for those. The figures that come most often are taken, for a
 * constant may look like them.
 */
#include "capture/pypy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "capture/process_memory.h"

#define CHUNK	     (64u * 1024)
#define SEARCHED_MAX (4u << 20) /* bytes of all areas */
#define END_SIZE     13		/* of these instructions, at most */
#define FRAME_MAX    4096u
#define KINDS_MAX    16

struct kind {
	uint32_t size, offset; /* as in the instructions */
	uint32_t seen;
};

struct search {
	struct kind kinds[KINDS_MAX];
	size_t count;
};

static void note(struct search *s, uint32_t size, uint32_t offset)
{
	size_t i = 0;

	/* calls are made with a stack pointer that is a multiple of 16 */
	if (size % 16 != 8 || size > FRAME_MAX || offset % 8 || offset >= size)
		return;
	while (i < s->count && (s->kinds[i].size != size || s->kinds[i].offset != offset))
		i++;
	if (i == KINDS_MAX)
		return;
	if (i == s->count)
		s->kinds[s->count++] = (struct kind){.size = size, .offset = offset};
	s->kinds[i].seen++;
}

/* `code` has END_SIZE bytes. */
static void look_at(struct search *s, const unsigned char *code)
{
	static const unsigned char MOV[] = {0x48, 0x8b, 0x6c, 0x24}, LONG[] = {0x48, 0x81, 0xc4},
				   SHORT[] = {0x48, 0x83, 0xc4};
	const unsigned char *add = code + sizeof(MOV) + 1;
	uint32_t size;

	if (memcmp(code, MOV, sizeof(MOV)) || code[4] > 0x7f)
		return;
	memcpy(&size, add + 3, sizeof(size));
	if (!memcmp(add, LONG, sizeof(LONG)) && add[7] == 0xc3)
		note(s, size, code[4]);
	else if (!memcmp(add, SHORT, sizeof(SHORT)) && add[3] <= 0x7f && add[4] == 0xc3)
		note(s, add[3], code[4]);
}

static void search_chunk(struct search *s, const unsigned char *code, size_t size)
{
	const unsigned char *end = code + size;

	while ((code = memchr(code, 0x48, end - code)) && end - code >= END_SIZE)
		look_at(s, code++);
}

/* How much of it was there. */
static size_t search_area(struct search *s, pid_t pid, const struct made_area *area,
			  unsigned char *chunk, size_t limit)
{
	uint64_t at = area->start;
	size_t done = 0;

	while (at < area->end && done < limit) {
		size_t size = area->end - at < CHUNK ? area->end - at : CHUNK;

		if (process_memory__read(pid, chunk, size, at))
			break;
		search_chunk(s, chunk, size);
		done += size;
		/* instructions that straddle two chunks are whole in the second */
		at += size < CHUNK ? size : CHUNK - END_SIZE + 1;
	}
	return done;
}

static const struct kind *most_seen(const struct search *s)
{
	const struct kind *best = NULL;

	for (size_t i = 0; i < s->count; i++)
		if (!best || s->kinds[i].seen > best->seen)
			best = &s->kinds[i];
	return best;
}

int pypy__frames(pid_t pid, const struct made_area *areas, size_t area_count,
		 struct made_frame **frames, size_t *count)
{
	_cleanup_free_ unsigned char *chunk = malloc(CHUNK);
	struct search s = {};
	const struct kind *kind;
	size_t left = SEARCHED_MAX;

	*frames = NULL;
	*count = 0;
	if (!chunk)
		return -ENOMEM;
	for (size_t i = 0; i < area_count && left; i++) {
		size_t done = search_area(&s, pid, &areas[i], chunk, left);

		left -= done < left ? done : left;
	}
	kind = most_seen(&s);
	if (!kind)
		return -ENODATA;
	*frames = calloc(area_count, sizeof(**frames));
	if (!*frames)
		return -ENOMEM;
	for (size_t i = 0; i < area_count; i++)
		(*frames)[(*count)++] = (struct made_frame){
			.start = areas[i].start,
			.end = areas[i].end,
			.size = kind->size + 8,
			.fp_offset = (int32_t)kind->offset - (int32_t)kind->size - 8,
		};
	return 0;
}
