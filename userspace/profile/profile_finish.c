/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a profile: names for locations without a name, bounds of lives (nothing starts before
 * the session or ends after it, and threads live within their processes), and the read side, which
 * points at the builder's vectors.
 */
#include "profile/profile_builder_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/order.h"
#include "profile/profile_check.h"
#include "profile/profile_code_private.h"
#include "profile/profile_events.h"

/* The function for all code of a dso without a symbol; JIT code has one for each address. */
static struct function_id unnamed_function(struct profile_builder *b,
					   const struct profile_location *l)
{
	const struct profile_dso *dso = &b->dsos.data[l->dso.v];
	struct profile_function f = {.dso = l->dso, .address = PROFILE_UNKNOWN_ADDRESS};
	char buffer[UNNAMED_LOCATION_SIZE];

	unnamed_location(buffer, sizeof(buffer), dso->kind,
			 profile_builder__get_string(b, dso->name), l->address);
	f.name = profile_builder__string(b, buffer);
	return profile_builder__function(b, &f);
}

/* Is its name the one that it would have got without one? */
static bool is_named_as_unnamed(const struct profile_builder *b, const struct profile_location *l)
{
	const struct profile_dso *dso = &b->dsos.data[l->dso.v];
	const struct profile_function *f =
		&b->functions.data[b->lines.data[l->first_line].function.v];
	const char *name = profile_builder__get_string(b, f->name);
	char buffer[UNNAMED_LOCATION_SIZE];

	if (l->line_count > 1 || f->address != PROFILE_UNKNOWN_ADDRESS || f->size ||
	    (*name != '[' && *name != '0')) /* all of those names begin so */
		return false;
	unnamed_location(buffer, sizeof(buffer), dso->kind,
			 profile_builder__get_string(b, dso->name), l->address);
	return !strcmp(buffer, name);
}

/* Names of files are long, and many locations have one. */
static void name_unnamed_locations(struct profile_builder *b)
{
	_cleanup_free_ struct function_id *of_dso = calloc(b->dsos.count + 1, sizeof(*of_dso));

	if (!of_dso)
		builder_has_failed(b, -ENOMEM);
	for (uint32_t i = 1; i < b->locations.count && !b->error; i++) {
		struct profile_location *l = &b->locations.data[i];
		struct function_id *known = &of_dso[l->dso.v];
		struct profile_line line = {};

		if (l->line_count) {
			l->unnamed = !b->profile.has_only_names && is_named_as_unnamed(b, l);
			continue;
		}
		if (l->fallback.v) {
			line.function = l->fallback;
			l->tier = CODE_TIER_STUB;
			profile_builder__resolve(b, (struct location_id){i}, l->elf_address, &line,
						 1);
			continue;
		}
		if (!known->v || b->dsos.data[l->dso.v].kind == DSO_JIT)
			*known = unnamed_function(b, l);
		line.function = *known;
		l->unnamed = true;
		profile_builder__resolve(b, (struct location_id){i}, l->elf_address, &line, 1);
	}
}

/* ---- inlined functions ----------------------------------------------------------------------- */

/*
 * A location can have a chain of inlined functions for a few bytes of a recording, and each sample
 * can have it again for eight bytes. Formats that write stacks frame by frame would grow by the
 * product. So chains are shortened if all samples have more inlined frames than any program has.
 */

/*
 * Limit of the frames of all samples with inlined ones, as a multiple of those without. A chain of
 * INLINED_MEAN is always kept, so shortening to that is enough.
 */
#define INLINED_MEAN  8u
#define INLINED_FREE  65536u /* allowed in addition, for small profiles */
#define INLINED_CHAIN 64u    /* the longest chain that is not shortened */

/* How often each location is in a stack of a CPU sample. */
static uint64_t *count_uses(const struct profile_builder *b)
{
	_cleanup_free_ uint64_t *of_stack = calloc(b->stacks.count + 1, sizeof(*of_stack));
	uint64_t *uses = calloc(b->locations.count + 1, sizeof(*uses));

	if (!of_stack || !uses) {
		free(uses);
		return NULL;
	}
	for (size_t i = 1; i < b->columns.count; i++) {
		const struct sample_columns *c = &b->columns.data[i].by_kind[SAMPLE_CPU];

		for (size_t k = 0; k < c->stack.count; k++)
			of_stack[c->stack.data[k].v]++;
	}
	/* parents have smaller numbers */
	for (size_t i = b->stacks.count; i-- > 1;) {
		const struct profile_stack *stack = &b->stacks.data[i];

		of_stack[stack->parent.v] += of_stack[i];
		uses[stack->location.v] += of_stack[i];
	}
	return uses;
}

