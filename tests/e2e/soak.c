/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * soak SECONDS MILLISECONDS LOG CPU MEMORY [ADDRESS]: records the whole system in windows of so many milliseconds at
 * 97 Hz, for a given time, within a budget (a share of one CPU, bytes; 0: none), with the parts that the agent has
 * for that: usage, budget, metrics and, where an ADDRESS is given, the endpoint. It sends nothing anywhere.
 *
 * A line a measurement goes to LOG, which becomes LOG.1 when it has a megabyte. Prints what it found, "NAME VALUE" a
 * line: the most of each figure in the second and in the fourth quarter, what it cost, and the sums of the books.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/budget.h"
#include "agent/endpoint.h"
#include "agent/publisher.h"
#include "agent/metrics.h"
#include "agent/usage.h"
#include "base/clocks.h"
#include "base/minmax.h"
#include "base/parse.h"
#include "session/session.h"

#define HZ	97
#define LOG_MAX (1u << 20)

/* What may not grow. */
#define FIGURES(X)                                                                                 \
	X(memory)                                                                                  \
	X(process_memory)                                                                          \
	X(descriptors) X(processes_known) X(threads_known) X(images_known) X(queue) X(waiting)

struct soak_figures {
#define X(name) uint64_t name;
	FIGURES(X)
#undef X
};

struct soak {
	struct session *session;
	struct usage *usage;
	struct budget *budget;
	struct endpoint *endpoint; /* NULL: none */
	struct agent_metrics metrics;
	struct soak_figures early, late; /* the most in the second and in the fourth quarter */
	uint64_t begin, end;
	char *log_path;
	FILE *log;
	double most_cpu; /* of one measurement but the first */
	uint64_t measurements, queue_dropped;
};

static void give_up(const char *what, const struct failure *failure)
{
	fprintf(stderr, "soak: %s: %s\n", what, failure ? failure->what : "");
	exit(1);
}

/* A window_finished_fn; the finisher's thread. Its own fields of the metrics. */
static void add_window(void *context, const struct finished_window *window)
{
	struct agent_metrics *m = context;
	const struct profile *p = window->profile;

	m->windows_finished += !window->err;
	m->windows_failed += window->err != 0;
	if (p)
		metrics__add(m, p);
}

/* ---- the log --------------------------------------------------------------------------------- */

static void rotate_log(struct soak *s)
{
	char old[4096];

	if (ftell(s->log) < (long)LOG_MAX)
		return;
	fclose(s->log);
	snprintf(old, sizeof(old), "%s.1", s->log_path);
	rename(s->log_path, old);
	s->log = fopen(s->log_path, "we");
	if (!s->log)
		give_up("log", NULL);
}

static void write_log(struct soak *s, const struct usage_report *u, const struct budget_state *b,
		      const struct soak_figures *f)
{
	fprintf(s->log,
		"%llu s cpu %.2f %% memory %llu KB process %llu KB children %llu KB kernel %llu KB "
		"fds %llu children %u lives %llu images %llu queue %llu KB waiting %llu hz %u level %u windows %llu\n",
		(unsigned long long)((u->time - s->begin) / 1000000000), 100 * u->cpu,
		(unsigned long long)u->memory / 1024,
		(unsigned long long)u->memory_by[USAGE_MEMORY_PROCESS] / 1024,
		(unsigned long long)u->memory_by[USAGE_MEMORY_CHILDREN] / 1024,
		(unsigned long long)u->memory_by[USAGE_MEMORY_KERNEL] / 1024,
		(unsigned long long)f->descriptors, u->processes,
		(unsigned long long)f->processes_known, (unsigned long long)f->images_known,
		(unsigned long long)f->queue / 1024, (unsigned long long)f->waiting, b->hz,
		b->level, (unsigned long long)s->metrics.windows_finished);
	fflush(s->log);
	rotate_log(s);
}

/* ---- measuring ------------------------------------------------------------------------------- */

static void keep_most(struct soak_figures *most, const struct soak_figures *now)
{
#define X(name) most->name = max_u64(most->name, now->name);
	FIGURES(X)
#undef X
}

