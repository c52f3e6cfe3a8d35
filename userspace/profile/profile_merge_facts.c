/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/profile_merge_facts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/order.h"
#include "profile/profile_merge_private.h"

#define TEXT_MAX 4096 /* of joined metadata */

/* ---- units ----------------------------------------------------------------------------------- */

/* "cycles (count)" */
static const char *describe_unit(char *text, size_t size, const struct profile *p)
{
	if (p->tick_cpu)
		snprintf(text, size, "weights of %" PRIu64 " ns of CPU time", p->tick_cpu);
	else if (p->uncounted)
		snprintf(text, size, "weights in %s of %s", profile__event_unit(p),
			 profile__event(p));
	else if (p->event.v)
		snprintf(text, size, "%s of %s", profile__event_unit(p), profile__event(p));
	else
		snprintf(text, size, "samples of a clock");
	return text;
}

static bool has_same_unit(const struct profile *a, const struct profile *b)
{
	return a->uncounted == b->uncounted && a->tick_cpu == b->tick_cpu &&
	       !strcmp(profile__event(a), profile__event(b)) &&
	       !strcmp(profile__event_unit(a), profile__event_unit(b));
}

/* As much of a profile as its unit, of what was added so far. */
static struct profile unit_so_far(const struct profile_merge *m)
{
	struct profile unit = m->builder->profile;

	unit.strings = strtab__array(m->builder->strings);
	unit.string_count = strtab__count(m->builder->strings);
	return unit;
}

/* Above that a sample of one file counts for much more than one of another. */
static bool has_same_rate(const struct merging *a)
{
	uint64_t shortest = min_u64(a->m->period_min, a->p->period);
	uint64_t longest = max_u64(a->m->period_max, a->p->period);

	return a->window || !a->p->period || !a->m->period_max ||
	       longest - shortest <= shortest / 4;
}

int check_units(const struct merging *a)
{
	const struct profile_merge *m = a->m;
	const char *first = m->names.count ? m->names.data[0] : "the windows before";
	uint64_t period = a->p->period > m->period_min ? m->period_min : m->period_max;
	struct profile unit = unit_so_far(m);
	char mine[160], others[160];

	if (!m->sources)
		return 0;
	if (!has_same_unit(&unit, a->p))
		return fail(a->failure, -EINVAL,
			    "%s and %s cannot be one profile: %s counts %s, %s %s", first, a->name,
			    first, describe_unit(others, sizeof(others), &unit), a->name,
			    describe_unit(mine, sizeof(mine), a->p));
	if (!has_same_rate(a)) {
		if (m->names.count > 1) /* one of them has that period */
			first = "the files before";
		fail(a->failure, -EINVAL,
		     "%s and %s cannot be one profile: a sample stands for %.3f ms in %s, for %.3f ms "
		     "in %s",
		     first, a->name, (double)period / 1e6, first, (double)a->p->period / 1e6,
		     a->name);
		return fail_remedy(a->failure, -EINVAL, "record both at one rate (-F)");
	}
	return 0;
}

static bool has_cpu_time(const struct profile *p)
{
	for (size_t i = 1; i < p->thread_count; i++)
		if (profile_thread__cpu(&p->threads[i]))
			return true;
	return false;
}

static void join_unit(struct merging *a)
{
	struct profile *session = &a->m->builder->profile;
	struct profile_merge *m = a->m;
	const struct profile *p = a->p;

	m->with_samples += p->sample_count > 0;
	m->with_cpu += p->sample_count && has_cpu_time(p);
	m->with_period += p->sample_count && p->period;

	if (m->sources == 1) {
		session->event = profile_copy__string(&a->copy, p->event);
		session->event_unit = profile_copy__string(&a->copy, p->event_unit);
		session->event_period = p->event_period;
		session->uncounted = p->uncounted;
		session->tick_cpu = p->tick_cpu;
		session->finished_symbols = true;
	}
	if (session->event_period != p->event_period)
		session->event_period = 0; /* it varies */
	if (p->period && (!m->period_min || p->period < m->period_min))
		m->period_min = p->period;
	m->period_max = max_u64(m->period_max, p->period);
}

/* ---- figures --------------------------------------------------------------------------------- */