static uint32_t shortened(const struct profile_location *l, uint32_t longest)
{
	return l->line_count < longest ? l->line_count : longest;
}

/* Frames of all samples with chains up to `longest`. A sample has <= 2^11 frames of 2^16 lines. */
static uint64_t count_frames(const struct profile_builder *b, const uint64_t *uses,
			     uint32_t longest)
{
	uint64_t frames = 0;

	for (size_t i = 1; i < b->locations.count; i++)
		frames += uses[i] * shortened(&b->locations.data[i], longest);
	return frames;
}

/* Lines are innermost first: the function that was called, which is the last, stays. */
static void shorten_chains(struct profile_builder *b, uint32_t longest)
{
	for (size_t i = 1; i < b->locations.count; i++) {
		struct profile_location *l = &b->locations.data[i];
		uint32_t kept = shortened(l, longest);

		b->profile.inlined_left_out += l->line_count - kept;
		l->first_line += l->line_count - kept;
		l->line_count = kept;
	}
}

static int limit_inlining(struct profile_builder *b)
{
	_cleanup_free_ uint64_t *uses = count_uses(b);
	uint32_t longest = INLINED_CHAIN;
	uint64_t most;

	if (!uses)
		return -ENOMEM;
	most = INLINED_MEAN * count_frames(b, uses, 1) + INLINED_FREE;
	if (count_frames(b, uses, UINT32_MAX) <= most)
		return 0;
	while (longest > INLINED_MEAN && count_frames(b, uses, longest) > most)
		longest /= 2;
	shorten_chains(b, longest);
	return 0;
}

/* ---- lives ----------------------------------------------------------------------------------- */

/* When a thread's last sample of any kind was; 0: it has none. */
static uint64_t last_sample_time(const struct thread_columns *thread)
{
	uint64_t last = 0;

	for (int kind = 0; kind < SAMPLE_KIND_COUNT; kind++) {
		const struct sample_columns *c = &thread->by_kind[kind];

		if (c->time.count)
			last = max_u64(last, c->time.data[c->time.count - 1]);
	}
	return last;
}

/* When its first one was; UINT64_MAX: it has none. */
static uint64_t first_sample_time(const struct thread_columns *thread)
{
	uint64_t first = UINT64_MAX;

	for (int kind = 0; kind < SAMPLE_KIND_COUNT; kind++)
		if (thread->by_kind[kind].time.count)
			first = min_u64(first, thread->by_kind[kind].time.data[0]);
	return first;
}

/* The session covers every sample, and at least 1 ns before it: no sample is at its start. */
static void settle_session(struct profile_builder *b)
{
	struct profile *p = &b->profile;
	uint64_t first = UINT64_MAX, last = 0;

	for (size_t i = 1; i < b->threads.count; i++) {
		last = max_u64(last, last_sample_time(&b->columns.data[i]));
		first = min_u64(first, first_sample_time(&b->columns.data[i]) - 1);
	}
	p->start = min_u64(p->start, BUILDER_TIME_LIMIT);
	p->end = max_u64(min_u64(p->end, BUILDER_TIME_LIMIT), last);
	if (!p->start)
		p->start = p->end;
	if (first < p->start) {
		p->start_realtime -= min_u64(p->start_realtime, p->start - first);
		p->start = first;
	}
	p->end = max_u64(p->start, p->end);
}

static uint64_t clip_to_session(const struct profile *p, uint64_t time)
{
	return min_u64(max_u64(time, p->start), p->end);
}

/* A wait that began before `start` is shown from there on. Waits are in order. */
static void clip_waits(struct sample_columns *waits, uint64_t start)
{
	for (size_t i = 0; i < waits->since.count && waits->since.data[i] < start; i++) {
		waits->since.data[i] = start;
		waits->until.data[i] = max_u64(waits->until.data[i], start);
	}
}

