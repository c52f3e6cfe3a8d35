/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pprof (profile.proto, .pb.gz): all processes and threads of a profile.
 *
 * A sample of the file stands for all samples of a thread with one stack, one name of the thread
 * and one state of the GIL. Its values are [ticks, CPU time]; they add up to the samples and to the
 * CPU time of all threads exactly. CPU time after a thread's last sample is that sample's; a thread
 * with CPU time but no sample has one of no ticks, in a function called "[not sampled]".
 *
 * Where the number of samples is unknown (profile.uncounted), the only values are CPU time, or the
 * weights.
 *
 * Of an event that is no clock the second value is the number of events, as in [samples, cycles,
 * CPU time], and the default.
 *
 * With visits (record --wall) values are [ticks, CPU time, wall time], and samples have a state as
 * a label: "running" for ticks, whose wall time is their CPU time. Waits have only wall time.
 *
 * In a comparison samples have one value, in its unit. Those of OLD are negative, with the label
 * pprof::base, as by `go tool pprof -diff_base OLD -proto NEW`: pprof shows percent of OLD.
 *
 * Code that is in no file (of a JIT compiler, or outside every mapping) has mapping 0.
 *
 * Flags. pprof looks up the symbols of a mapping without flags on its own machine and replaces the
 * lines of all its locations; it leaves a mapping with any flag alone. So a mapping is either
 *   - symbolized: has_functions, and every location has a line. Code without a symbol is called
 *     "[name of the file]", as everywhere else;
 *   - or not: no flags, no lines. Only a file with a build id and no named location: another tool
 *     may know the symbols, and can check that it has the right file. The addresses are offsets in
 *     the file then, since the program headers were not seen. pprof shows "[name of the file]".
 */
#include "formats/out/exporters.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/wire.h"
#include "formats/out/describe.h"
#include "formats/out/pprof_writer.h"

#define MAX_LABELS 20
#define MAX_VALUES 4

/* A sample of the file: those of the thread in hand with one stack, one name and one state. */
struct pprof_sample {
	struct stack_id stack;
	struct string_id comm;
	enum gil_state gil;
	enum sample_context context;
	enum wall_state state;
	struct thread_id holder;
	uint64_t ticks, events, cpu, wall;
};

static uint64_t hash_sample(const struct pprof_sample *s)
{
	return hash_combine(hash_u64((uint64_t)s->stack.v << 32 | s->comm.v),
			    s->gil + ((uint64_t)s->state << 8) + ((uint64_t)s->context << 16) +
				    ((uint64_t)s->holder.v << 32));
}

static bool has_same_labels(const struct pprof_sample *a, const struct pprof_sample *b)
{
	return a->comm.v == b->comm.v && a->gil == b->gil && a->context == b->context &&
	       a->state == b->state && a->holder.v == b->holder.v;
}

#define is_same_sample(a, b) ((a)->stack.v == (b)->stack.v && has_same_labels(a, b))

DEFINE_MAP_OF(pprof_samples, struct pprof_sample, hash_sample, is_same_sample);

struct pprof {
	const struct profile *p;
	struct pprof_writer *writer;
	struct code_tables *code;		    /* the writer's */
	bool has_wall;				    /* the profile has visits */
	const struct export_difference *difference; /* may be NULL */
	int error;				    /* the first one */
	struct pprof_samples samples;		    /* scratch: those of one thread */
};

static void note_error(struct pprof *pp, int err)
{
	if (!pp->error)
		pp->error = err;
}

/* ---- labels ---------------------------------------------------------------------------------- */

struct pprof_labels {
	struct pprof_label list[MAX_LABELS];
	size_t count;
};

/* An empty text would be read as the number 0. */
static void add_label(struct pprof *pp, struct pprof_labels *labels, const char *key,
		      const char *text)
{
	uint32_t number = *text ? code_tables__text(pp->code, key) : 0;

	if (number)
		labels->list[labels->count++] = (struct pprof_label){
			.key = number, .text = code_tables__text(pp->code, text)};
}

static void add_text_label(struct pprof *pp, struct pprof_labels *labels, const char *key,
			   struct string_id text)
{
	uint32_t number = code_tables__string(pp->code, text);

	if (number)
		labels->list[labels->count++] = (struct pprof_label){
			.key = code_tables__text(pp->code, key), .text = number};
}

static void add_number_label(struct pprof *pp, struct pprof_labels *labels, const char *key,
			     uint32_t number)
{
	uint32_t text = code_tables__text(pp->code, key);

	/* the unit, or pprof would make up one */
	labels->list[labels->count++] =
		(struct pprof_label){.key = text, .number = number, .unit = text};
}

/* "name/12", since threads of one name are many. */
static void add_holder_label(struct pprof *pp, struct pprof_labels *labels, struct thread_id holder)
{
	const struct profile_thread *thread = &pp->p->threads[holder.v];
	char text[EVENT_PATH_MAX];

	snprintf(text, sizeof(text), "%s/%u", profile__string(pp->p, thread->name), thread->tid);
	add_label(pp, labels, "holder", holder.v ? text : "");
}

