/* SPDX-License-Identifier: BSD-2-Clause */
/* Between two samples of a thread. What is shown, and why, is in timeline.h. */
#include "profile/timeline.h"

#include "base/minmax.h"
#include "base/order.h"

/* Samples first .. end - 1. */
struct range {
	size_t first, end;
};

/* The time between sample i - 1 (or the start) and sample i (or the end) of a thread. */
struct interval {
	uint64_t from, to, cpu;
	bool after_sample, before_sample; /* is there a sample at this end? */
};

uint64_t timeline_end(const struct profile *p, const struct profile_thread *thread)
{
	const struct profile_samples *samples = &thread->samples[SAMPLE_CPU];
	/* where times are made up, a duration is none of them */
	uint64_t end = thread->end ? thread->end : p->untimed ? 0 : p->end;

	return max_u64(end, samples->count ? samples->time[samples->count - 1] : thread->start);
}

static struct interval interval_of(const struct profile *p, const struct profile_thread *thread,
				   size_t i)
{
	const struct profile_samples *samples = &thread->samples[SAMPLE_CPU];
	bool before = i < samples->count;

	return (struct interval){
		.from = i ? samples->time[i - 1] : thread->start,
		.to = before ? samples->time[i] : timeline_end(p, thread),
		.cpu = before ? samples->weight[i] : thread->cpu_tail,
		.after_sample = i > 0,
		.before_sample = before,
	};
}

/* Longer than 1.5 periods, with at least half a period less CPU than time. */
static bool holds_gap(const struct interval *v, uint64_t period)
{
	uint64_t length = v->to - v->from, half = period / 2;

	return period > 1 && length > period && length - period > half && v->cpu < length - half;
}

/* ---- entries --------------------------------------------------------------------------------- */

static struct string_id comm_of(const struct profile_thread *thread, size_t i)
{
	const struct profile_samples *samples = &thread->samples[SAMPLE_CPU];

	return i < samples->count ? samples->comm[i] : thread->name;
}

static struct timeline_entry *push_entry(struct timeline *t, enum timeline_kind kind, uint64_t time,
					 uint64_t cpu_delta)
{
	struct timeline_entry *e = &t->pending[t->pending_count++];

	/* a marker has the thread's name at the sample before it */
	*e = (struct timeline_entry){
		.time = time,
		.kind = kind,
		.comm = comm_of(t->thread, t->next ? t->next - 1 : 0),
		.cpu_delta = cpu_delta,
		.sample = t->next,
	};
	return e;
}

static void push_sample(struct timeline *t, uint64_t cpu_delta)
{
	const struct profile_samples *samples = &t->thread->samples[SAMPLE_CPU];
	struct timeline_entry *e = push_entry(t, TIMELINE_SAMPLE, samples->time[t->next],
					      cpu_delta);

	e->stack = samples->stack[t->next];
	e->comm = samples->comm[t->next];
}

static void push_busy_interval(struct timeline *t, const struct interval *v)
{
	if (v->before_sample)
		push_sample(t, v->cpu);
	else if (v->to > v->from || v->cpu)
		push_entry(t, TIMELINE_END, max_u64(v->to, v->from + 1), v->cpu);
}

/*
 * a + b is at most v->cpu, which is at least period / 2 + 1 less than the length, and the length is
 * above 1.5 periods; so A < B, and the rest fits between them.
 */
static void push_gap(struct timeline *t, const struct interval *v, uint64_t period)
{
	uint64_t a = 0, b = 0;

	if (v->after_sample)
		a = min_u64(v->before_sample ? v->cpu / 2 : v->cpu, period);
	if (v->before_sample)
		b = min_u64(v->cpu - a, period);

	if (v->after_sample)
		push_entry(t, TIMELINE_IDLE_BEGIN, v->from + max_u64(a, 1), a)->idle_after = true;
	if (!v->before_sample) {
		push_entry(t, TIMELINE_END, v->to, v->cpu - a);
		return;
	}
	push_entry(t, TIMELINE_IDLE_END, v->to - max_u64(b, 1), v->cpu - a - b);
	push_sample(t, b);
}

/* The IDLE samples behind `from` and not behind `to`. */
static struct range idle_between(const struct profile_thread *thread, uint64_t from, uint64_t to)
{
	const struct profile_samples *idle = &thread->samples[SAMPLE_IDLE];

	return (struct range){
		partition_point(idle->time, idle->count, time, *time <= from),
		partition_point(idle->time, idle->count, time, *time <= to),
	};
}

