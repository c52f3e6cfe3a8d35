/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The invariants, table by table. A broken one is a bug in the code that filled the profile, so the
 * check stops at the first: `why` names the element and what is wrong with it.
 */
#include "profile/profile_check.h"

#include "base/cleanup.h"
#include "base/order.h"
#include "profile/profile.h"
#include "tenants/outside_books.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct checker {
	const struct profile *p;
	char *why;
	size_t why_size;
};

static int __attribute__((format(printf, 2, 3)))
report_broken(const struct checker *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (c->why && c->why_size)
		vsnprintf(c->why, c->why_size, format, args);
	va_end(args);
	return -EINVAL;
}

static bool is_zero(const void *data, size_t size)
{
	const unsigned char *bytes = data;

	return !any_of(bytes, size, byte, *byte);
}

/* A table with ids: present, countable in 32 bits, a zero placeholder first. */
static int check_table(const struct checker *c, const char *name, const void *data, size_t count,
		       size_t size)
{
	if (!count || !data)
		return report_broken(c, "%s: no placeholder", name);
	if (count > UINT32_MAX)
		return report_broken(c, "%s: %zu elements", name, count);
	if (!is_zero(data, size))
		return report_broken(c, "%s: the placeholder is not zero", name);
	return 0;
}

static int check_tables(const struct checker *c)
{
	const struct profile *p = c->p;
	int err;

#define X(array, number)                                                                           \
	err = check_table(c, #array, p->array, p->number, sizeof(*p->array));                      \
	if (err)                                                                                   \
		return err;
	PROFILE_TABLES(X)
#undef X
#define X(array, number)                                                                           \
	if (p->number && !p->array)                                                                \
		return report_broken(c, "an array is missing");
	PROFILE_LISTS(X)
#undef X
	return 0;
}

static int check_strings(const struct checker *c)
{
	const struct profile *p = c->p;

	if (!p->string_count || !p->strings || !p->strings[0] || *p->strings[0])
		return report_broken(c, "string 0 is not \"\"");
	for (size_t i = 1; i < p->string_count; i++)
		if (!p->strings[i])
			return report_broken(c, "string %zu is missing", i);
	return 0;
}

static bool is_string(const struct checker *c, struct string_id id)
{
	return id.v < c->p->string_count;
}

static int check_sample_types(const struct checker *c)
{
	bool listed[SAMPLE_KIND_COUNT] = {};

	for (size_t i = 0; i < c->p->sample_type_count; i++) {
		const struct profile_sample_type *type = &c->p->sample_types[i];

		if ((unsigned int)type->kind >= SAMPLE_KIND_COUNT)
			return report_broken(c, "sample type %zu: kind %d", i, type->kind);
		if (!type->name.v || !is_string(c, type->name) || !type->unit.v ||
		    !is_string(c, type->unit))
			return report_broken(c, "sample type %zu: name or unit out of range", i);
		if (listed[type->kind])
			return report_broken(c, "sample type %zu: kind %d is listed twice", i,
					     type->kind);
		listed[type->kind] = true;
	}
	for (size_t i = 1; i < c->p->thread_count; i++)
		for (int kind = 0; kind < SAMPLE_KIND_COUNT; kind++)
			if (c->p->threads[i].samples[kind].count && !listed[kind])
				return report_broken(
					c, "thread %zu: samples of kind %d, not listed", i, kind);
	return 0;
}

static int check_dsos(const struct checker *c)
{
	for (size_t i = 1; i < c->p->dso_count; i++) {
		const struct profile_dso *d = &c->p->dsos[i];

		if (d->kind <= DSO_NONE || d->kind > DSO_RUNTIME)
			return report_broken(c, "dso %zu: kind %d", i, d->kind);
		if (!is_string(c, d->path) || !is_string(c, d->name))
			return report_broken(c, "dso %zu: string out of range", i);
		if ((unsigned int)d->file_state >= FILE_STATE_COUNT ||
		    (unsigned int)d->symbol_state >= SYMBOL_STATE_COUNT)
			return report_broken(c, "dso %zu: state out of range", i);
		if (!is_root_of_dso(d->source_root))
			return report_broken(c, "dso %zu: root directory %u", i, d->source_root);
		if (d->build_id_size > BUILD_ID_SIZE)
			return report_broken(c, "dso %zu: build-id of %u bytes", i,
					     d->build_id_size);
	}
	return 0;
}

static int check_functions(const struct checker *c)
{
	const struct profile *p = c->p;

	for (size_t i = 1; i < p->function_count; i++) {
		const struct profile_function *f = &p->functions[i];

		if (!f->name.v || !is_string(c, f->name) || !is_string(c, f->full_name) ||
		    !is_string(c, f->definition_file))
			return report_broken(c, "function %zu: name or file out of range", i);
		if (!f->dso.v || f->dso.v >= p->dso_count)
			return report_broken(c, "function %zu: dso %u", i, f->dso.v);
	}
	for (size_t i = 0; i < p->line_count; i++) {
		const struct profile_line *l = &p->lines[i];

		if (!l->function.v || l->function.v >= p->function_count)
			return report_broken(c, "line %zu: function %u", i, l->function.v);
		if (!is_string(c, l->file))
			return report_broken(c, "line %zu: file out of range", i);
	}
	return 0;
}

static int check_location(const struct checker *c, size_t i)
{
	const struct profile *p = c->p;
	const struct profile_location *l = &p->locations[i];

	if (!l->dso.v || l->dso.v >= p->dso_count)
		return report_broken(c, "location %zu: dso %u", i, l->dso.v);
	if ((unsigned int)l->category >= CATEGORY_COUNT || l->category == CATEGORY_IDLE)
		return report_broken(c, "location %zu: category %d", i, l->category);
	if (l->process.v >= p->process_count)
		return report_broken(c, "location %zu: process %u", i, l->process.v);
	if ((unsigned int)l->tier >= CODE_TIER_COUNT)
		return report_broken(c, "location %zu: tier %d", i, l->tier);
	if (dso_kind_is_private(p->dsos[l->dso.v].kind) != (l->process.v != 0))
		return report_broken(c, "location %zu: process %u does not suit its dso", i,
				     l->process.v);
	if (!l->line_count)
		return report_broken(c, "location %zu: no line", i);
	if (l->first_line > p->line_count || l->line_count > p->line_count - l->first_line)
		return report_broken(c, "location %zu: lines out of range", i);
	return 0;
}

static int check_stack(const struct checker *c, size_t i)
{
	const struct profile *p = c->p;
	const struct profile_stack *s = &p->stacks[i];

	if (s->parent.v >= i)
		return report_broken(c, "stack %zu: its parent is %u", i, s->parent.v);
	if (!s->location.v || s->location.v >= p->location_count)
		return report_broken(c, "stack %zu: location %u", i, s->location.v);
	if (s->depth != p->stacks[s->parent.v].depth + 1)
		return report_broken(c, "stack %zu: depth %u", i, s->depth);
	return 0;
}

static int check_life(const struct checker *c, const char *what, size_t i, uint64_t start,
		      uint64_t end)
{
	if (start < c->p->start || start > c->p->end)
		return report_broken(c, "%s %zu: starts outside the session", what, i);
	if (end && (end < start || end > c->p->end))
		return report_broken(c, "%s %zu: ends before its start or after the session", what,
				     i);
	return 0;
}

static bool names_are_strings(const struct checker *c, const struct profile_names *names)
{
#define X(field, label)                                                                            \
	if (!is_string(c, names->field))                                                           \
		return false;
	PROCESS_NAMES(X)
#undef X
	return true;
}

static int check_processes(const struct checker *c)
{
	for (size_t i = 0; i < c->p->fact_count; i++)
		if (!is_string(c, c->p->facts[i].key) || !is_string(c, c->p->facts[i].value))
			return report_broken(c, "fact %zu: text out of range", i);
	for (size_t i = 1; i < c->p->process_count; i++) {
		const struct profile_process *process = &c->p->processes[i];
		int err = check_life(c, "process", i, process->start, process->end);

		if (err)
			return err;
		if (!is_string(c, process->program))
			return report_broken(c, "process %zu: program out of range", i);
		if (!is_string(c, process->name) || !is_string(c, process->cgroup))
			return report_broken(c, "process %zu: name or control group out of range",
					     i);
		if ((unsigned int)process->began > PROCESS_EXECED)
			return report_broken(c, "process %zu: it began by %d", i, process->began);
		if ((unsigned int)process->facts_state >= FACTS_STATE_COUNT ||
		    process->first_fact > c->p->fact_count ||
		    process->fact_count > c->p->fact_count - process->first_fact)
			return report_broken(c, "process %zu: facts out of range", i);
		if (!names_are_strings(c, &process->names))
			return report_broken(c, "process %zu: names out of range", i);
		if (process->execs && !process->end)
			return report_broken(c, "process %zu: an execve without an end", i);
	}
	return 0;
}

/* `tail`: what is added to the sum of their weights. */
static int check_samples(const struct checker *c, size_t i, const struct profile_samples *samples,
			 uint64_t tail)
{
	const struct profile *p = c->p;
	const struct profile_thread *t = &p->threads[i];
	uint64_t last = t->start, end = t->end ? t->end : p->end, sum = tail, ticks = 0, events = 0;

	if (samples->count &&
	    (!samples->time || !samples->weight || !samples->stack || !samples->comm))
		return report_broken(c, "thread %zu: a column is missing", i);
	if (sum > PROFILE_TIME_MAX)
		return report_broken(c, "thread %zu: its CPU time overflows", i);
	for (size_t k = 0; k < samples->count; k++) {
		if (samples->time[k] <= last)
			return report_broken(
				c, "thread %zu: sample %zu is not after the one before", i, k);
		if (samples->time[k] > end)
			return report_broken(c, "thread %zu: sample %zu is after its end", i, k);
		if (!samples->stack[k].v || samples->stack[k].v >= p->stack_count)
			return report_broken(c, "thread %zu: sample %zu has stack %u", i, k,
					     samples->stack[k].v);
		if (!is_string(c, samples->comm[k]))
			return report_broken(c, "thread %zu: sample %zu: comm out of range", i, k);
		if (profile_samples__gil(samples, k) >= GIL_STATE_COUNT)
			return report_broken(c, "thread %zu: sample %zu: GIL %d", i, k,
					     samples->gil[k]);
		if (profile_samples__context(samples, k) >= CONTEXT_COUNT)
			return report_broken(c, "thread %zu: sample %zu: context %d", i, k,
					     samples->context[k]);
		if (samples->weight[k] > PROFILE_TIME_MAX - sum)
			return report_broken(c, "thread %zu: the sum of its weights overflows", i);
		sum += samples->weight[k];
		if (profile_samples__ticks(samples, k) > PROFILE_TIME_MAX - ticks)
			return report_broken(c, "thread %zu: the sum of its ticks overflows", i);
		ticks += profile_samples__ticks(samples, k);
		if (profile_samples__events(samples, k) > PROFILE_TIME_MAX - events)
			return report_broken(c, "thread %zu: the sum of its events overflows", i);
		events += profile_samples__events(samples, k);
		last = samples->time[k];
	}
	if (ticks != samples->tick_sum || events != samples->event_sum)
		return report_broken(c, "thread %zu: its ticks do not add up", i);
	if (samples->events && !p->event.v)
		return report_broken(c, "thread %zu: events of a clock", i);
	return 0;
}

static int check_wall(const struct checker *c, size_t i)
{
	const struct profile_wall *w = &c->p->threads[i].wall;
	const struct profile_samples *samples = &c->p->threads[i].samples[SAMPLE_WALL];
	uint64_t sums[2] = {}; /* of blocked and runnable time */
	uint64_t last = c->p->threads[i].start;

	if (samples->count &&
	    (!samples->state || !samples->holder || !samples->since || !samples->until))
		return report_broken(c, "thread %zu: its states are missing", i);
	for (size_t k = 0; k < samples->count; k++) {
		if (samples->state[k] <= WALL_RUNNING || samples->state[k] >= WALL_STATE_COUNT)
			return report_broken(c, "thread %zu: wait %zu has state %d", i, k,
					     samples->state[k]);
		if (samples->holder[k].v >= c->p->thread_count || samples->holder[k].v == i)
			return report_broken(c, "thread %zu: wait %zu has holder %u", i, k,
					     samples->holder[k].v);
		if (samples->since[k] < last || samples->until[k] < samples->since[k] ||
		    samples->until[k] > PROFILE_TIME_MAX)
			return report_broken(c, "thread %zu: wait %zu is before the one before", i,
					     k);
		last = samples->until[k];
		sums[wall_state_is_for_cpu(samples->state[k])] += samples->weight[k];
	}
	if (sums[0] != w->blocked || sums[1] != w->runnable)
		return report_broken(c, "thread %zu: its waits do not add up", i);
	if (w->since > w->until || w->until > PROFILE_TIME_MAX || w->running > PROFILE_TIME_MAX ||
	    w->unvisited > PROFILE_TIME_MAX)
		return report_broken(c, "thread %zu: its time is out of range", i);
	if (w->until - w->since != w->running + w->runnable + w->blocked + w->unvisited)
		return report_broken(c, "thread %zu: its time does not add up", i);
	return 0;
}

static int check_visits(const struct checker *c)
{
	const struct profile_visits *v = &c->p->visits;
	uint64_t sum = 0;

	for (int line = 0; line < VISIT_LINE_COUNT; line++)
		if (v->count[line] > PROFILE_TIME_MAX / VISIT_LINE_COUNT)
			return report_broken(c, "visits: a line overflows");
	for (int line = VISIT_LINE_LOOKS + 1; line < VISIT_LINE_COUNT; line++)
		sum += v->count[line];
	if (sum != v->count[VISIT_LINE_LOOKS])
		return report_broken(c, "visits: %llu looks had %llu results",
				     (unsigned long long)v->count[VISIT_LINE_LOOKS],
				     (unsigned long long)sum);
	return 0;
}

static int check_cuts(const struct checker *c, size_t i, uint64_t *cut)
{
	const struct profile_thread *t = &c->p->threads[i];
	const struct profile_samples *samples = &t->samples[SAMPLE_CPU];

	if (t->cut_count && !t->cuts)
		return report_broken(c, "thread %zu: its cut samples are missing", i);
	for (size_t k = 0; k < t->cut_count; k++) {
		const struct profile_cut *one = &t->cuts[k];

		if (one->sample >= samples->count || (k && one->sample <= one[-1].sample))
			return report_broken(c, "thread %zu: cut sample %zu is row %u", i, k,
					     one->sample);
		if ((unsigned int)one->end >= STACK_END_COUNT || stack_end_is_complete(one->end))
			return report_broken(c, "thread %zu: cut sample %zu ends by %d", i, k,
					     one->end);
		cut[one->end] += profile_samples__ticks(samples, one->sample);
	}
	return 0;
}

static int check_renames(const struct checker *c, size_t i)
{
	const struct profile_thread *t = &c->p->threads[i];
	uint64_t last = t->start, end = t->end ? t->end : c->p->end;

	if (t->rename_count && !t->renames)
		return report_broken(c, "thread %zu: its renames are missing", i);
	for (size_t k = 0; k < t->rename_count; k++) {
		if (t->renames[k].time < last || t->renames[k].time > end)
			return report_broken(c, "thread %zu: rename %zu is out of order", i, k);
		if (!is_string(c, t->renames[k].name))
			return report_broken(c, "thread %zu: rename %zu: name out of range", i, k);
		last = t->renames[k].time;
	}
	return 0;
}

static int check_thread(const struct checker *c, size_t i, bool *has_main)
{
	const struct profile *p = c->p;
	const struct profile_thread *t = &p->threads[i];
	const struct profile_process *process;
	int err = check_life(c, "thread", i, t->start, t->end);

	if (err)
		return err;
	if (!t->process.v || t->process.v >= p->process_count)
		return report_broken(c, "thread %zu: process %u", i, t->process.v);
	if (!is_string(c, t->name))
		return report_broken(c, "thread %zu: name out of range", i);
	process = &p->processes[t->process.v];
	if (t->start < process->start || (process->end && (!t->end || t->end > process->end)))
		return report_broken(c, "thread %zu: lives outside its process", i);
	if (t->is_main && has_main[t->process.v])
		return report_broken(c, "thread %zu: a second main thread of process %u", i,
				     t->process.v);
	if (t->is_main)
		has_main[t->process.v] = true;
	for (int kind = 0; kind < SAMPLE_KIND_COUNT && !err; kind++)
		err = check_samples(c, i, &t->samples[kind], kind == SAMPLE_CPU ? t->cpu_tail : 0);
	if (!err)
		err = check_wall(c, i);
	return err ? err : check_renames(c, i);
}

static int check_threads(const struct checker *c)
{
	const struct profile *p = c->p;
	_cleanup_free_ bool *has_main = calloc(p->process_count, sizeof(*has_main));
	uint64_t samples = 0, events = 0, ends = 0, cut[STACK_END_COUNT] = {};

	if (!has_main)
		return -ENOMEM;
	for (size_t i = 1; i < p->thread_count; i++) {
		int err = check_thread(c, i, has_main) ?: check_cuts(c, i, cut);

		if (err)
			return err;
		samples += p->threads[i].samples[SAMPLE_CPU].tick_sum;
		events += p->threads[i].samples[SAMPLE_CPU].event_sum;
	}
	if (!is_string(c, p->event) || !is_string(c, p->event_unit) ||
	    !p->event.v != !p->event_unit.v)
		return report_broken(c, "the event has no name, or no unit");
	if (p->uncounted && events != samples)
		return report_broken(c, "uncounted samples have two weights");
	if (p->tick_cpu && !p->uncounted)
		return report_broken(c, "CPU time of a tick, but ticks are samples");
	if (events != p->event_count)
		return report_broken(c, "the threads have %llu events, the profile %llu",
				     (unsigned long long)events,
				     (unsigned long long)p->event_count);
	if (samples != p->sample_count)
		return report_broken(c, "the threads have %llu CPU samples, the profile %llu",
				     (unsigned long long)samples,
				     (unsigned long long)p->sample_count);
	for (int i = 0; i < STACK_END_COUNT; i++) {
		ends += p->stack_ends[i];
		if (cut[i] > p->stack_ends[i])
			return report_broken(c, "more samples are cut than stacks end by %d", i);
	}
	if (ends != p->sample_count)
		return report_broken(c, "%llu stacks ended for %llu samples",
				     (unsigned long long)ends, (unsigned long long)p->sample_count);
	return 0;
}

/* A window's due is the difference of two sums, each rounded down: it may be one more. */
static bool due_is_possible(const struct profile_cpu_books *b)
{
	uint64_t due = b->period ? b->time_running / b->period : 0;

	if (b->counts_events)
		return !b->period && b->due <= PROFILE_TIME_MAX;
	if (b->period_changed)
		return b->due <= b->time_running;
	return b->due == due || (b->period && b->due == due + 1);
}

static int check_books(const struct checker *c)
{
	for (size_t i = 0; i < c->p->books_count; i++) {
		const struct profile_cpu_books *b = &c->p->books[i];
		uint64_t sum = 0;

		if (i && b->cpu <= b[-1].cpu)
			return report_broken(c, "books %zu: CPU %u is out of order", i, b->cpu);
		if (!due_is_possible(b))
			return report_broken(c, "books of CPU %u: due is not time / period",
					     b->cpu);
		for (int line = 0; line < BOOK_COUNT; line++) {
			if (b->count[line] > PROFILE_TIME_MAX - sum)
				return report_broken(c, "books of CPU %u: the sum overflows",
						     b->cpu);
			sum += b->count[line];
		}
	}
	return 0;
}

static int check_jits(const struct checker *c)
{
	const struct profile *p = c->p;

	for (size_t i = 0; i < p->jit_count; i++) {
		const struct profile_jit *j = &p->jits[i];

		if (!j->process.v || j->process.v >= p->process_count)
			return report_broken(c, "jit %zu: process %u", i, j->process.v);
		if (!is_string(c, j->runtime) || !is_string(c, j->remedy) ||
		    !is_string(c, j->refusal) || !is_string(c, j->map.path) ||
		    !is_string(c, j->dump.path))
			return report_broken(c, "jit %zu: string out of range", i);
		if ((unsigned int)j->map.state >= JIT_FILE_STATE_COUNT ||
		    (unsigned int)j->dump.state >= JIT_FILE_STATE_COUNT)
			return report_broken(c, "jit %zu: state out of range", i);
		if (j->unnamed > j->samples || j->ambiguous > j->samples)
			return report_broken(c, "jit %zu: more flaws than samples", i);
	}
	return 0;
}

static int check_runtimes(const struct checker *c)
{
	for (size_t i = 0; i < c->p->runtime_count; i++) {
		const struct profile_runtime *r = &c->p->runtimes[i];

		if (!r->name.v || !is_string(c, r->name) || !is_string(c, r->remedy))
			return report_broken(c, "runtime %zu: name", i);
		if (r->ambiguous > r->frames || r->stale > r->frames - r->ambiguous ||
		    r->unknown > r->frames - r->ambiguous - r->stale)
			return report_broken(c, "runtime %zu: more flaws than frames", i);
	}
	return 0;
}

static int check_gils(const struct checker *c)
{
	const struct profile *p = c->p;

	for (size_t i = 0; i < p->gil_count; i++) {
		const struct profile_gil *g = &p->gils[i];

		if (!g->thread.v || g->thread.v >= p->thread_count ||
		    p->threads[g->thread.v].process.v != g->process.v)
			return report_broken(c, "gil %zu: thread %u", i, g->thread.v);
		if (g->held > g->samples || g->waiting > g->samples)
			return report_broken(c, "gil %zu: more than its samples", i);
	}
	return 0;
}

static int check_memory(const struct checker *c, size_t i, bool *seen)
{
	const struct profile_memory *m = &c->p->memories[i];

	if (m->process.v >= c->p->process_count || seen[m->process.v])
		return report_broken(c, "memory %zu: process %u", i, m->process.v);
	seen[m->process.v] = true;
	if (!m->process.v && !m->is_recorder)
		return report_broken(c, "memory %zu: of no process", i);
	if (m->count && !m->readings)
		return report_broken(c, "memory %zu: its readings are missing", i);
	for (size_t k = 0; k < m->count; k++)
		if (m->readings[k].time < c->p->start || m->readings[k].time > c->p->end ||
		    (k && m->readings[k].time <= m->readings[k - 1].time))
			return report_broken(c, "memory %zu: reading %zu is out of order", i, k);
	return 0;
}

static int check_memories(const struct checker *c)
{
	_cleanup_free_ bool *seen = calloc(c->p->process_count, sizeof(*seen));
	int err = seen ? 0 : -ENOMEM;

	for (size_t i = 0; i < c->p->memory_count && !err; i++)
		err = check_memory(c, i, seen);
	return err;
}

static int check_epochs(const struct checker *c)
{
	const struct profile *p = c->p;

	if (p->epoch_count > p->clock_epochs)
		return report_broken(c, "%zu epochs began of %u", p->epoch_count, p->clock_epochs);
	for (size_t i = 0; i < p->epoch_count; i++)
		if (p->epochs[i] < p->start || p->epochs[i] > p->end ||
		    (i && p->epochs[i] < p->epochs[i - 1]))
			return report_broken(c, "epoch %zu is out of order", i);
	return 0;
}

static uint64_t outside_key(const struct profile_outside *row)
{
	return (uint64_t)row->user << 16 | (uint64_t)row->thing << 8 | row->reason;
}

static int check_outside(const struct checker *c)
{
	const struct profile *p = c->p;

	for (size_t i = 0; i < p->outside_count; i++) {
		const struct profile_outside *row = &p->outside[i];

		if (row->thing >= OUTSIDE_THING_COUNT || row->reason >= OUTSIDE_REASON_COUNT ||
		    !row->count)
			return report_broken(c, "outside %zu says nothing", i);
		if (i && outside_key(row) <= outside_key(&row[-1]))
			return report_broken(c, "outside %zu is out of order", i);
		if (row->since < p->start || row->since > p->end)
			return report_broken(c, "outside %zu is not of this session", i);
	}
	return 0;
}

static int check_clauses(const struct checker *c)
{
	const struct profile *p = c->p;

	if (!is_string(c, p->filter) || !p->filter.v != !p->clause_count)
		return report_broken(c, "a filter without clauses, or the reverse");
	for (size_t i = 0; i < p->clause_count; i++)
		if (!p->clauses[i].text.v || !is_string(c, p->clauses[i].text))
			return report_broken(c, "clause %zu has no text", i);
	return 0;
}

static int check_markers(const struct checker *c)
{
	const struct profile *p = c->p;

	for (size_t i = 0; i < p->marker_count; i++) {
		const struct profile_marker *m = &p->markers[i];

		if (!m->thread.v || m->thread.v >= p->thread_count || !m->name.v ||
		    !is_string(c, m->name))
			return report_broken(c, "marker %zu has no thread or no name", i);
		if (m->start > m->end || m->start < p->start || m->end > p->end ||
		    (i && m->start < m[-1].start))
			return report_broken(c, "marker %zu is out of order", i);
	}
	return 0;
}

static int check_code_rows(const struct checker *c, size_t i)
{
	const struct profile *p = c->p;
	const struct profile_code *code = &p->codes[i];

	if (code->first_row > p->code_row_count ||
	    code->row_count > p->code_row_count - code->first_row)
		return report_broken(c, "code %zu: rows out of range", i);
	for (uint32_t k = 0; k < code->row_count; k++) {
		const struct profile_code_row *row = &p->code_rows[code->first_row + k];

		if (row->offset >= code->size || (k && row->offset <= row[-1].offset))
			return report_broken(c, "code %zu: row %u is out of order", i, k);
		if (row->function.v >= p->function_count || !is_string(c, row->file))
			return report_broken(c, "code %zu: row %u: function or file", i, k);
	}
	return 0;
}

static bool codes_are_in_order(const struct profile_code *a, const struct profile_code *b)
{
	return (order_of(a->dso.v, b->dso.v) ?: order_of(a->process.v, b->process.v) ?:
		order_of(a->version, b->version) ?: order_of(a->address, b->address)) < 0;
}

static int check_codes(const struct checker *c)
{
	const struct profile *p = c->p;
	int err = 0;

	for (size_t i = 0; i < p->code_count && !err; i++) {
		const struct profile_code *code = &p->codes[i];

		if (!code->dso.v || code->dso.v >= p->dso_count ||
		    code->process.v >= p->process_count ||
		    dso_kind_is_private(p->dsos[code->dso.v].kind) != (code->process.v != 0))
			return report_broken(c, "code %zu: dso or process", i);
		if ((unsigned int)code->machine >= CODE_MACHINE_COUNT)
			return report_broken(c, "code %zu: machine %d", i, code->machine);
		if (!code->size || !code->bytes || code->address > UINT64_MAX - code->size)
			return report_broken(c, "code %zu: it has no bytes", i);
		if (i && (!codes_are_in_order(code - 1, code) || codes_overlap(code - 1, code)))
			return report_broken(c, "code %zu is out of order", i);
		err = check_code_rows(c, i);
	}
	return err;
}

static bool sources_are_in_order(const struct profile_source *a, const struct profile_source *b)
{
	return a->path.v < b->path.v || (a->path.v == b->path.v && a->root < b->root);
}

static int check_sources(const struct checker *c)
{
	for (size_t i = 0; i < c->p->source_count; i++) {
		const struct profile_source *s = &c->p->sources[i];

		if (!s->path.v || !is_string(c, s->path) || (i && !sources_are_in_order(s - 1, s)))
			return report_broken(c, "source %zu: its path", i);
		if ((unsigned int)s->state >= SOURCE_STATE_COUNT)
			return report_broken(c, "source %zu: state %d", i, s->state);
		if (s->root == SOURCE_ROOT_NONE)
			return report_broken(c, "source %zu: root directory %u", i, s->root);
		if (!s->size || !s->text || memchr(s->text, '\0', s->size) || s->text[s->size])
			return report_broken(c, "source %zu: its text", i);
	}
	return 0;
}

static int check_session(const struct checker *c)
{
	const struct profile *p = c->p;

	if (p->start > p->end)
		return report_broken(c, "the session ends before its start");
	if (p->end > PROFILE_TIME_MAX)
		return report_broken(c, "the session ends too late to be subtracted from");
	if (p->weight_ahead && !p->idle_known)
		return report_broken(c, "weights ahead, without known idle time");
	for (size_t i = 0; i < p->meta_count; i++)
		if (!p->meta[i].key.v || !is_string(c, p->meta[i].key) ||
		    !is_string(c, p->meta[i].value))
			return report_broken(c, "meta %zu: string out of range", i);
	for (size_t i = 0; i < p->lost_range_count; i++) {
		const struct profile_lost_range *r = &p->lost_ranges[i];

		if (r->since > r->until || (i && r->since <= r[-1].until))
			return report_broken(c, "lost range %zu is out of order", i);
	}
	return 0;
}

int profile_check(const struct profile *p, char *why, size_t n)
{
	const struct checker c = {p, why, n};
	int err;

	if ((err = check_tables(&c)) || (err = check_strings(&c)) || (err = check_session(&c)) ||
	    (err = check_clauses(&c)) || (err = check_sample_types(&c)) || (err = check_dsos(&c)) ||
	    (err = check_functions(&c)))
		return err;
	for (size_t i = 1; i < p->location_count; i++)
		if ((err = check_location(&c, i)))
			return err;
	for (size_t i = 1; i < p->stack_count; i++)
		if ((err = check_stack(&c, i)))
			return err;
	if ((err = check_processes(&c)) || (err = check_threads(&c)) || (err = check_jits(&c)) ||
	    (err = check_runtimes(&c)) || (err = check_gils(&c)) || (err = check_memories(&c)) ||
	    (err = check_markers(&c)) || (err = check_epochs(&c)) || (err = check_outside(&c)) ||
	    (err = check_visits(&c)) || (err = check_codes(&c)) || (err = check_sources(&c)))
		return err;
	return check_books(&c);
}