static void join_session(struct merging *a)
{
	struct profile *session = &a->m->builder->profile;
	struct profile_merge *m = a->m;
	const struct profile *p = a->p;

	if (!session->tsc_khz)
		session->tsc_khz = p->tsc_khz;
	session->clock_error_ns = max_u64(session->clock_error_ns, p->clock_error_ns);
	session->clock_epochs += p->clock_epochs;
	session->cut_short |= p->cut_short;
	session->finished_symbols &= p->finished_symbols;
	m->has_untimed |= p->untimed && !a->window;
	m->has_ahead |= p->weight_ahead;
	m->has_behind |= !p->weight_ahead;
	m->has_idle |= p->idle_known;
	m->has_no_idle |= !p->idle_known;
	if (a->window)
		return;
	m->event_squares += p->event_squares;
	session->unmapped_frames += p->unmapped_frames;
	session->inlined_left_out += p->inlined_left_out;
	for (int i = 0; i < STACK_END_COUNT; i++)
		m->stack_ends[i] += p->stack_ends[i];
	for (int i = 0; i < FRAME_KIND_COUNT; i++)
		session->frames_found[i] += p->frames_found[i];
	for (int i = 0; i < LOST_SOURCE_COUNT; i++)
		session->lost[i] += min_u64(p->lost[i], UINT64_MAX - session->lost[i]);
	session->visits.hz = (uint32_t)max_u64(session->visits.hz, p->visits.hz);
	session->visits.cpu += p->visits.cpu;
	for (int i = 0; i < VISIT_LINE_COUNT; i++)
		session->visits.count[i] += p->visits.count[i];
}

MAP_FUNCTIONS_BY(books_table, struct profile_cpu_books, uint32_t, cpu);

static void add_books(struct profile_cpu_books *sum, const struct profile_cpu_books *books)
{
	sum->period = max_u64(sum->period, books->period);
	sum->period_changed = true; /* due is the sum of all stretches */
	sum->counts_events = (sum->counts_events || books->counts_events) && !sum->period;
	sum->time_enabled = saturating_add_u64(sum->time_enabled, books->time_enabled);
	sum->time_running = saturating_add_u64(sum->time_running, books->time_running);
	sum->due = min_u64(saturating_add_u64(sum->due, books->due),
			   sum->counts_events ? PROFILE_TIME_MAX : sum->time_running);
	sum->received = saturating_add_u64(sum->received, books->received);
	for (int line = 0; line < BOOK_COUNT; line++)
		sum->count[line] += books->count[line];
	for (int time = 0; time < CPU_TIME_COUNT; time++)
		sum->times[time] += books->times[time];
}

/* CPUs of one number add up, whichever host they are of. */
static void join_books(struct merging *a, const struct profile_cpu_books *books)
{
	struct profile_builder *b = a->m->builder;
	const struct profile_cpu_books *known = books_table__find(&b->books, books->cpu);
	struct profile_cpu_books sum = *books;

	if (known)
		add_books(&sum, known);
	profile_builder__books(b, &sum);
}

/* ---- processes ------------------------------------------------------------------------------- */

/* What is counted of a JIT file is that of the profile that has read more of it. */
static void join_jit_file(struct merging *a, struct profile_jit_file *known,
			  const struct profile_jit_file *file)
{
	if (!file->path.v || (known->path.v && known->entries >= file->entries))
		return;
	*known = *file;
	known->path = profile_copy__string(&a->copy, file->path);
}

static void join_string(struct merging *a, struct string_id *known, struct string_id id)
{
	if (!known->v)
		*known = profile_copy__string(&a->copy, id);
}

static int join_jit(struct merging *a, const struct profile_jit *jit)
{
	struct profile_builder *b = a->m->builder;
	uint32_t process = a->copy.processes[jit->process.v];
	uint32_t *number = vec_at(&a->m->jit_of, process);
	struct profile_jit *known;

	if (!number)
		return -ENOMEM;
	if (!*number) {
		if (vec_push(&b->jits, (struct profile_jit){.process = {process}}))
			return -ENOMEM;
		*number = (uint32_t)b->jits.count;
	}
	known = &b->jits.data[*number - 1];
	join_string(a, &known->runtime, jit->runtime);
	join_string(a, &known->remedy, jit->remedy);
	join_string(a, &known->refusal, jit->refusal);
	join_jit_file(a, &known->map, &jit->map);
	join_jit_file(a, &known->dump, &jit->dump);
	known->samples += jit->samples;
	known->unnamed += jit->unnamed;
	known->ambiguous += jit->ambiguous;
	known->read += jit->read;
	return 0;
}

static int join_runtime(struct merging *a, const struct profile_runtime *runtime)
{
	struct profile_builder *b = a->m->builder;
	struct string_id name = profile_copy__string(&a->copy, runtime->name);
	struct profile_runtime *known = NULL;

	for (size_t i = 0; i < b->runtimes.count && !known; i++)
		if (b->runtimes.data[i].name.v == name.v)
			known = &b->runtimes.data[i];
	if (!known) {
		if (vec_push(&b->runtimes, (struct profile_runtime){.name = name}))
			return -ENOMEM;
		known = &b->runtimes.data[b->runtimes.count - 1];
	}
	join_string(a, &known->remedy, runtime->remedy);
	known->frames += runtime->frames;
	known->ambiguous += runtime->ambiguous;
	known->stale += runtime->stale;
	known->unknown += runtime->unknown;
	return 0;
}