static void note_figures(struct soak *s, const struct usage_report *u, struct soak_figures *now)
{
	uint64_t quarter = (s->end - s->begin) / 4, passed = u->time - s->begin;
	struct session_stats stats;

	session__stats(s->session, &stats);
	s->queue_dropped = stats.live.queue.dropped;
	*now = (struct soak_figures){
		.memory = u->memory,
		.process_memory = u->memory_by[USAGE_MEMORY_PROCESS],
		.descriptors = u->descriptors,
		.processes_known = stats.processes_known,
		.threads_known = stats.threads_known,
		.images_known = stats.images_known,
		.queue = stats.live.queue.memory,
		.waiting = stats.waiting_windows,
	};
	if (passed >= quarter && passed < 2 * quarter)
		keep_most(&s->early, now);
	if (passed >= 3 * quarter)
		keep_most(&s->late, now);
}

static void apply(struct soak *s, const struct budget_state *state)
{
	const struct session_allowance allowance = {
		.new_files = state->allowed[BUDGET_STEP_NEW_FILES],
		.rare_names = state->allowed[BUDGET_STEP_RARE_NAMES],
		.debug_info = state->allowed[BUDGET_STEP_DEBUG_INFO],
		.table_builds = state->allowed[BUDGET_STEP_TABLE_BUILDS],
		.jit_histories = state->allowed[BUDGET_STEP_JIT_HISTORIES],
		.early_ticks = state->allowed[BUDGET_STEP_EARLY_TICKS],
	};

	session__allow(s->session, &allowance);
	session__set_hz(s->session, state->hz);
}

static void publish(struct soak *s)
{
	char *text;
	size_t size;

	s->metrics.hz = session__hz(s->session);
	s->metrics.now = realtime_ns();
	if (s->endpoint && !metrics__text(&s->metrics, &text, &size))
		endpoint__publish(s->endpoint, text, size, NULL);
}

static void measure(struct soak *s, const struct usage_report *report)
{
	struct budget_usage usage = {
		.time = report->time, .cpu = report->cpu, .memory = report->memory};
	enum budget_step step;
	struct soak_figures now;

	usage__by_part(report, usage.cpu_by);
	s->metrics.usage = *report;
	if (budget__measure(s->budget, &usage, &step) != BUDGET_SAME)
		fprintf(s->log, "budget: %s\n", budget_step_text(step));
	budget__state(s->budget, &s->metrics.budget);
	budget__stats(s->budget, &s->metrics.budget_stats);
	apply(s, &s->metrics.budget);
	if (s->measurements++)
		s->most_cpu = report->cpu > s->most_cpu ? report->cpu : s->most_cpu;
	note_figures(s, report, &now);
	write_log(s, report, &s->metrics.budget, &now);
	publish(s);
}

static void run(struct soak *s, uint64_t interval)
{
	uint64_t next_window = s->begin + interval, next_usage = s->begin, now;
	struct usage_report report;
	struct failure failure = {};

	while ((now = monotonic_ns()) < s->end) {
		if (now >= next_usage &&
		    usage__step(s->usage, s->session, now, &next_usage, &report))
			measure(s, &report);
		if (session__step(s->session, min_u64(min_u64(next_window, next_usage), s->end),
				  &failure))
			give_up("step", &failure);
		if (monotonic_ns() < next_window)
			continue;
		next_window += interval;
		s->metrics.windows_put_off += session__rotate(s->session) != 0;
	}
}

/* ---- start and end --------------------------------------------------------------------------- */

static void open_session(struct soak *s)
{
	const struct session_options options = {
		.live =
			{
				.session =
					{
						.target = {.mode = TARGET_ALL},
						.hz = HZ,
						.user_stacks = true,
						.kernel_stacks = true,
						.unwind_bytes = 16u << 20,
						.max_depth = 127,
						.ring_bytes = 8u << 20,
					},
				.queue_bytes = 32u << 20,
				.target_text = "-a",
				.command_line = "soak",
			},
		.table_cache = true,
		.symbolize = true,
		.symbols = {.cache = true},
		.jit_memory = 16u << 20,
		.finished = add_window,
		.context = &s->metrics,
	};
	struct failure failure = {};

	if (session__open(&options, &s->session, &failure) ||
	    session__start(s->session, 0, -1, &failure))
		give_up("start", &failure);
}

