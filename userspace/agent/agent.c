/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/agent.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "agent/budget.h"
#include "agent/endpoint.h"
#include "agent/metrics.h"
#include "agent/publisher.h"
#include "agent/rules.h"
#include "agent/usage.h"
#include "agent/window_clock.h"
#include "base/clocks.h"
#include "base/io.h"
#include "session/session.h"

#define LAST_SYMBOLS  (NS_PER_SECOND * 3 / 4) /* for the names of the last window */
#define LAST_PATIENCE (NS_PER_SECOND / 2)     /* for requests under way at the end */
#define METRICS_EVERY (2 * NS_PER_SECOND)
#define LOOK_BEFORE                                                                                \
	(2 * NS_PER_SECOND) /* a window's end, at waits: the agent's steps are a second apart */
#define STUCK_AFTER	 (60 * NS_PER_SECOND)
#define PROFILE_SECONDS	 60		      /* a requested profile is one window */
#define REQUEST_PATIENCE (30 * NS_PER_SECOND) /* until windows before it are finished */
#define REQUEST_AGAIN	 (NS_PER_SECOND / 10)
#define UNWIND_BYTES	 (UINT64_C(24) << 20)
#define RING_BYTES	 (UINT64_C(16) << 20)
#define QUEUE_BYTES	 ((size_t)16 << 20)
#define JIT_BYTES	 (UINT64_C(16) << 20)
#define DEPTH		 256
#define VISITS_SHARE	 0.2  /* of the limit: what visits may use, … */
#define VISITS_CPU	 5000 /* … or millionths of a CPU, if there is none */
#define MACHINE_ID	 "/etc/machine-id"
#define LISTEN_DEFAULT	 "127.0.0.1:4041"
#define COMPLAINT_SIZE	 384

struct agent {
	struct agent_start start; /* settings is NULL */
	struct session *session;
	struct publisher *publisher;
	struct service_filter *filter; /* the publisher has one of its own, for its thread */
	struct window_clock clock;
	uint64_t put_off;	/* windows that could not end in time */
	uint64_t put_off_since; /* the one in hand should have ended; 0: it is not put off */
	uint64_t ends_at;	/* names of the last window until then, CLOCK_MONOTONIC ns */

	struct usage *usage;
	struct usage_report usage_report;
	uint64_t usage_next;
	struct budget *budget;
	double cpu_limit;
	uint64_t memory_limit;
	unsigned int hz, wall; /* of the settings */
	bool looked;	       /* at the waits of the open window */
	bool refused;	       /* visits were refused, and that was logged */

	struct endpoint *endpoint; /* NULL: no listener */
	uint64_t metrics_next;
	uint64_t request_until; /* a request for a profile: the open window ends then; 0: none */
	struct endpoint_request request; /* waits for its window, or the publisher; id 0: none */
	uint64_t request_since;		 /* its window began; 0: not yet */
	uint64_t request_patience;
	uint64_t started; /* ns since the epoch */
	char kernel[sizeof(((struct utsname *)NULL)->release)];
	/* what cannot change while it runs */
	char *spool, *listen;
	struct label_rules *rules; /* the session reads their variables */
};

