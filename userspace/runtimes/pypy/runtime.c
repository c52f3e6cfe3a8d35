/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PyPy's code uses the frame pointer for its own frame, which is in the heap
 * (rpython/jit/backend/x86: ebp is the jitframe). Its stack frame has one size in all traces,
 * FRAME_FIXED_SIZE words of arch.py, which differs from version to version. Each trace ends with
 * the same instructions, which have both numbers:
 *
 *	mov OFFSET(%rsp),%rbp; add $SIZE,%rsp; ret
 *
 * So memory without a file is searched for those. The most frequent numbers are taken, because a
 * constant may look like them.
 *
 * Traces call helpers that were made before them, and these call the runtime, mostly the garbage
 * collector. A helper either makes room for that, which traces never do in such small steps, or
 * takes its argument from the stack when it returns:
 *
 *	sub $ROOM,%rsp; ...; call *%r11; ...; add $ROOM,%rsp (or lea ROOM(%rsp),%rsp)
 *	mov 8(%rsp),%rdi; ...; call *%r11; ...; ret $8
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/vec.h"
#include "runtimes/table.h"
#include "runtimes/target_memory.h"

#define SEARCHED_MAX (4u << 20) /* bytes of all areas, each time */
#define END_SIZE     13		/* of a trace's last instructions, at most */
#define FRAME_MAX    4096u
#define KINDS_MAX    16
#define HELPER_MAX   512u /* bytes, from its call's preparation to its end */
#define FRAMES_MAX   4096u

struct kind {
	uint32_t size, offset; /* as in the instructions */
	uint32_t seen;
};

struct search {
	pid_t pid;
	unsigned char *code; /* of one area */
	size_t size;
	struct kind kinds[KINDS_MAX];
	size_t kind_count;
	VEC(struct made_frame) frames;
};

/* The start of an area. False: it cannot be read. */
static bool read_area(struct search *s, const struct made_area *area, size_t limit)
{
	s->size = min_u64(area->end - area->start, limit);
	return s->size && !process_memory__read(s->pid, s->code, s->size, area->start);
}

static bool is_at(const struct search *s, size_t at, const char *bytes, size_t size)
{
	return size <= s->size - at && !memcmp(s->code + at, bytes, size);
}

#define IS_AT(s, at, bytes) is_at(s, at, bytes, sizeof(bytes) - 1)

/* The first byte from `at` on that is `byte`, before `end`; else `end`. */
static size_t find_byte(const struct search *s, size_t at, size_t end, unsigned char byte)
{
	const unsigned char *found = at < end ? memchr(s->code + at, byte, end - at) : NULL;

	return found ? (size_t)(found - s->code) : end;
}

/* ---- the frame of traces --------------------------------------------------------------------- */

static void note_kind(struct search *s, uint32_t size, uint32_t offset)
{
	size_t i = 0;

	/* calls are made with a stack pointer that is a multiple of 16 */
	if (size % 16 != 8 || size > FRAME_MAX || offset % 8 || offset >= size)
		return;
	while (i < s->kind_count && (s->kinds[i].size != size || s->kinds[i].offset != offset))
		i++;
	if (i == KINDS_MAX)
		return;
	if (i == s->kind_count)
		s->kinds[s->kind_count++] = (struct kind){.size = size, .offset = offset};
	s->kinds[i].seen++;
}

static void look_for_end(struct search *s, size_t at)
{
	const unsigned char *code = s->code + at;
	uint32_t size;

	if (!IS_AT(s, at, "\x48\x8b\x6c\x24") || s->size - at < END_SIZE || code[4] > 0x7f)
		return;
	memcpy(&size, code + 8, sizeof(size));
	if (IS_AT(s, at + 5, "\x48\x81\xc4") && code[12] == 0xc3)
		note_kind(s, size, code[4]);
	else if (IS_AT(s, at + 5, "\x48\x83\xc4") && code[8] <= 0x7f && code[9] == 0xc3)
		note_kind(s, code[8], code[4]);
}

static const struct kind *find_kind(struct search *s, const struct made_area *areas, size_t count)
{
	const struct kind *best = NULL;
	size_t left = SEARCHED_MAX;

	for (size_t i = 0; i < count && left; i++) {
		bool there = read_area(s, &areas[i], left);

		left -= s->size; /* read or not */
		for (size_t at = 0; there && (at = find_byte(s, at, s->size, 0x48)) < s->size; at++)
			look_for_end(s, at);
	}
	for (size_t i = 0; i < s->kind_count; i++)
		if (!best || s->kinds[i].seen > best->seen)
			best = &s->kinds[i];
	return best;
}

