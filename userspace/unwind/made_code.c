/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All code of a process has one table. Its areas are far apart; in the table they follow one
 * another, and each has its own bias.
 *
 * If the code is unknown, the kernel side sends a copy of the stack. Then the process is read; if
 * it gives no frames, unwinding of the copy ends there. LuaJIT frees all of its traces at once, so
 * code can be replaced without a truncated stack, and processes are read again from time to time.
 * Reading takes at most a twentieth of a CPU. A process that never gives frames is read rarely, and
 * its code is unwound by frame pointer.
 */
#include "unwind/made_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/order.h"
#include "base/vec.h"

#define REQUEST_NS	5000000ull   /* between two requests at least */
#define REQUEST_IDLE_NS 200000000ull /* if no stack was truncated */
#define REQUEST_VAIN_NS 1000000000ull
#define FAILURES_MAX	16
#define PROCESSES_MAX	256 /* the one with the oldest request is evicted */
#define OFFSETS_ALIGN	((uint64_t)UNWIND_BUCKET_SIZE)

/* Code in one area, from its first frame to its last. */
struct made_range {
	uint64_t start, end, bias;
};

struct made_process {
	struct made_runtime runtime;
	struct made_frame *frames; /* as in its answer */
	size_t count;
	VEC(struct made_range) ranges;
	struct table_number number;
	uint64_t next_question; /* not before */
	unsigned int failures;	/* since its last new answer */

	/* the last request */
	uint64_t ticket;    /* 0: answered */
	uint64_t requested; /* when */
	VEC(struct made_area) areas;
	uint64_t missed;
	bool was_missed;
	int result; /* of the answer */
};

struct made_code {
	struct made_code_options options;
	VEC(struct made_process) processes;
	uint64_t next_question; /* to any process, not before */
	uint64_t tickets, cpu_ns;
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
	vec_free(&p->areas);
}

void made_code__free(struct made_code *m)
{
	if (!m)
		return;
	vec_free_with(&m->processes, process, process__fini(process));
	free(m);
}

static struct made_process *find_process(const struct made_code *m, uint32_t tgid)
{
	return find_first(m->processes.data, m->processes.count, p, p->runtime.tgid == tgid);
}

void made_code__forget(struct made_code *m, uint32_t tgid)
{
	struct made_process *p = find_process(m, tgid);

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
	size_t i = partition_point(p->ranges.data, p->ranges.count, r, r->end <= address);

	return i < p->ranges.count ? &p->ranges.data[i] : NULL;
}

void made_code__place(const struct made_code *m, uint32_t tgid, uint64_t start, uint64_t end,
		      struct unwind_placement *piece)
{
	const struct made_process *p = find_process(m, tgid);
	const struct made_range *range = p && has_table(m, p) ? range_above(p, start) : NULL;
	bool vain = p && p->failures >= FAILURES_MAX;