__attribute__((format(printf, 2, 3))) static void say(const struct agent *a, const char *format,
						      ...)
{
	char text[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	a->start.say(text);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* A window_finished_fn. */
static void on_window(void *context, const struct finished_window *finished)
{
	struct agent *a = context;

	publisher__take(a->publisher, finished->number, finished->err ? NULL : finished->profile);
}

static int make_filter(const struct agent_settings *s, struct service_filter **filter,
		       struct failure *failure)
{
	return service_filter__new((const char *const *)s->includes.data, s->includes.count,
				   (const char *const *)s->excludes.data, s->excludes.count, filter,
				   failure);
}

static int make_rules(const struct agent_settings *s, struct label_rules **rules,
		      struct failure *failure)
{
	return label_rules__new((const char *const *)s->labels.data, s->labels.count, rules,
				failure);
}

/* A group_wanted_fn. */
static bool is_wanted_group(void *context, const char *path)
{
	const struct agent *a = context;

	return service_filter__may_pass(a->filter, path);
}

/* Millionths of a CPU for so many visits a second: fewer are to cost less. */
static unsigned int visits_budget(const struct agent *a, unsigned int visits)
{
	double all = a->cpu_limit > 0 ? a->cpu_limit * VISITS_SHARE * 1e6 : VISITS_CPU;

	return 1 + (unsigned int)(all * visits / a->wall);
}

static int open_session(struct agent *a, unsigned int hz, struct failure *failure)
{
	struct session_options options = {
		.live =
			{
				.session =
					{
						.target = {.mode = TARGET_ALL, .inherit = true},
						.hz = hz,
						.user_stacks = true,
						.kernel_stacks = true,
						.unwind_bytes = a->start.safe ? 0 : UNWIND_BYTES,
						.max_depth = DEPTH,
						.ring_bytes = RING_BYTES,
						.follow_groups = true,
					},
				.target_text = "-a",
				.command_line = "sysprof agent",
				.no_memory = true,
				.wall_hz = a->wall,
				.wall_budget = a->wall ? visits_budget(a, a->wall) : 0,
				.wall_if_possible = true,
				.wall_small = true,
				.facts = true,
				.group_wanted = is_wanted_group,
				.group_context = a,
				.queue_bytes = QUEUE_BYTES,
			},
		.table_cache = !a->start.safe,
		.symbolize = !a->start.safe,
		.symbols = {.cache = true, .remember = true},
		.jit_memory = JIT_BYTES,
		.finished = on_window,
		.context = a,
	};

	options.live.fact_names = label_rules__variables(a->rules, &options.live.fact_name_count);
	return session__open(&options, &a->session, failure);
}

static void read_clocks(struct clock_readings *now)
{
	*now = (struct clock_readings){monotonic_ns(), realtime_ns(), boottime_ns()};
}

static void start_clock(struct agent *a, uint64_t window)
{
	struct clock_readings now;
	char machine[64];

	if (read_line(MACHINE_ID, machine, sizeof(machine)))
		*machine = '\0';
	read_clocks(&now);
	window_clock__init(&a->clock, window, machine, &now);
}

static void limit(struct agent *a, const struct agent_settings *settings)
{
	const struct budget_options options = {
		.cpu = settings->cpu,
		.memory = settings->memory,
		.hz = settings->hz,
		.visits = a->wall,
	};

	a->cpu_limit = settings->cpu;
	a->memory_limit = settings->memory;
	a->hz = settings->hz;
	if (a->budget)
		budget__set(a->budget, &options);
	else
		a->budget = budget__new(&options);
}

static int watch(struct agent *a, int fd, struct failure *failure)
{
	int err = session__watch(a->session, fd);

	return err ? fail(failure, err, "cannot wait for requests: %s", strerror(-err)) : 0;
}

static int listen_for_questions(struct agent *a, struct failure *failure)
{
	const struct endpoint_options options = {
		.address = a->listen,
		.stuck_after = STUCK_AFTER,
		.seconds_max = PROFILE_SECONDS,
		.say = a->start.say,
	};

	if (a->start.dry_run || !strcmp(a->listen, "none"))
		return 0;
	return endpoint__new(&options, &a->endpoint, failure)
		       ?: watch(a, endpoint__fd(a->endpoint), failure);
}

static int keep_settings(struct agent *a, const struct agent_settings *settings)
{
	a->listen = strdup(settings->listen ? settings->listen : LISTEN_DEFAULT);
	a->spool = strdup(settings->spool ? settings->spool : "");
	a->usage = usage__new();
	a->wall = a->start.safe ? 0 : settings->wall;
	limit(a, settings);
	return a->listen && a->spool && a->usage && a->budget ? 0 : -ENOMEM;
}

static int configure_publisher(struct agent *a, const struct agent_settings *settings,
			       struct failure *failure)
{
	int err = publisher__try_configure(a->publisher, settings, failure);

	if (!err)
		publisher__settle(a->publisher, true);
	return err;
}

/* Rules decide which facts the session reads of processes; sinks' threads start after all forks. */
static int open_all(struct agent *a, const struct agent_settings *settings, struct failure *failure)
{
	return publisher__new(a->start.dry_run, &a->publisher, failure)
			?: make_rules(settings, &a->rules, failure)
			?: make_filter(settings, &a->filter, failure)
			?: open_session(a, settings->hz, failure)
			?: configure_publisher(a, settings, failure)
			?: watch(a, a->start.wake_fd, failure)
			?: listen_for_questions(a, failure);
}

int agent__new(const struct agent_start *start, struct agent **agent, struct failure *failure)
{
	struct agent *a = calloc(1, sizeof(*a));
	struct utsname machine;
	int err;

	if (!a)
		return fail(failure, -ENOMEM, "cannot start: out of memory");
	a->start = *start;
	a->start.settings = NULL;
	a->started = realtime_ns();
	io_keep_no_pages();
	uname(&machine);
	memcpy(a->kernel, machine.release, sizeof(a->kernel));
	err = keep_settings(a, start->settings);
	if (err)
		fail(failure, err, "cannot start: out of memory");
	else
		err = open_all(a, start->settings, failure);
	if (err) {
		agent__free(a);
		return err;
	}
	start_clock(a, start->settings->window);
	*agent = a;
	return 0;
}

void agent__free(struct agent *a)
{
	if (!a)
		return;
	session__free(a->session); /* the finisher's thread uses the publisher, */
	service_filter__free(a->filter);
	label_rules__free(a->rules);
	publisher__free(a->publisher, 0); /* which may owe the endpoint an answer */
	endpoint__free(a->endpoint);
	budget__free(a->budget);
	usage__free(a->usage);
	free(a->spool);
	free(a->listen);
	free(a);
}

int agent__start(struct agent *a, struct failure *failure)
{
	return session__start(a->session, 0, -1, failure);
}

/* ---- windows --------------------------------------------------------------------------------- */

/* A window that cannot end now, since closed ones wait, ends a second later. */
static int end_window(struct agent *a, uint64_t now, struct failure *failure)
{
	int err = session__rotate(a->session);

	if (err == -EAGAIN) {
		a->clock.end = now + NS_PER_SECOND;
		a->put_off++;
		a->put_off_since = a->put_off_since ? a->put_off_since : now;
		return 0;
	}
	a->put_off_since = 0;
	return err ? fail(failure, err, "cannot end the window: %s", strerror(-err)) : 0;
}

/* A window for a requested profile lasts as long as requested, whatever the clock planned. */
static int end_what_ends(struct agent *a, struct failure *failure)
{
	struct clock_readings now;
	bool ends;

	read_clocks(&now);
	ends = window_clock__ends(&a->clock, &now);
	if (a->request_until) {
		ends = now.monotonic >= a->request_until;
		if (ends)
			a->request_until = a->request_since = 0;
	}
	a->looked &= !ends;
	return ends ? end_window(a, now.monotonic, failure) : 0;
}

/* Otherwise a thread that does not run is seen only once in a window. */
static void look_at_waits(struct agent *a, uint64_t now)
{
	uint64_t end = a->request_until ? a->request_until : a->clock.end;

	if (!a->wall || a->looked || now + LOOK_BEFORE < end)
		return;
	a->looked = true;
	session__look_at_waits(a->session);
}

/* ---- budget ---------------------------------------------------------------------------------- */

static void apply_budget(struct agent *a)
{
	struct session_allowance allowance;
	struct budget_state state;

	budget__state(a->budget, &state);
	allowance = (struct session_allowance){
		.new_files = state.allowed[BUDGET_STEP_NEW_FILES],
		.rare_names = state.allowed[BUDGET_STEP_RARE_NAMES],
		.debug_info = state.allowed[BUDGET_STEP_DEBUG_INFO],
		.table_builds = state.allowed[BUDGET_STEP_TABLE_BUILDS],
		.jit_histories = state.allowed[BUDGET_STEP_JIT_HISTORIES],
		.early_ticks = state.allowed[BUDGET_STEP_EARLY_TICKS],
	};
	session__allow(a->session, &allowance);
	session__set_hz(a->session, state.hz);
	if (a->wall)
		session__set_visits(a->session, state.visits, visits_budget(a, state.visits));
}

/* The kernel side of the visits is loaded while samples are taken. */
static void report_refused_visits(struct agent *a)
{
	struct session_stats stats;

	if (!a->wall || a->refused)
		return;
	session__stats(a->session, &stats);
	a->refused = stats.live.wall_refused != NULL;
	if (a->refused)
		say(a, "no series of waits: %s", stats.live.wall_refused);
}

static void check_budget(struct agent *a, uint64_t now)
{
	const struct usage_report *report = &a->usage_report;
	struct budget_usage usage;
	enum budget_change change;
	enum budget_step step;

	if (now < a->usage_next ||
	    !usage__step(a->usage, a->session, now, &a->usage_next, &a->usage_report))
		return;
	usage = (struct budget_usage){
		.time = report->time, .cpu = report->cpu, .memory = report->memory};
	usage__by_part(report, usage.cpu_by);
	report_refused_visits(a);
	change = budget__measure(a->budget, &usage, &step);
	if (change == BUDGET_SAME)
		return;
	say(a, "%.2f %% of a CPU, %llu MB: %s %s", 100 * report->cpu,
	    (unsigned long long)(report->memory >> 20),
	    change == BUDGET_DOWN ? "over the budget, from now on" : "within the budget, no more",
	    budget_step_text(step));
	apply_budget(a);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void fill_metrics(struct agent *a, struct agent_metrics *m)
{
	m->version = a->start.version;
	m->kernel = a->kernel;
	m->started = a->started;
	m->now = realtime_ns();
	m->safe_mode = a->start.safe;
	m->hz = session__hz(a->session);
	m->configured_hz = a->hz;
	m->windows_put_off = a->put_off;
	m->window_length = a->clock.length;
	m->clock_steps = a->clock.steps + a->clock.suspends;
	m->usage = a->usage_report;
	m->names_put_off = session__put_off(a->session);
	budget__state(a->budget, &m->budget);
	budget__stats(a->budget, &m->budget_stats);
	m->cpu_limit = a->cpu_limit;
	m->memory_limit = a->memory_limit;
}

/* Why the agent is not well, or "". */
static void find_complaint(const struct agent *a, const struct agent_metrics *m, uint64_t now,
			   char *text, size_t size)
{
	const char *error = "";

	*text = '\0';
	for (size_t i = 0; i < m->sink_count && !*error; i++)
		error = m->sinks[i].stats.last_error;
	if (!m->healthy)
		snprintf(text, size,
			 "no sink accepted any of the last three windows with samples%s%s",
			 *error ? ": " : "", error);
	else if (a->put_off_since &&
		 now - a->put_off_since > HEALTH_SILENT_WINDOWS * a->clock.length)
		snprintf(text, size,
			 "the window is overdue: earlier windows are still being processed");
}

static void publish_metrics(struct agent *a, uint64_t now)
{
	struct metrics_sink sinks[METRICS_SINKS_MAX];
	struct agent_metrics metrics;
	char complaint[COMPLAINT_SIZE], *text;
	size_t size;

	if (!a->endpoint || now < a->metrics_next ||
	    !publisher__try_fill(a->publisher, &metrics, sinks))
		return;
	a->metrics_next = now + METRICS_EVERY;
	fill_metrics(a, &metrics);
	find_complaint(a, &metrics, now, complaint, sizeof(complaint));
	metrics.healthy = !*complaint;
	if (!metrics__text(&metrics, &text, &size))
		(void)endpoint__publish(a->endpoint, text, size, *complaint ? complaint : NULL);
}

/* Ends the open window; the next is the request's. False: earlier windows are being finished. */
static bool give_window(struct agent *a, uint64_t now)
{
	if (!a->request_since) {
		if (a->request_until || session__rotate(a->session))
			return false;
		a->request_since = now;
		a->request_until = now + a->request.seconds * NS_PER_SECOND;
	}
	return publisher__try_request(a->publisher, a->endpoint, &a->request, a->request_since);
}

/* A request right after an answer may find that window still being sent: it is not refused. */
static void take_request(struct agent *a, uint64_t now)
{
	if (!a->request.id) {
		if (!endpoint__take_request(a->endpoint, &a->request))
			return;
		a->request_since = 0;
		a->request_patience = now + REQUEST_PATIENCE;
	}
	if (!give_window(a, now)) {
		bool wanted = endpoint__is_wanted(a->endpoint, a->request.id);

		if (wanted && now < a->request_patience)
			return;
		if (a->request_since)
			a->request_until = 0;
		endpoint__refuse(a->endpoint, a->request.id, 503,
				 "windows are being finished: try again in some seconds");
	}
	a->request.id = 0;
}

/* ---- running --------------------------------------------------------------------------------- */

static uint64_t next_thing(const struct agent *a, uint64_t now)
{
	uint64_t next = now + (a->request.id ? REQUEST_AGAIN : NS_PER_SECOND);
	uint64_t end = a->request_until ? a->request_until : a->clock.end;

	return end < next ? end : next;
}

int agent__step(struct agent *a, struct failure *failure)
{
	uint64_t now = monotonic_ns();
	int err = session__step(a->session, next_thing(a, now), failure);

	if (err)
		return err;
	now = monotonic_ns();
	check_budget(a, now);
	publish_metrics(a, now);
	look_at_waits(a, now);
	if (a->endpoint)
		take_request(a, now);
	return end_what_ends(a, failure);
}

/* Do rules need a variable that the session does not read? */
static bool need_variables(const struct agent *a, const struct label_rules *rules)
{
	size_t count, read, k;
	const char *const *names = label_rules__variables(rules, &count);
	const char *const *known = label_rules__variables(a->rules, &read);

	for (size_t i = 0; i < count; i++) {
		for (k = 0; k < read && strcmp(names[i], known[k]);)
			k++;
		if (k == read)
			return true;
	}
	return false;
}

static void report_restarts(const struct agent *a, const struct agent_settings *settings,
			    const struct label_rules *rules)
{
	const char *listen = settings->listen ? settings->listen : LISTEN_DEFAULT;
	const char *spool = settings->spool ? settings->spool : "";

	if (strcmp(listen, a->listen) || strcmp(spool, a->spool))
		say(a, "another spool or address takes a restart");
	if (!a->wall != !settings->wall)
		say(a, "waits take a restart");
	if (need_variables(a, rules))
		say(a, "a label of another environment variable takes a restart");
}

/* All that can fail comes before all that changes. */
static int configure_services(struct agent *a, const struct agent_settings *settings,
			      struct failure *failure)
{
	struct service_filter *filter, *old = a->filter;
	struct agent_settings now = *settings;
	int err = make_filter(settings, &filter, failure);

	if (err)
		return err;
	now.spool = *a->spool ? a->spool : NULL;
	err = publisher__try_configure(a->publisher, &now, failure);
	if (!err) {
		a->filter = filter;
		err = session__judge_groups(a->session);
		publisher__settle(a->publisher, !err);
		if (err)
			fail(failure, err, "cannot read the control groups again: %s",
			     strerror(-err));
	}
	a->filter = err ? old : filter;
	service_filter__free(err ? filter : old);
	return err;
}

int agent__configure(struct agent *a, const struct agent_settings *settings,
		     struct failure *failure)
{
	struct label_rules *rules;
	int err = make_rules(settings, &rules, failure);

	if (err)
		return err;
	err = configure_services(a, settings, failure);
	if (!err)
		report_restarts(a, settings, rules);
	label_rules__free(rules);
	if (err)
		return err;
	a->wall = a->wall && settings->wall ? settings->wall : a->wall;
	window_clock__set_length(&a->clock, settings->window);
	limit(a, settings);
	apply_budget(a);
	return 0;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* symbolizer_options.progress: nonzero cancels. */
static int until_the_end(void *context, const struct symbolizer_progress *progress)
{
	const struct agent *a = context;

	(void)progress;
	return monotonic_ns() >= a->ends_at;
}

int agent__stop(struct agent *a, struct failure *failure)
{
	const struct symbolizer_options symbols = {
		.cache = true,
		.progress = until_the_end,
		.context = a,
	};
	struct symbolizer_counts counts = {};
	const struct profile *last;
	int err = session__stop(a->session, failure);

	a->ends_at = monotonic_ns() + LAST_SYMBOLS;
	if (!err && !a->start.safe)
		err = session__symbolize(a->session, &symbols, &counts, failure);
	if (!err)
		err = session__finish(a->session, &last, failure);
	if (!err)
		publisher__take(a->publisher, publisher__windows(a->publisher) + 1, last);
	publisher__free(a->publisher, LAST_PATIENCE);
	a->publisher = NULL;
	return err;
}

unsigned long long agent__windows(struct agent *a)
{
	return a->publisher ? publisher__windows(a->publisher) : 0;
}