/* Labels of a sample: the thread, with its name and states at that time. */
static void fill_labels(struct pprof *pp, const struct profile_thread *thread,
			const struct pprof_sample *sample, struct pprof_labels *labels)
{
	const struct profile_process *process = &pp->p->processes[thread->process.v];

	labels->count = 0;
	add_number_label(pp, labels, "pid", process->pid);
	add_number_label(pp, labels, "tid", thread->tid);
	add_text_label(pp, labels, "process", process->name);
	add_text_label(pp, labels, "thread", sample->comm);
	add_text_label(pp, labels, "cgroup", process->cgroup);
	/* with the keys of the agent's files */
#define X(field, key) add_text_label(pp, labels, key, process->names.field);
	PROCESS_NAMES(X)
#undef X
	/* only where something is known: -tagfocus=gil=held */
	add_label(pp, labels, "gil", gil_state_name(sample->gil));
	add_label(pp, labels, "context", sample_context_name(sample->context));
	add_label(pp, labels, "state", pp->has_wall ? wall_state_name(sample->state) : "");
	add_holder_label(pp, labels, sample->holder);
	if (pp->difference && thread->process.v == EXPORT_OLD_PROCESS)
		add_label(pp, labels, "pprof::base", "true");
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Weights that are no counts are the only values, and CPU time is not there twice. */
static bool has_counts(const struct profile *p)
{
	return !p->uncounted;
}

static bool has_events(const struct profile *p)
{
	return p->uncounted ? !p->tick_cpu : p->event.v && !profile__events_are_cpu(p);
}

static bool has_cpu(const struct profile *p)
{
	return !p->uncounted || p->tick_cpu;
}

static const char *event_type(const struct profile *p)
{
	return p->uncounted ? PPROF_WEIGHT : profile__event(p);
}

static void write_value(struct pprof *pp, uint32_t thread, const struct pprof_sample *sample,
			const struct pprof_labels *labels)
{
	double size = (double)sample->ticks * pp->difference->tick_value[thread];
	const int64_t value = (int64_t)(size + 0.5);
	const bool is_old = pp->p->threads[thread].process.v == EXPORT_OLD_PROCESS;

	pprof_writer__sample(pp->writer, sample->stack, &(int64_t){is_old ? -value : value}, 1,
			     labels->list, labels->count);
	note_error(pp, pprof_writer__error(pp->writer));
}

static void write_sample(struct pprof *pp, const struct pprof_sample *sample,
			 const struct pprof_labels *labels)
{
	int64_t values[MAX_VALUES];
	size_t count = 0;

	if (has_counts(pp->p))
		values[count++] = (int64_t)sample->ticks;
	if (has_events(pp->p))
		values[count++] = (int64_t)sample->events;
	if (has_cpu(pp->p))
		values[count++] = (int64_t)sample->cpu;
	if (pp->has_wall)
		values[count++] = (int64_t)(sample->cpu + sample->wall);
	pprof_writer__sample(pp->writer, sample->stack, values, count, labels->list, labels->count);
	note_error(pp, pprof_writer__error(pp->writer));
}

static struct pprof_sample *need_sample(struct pprof *pp, const struct pprof_sample *wanted)
{
	struct pprof_sample *sample = pprof_samples__need(&pp->samples, wanted, NULL);

	if (!sample)
		note_error(pp, -ENOMEM);
	return sample;
}

/* The sample of the file to which a row belongs. */
static struct pprof_sample *sample_of_row(struct pprof *pp, const struct profile_samples *rows,
					  size_t row)
{
	const struct pprof_sample wanted = {
		.stack = rows->stack[row],
		.comm = rows->comm[row],
		.gil = profile_samples__gil(rows, row),
		.context = profile_samples__context(rows, row),
		.state = rows->state ? profile_samples__state(rows, row) : WALL_RUNNING,
		.holder = rows->holder ? rows->holder[row] : (struct thread_id){0}};

	return need_sample(pp, &wanted);
}

static void collect_samples(struct pprof *pp, const struct profile_thread *thread)
{
	const struct profile_samples *rows = &thread->samples[SAMPLE_CPU];
	const struct profile_samples *waits = &thread->samples[SAMPLE_WALL];
	struct pprof_sample *sample;

	pprof_samples__clear(&pp->samples);
	for (size_t i = 0; i < rows->count && !pp->error; i++) {
		sample = sample_of_row(pp, rows, i);
		if (!sample)
			return;
		sample->ticks += profile_samples__ticks(rows, i);
		sample->events += profile_samples__events(rows, i);
		sample->cpu += rows->weight[i];
		if (i + 1 == rows->count)
			sample->cpu += thread->cpu_tail;
	}
	for (size_t i = 0; i < waits->count && !pp->error; i++) {
		sample = sample_of_row(pp, waits, i);
		if (sample)
			sample->wall += waits->weight[i];
	}
	if (rows->count || !thread->cpu_tail || pp->error)
		return;
	sample = need_sample(pp,
			     &(struct pprof_sample){.comm = thread->name, .state = WALL_RUNNING});
	if (sample)
		sample->cpu += thread->cpu_tail;
}

static void write_thread(struct pprof *pp, uint32_t id)
{
	const struct profile_thread *thread = &pp->p->threads[id];
	struct pprof_labels labels;

	collect_samples(pp, thread);
	for (size_t i = 0; i < pp->samples.count && !pp->error; i++) {
		const struct pprof_sample *sample = &pp->samples.data[i];

		if (!i || !has_same_labels(sample, sample - 1))
			fill_labels(pp, thread, sample, &labels);
		if (pp->difference)
			write_value(pp, id, sample, &labels);
		else
			write_sample(pp, sample, &labels);
	}
}

/* ---- the profile ----------------------------------------------------------------------------- */

/* The program with most events, by a stack's outermost frame in no library; 0: none. */
static struct dso_id main_program(const struct profile *p)
{
	_cleanup_free_ uint64_t *of_stack = calloc(p->stack_count + 1, sizeof(*of_stack));
	_cleanup_free_ uint64_t *of_dso = calloc(p->dso_count + 1, sizeof(*of_dso));
	_cleanup_free_ bool *below = calloc(p->stack_count + 1, sizeof(*below));
	struct dso_id best = {0};

	if (!of_stack || !of_dso || !below)
		return best;
	profile__count_stacks(p, of_stack);
	for (size_t i = p->stack_count; i-- > 1;)
		of_stack[p->stacks[i].parent.v] += of_stack[i];
	for (size_t i = 1; i < p->stack_count; i++) {
		const struct profile_location *l = &p->locations[p->stacks[i].location.v];
		bool is_program = l->category == CATEGORY_USER &&
				  p->dsos[l->dso.v].kind == DSO_FILE;

		if (is_program && !below[p->stacks[i].parent.v])
			of_dso[l->dso.v] += of_stack[i];
		below[i] = is_program || below[p->stacks[i].parent.v];
	}
	for (uint32_t i = 1; i < p->dso_count; i++)
		if (of_dso[i] > of_dso[best.v])
			best.v = i;
	return best;
}

static void write_facts(struct pprof *pp)
{
	const struct profile *p = pp->p;
	struct figures figures;
	struct pprof_facts out = {
		.time = p->start_realtime,
		.duration = p->end > p->start ? p->end - p->start : 0,
		/* samples of unequal time have no period, which would be taken for each one's */
		.period = p->uncounted || profile__events_are_cpu(p) ? 0 : p->period,
		.has_comments = true,
	};

	if (has_events(p)) {
		out.period = p->event_period;
		out.period_type = event_type(p);
		out.period_unit = profile__event_unit(p);
	}

	/* what was read from folded stacks has counts alone, and pprof shows the default */
	figures__init(&figures, p);
	out.default_sample_type = pp->difference	      ? pp->difference->type
				  : has_events(p)	      ? event_type(p)
				  : figures.value[FIGURE_CPU] ? EVENT_CPU
							      : "samples";
	pprof_writer__facts(pp->writer, &out);
}

static void write_all(struct pprof *pp)
{
	struct dso_id program = main_program(pp->p);

	if (pp->difference) {
		pprof_writer__sample_type(pp->writer, pp->difference->type, pp->difference->unit);
	} else {
		if (has_counts(pp->p))
			pprof_writer__sample_type(pp->writer, "samples", "count");
		if (has_events(pp->p))
			pprof_writer__sample_type(pp->writer, event_type(pp->p),
						  profile__event_unit(pp->p));
		if (has_cpu(pp->p))
			pprof_writer__sample_type(pp->writer, EVENT_CPU, EVENT_CPU_UNIT);
	}
	if (pp->has_wall)
		pprof_writer__sample_type(pp->writer, "wall", "nanoseconds");
	if (program.v) /* readers take the first mapping for the program */
		code_tables__mapping(pp->code, program);
	for (uint32_t i = 1; i < pp->p->thread_count && !pp->error; i++)
		write_thread(pp, i);
	pprof_writer__tables(pp->writer);
	write_facts(pp);
	note_error(pp, pprof_writer__finish(pp->writer));
}

static int write_pprof(const struct export_request *request)
{
	static const struct pprof_writer_options options;
	const struct profile *p = request->profile;
	struct pprof pp = {.p = p,
			   .has_wall = p->visits.hz > 0,
			   .difference = request->difference,
			   .writer = pprof_writer__new(p, &options, request->out)};

	if (!pp.writer)
		return -ENOMEM;
	pp.code = pprof_writer__code(pp.writer);
	write_all(&pp);
	pprof_writer__free(pp.writer);
	pprof_samples__fini(&pp.samples);
	return pp.error;
}

const struct exporter pprof_exporter = {
	.name = "pprof",
	.suffixes = (const char *const[]){".pb.gz", NULL},
	.description = "pprof, every process and thread as labels",
	.how_to_open = "run go tool pprof -http=: %s, or send it to Pyroscope or Parca",
	.may_gzip = true,
	.write = write_pprof,
};