static int join_gil(struct merging *a, const struct profile_gil *gil)
{
	struct profile_builder *b = a->m->builder;
	uint32_t *number = vec_at(&a->m->gil_of, a->threads[gil->thread.v]);
	struct profile_gil *known;

	if (!number)
		return -ENOMEM;
	if (!*number) {
		if (vec_push(&b->gils,
			     (struct profile_gil){.process = {a->copy.processes[gil->process.v]},
						  .thread = {a->threads[gil->thread.v]}}))
			return -ENOMEM;
		*number = (uint32_t)b->gils.count;
	}
	known = &b->gils.data[*number - 1];
	known->samples += gil->samples;
	known->held += gil->held;
	known->waiting += gil->waiting;
	known->held_time += gil->held_time;
	return 0;
}

/* A second recorder without a process gets one: readings are by process. */
static struct process_id recorder_of(struct merging *a, uint32_t pid)
{
	struct profile_builder *b = a->m->builder;
	const struct profile_process process = {
		.pid = pid, .name = profile_builder__string(b, "sysprof"), .start = a->p->start};
	struct merged_life life = {.clock = a->clock,
				   .source = a->m->sources,
				   .seen_from = a->p->start,
				   .seen_until = a->p->end,
				   .end_max = UINT64_MAX};
	struct merged_recorder new = {.clock = a->clock, .pid = pid};

	for (size_t i = 0; i < a->m->recorders.count; i++) {
		const struct merged_recorder *known = &a->m->recorders.data[i];
		uint64_t *start = &b->processes.data[known->process].start;

		if (known->clock != a->clock || known->pid != pid)
			continue;
		*start = known->process ? min_u64(*start, a->p->start) : *start;
		return (struct process_id){known->process};
	}
	if (a->clock || a->m->recorders.count) {
		if (builder_has_failed(b, vec_push(&a->m->processes, life)))
			return (struct process_id){0};
		new.process = profile_builder__process(b, &process).v;
	}
	builder_has_failed(b, vec_push(&a->m->recorders, new));
	return (struct process_id){new.process};
}

static void join_memory(struct merging *a, const struct profile_memory *memory)
{
	struct process_id id = {a->copy.processes[memory->process.v]};

	if (!memory->process.v)
		id = recorder_of(a, memory->pid);
	for (size_t i = 0; i < memory->count; i++)
		profile_builder__memory(a->m->builder, id, memory->pid, memory->is_recorder,
					memory->readings[i].time, memory->readings[i].bytes);
}

static int join_marker(struct merging *a, const struct profile_marker *marker)
{
	struct merged_marker copy = {a->clock, *marker};

	copy.row.thread.v = a->threads[marker->thread.v];
	copy.row.name = profile_copy__string(&a->copy, marker->name);
	return vec_push(&a->m->markers, copy);
}

static int join_lists(struct merging *a)
{
	const struct profile *p = a->p;
	int err = 0;

	for (size_t i = 0; i < p->books_count; i++)
		join_books(a, &p->books[i]);
	for (size_t i = 0; i < p->jit_count && !err; i++)
		err = join_jit(a, &p->jits[i]);
	for (size_t i = 0; i < p->runtime_count && !err; i++)
		err = join_runtime(a, &p->runtimes[i]);
	for (size_t i = 0; i < p->gil_count && !err; i++)
		err = join_gil(a, &p->gils[i]);
	for (size_t i = 0; i < p->memory_count; i++)
		join_memory(a, &p->memories[i]);
	for (size_t i = 0; i < p->lost_range_count && !err; i++)
		err = vec_push(&a->m->lost, (struct merged_span){a->clock, p->lost_ranges[i].since,
								 p->lost_ranges[i].until});
	for (size_t i = 0; i < p->epoch_count && !err; i++)
		err = vec_push(&a->m->epochs,
			       (struct merged_span){a->clock, p->epochs[i], p->epochs[i]});
	for (size_t i = 0; i < p->outside_count && !err; i++)
		err = vec_push(&a->m->outside, (struct merged_outside){a->clock, p->outside[i]});
	for (size_t i = 0; i < p->marker_count && !err; i++)
		err = join_marker(a, &p->markers[i]);
	return err;
}

