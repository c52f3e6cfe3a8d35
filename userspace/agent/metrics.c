/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/list_column.h"
#include "base/minmax.h"
#include "base/utf8.h"

#define LABEL_MAX 512 /* bytes */

/* ---- the format ------------------------------------------------------------------------------ */

static void head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP sysprof_%s %s\n# TYPE sysprof_%s %s\n", name, help, name, type);
}

/* Control characters and invalid UTF-8 become \xNN; reserved characters are escaped. */
static void write_value(FILE *out, const char *value)
{
	char clean[LABEL_MAX];

	utf8_sanitize(clean, sizeof(clean), value);
	for (const char *c = clean; *c; c++) {
		if (*c == '\\' || *c == '"')
			fputc('\\', out);
		fputc(*c, out);
	}
}

struct label {
	const char *name, *value;
};

/* Labels without a value are left out: that is what they mean. */
static void write_labels(FILE *out, const struct label *labels, size_t count)
{
	bool any = false;

	for (size_t i = 0; i < count; i++) {
		if (!labels[i].name || !labels[i].value || !*labels[i].value)
			continue;
		fprintf(out, "%s%s=\"", any ? "," : "{", labels[i].name);
		write_value(out, labels[i].value);
		fputc('"', out);
		any = true;
	}
	if (any)
		fputc('}', out);
}

#define LABELS(...)                                                                                \
	(const struct label[]){__VA_ARGS__},                                                       \
		sizeof((const struct label[]){__VA_ARGS__}) / sizeof(struct label)

static void count(FILE *out, const char *name, const struct label *labels, size_t n, uint64_t value)
{
	fprintf(out, "sysprof_%s", name);
	write_labels(out, labels, n);
	fprintf(out, " %llu\n", (unsigned long long)value);
}

/* CPU time of days, to the nanosecond. NaN is valid in this format, but cannot be added up. */
static void number(FILE *out, const char *name, const struct label *labels, size_t n, double value)
{
	fprintf(out, "sysprof_%s", name);
	write_labels(out, labels, n);
	fprintf(out, " %.15g\n", isfinite(value) ? value : 0);
}

static void one_count(FILE *out, const char *name, const char *type, const char *help,
		      uint64_t value)
{
	head(out, name, type, help);
	count(out, name, NULL, 0, value);
}

static void one_number(FILE *out, const char *name, const char *type, const char *help,
		       double value)
{
	head(out, name, type, help);
	number(out, name, NULL, 0, value);
}

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