	*piece = (struct unwind_placement){
		.start = start, .end = end, .table = vain ? UNWIND_BY_CODE : UNWIND_LATER};
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

/* The frames of one area, at `offset` in the table. */
static int add_range(struct made_process *p, const struct made_frame *first,
		     const struct made_frame *last, uint64_t *offset)
{
	uint64_t low = first->start & (OFFSETS_ALIGN - 1);
	struct made_range range = {
		.start = first->start,
		.end = last->end,
		.bias = first->start - low - *offset,
	};

	/* + 1, so that no row of this area reaches the next area */
	*offset += align_up(last->end - first->start + low + 1, OFFSETS_ALIGN);
	return vec_push(&p->ranges, range);
}

/* Frames and areas are sorted. */
static int make_ranges(struct made_process *p)
{
	uint64_t offset = OFFSETS_ALIGN;
	size_t frame = 0;
	int err = 0;

	p->ranges.count = 0;
	for (size_t i = 0; i < p->areas.count && !err; i++) {
		const struct made_area *area = &p->areas.data[i];
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

/* Frames at their addresses in the table. */
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

/* 0; -ENOMEM; other errors: the code has no table. */
static int make_table(struct made_code *m, struct made_process *p)
{
	_cleanup_free_ struct made_frame *moved = NULL;
	struct unwind_table_image image;
	size_t count;
	int err = make_ranges(p);

	if (err)
		return err;
	moved = moved_frames(p, &count);
	if (!moved)
		return -ENOMEM;
	err = unwind_table__build_frames(moved, count, m->options.table_limit, &image)
			?: table_store__take_number(m->options.store, p->runtime.tgid, &p->number)
			?: table_store__put(m->options.store, p->number.number, p->runtime.tgid, &image);
	unwind_table_image__fini(&image);
	return err;
}

/* ---- questions ------------------------------------------------------------------------------- */

bool made_code__is_due(const struct made_code *m, uint32_t tgid, uint64_t time)
{
	const struct made_process *p = m->processes.count ? find_process(m, tgid) : NULL;

	return p && p->count && p->runtime.by == MADE_BY_LUAJIT && time >= p->next_question &&
	       time - p->requested >= REQUEST_IDLE_NS;
}

static void forget_oldest(struct made_code *m)
{
	const struct made_process *oldest = &m->processes.data[0];

	for (size_t i = 1; i < m->processes.count; i++)
		if (m->processes.data[i].requested < oldest->requested)
			oldest = &m->processes.data[i];
	made_code__forget(m, oldest->runtime.tgid);
}

static int need_process(struct made_code *m, const struct made_moment *moment,
			struct made_process **p)
{
	int err;

	*p = find_process(m, moment->tgid);
	if (*p)
		return 0;
	if (m->processes.count >= PROCESSES_MAX)
		forget_oldest(m);
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

/* Do the known frames have the address? Its stack may be from before they were published. */
static bool is_answered(const struct made_code *m, const struct made_process *p, uint64_t missed)
{
	size_t i = partition_point(p->frames, p->count, f, f->end <= missed);

	return i < p->count && p->frames[i].start <= missed && has_table(m, p);
}

/* Counts an answer without anything new. 1: there were too many just now. */
static int note_failure(const struct made_code *m, struct made_process *p)
{
	if (!p->was_missed || p->failures >= FAILURES_MAX || is_answered(m, p, p->missed))
		return 0;
	return ++p->failures == FAILURES_MAX;
}

static int keep_frames(struct made_process *p, const struct made_frame *frames, size_t count)
{
	struct made_frame *copy = count ? calloc(count, sizeof(*copy)) : NULL;

	if (count && !copy)
		return -ENOMEM;
	if (count)
		memcpy(copy, frames, count * sizeof(*copy));
	free(p->frames);
	p->frames = copy;
	p->count = count;
	return 0;
}

static int take_frames(struct made_code *m, struct made_process *p, const struct made_frame *frames,
		       size_t count)
{
	bool had = has_table(m, p);
	int err;

	if (is_known(m, p, frames, count))
		return note_failure(m, p);
	err = keep_frames(p, frames, count) ?: (count ? make_table(m, p) : 0);
	if (err) {
		int vain = note_failure(m, p);

		/* the published frames are of code that is gone */
		p->count = 0;
		return err == -ENOMEM ? err : had || vain;
	}
	p->failures = 0;
	return 1;
}

/* `spent`: CPU time. */
static void plan_next_question(struct made_process *p, uint64_t spent)
{
	spent *= MADE_CODE_DIVISOR;
	if (p->failures >= FAILURES_MAX)
		spent += REQUEST_VAIN_NS;
	else if (spent < REQUEST_NS)
		spent = REQUEST_NS;
	p->next_question = p->requested + spent;
}

static struct made_process *find_ticket(const struct made_code *m, uint64_t ticket)
{
	return find_first(m->processes.data, m->processes.count, p, p->ticket == ticket);
}

int made_code__answer(struct made_code *m, const struct made_answer *answer)
{
	uint64_t cpu = thread_cpu_ns(), begun = monotonic_ns();
	struct made_process *p = answer->ticket ? find_ticket(m, answer->ticket) : NULL;

	m->cpu_ns += answer->cpu_ns;
	if (!p)
		return 0;
	p->ticket = 0;
	p->runtime = *answer->runtime;
	p->result = take_frames(m, p, answer->frames, answer->count);
	cpu = thread_cpu_ns() - cpu;
	m->cpu_ns += cpu;
	/* for all processes, by wall-clock time, because reading memory can be slow */
	m->next_question = p->requested +
			   MADE_CODE_DIVISOR * (answer->elapsed_ns + monotonic_ns() - begun);
	plan_next_question(p, answer->cpu_ns + cpu);
	return p->result;
}

static int note_question(struct made_code *m, struct made_process *p,
			 const struct made_moment *moment)
{
	p->areas.count = 0;
	if (vec_append(&p->areas, moment->areas, moment->area_count))
		return -ENOMEM;
	p->missed = moment->missed;
	p->was_missed = moment->registers != NULL;
	p->requested = moment->time;
	p->ticket = ++m->tickets;
	p->result = 0;
	/* unless it answers before */
	p->next_question = moment->time + REQUEST_VAIN_NS;
	return 0;
}

int made_code__request(struct made_code *m, const struct made_moment *moment)
{
	struct made_request request;
	struct made_process *p;
	int err = need_process(m, moment, &p);

	if (err || moment->time < p->next_question || moment->time < m->next_question ||
	    (moment->registers && is_answered(m, p, moment->missed)))
		return err;
	err = note_question(m, p, moment);
	if (err)
		return err;
	request = (struct made_request){
		.ticket = p->ticket,
		.runtime = &p->runtime,
		.registers = moment->registers,
		.areas = p->areas.data,
		.area_count = p->areas.count,
	};
	err = m->options.request(m->options.context, &request);
	return err || p->ticket ? err : p->result;
}

uint64_t made_code__cpu(const struct made_code *m)
{
	return m->cpu_ns;
}
