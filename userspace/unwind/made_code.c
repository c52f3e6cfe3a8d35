/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All code of a process has one table. Its areas lie far apart, so in the table they lie one behind
 * the other, and each has its own bias.
 *
 * If nothing is known of the code, the kernel side sends a copy of the stack. Then the process is read; if
 * that gives no frames, unwinding the copy ends there, too. The code may be replaced without any truncated
 * stack (LuaJIT frees all of its traces at once), so processes are read again from time to time. Reading
 * takes at most a twentieth of one CPU. A process that never gives frames is read rarely, and its code is
 * unwound by frame pointer.
 */
#include "unwind/made_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/vec.h"

#define ASK_NS	      5000000ull   /* between two questions at least */
#define ASK_IDLE_NS   200000000ull /* when nobody misses anything */
#define ASK_VAIN_NS   1000000000ull
#define ASK_DIVISOR   20 /* of the time may be spent on asking */
#define FAILURES_MAX  16
#define OFFSETS_ALIGN ((uint64_t)UNWIND_BUCKET_SIZE)

/* Code in one area, from the first that is known up to the area's end or that of the code. */
struct made_range {
	uint64_t start, end, bias;
};

struct made_process {
	struct made_runtime runtime;
	struct made_frame *frames; /* as it told them */
	size_t count;
	VEC(struct made_range) ranges;
	struct table_number number;
	uint64_t next_question; /* not before */
	uint64_t asked;
	unsigned int failures; /* since it told of something new */
};

struct made_code {
	struct made_code_options options;
	VEC(struct made_process) processes;
	uint64_t next_question; /* to any of them */
};

struct made_code *made_code__new(const struct made_code_options *options)
{
	struct made_code *m = calloc(1, sizeof(*m));

	if (m)
		m->options = *options;
	return m;
}

static void process__fini(struct made_process *p)
{
	free(p->frames);
	vec_free(&p->ranges);
}

void made_code__free(struct made_code *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->processes.count; i++)
		process__fini(&m->processes.data[i]);
	vec_free(&m->processes);
	free(m);
}

static struct made_process *find(const struct made_code *m, uint32_t tgid)
{
	for (size_t i = 0; i < m->processes.count; i++)
		if (m->processes.data[i].runtime.tgid == tgid)
			return &m->processes.data[i];
	return NULL;
}

void made_code__forget(struct made_code *m, uint32_t tgid)
{
	struct made_process *p = find(m, tgid);

	if (!p)
		return;
	process__fini(p);
	*p = m->processes.data[--m->processes.count];
}

/* ---- where it lies --------------------------------------------------------------------------- */

static bool has_table(const struct made_code *m, const struct made_process *p)
{
	return p->count && table_store__owns(m->options.store, &p->number);
}