static void print_figures(const char *when, const struct soak_figures *f)
{
#define X(name) printf(#name "_%s %llu\n", when, (unsigned long long)f->name);
	FIGURES(X)
#undef X
}

static void print_result(struct soak *s)
{
	const struct agent_metrics *m = &s->metrics;
	uint64_t cpu = 0;

	for (int i = 0; i < USAGE_CPU_PART_COUNT; i++)
		cpu += m->usage.cpu_ns[i];
	print_figures("early", &s->early);
	print_figures("late", &s->late);
	printf("windows %llu\nfailed %llu\nput_off %llu\nmeasurements %llu\n",
	       (unsigned long long)m->windows_finished, (unsigned long long)m->windows_failed,
	       (unsigned long long)m->windows_put_off, (unsigned long long)s->measurements);
	printf("due %llu\ndelivered %llu\nunexplained %lld\n",
	       (unsigned long long)m->figures[FIGURE_DUE],
	       (unsigned long long)m->figures[FIGURE_BOOKS + BOOK_DELIVERED],
	       (long long)m->figures[FIGURE_UNEXPLAINED]);
#define X(id, part, label, text)                                                                   \
	printf("cpu_ms_" label " %llu\n",                                                          \
	       (unsigned long long)m->usage.cpu_ns[USAGE_CPU_##id] / 1000000);
	USAGE_CPU_PARTS(X)
#undef X
	printf("cpu_ms %llu\nbpf_us %llu\nmost_cpu_permille %.2f\n",
	       (unsigned long long)cpu / 1000000,
	       (unsigned long long)(m->usage.cpu_ns[USAGE_CPU_BPF] +
				    m->usage.cpu_ns[USAGE_CPU_HOOKS]) /
		       1000,
	       1000 * s->most_cpu);
	printf("queue_dropped %llu\n", (unsigned long long)s->queue_dropped);
	printf("level %u\nhz %u\n", m->budget.level, m->hz);
}

int main(int argc, char **argv)
{
	struct soak s = {.metrics = {.version = SYSPROF_VERSION, .configured_hz = HZ}};
	struct endpoint_options endpoint = {.stuck_after = 60000000000};
	struct budget_options budget = {.hz = HZ};
	const struct profile *last;
	struct failure failure = {};
	uint64_t seconds, milliseconds;

	if (argc < 6 || argc > 7 || parse_u64(argv[1], 1, 1000000, &seconds) ||
	    parse_u64(argv[2], 100, 60000, &milliseconds) || parse_share(argv[4], &budget.cpu) ||
	    parse_u64(argv[5], 0, UINT64_MAX, &budget.memory)) {
		fprintf(stderr, "usage: soak SECONDS MILLISECONDS LOG CPU MEMORY [ADDRESS]\n");
		return 2;
	}
	s.log_path = argv[3];
	s.log = fopen(s.log_path, "we");
	s.usage = usage__new();
	s.budget = budget__new(&budget);
	if (!s.log || !s.usage || !s.budget)
		give_up("start", NULL);
	s.metrics.cpu_limit = budget.cpu;
	s.metrics.memory_limit = budget.memory;
	s.metrics.window_length = milliseconds * 1000000;
	s.metrics.healthy = true;
	open_session(&s);
	endpoint.address = argc == 7 ? argv[6] : NULL;
	if (endpoint.address && endpoint__new(&endpoint, &s.endpoint, &failure))
		give_up("endpoint", &failure);
	s.begin = monotonic_ns();
	s.end = s.begin + seconds * 1000000000;
	run(&s, milliseconds * 1000000);
	if (session__stop(s.session, &failure) || session__finish(s.session, &last, &failure))
		give_up("stop", &failure);
	add_window(&s.metrics, &(struct finished_window){.profile = last});
	print_result(&s);
	endpoint__free(s.endpoint);
	session__free(s.session);
	usage__free(s.usage);
	budget__free(s.budget);
	fclose(s.log);
	return 0;
}