/* ---- helpers --------------------------------------------------------------------------------- */

static size_t helper_limit(const struct search *s, size_t at)
{
	return min_u64(s->size, at + HELPER_MAX);
}

/* Where the room made before `at` is given back; 0: nowhere. */
static size_t find_giving_back(const struct search *s, size_t at, unsigned char room)
{
	const char add[] = {0x48, (char)0x83, (char)0xc4, (char)room};
	const char lea[] = {0x48, (char)0x8d, 0x64, 0x24, (char)room};
	size_t end = helper_limit(s, at);

	for (; (at = find_byte(s, at, end, 0x48)) < end; at++)
		if (is_at(s, at, add, sizeof(add)) || is_at(s, at, lea, sizeof(lea)))
			return at;
	return 0;
}

/* Where `ret $8` ends; 0: nowhere. */
static size_t find_return(const struct search *s, size_t at)
{
	size_t end = helper_limit(s, at);

	for (; (at = find_byte(s, at, end, 0xc2)) < end; at++)
		if (IS_AT(s, at, "\xc2\x08\x00"))
			return at + 3;
	return 0;
}

/* The frame of a helper from here on, if it is one: [*start, *end) of its code has that frame. */
static bool is_helper(const struct search *s, size_t at, const struct kind *kind, size_t *start,
		      size_t *end, struct made_frame *frame)
{
	if (IS_AT(s, at, "\x48\x8b\x7c\x24\x08")) {
		*start = at;
		*end = find_return(s, at);
		*frame = (struct made_frame){.size = 16, .ra_offset = -16};
		return *end;
	}
	if (IS_AT(s, at, "\x48\x83\xec") && s->size - at > 3) {
		unsigned char room = s->code[at + 3];

		*start = at + 4;
		if (room > 0x7f || room % 16 != 8 || room == kind->size)
			return false;
		*end = find_giving_back(s, *start, room);
		*frame = (struct made_frame){.size = room + 8, .ra_offset = -8};
		return *end > *start;
	}
	return false;
}

static int add_frame(struct search *s, uint64_t start, uint64_t end, struct made_frame frame)
{
	frame.start = start;
	frame.end = end;
	return start < end ? vec_push(&s->frames, frame) : 0;
}

/* Traces, but for the helpers among them. */
static int add_area(struct search *s, const struct made_area *area, const struct kind *kind)
{
	const struct made_frame trace = {
		.size = kind->size + 8,
		.fp_offset = (int32_t)kind->offset - (int32_t)kind->size - 8,
		.ra_offset = -8,
	};
	size_t from = 0, at = 0, start, end;
	struct made_frame helper;
	int err = 0;

	while ((at = find_byte(s, at, s->size, 0x48)) < s->size && !err &&
	       s->frames.count < FRAMES_MAX) {
		if (!is_helper(s, at++, kind, &start, &end, &helper))
			continue;
		err = add_frame(s, area->start + from, area->start + start, trace)
			      ?: add_frame(s, area->start + start, area->start + end, helper);
		at = from = end;
	}
	/* nothing is known of what was not read, or not searched for helpers */
	if (err || s->frames.count >= FRAMES_MAX)
		return err;
	return add_frame(s, area->start + from, area->start + s->size, trace);
}

static int frame_sizes(const struct frame_sizes_request *request, struct made_frame **frames,
		       size_t *count)
{
	_cleanup_free_ unsigned char *code = malloc(SEARCHED_MAX);
	struct search s = {.pid = (pid_t)request->runtime->tgid, .code = code};
	const struct made_area *areas = request->areas;
	const struct kind *kind;
	size_t left = SEARCHED_MAX;
	int err = 0;

	*frames = NULL;
	*count = 0;
	if (!code)
		return -ENOMEM;
	kind = find_kind(&s, areas, request->area_count);
	for (size_t i = 0; kind && i < request->area_count && !err; i++) {
		bool there = left && read_area(&s, &areas[i], left);

		left -= left ? s.size : 0;
		if (there)
			err = add_area(&s, &areas[i], kind);
	}
	if (err) {
		vec_free(&s.frames);
		return err;
	}
	*frames = s.frames.data;
	*count = s.frames.count;
	return *count ? 0 : -ENODATA;
}

const struct runtime pypy_runtime = {
	.name = "PyPy",
	.files = {{"pypy", false}, {"libpypy", false}},
	.remedy = "it cannot write one; --jit off has its interpreter's functions instead",
	.lacks = NO_TRACES,
	.by = MADE_BY_PYPY,
	.frame_sizes = frame_sizes,
};