/* ---- metadata -------------------------------------------------------------------------------- */

/* Texts that are said of all profiles; other keys are kept if all have one value. */
static bool is_joined(const char *key)
{
	static const char *const keys[] = {
		META_PRODUCT,
		META_HOSTNAME,
		META_KERNEL_RELEASE,
		META_COMMAND,
		META_TARGET,
		META_EVENT,
		META_CPU,
		META_CPU_CHANGES,
		META_CLOCK_REASON,
		META_LINES_MISSING,
		META_CODE_LEFT_OUT,
		META_FILES_NOT_READ,
		META_NOT_READ,
		META_CPU_TIME,
		META_FORMAT,
		META_UNTIMED,
		META_PART_OF,
		META_JIT_CODE_LEFT_OUT,
		META_SOURCES_MISSING,
	};

	return any_of(keys, sizeof(keys) / sizeof(*keys), known, !strcmp(key, *known));
}

/* Is it one of the texts in "a; b; c"? */
static bool has_text(const char *texts, const char *text)
{
	size_t size = strlen(text);

	for (const char *at = texts; (at = strstr(at, text)); at++)
		if ((at == texts || (at >= texts + 2 && !strncmp(at - 2, "; ", 2))) &&
		    (!at[size] || !strncmp(at + size, "; ", 2)))
			return true;
	return false;
}

/* What differs and is no text for people becomes unknown. */
static int join_value(struct profile_builder *b, const char *key, const char *known,
		      const char *value)
{
	_cleanup_free_ char *both = NULL;

	if (!strcmp(known, value) || !*known || !*value)
		return 0;
	if (!is_joined(key)) {
		profile_builder__meta(b, key, "");
		return 0;
	}
	if (has_text(known, value) || strlen(known) + strlen(value) > TEXT_MAX)
		return 0;
	if (asprintf(&both, "%s; %s", known, value) < 0) {
		both = NULL;
		return -ENOMEM;
	}
	profile_builder__meta(b, key, both);
	return 0;
}

const char *meta_so_far(const struct profile_builder *b, const char *key)
{
	for (size_t i = 0; i < b->meta.count; i++)
		if (!strcmp(strtab__get(b->strings, b->meta.data[i].key.v), key))
			return strtab__get(b->strings, b->meta.data[i].value.v);
	return NULL;
}

static int join_meta(struct merging *a)
{
	struct profile_builder *b = a->m->builder;
	int err = 0;

	a->m->cpu_time_missing += profile__meta(a->p, META_CPU_TIME) != NULL;
	for (size_t i = 0; i < a->p->meta_count && !err; i++) {
		const char *key = profile__string(a->p, a->p->meta[i].key);
		const char *value = profile__string(a->p, a->p->meta[i].value);
		const char *known = meta_so_far(b, key);

		if (known)
			err = join_value(b, key, known, value);
		else
			profile_builder__meta(b, key, value);
	}
	return err;
}

/* What filters dropped adds up by clause. */
static int join_clause(struct merging *a, const struct profile_clause *clause)
{
	struct profile_builder *b = a->m->builder;
	struct profile_clause copy = *clause;

	copy.text = profile_copy__string(&a->copy, clause->text);
	for (size_t i = 0; i < b->clauses.count; i++) {
		struct profile_clause *known = &b->clauses.data[i];

		if (known->text.v != copy.text.v)
			continue;
		known->samples += copy.samples;
		known->events += copy.events;
		known->cpu += copy.cpu;
		known->wall += copy.wall;
		return 0;
	}
	return vec_push(&b->clauses, copy);
}

/* The clauses of all profiles are the filter. */
static int join_filters(struct merging *a)
{
	struct profile_builder *b = a->m->builder;
	char *text = NULL;
	size_t size = 0;
	int err = 0;
	FILE *out;

	for (size_t i = 0; i < a->p->clause_count && !err; i++)
		err = join_clause(a, &a->p->clauses[i]);
	if (err || !a->p->clause_count)
		return err;
	out = open_memstream(&text, &size);
	for (size_t i = 0; out && i < b->clauses.count; i++)
		fprintf(out, "%s%s", i ? " " : "",
			profile_builder__get_string(b, b->clauses.data[i].text));
	if (!out || fclose(out))
		err = -ENOMEM;
	else
		b->profile.filter = profile_builder__string(b, text);
	free(text);
	return err;
}

int merge_facts(struct merging *a)
{
	int err;

	join_unit(a);
	join_session(a);
	err = join_meta(a) ?: join_filters(a);
	if (!err && !a->window)
		err = join_lists(a);
	return err ?: profile_builder__error(a->m->builder);
}