/* Each by the figure's name. */
static void write_figures(FILE *out, const struct agent_metrics *m, const char *name,
			  const char *label, unsigned int first, unsigned int end)
{
	for (unsigned int id = first; id < end; id++)
		count(out, name, LABELS({label, figure_table[id].key}), m->figures[id]);
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Lines without a reason are states of their own. */
static const char *state_of(enum book_line line)
{
	if (figure_table[FIGURE_BOOKS + line].is_loss)
		return "lost";
	return line == BOOK_DELIVERED ? "sent" : line == BOOK_FILTERED ? "filtered" : "idle";
}

static const char *reason_of(enum book_line line)
{
	bool is_state = line == BOOK_DELIVERED || line == BOOK_IDLE || line == BOOK_FILTERED;

	return is_state ? "" : figure_table[FIGURE_BOOKS + line].key;
}

static void write_samples(FILE *out, const struct agent_metrics *m)
{
	uint64_t lost = 0;

	one_count(out, "ticks_due_total", "counter",
		  "Ticks due by the kernel's own account of the timers.", m->figures[FIGURE_DUE]);
	head(out, "ticks_total", "counter", "Ticks by their result.");
	for (int i = 0; i < BOOK_COUNT; i++)
		count(out, "ticks_total", LABELS({"state", state_of(i)}, {"reason", reason_of(i)}),
		      m->figures[FIGURE_BOOKS + i]);
	head(out, "ticks_unexplained", "gauge",
	     "Ticks due less ticks of all states: a CPU that is idle reports its ticks when it wakes.");
	fprintf(out, "sysprof_ticks_unexplained %lld\n", (long long)m->figures[FIGURE_UNEXPLAINED]);
	for (unsigned int id = FIGURE_LOST; id < FIGURE_LOST_END; id++)
		lost += m->figures[id];
	one_count(out, "sideband_lost_total", "counter", "Lost records of mappings and processes.",
		  lost);
	head(out, "unwind_total", "counter", "User stacks by how they end.");
	write_figures(out, m, "unwind_total", "end", FIGURE_ENDS, FIGURE_ENDS_END);
	head(out, "frames_total", "counter",
	     "Innermost frames of samples, with a name and without.");
	count(out, "frames_total", LABELS({"state", "named"}), m->frames_named);
	count(out, "frames_total", LABELS({"state", "unnamed"}), m->frames_unnamed);
	one_number(out, "sampled_cpu_seconds_total", "counter",
		   "CPU time that the samples stand for.", seconds(m->figures[FIGURE_CPU]));
	one_count(out, "sampling_hz", "gauge", "Samples a second and CPU, now.", m->hz);
	one_count(out, "sampling_hz_configured", "gauge", "Samples a second and CPU, at most.",
		  m->configured_hz);
}

static void write_windows(FILE *out, const struct agent_metrics *m)
{
	head(out, "session_windows_total", "counter",
	     "Windows by how they ended; put_off: extended, because earlier ones were not finished.");
	count(out, "session_windows_total", LABELS({"result", "finished"}), m->windows_finished);
	count(out, "session_windows_total", LABELS({"result", "failed"}), m->windows_failed);
	count(out, "session_windows_total", LABELS({"result", "put_off"}), m->windows_put_off);
	one_number(out, "window_seconds", "gauge", "Length of a window.",
		   seconds(m->window_length));
	one_count(out, "clock_steps_total", "counter",
		  "Steps of the wall clock and suspends; each splits a window.", m->clock_steps);
	one_number(out, "clock_anchor_error_seconds", "gauge",
		   "How far the clocks' readings may be apart.",
		   seconds(m->figures[FIGURE_CLOCK_ERROR]));
	one_count(out, "services", "gauge", "Services in the last window.", m->services);
	one_count(out, "services_over_limit", "gauge",
		  "Services of the last window that went to _other.", m->services_other);
	one_count(out, "unknown_service_samples_total", "counter", "Samples without a service.",
		  m->samples_unknown_service);
}

/* All zero without visits. */
static void write_waits(FILE *out, const struct agent_metrics *m)
{
	head(out, "visits_total", "counter",
	     "Visits of threads that were due, made and late, looks at threads, and the result of each look.");
	write_figures(out, m, "visits_total", "line", FIGURE_VISITS, FIGURE_VISITS_END);
	one_count(out, "visits_hz", "gauge", "Visits a second, at most, now; 0: none.",
		  m->figures[FIGURE_VISITS_HZ]);
	one_count(out, "threads_visited", "gauge", "Threads with an account in the last window.",
		  m->figures[FIGURE_VISITED]);
	head(out, "waited_seconds_total", "counter",
	     "Time that visited threads did not run, by state; unvisited: before their end.");
	for (int i = WALL_RUNNABLE; i < WALL_STATE_COUNT; i++)
		number(out, "waited_seconds_total", LABELS({"state", wall_state_name(i)}),
		       seconds(m->figures[FIGURE_STATES + i]));
	number(out, "waited_seconds_total", LABELS({"state", "unvisited"}),
	       seconds(m->figures[FIGURE_UNVISITED]));
	one_number(out, "parked_seconds_total", "counter",
		   "Of that time: event loops and idle pools, which are left out of the series.",
		   seconds(m->parked_ns));
}

/* ---- the agent itself ------------------------------------------------------------------------ */

static void write_cost(FILE *out, const struct agent_metrics *m)
{
	static const char *const CPU[USAGE_CPU_PART_COUNT] = {USAGE_CPU_PARTS(THIRD_COLUMN)};
	static const char *const MEMORY[USAGE_MEMORY_PART_COUNT] = {
		USAGE_MEMORY_PARTS(SECOND_COLUMN)};
	const struct usage_report *u = &m->usage;

	head(out, "agent_cpu_seconds_total", "counter", "CPU time of the agent, by part.");
	for (int i = 0; i < USAGE_CPU_PART_COUNT; i++)
		number(out, "agent_cpu_seconds_total", LABELS({"part", CPU[i]}),
		       seconds(u->cpu_ns[i]));
	one_number(out, "agent_cpu_ratio", "gauge", "CPU time of the agent, as a share of one CPU.",
		   u->cpu);
	one_number(out, "agent_cpu_limit_ratio", "gauge", "Its budget; 0: none.", m->cpu_limit);
	head(out, "memory_bytes", "gauge", "Memory of the agent, by part.");
	for (int i = 0; i < USAGE_MEMORY_PART_COUNT; i++)
		count(out, "memory_bytes", LABELS({"part", MEMORY[i]}), u->memory_by[i]);
	one_count(out, "memory_used_bytes", "gauge",
		  "Memory of the agent in all: of its control group, if no other process is in it.",
		  u->memory);
	one_count(out, "memory_limit_bytes", "gauge", "Its budget; 0: none.", m->memory_limit);
	one_count(out, "agent_processes", "gauge", "Processes that descend from the agent.",
		  u->processes);
	one_count(out, "agent_threads", "gauge", "Threads of the agent.", u->threads);
	one_count(out, "agent_open_fds", "gauge", "Descriptors of the agent.", u->descriptors);
}

static void write_budget(FILE *out, const struct agent_metrics *m)
{
	const struct budget_stats *s = &m->budget_stats;

	head(out, "budget_throttle_total", "counter",
	     "Steps down, by the work that is left out from there on.");
	for (int i = 0; i < BUDGET_STEP_COUNT; i++)
		count(out, "budget_throttle_total", LABELS({"step", budget_step_label(i)}),
		      s->down[i]);
	head(out, "budget_part_cpu_ratio", "gauge",
	     "CPU time of a part of the budget, as a share of one CPU, smoothed.");
	for (int i = 0; i < BUDGET_PART_COUNT; i++)
		number(out, "budget_part_cpu_ratio", LABELS({"part", budget_part_label(i)}),
		       s->cpu_by[i]);
	head(out, "budget_step_taken", "gauge", "1: this work is left out or put off now.");
	for (int i = 0; i < BUDGET_STEP_COUNT; i++)
		count(out, "budget_step_taken", LABELS({"step", budget_step_label(i)}),
		      !m->budget.allowed[i]);
	one_count(out, "names_put_off_total", "counter",
		  "Addresses without a name in their window, to save time.", m->names_put_off);
	head(out, "budget_restored_total", "counter", "Steps back.");
	for (int i = 0; i < BUDGET_STEP_COUNT; i++)
		count(out, "budget_restored_total", LABELS({"step", budget_step_label(i)}),
		      s->back[i]);
	one_count(out, "budget_level", "gauge", "Steps that are taken now.", m->budget.level);
	one_count(out, "budget_levels", "gauge", "Steps that there are.", m->budget.levels);
	head(out, "budget_over_total", "counter",
	     "Measurements over the budget; floor: with no step left that would help.");
	count(out, "budget_over_total", LABELS({"at", "above_floor"}),
	      s->over - min_u64(s->over, s->over_at_floor));
	count(out, "budget_over_total", LABELS({"at", "floor"}), s->over_at_floor);
}

static void write_state(FILE *out, const struct agent_metrics *m)
{
	head(out, "build_info", "gauge", "Always 1; which program on which kernel.");
	count(out, "build_info", LABELS({"version", m->version}, {"kernel", m->kernel}), 1);
	one_number(out, "start_time_seconds", "gauge", "When the agent started, Unix time.",
		   seconds(m->started));
	one_count(out, "healthy", "gauge", "1: /healthz is 200; 0: it is 503, with the reason.",
		  m->healthy);
	one_count(out, "safe_mode", "gauge",
		  "1: frame pointers alone and no files of others, after repeated crashes.",
		  m->safe_mode);
}

/* ---- sinks ----------------------------------------------------------------------------------- */

struct sinks {
	const struct metrics_sink *list;
	size_t count;
	char names[METRICS_SINKS_MAX][LABEL_MAX]; /* as shown: no two are equal */
};

/* As it is read back: two that differ in what is cut off or escaped are made to differ. */
static void name_sinks(struct sinks *s)
{
	for (size_t i = 0; i < s->count; i++) {
		const char *name = s->list[i].name ? s->list[i].name : "";
		char clean[LABEL_MAX - 16];

		utf8_sanitize(clean, sizeof(clean), *name ? name : "sink");
		snprintf(s->names[i], LABEL_MAX, "%s", clean);
		for (size_t k = 0, more = 2; k < i; k++) {
			if (strcmp(s->names[k], s->names[i]))
				continue;
			snprintf(s->names[i], LABEL_MAX, "%s-%zu", clean, more++);
			k = (size_t)-1;
		}
	}
}

/* One figure of each sink: `value` is made of its `stats`. */
#define EACH_SINK(out, s, write, name, type, help, value)                                          \
	do {                                                                                       \
		head(out, name, type, help);                                                       \
		for (size_t i_ = 0; i_ < (s)->count; i_++) {                                       \
			const struct sink_stats *stats = &(s)->list[i_].stats;                     \
			write(out, name, LABELS({"sink", (s)->names[i_]}), value);                 \
		}                                                                                  \
	} while (0)

static void write_results(FILE *out, const struct sinks *s)
{
	head(out, "windows_total", "counter",
	     "Windows that a sink is done with: sent, or dropped for the backend's last answer.");
	for (size_t i = 0; i < s->count; i++) {
		count(out, "windows_total", LABELS({"sink", s->names[i]}, {"result", "sent"}),
		      s->list[i].stats.windows_sent);
		for (int verdict = 0; verdict < SINK_VERDICT_COUNT; verdict++)
			if (verdict != SINK_ACCEPTED)
				count(out, "windows_total",
				      LABELS({"sink", s->names[i]},
					     {"result", sink_verdict_text(verdict)}),
				      s->list[i].stats.windows_dropped[verdict]);
	}
	head(out, "spool_dropped_windows_total", "counter", "Windows that left a spool unsent.");
	for (size_t i = 0; i < s->count; i++) {
		const struct sink_stats *stats = &s->list[i].stats;

		count(out, "spool_dropped_windows_total",
		      LABELS({"sink", s->names[i]}, {"reason", "too_old"}), stats->windows_too_old);
		count(out, "spool_dropped_windows_total",
		      LABELS({"sink", s->names[i]}, {"reason", "no_room"}), stats->windows_no_room);
	}
}

/* Sum and number of requests, so that rates of both give the mean. */
static void write_push_seconds(FILE *out, const struct sinks *s)
{
	head(out, "push_seconds", "summary", "Time that requests took.");
	for (size_t i = 0; i < s->count; i++) {
		number(out, "push_seconds_sum", LABELS({"sink", s->names[i]}),
		       seconds(s->list[i].stats.push_ns));
		count(out, "push_seconds_count", LABELS({"sink", s->names[i]}),
		      s->list[i].stats.requests);
	}
}

static double age(uint64_t time, uint64_t now)
{
	return time && now > time ? seconds(now - time) : 0;
}

static void write_sinks(FILE *out, const struct sinks *s, uint64_t now)
{
	EACH_SINK(out, s, count, "windows_taken_total", "counter", "Windows that a sink was given.",
		  stats->windows_put);
	write_results(out, s);
	EACH_SINK(out, s, count, "series_invalid_total", "counter",
		  "Series that were left out: a label or the profile breaks a rule of backends.",
		  stats->series_invalid);
	EACH_SINK(out, s, count, "samples_invalid_total", "counter", "Samples in such series.",
		  stats->samples_invalid);
	EACH_SINK(out, s, count, "samples_sent_total", "counter", "Samples that were sent.",
		  stats->samples_sent);
	EACH_SINK(out, s, number, "cpu_sent_seconds_total", "counter", "CPU time that was sent.",
		  seconds(stats->cpu_ns_sent));
	EACH_SINK(out, s, number, "wall_taken_seconds_total", "counter",
		  "Time in series of waits, of windows that a sink was given.",
		  seconds(stats->wall_ns));
	EACH_SINK(out, s, count, "wall_taken_bytes_total", "counter",
		  "Bytes of series of waits before compression; dir: of whole files.",
		  stats->wall_bytes);
	write_push_seconds(out, s);
	EACH_SINK(out, s, count, "push_requests_total", "counter", "Requests.", stats->requests);
	EACH_SINK(out, s, count, "push_failures_total", "counter", "Requests that failed.",
		  stats->failures);
	EACH_SINK(out, s, count, "push_bytes_total", "counter", "Bytes of bodies, compressed.",
		  stats->bytes);
	EACH_SINK(out, s, count, "push_ambiguous_total", "counter",
		  "Requests that may have arrived twice: their answer was lost.", stats->ambiguous);
	EACH_SINK(out, s, count, "spool_windows", "gauge", "Windows that wait.",
		  stats->spool_windows);
	EACH_SINK(out, s, count, "spool_bytes", "gauge", "Bytes that wait.", stats->spool_bytes);
	EACH_SINK(out, s, number, "spool_oldest_seconds", "gauge",
		  "Age of the oldest window in a spool; 0: none.", age(stats->spool_oldest, now));
	EACH_SINK(out, s, count, "spool_torn_files_total", "counter",
		  "Damaged files in a spool, skipped.", stats->torn_files);
	EACH_SINK(out, s, count, "spool_failed", "gauge",
		  "1: the directory cannot be written to, windows wait in memory.",
		  stats->spool_failed);
}

void metrics__add(struct agent_metrics *m, const struct profile *window)
{
	static const enum figure_id last[] = {FIGURE_VISITED, FIGURE_VISITS_HZ, FIGURE_CLOCK_ERROR};
	struct figures f;

	figures__init(&f, window);
	for (size_t i = 0; i < sizeof(last) / sizeof(*last); i++)
		m->figures[last[i]] = 0;
	for (unsigned int id = 0; id < FIGURE_COUNT; id++)
		m->figures[id] += f.value[id];
}

int metrics__text(const struct agent_metrics *m, char **text, size_t *size)
{
	_cleanup_free_ struct sinks *sinks = calloc(1, sizeof(*sinks));
	char *buffer = NULL;
	size_t length = 0;
	bool failed;
	FILE *out = sinks ? open_memstream(&buffer, &length) : NULL;

	if (!out)
		return -ENOMEM;
	sinks->list = m->sinks;
	sinks->count = min_u64(m->sink_count, METRICS_SINKS_MAX);
	name_sinks(sinks);
	write_state(out, m);
	write_samples(out, m);
	write_windows(out, m);
	write_waits(out, m);
	write_cost(out, m);
	write_budget(out, m);
	if (sinks->count)
		write_sinks(out, sinks, m->now);
	failed = ferror(out);
	if (fclose(out) || failed) {
		free(buffer);
		return -ENOMEM;
	}
	*text = buffer;
	if (size)
		*size = length;
	return 0;
}