/* The first range that ends above the address. */
static const struct made_range *range_above(const struct made_process *p, uint64_t address)
{
	size_t low = 0, high = p->ranges.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (p->ranges.data[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < p->ranges.count ? &p->ranges.data[low] : NULL;
}

void made_code__place(const struct made_code *m, uint32_t tgid, uint64_t start, uint64_t end,
		      struct unwind_placement *piece)
{
	const struct made_process *p = find(m, tgid);
	const struct made_range *range = p && has_table(m, p) ? range_above(p, start) : NULL;
	bool vain = p && p->failures >= FAILURES_MAX;

	*piece = (struct unwind_placement){
		.start = start, .end = end, .table = vain ? UNWIND_NO_TABLE : UNWIND_LATER};
	if (!range || range->start >= end)
		return;
	if (range->start > start) {
		piece->end = range->start;
		return;
	}
	if (range->end < end)
		piece->end = range->end;
	piece->table = p->number.number;
	piece->bias = range->bias;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* The frames of one area, which lie behind `offset` in the table. */
static int add_range(struct made_process *p, const struct made_frame *first,
		     const struct made_frame *last, uint64_t *offset)
{
	uint64_t low = first->start & (OFFSETS_ALIGN - 1);
	struct made_range range = {
		.start = first->start,
		.end = last->end,
		.bias = first->start - low - *offset,
	};

	*offset += (last->end - first->start + low + OFFSETS_ALIGN) & ~(OFFSETS_ALIGN - 1);
	return vec_push(&p->ranges, range);
}

/* Frames and areas are sorted. */
static int make_ranges(struct made_process *p, const struct made_moment *moment)
{
	uint64_t offset = OFFSETS_ALIGN;
	size_t frame = 0;
	int err = 0;

	p->ranges.count = 0;
	for (size_t i = 0; i < moment->area_count && !err; i++) {
		const struct made_area *area = &moment->areas[i];
		size_t first;

		while (frame < p->count && p->frames[frame].start < area->start)
			frame++;
		first = frame;
		while (frame < p->count && p->frames[frame].end <= area->end)
			frame++;
		if (frame > first)
			err = add_range(p, &p->frames[first], &p->frames[frame - 1], &offset);
	}
	return err;
}

/* As they are addressed in the table. */
static struct made_frame *moved_frames(const struct made_process *p, size_t *count)
{
	struct made_frame *moved = calloc(p->count, sizeof(*moved));

	*count = 0;
	for (size_t i = 0; moved && i < p->count; i++) {
		const struct made_range *range = range_above(p, p->frames[i].start);
		struct made_frame frame = p->frames[i];

		if (!range || frame.start < range->start || frame.end > range->end)
			continue;
		frame.start -= range->bias;
		frame.end -= range->bias;
		moved[(*count)++] = frame;
	}
	return moved;
}

/* 0; -ENOMEM; else the code has no table. */
static int make_table(struct made_code *m, struct made_process *p, const struct made_moment *moment)
{
	_cleanup_free_ struct made_frame *moved = NULL;
	struct unwind_table_image image;
	size_t count;
	int err = make_ranges(p, moment);

	if (err)
		return err;
	moved = moved_frames(p, &count);
	if (!moved)
		return -ENOMEM;
	err = unwind_table__build_frames(moved, count, m->options.table_limit, &image);
	if (err)
		return err;
	err = table_store__take_number(m->options.store, &p->number);
	if (!err)
		err = table_store__put(m->options.store, p->number.number, &image);
	unwind_table_image__fini(&image);
	return err;
}

/* ---- questions ------------------------------------------------------------------------------- */

static uint64_t cpu_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

bool made_code__is_due(const struct made_code *m, uint32_t tgid, uint64_t time)
{
	const struct made_process *p = m->processes.count ? find(m, tgid) : NULL;

	return p && p->count && p->runtime.by == MADE_BY_LUAJIT && time >= p->next_question &&
	       time - p->asked >= ASK_IDLE_NS;
}

static int need(struct made_code *m, const struct made_moment *moment, struct made_process **p)
{
	int err;

	*p = find(m, moment->tgid);
	if (*p)
		return 0;
	err = vec_push(&m->processes,
		       (struct made_process){.runtime = {.tgid = moment->tgid, .by = moment->by}});
	if (!err)
		*p = &m->processes.data[m->processes.count - 1];
	return err;
}

static bool is_known(const struct made_code *m, const struct made_process *p,
		     const struct made_frame *frames, size_t count)
{
	return count == p->count && (!count || has_table(m, p)) &&
	       (!count || !memcmp(frames, p->frames, count * sizeof(*frames)));
}

/* Is there an answer to what was missed? It may have been missed before the last one was published. */
static bool is_answered(const struct made_code *m, const struct made_process *p,
			const struct made_moment *moment)
{
	size_t low = 0, high = p->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (p->frames[middle].end <= moment->missed)
			low = middle + 1;
		else
			high = middle;
	}
	return low < p->count && p->frames[low].start <= moment->missed && has_table(m, p);
}

/* Nothing new. 1: that was once too often. */
static int note_failure(const struct made_code *m, struct made_process *p,
			const struct made_moment *moment)
{
	if (!moment->registers || p->failures >= FAILURES_MAX || is_answered(m, p, moment))
		return 0;
	return ++p->failures == FAILURES_MAX;
}

static int take_answer(struct made_code *m, struct made_process *p,
		       const struct made_moment *moment, struct made_frame *frames, size_t count)
{
	bool had = has_table(m, p);
	int err;

	if (is_known(m, p, frames, count)) {
		free(frames);
		return note_failure(m, p, moment);
	}
	free(p->frames);
	p->frames = frames;
	p->count = count;
	err = count ? make_table(m, p, moment) : 0;
	if (err) {
		int vain = note_failure(m, p, moment);

		/* what was published is of code that is no more */
		p->count = 0;
		return err == -ENOMEM ? err : had || vain;
	}
	p->failures = 0;
	return 1;
}

int made_code__ask(struct made_code *m, const struct made_moment *moment, uint64_t *cpu_ns)
{
	uint64_t begin = cpu_time(), begun = monotonic_ns(), spent;
	struct made_frame *frames = NULL;
	struct made_process *p;
	size_t count = 0;
	int err = need(m, moment, &p);

	if (err || moment->time < p->next_question || moment->time < m->next_question ||
	    (moment->registers && is_answered(m, p, moment)))
		return err;
	err = m->options.read_frames(m->options.context, &p->runtime, moment->registers,
				     moment->areas, moment->area_count, &frames, &count);
	if (err == -ENOMEM)
		return err;
	err = take_answer(m, p, moment, frames, count);
	spent = cpu_time() - begin;
	*cpu_ns += spent;
	/* of all processes together, and by the clock: their memory may be slow to come */
	m->next_question = moment->time + ASK_DIVISOR * (monotonic_ns() - begun);
	spent *= ASK_DIVISOR;
	p->asked = moment->time;
	if (p->failures >= FAILURES_MAX)
		spent += ASK_VAIN_NS;
	else if (spent < ASK_NS)
		spent = ASK_NS;
	p->next_question = moment->time + spent;
	return err;
}