static void settle_lives(struct profile_builder *b)
{
	const struct profile *p = &b->profile;

	for (size_t i = 1; i < b->processes.count; i++) {
		struct profile_process *process = &b->processes.data[i];

		if (process->start < p->start)
			process->began = PROCESS_WAS_THERE;
		process->start = clip_to_session(p, process->start);
		if (process->end)
			process->end = max_u64(clip_to_session(p, process->end), process->start);
	}
	for (size_t i = 1; i < b->threads.count; i++) {
		struct profile_thread *t = &b->threads.data[i];
		struct profile_process *process = &b->processes.data[t->process.v];

		t->start = clip_to_session(p, t->start);
		clip_waits(&b->columns.data[i].by_kind[SAMPLE_WALL], t->start);
		if (!t->end)
			t->end = process->end; /* a thread does not outlive its process */
		if (t->end)
			t->end = max_u64(max_u64(clip_to_session(p, t->end), t->start),
					 last_sample_time(&b->columns.data[i]));
		process->start = min_u64(process->start, t->start);
		if (process->end)
			process->end = max_u64(process->end, t->end);
	}
}

DEFINE_ORDER(compare_books, struct profile_cpu_books, ASCENDING(cpu));

static void freeze_samples(struct profile_thread *t, const struct thread_columns *thread)
{
	for (int kind = 0; kind < SAMPLE_KIND_COUNT; kind++) {
		const struct sample_columns *c = &thread->by_kind[kind];

		t->samples[kind].count = c->time.count;
		t->samples[kind].tick_sum = c->tick_sum;
		t->samples[kind].event_sum = c->event_sum;
#define X(type, name) t->samples[kind].name = c->name.data;
		PROFILE_SAMPLE_COLUMNS(X)
#undef X
	}
}

static void freeze_tables(struct profile_builder *b)
{
	struct profile *p = &b->profile;

	for (size_t i = 1; i < b->threads.count; i++)
		freeze_samples(&b->threads.data[i], &b->columns.data[i]);
	p->strings = strtab__array(b->strings);
	p->string_count = strtab__count(b->strings);
#define X(array, number)                                                                           \
	p->array = b->array.data;                                                                  \
	p->number = b->array.count;
	PROFILE_TABLES(X)
	PROFILE_LISTS(X)
#undef X
}

const struct profile *profile_builder__view(struct profile_builder *b)
{
	freeze_tables(b);
	return &b->profile;
}

/*
 * A profile by the time until the next sample in which no sample has any, such as one of a single
 * sample, is of no event: each sample counts alike.
 */
static void forget_lengths(struct profile_builder *b)
{
	if (!b->profile.weight_ahead || !b->profile.sample_count || b->profile.event_count)
		return;
	b->profile.event = b->profile.event_unit = (struct string_id){0};
	b->profile.event_count = b->profile.sample_count;
	b->profile.event_squares = 0;
	for (uint32_t i = 1; i < b->threads.count; i++) {
		struct sample_columns *c = &b->columns.data[i].by_kind[SAMPLE_CPU];

		vec_free(&c->events);
		c->event_sum = c->tick_sum;
		for (size_t row = 0; row < c->time.count; row++) {
			uint64_t ticks = c->ticks.count ? c->ticks.data[row] : 1;

			b->profile.event_squares += profile_square(ticks, ticks);
		}
	}
}

int profile_builder__finish(struct profile_builder *b, const struct profile **profile, char *why,
			    size_t why_size)
{
	int err;

	if (!b->finished) {
		name_unnamed_locations(b);
		builder_has_failed(b, limit_inlining(b));
		if (b->error)
			return b->error;
		vec_sort(&b->books, compare_books);
		settle_session(b);
		forget_lengths(b);
		settle_lives(b);
		builder_settle_events(b);
		builder_settle_code(b);
		builder_freeze_events(b);
		freeze_tables(b);
		if (b->error)
			return b->error;
		b->finished = true;
	}
	err = profile_check(&b->profile, why, why_size);
	if (err)
		return err;
	*profile = &b->profile;
	return 0;
}
