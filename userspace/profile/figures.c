/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/figures.h"

#include <string.h>

#include "base/minmax.h"

const struct figure figure_table[FIGURE_COUNT] = {
#define X(id, unit, key, value, label) [FIGURE_##id] = {FIGURE_IN_##unit, false, key, label},
	SINGLE_FIGURES(X)
#undef X
#define X(id, unit, key, value, text) [FIGURE_##id] = {FIGURE_IN_##unit, true, key, text},
		LEFT_OUT_FIGURES(X)
#undef X
#define X(id, name, text) [FIGURE_VISITS + VISIT_LINE_##id] = {FIGURE_IN_COUNT, false, name, text},
			VISIT_LINES(X)
#undef X
#define X(id, name, text) [FIGURE_STATES + WALL_##id] = {FIGURE_IN_NS, false, name, text},
				WALL_STATES(X)
#undef X
#define X(id, name, loss, text) [FIGURE_BOOKS + BOOK_##id] = {FIGURE_IN_COUNT, loss, name, text},
					BOOK_LINES(X)
#undef X
#define X(id, name, complete, text)                                                                \
	[FIGURE_ENDS + STACK_END_##id] = {FIGURE_IN_COUNT, !(complete), name, text},
						STACK_ENDS(X)
#undef X
#define X(id, name, exact, text)                                                                   \
	[FIGURE_FRAMES + FRAME_##id] = {FIGURE_IN_COUNT, false, name, text},
							FRAME_KINDS(X)
#undef X
#define X(id, name, text) [FIGURE_LOST + LOST_##id] = {FIGURE_IN_COUNT, true, name, text},
								LOST_SOURCES(X)
#undef X
#define X(id, name, text) [FIGURE_TIMES + CPU_TIME_##id] = {FIGURE_IN_NS, false, name, text},
									CPU_TIMES(X)
#undef X
};

/* Over all threads and all CPUs. */
struct sums {
	uint64_t threads, silent_threads; /* with a CPU sample, and without */
	uint64_t cpu, silent_cpu;	  /* ns, of all threads and of those without a sample */
	uint64_t unread;		  /* samples of processes whose facts were not read */
	uint64_t due, received, lost;	  /* ticks */
	uint64_t lines[BOOK_COUNT];
	uint64_t times[CPU_TIME_COUNT], stolen; /* ns of CPUs; ticks not run in stolen time */
	uint64_t visited, lived, unvisited, states[WALL_STATE_COUNT];
	bool due_known;
	struct profile_clause dropped;
};

/* Of a recording of ours: it has a service without all of its facts. */
static bool is_unread(const struct profile_process *process)
{
	return process->life && process->names.service.v && !process->is_kernel &&
	       process->facts_state != FACTS_STATE_WHOLE;
}

static void add_thread(struct sums *s, const struct profile *p, const struct profile_thread *thread)
{
	uint64_t cpu = profile_thread__cpu(thread);

	if (is_unread(&p->processes[thread->process.v]))
		s->unread += thread->samples[SAMPLE_CPU].count;
	s->cpu += cpu;
	if (thread->samples[SAMPLE_CPU].count) {
		s->threads++;
	} else {
		s->silent_threads++;
		s->silent_cpu += cpu;
	}
}

static void add_wall(struct sums *s, const struct profile_wall *wall,
		     const struct profile_samples *waits)
{
	s->visited += wall->until > 0;
	s->lived += wall->until - wall->since;
	s->unvisited += wall->unvisited;
	s->states[WALL_RUNNING] += wall->running;
	for (size_t i = 0; i < waits->count; i++)
		s->states[profile_samples__state(waits, i)] += waits->weight[i];
}

static void add_books(struct sums *s, const struct profile_cpu_books *books)
{
	if (profile_cpu_books__due_is_known(books)) {
		s->due_known = true;
		s->due += books->due;
	}
	s->received += books->received;
	for (unsigned int i = 0; i < CPU_TIME_COUNT; i++)
		s->times[i] += books->times[i];
	if (books->period)
		s->stolen += min_u64(books->count[BOOK_NOT_RUN],
				     books->times[CPU_TIME_STEAL] / books->period);
	for (unsigned int line = 0; line < BOOK_COUNT; line++) {
		s->lines[line] += books->count[line];
		if (figure_table[FIGURE_BOOKS + line].is_loss)
			s->lost += books->count[line];
	}
}

static void add_clause(struct sums *s, const struct profile_clause *clause)
{
	s->dropped.samples += clause->samples;
	s->dropped.events += clause->events;
	s->dropped.cpu += clause->cpu;
	s->dropped.wall += clause->wall;
}

static void set_figures(struct figures *f, const struct profile *p, const struct sums *s)
{
	const char *format = profile__meta(p, META_FORMAT);
	bool has_copies = format && !strcmp(format, META_FORMAT_PERF_COPIES);

	*f = (struct figures){
		.due_known = s->due_known,
		.losses_known = !format || has_copies || !strcmp(format, META_FORMAT_PERF),
		.ends_known = !format || has_copies,
		.clock_known = !format,
		.times_known = !p->untimed,
		.start_known = !p->untimed && p->start != PROFILE_MADE_UP_START &&
			       p->start < PROFILE_YEAR_2000,
	};
	f->names_known = f->losses_known || p->has_only_names || !strcmp(format, META_FORMAT_PPROF);
#define X(id, unit, key, expression, text)                                                         \
	if (FIGURE_IN_##unit == FIGURE_IN_SHARE)                                                   \
		f->share[FIGURE_##id] = (double)(expression);                                      \
	else                                                                                       \
		f->value[FIGURE_##id] = (uint64_t)(expression);
	SINGLE_FIGURES(X)
	LEFT_OUT_FIGURES(X)
#undef X
	memcpy(&f->value[FIGURE_VISITS], p->visits.count, sizeof(p->visits.count));
	memcpy(&f->value[FIGURE_STATES], s->states, sizeof(s->states));
	memcpy(&f->value[FIGURE_BOOKS], s->lines, sizeof(s->lines));
	memcpy(&f->value[FIGURE_ENDS], p->stack_ends, sizeof(p->stack_ends));
	memcpy(&f->value[FIGURE_FRAMES], p->frames_found, sizeof(p->frames_found));
	memcpy(&f->value[FIGURE_LOST], p->lost, sizeof(p->lost));
	memcpy(&f->value[FIGURE_TIMES], s->times, sizeof(s->times));
}

bool figures__is_known(const struct figures *f, unsigned int id)
{
	switch (id) {
	case FIGURE_COMPLETE_SHARE:
		return f->ends_known;
	case FIGURE_NAMED_SHARE:
		return f->names_known;
	case FIGURE_START:
		return f->start_known;
	case FIGURE_DURATION:
		return f->times_known;
	case FIGURE_START_REALTIME:
		return f->value[id] >= PROFILE_YEAR_2000;
	case FIGURE_PERIOD:
		return f->value[id];
	case FIGURE_CLOCK:
	case FIGURE_CLOCK_ERROR:
		return f->clock_known;
	case FIGURE_DUE:
	case FIGURE_UNEXPLAINED:
		return f->due_known;
	default:
		return true;
	}
}

void figures__init(struct figures *f, const struct profile *p)
{
	struct sums sums = {};

	for (size_t i = 1; i < p->thread_count; i++) {
		add_thread(&sums, p, &p->threads[i]);
		add_wall(&sums, &p->threads[i].wall, &p->threads[i].samples[SAMPLE_WALL]);
	}
	for (size_t i = 0; i < p->books_count; i++)
		add_books(&sums, &p->books[i]);
	for (size_t i = 0; i < p->clause_count; i++)
		add_clause(&sums, &p->clauses[i]);
	set_figures(f, p, &sums);
}