/* If weights are of the time after a sample, and IDLE samples are known. */
static void push_known_interval(struct timeline *t, const struct interval *v)
{
	const struct profile_samples *samples = &t->thread->samples[SAMPLE_CPU];
	const struct range idle = idle_between(t->thread, v->from, v->to);
	uint64_t cpu = t->next ? samples->weight[t->next - 1] : 0, at = v->from;

	if (idle.first < idle.end && t->next) {
		at = t->thread->samples[SAMPLE_IDLE].time[idle.first];
		push_entry(t, TIMELINE_IDLE_BEGIN, at, cpu)->idle_after = true;
		cpu = 0;
	}
	if (idle.first < idle.end && v->before_sample && v->to - 1 > at)
		push_entry(t, TIMELINE_IDLE_END, v->to - 1, 0);
	if (v->before_sample)
		push_sample(t, cpu);
	else if (v->to > at || cpu || t->thread->cpu_tail)
		push_entry(t, TIMELINE_END, max_u64(v->to, at + 1), cpu + t->thread->cpu_tail);
}

static bool begins_idle(const struct timeline *t, const struct interval *v)
{
	struct range idle = idle_between(t->thread, v->from, v->to);

	return t->profile->weight_ahead ? idle.first < idle.end : holds_gap(v, t->profile->period);
}

static void push_next_interval(struct timeline *t)
{
	struct interval v = interval_of(t->profile, t->thread, t->next);
	bool gap = begins_idle(t, &v);

	t->pending_count = t->pending_next = 0;
	if (!t->started) {
		push_entry(t, TIMELINE_START, t->thread->start, 0)->idle_after = gap;
		t->started = true;
	}
	if (t->profile->weight_ahead)
		push_known_interval(t, &v);
	else if (gap)
		push_gap(t, &v, t->profile->period);
	else
		push_busy_interval(t, &v);
	t->next++;
}

void timeline__init(struct timeline *t, const struct profile *p,
		    const struct profile_thread *thread)
{
	*t = (struct timeline){.profile = p, .thread = thread};
}

bool timeline__next(struct timeline *t, struct timeline_entry *entry)
{
	while (t->pending_next == t->pending_count) {
		if (t->next > t->thread->samples[SAMPLE_CPU].count)
			return false;
		push_next_interval(t);
	}
	*entry = t->pending[t->pending_next++];
	return true;
}

/* ---- idle samples ---------------------------------------------------------------------------- */

static uint64_t divide_up(uint64_t a, uint64_t b)
{
	return a / b + (a % b != 0);
}

/* As many of the known ones as fit, a period apart. */
static struct timeline_idle known_idle(const struct profile *p, const struct profile_thread *thread,
				       const struct interval *v)
{
	struct range range = idle_between(thread, v->from, v->to);
	struct timeline_idle idle = {.count = range.end - range.first};

	if (!idle.count)
		return idle;
	idle.first = thread->samples[SAMPLE_IDLE].time[range.first];
	if (p->period && v->to > idle.first)
		idle.count = min_u64(idle.count, divide_up(v->to - idle.first, p->period));
	return idle;
}

/*
 * Ticks come a period apart, a sample is one of them, and only the start and the end of a thread
 * lie anywhere between two ticks. Between two samples the ticks are counted by rounding, since none
 * of them is quite on time.
 */
struct timeline_idle timeline_idle_before(const struct profile *p,
					  const struct profile_thread *thread, size_t i)
{
	struct interval v = interval_of(p, thread, i);
	uint64_t length = v.to - v.from, period = p->period;
	struct timeline_idle idle = {};
	uint64_t missed;

	if (p->idle_known)
		return known_idle(p, thread, &v);
	if (!holds_gap(&v, period))
		return idle;

	if (v.after_sample && v.before_sample)
		missed = (length - period / 2 - 1) / period;
	else if (v.after_sample)
		missed = divide_up(length, period) - 1;
	else
		missed = length / period;
	idle.count = missed;
	if (v.cpu / period >= TIMELINE_LOST_PERIODS)
		idle.count = min_u64(missed, divide_up(length - v.cpu, period));

	/* those that the thread's CPU time rules out are the first ones, after the sample */
	if (v.before_sample)
		idle.first = v.to - idle.count * period;
	else if (v.after_sample)
		idle.first = v.from + (missed - idle.count + 1) * period;
	else
		idle.first = v.from + (missed - idle.count) * period;
	return idle;
}
