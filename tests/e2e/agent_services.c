/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent_services [-l RULE]… [-i FILTER]… [-x FILTER]… [-r ROOT] [-m MOST] [-p] [-g] [-o FILE] SECONDS MILLISECONDS
 *
 * Records the whole system in windows of so many milliseconds, and prints the services of each, a line of JSON a window:
 * {"window", "late_ms": from its end until it was named, "name_us": CPU time of that, "services": [{"labels", "samples",
 * "cpu_ns", "excluded"}], "processes": [{"pid", "life", "state", "samples", "service"}]}. Then a line with statistics.
 * ROOT: where files of containers are. FILE: the same stream as a recording. With -o it is read again as one window, whose
 * line has "replay". SIGTERM ends it before its time. -g: control groups by /proc alone. Windows have their books as well
 * ("due", "counted", "filtered", "sideband_lost"), processes "cpu_ns", and a line says what a tick cost.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rules.h"
#include "agent/services.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/json_writer.h"
#include "base/parse.h"
#include "session/session.h"
#include "tenants/outside_books.h"
#include "window/replay.h"

#define TEXTS_MAX 16

struct texts {
	const char *text[TEXTS_MAX];
	size_t count;
};

struct tool {
	struct services_options options;
	struct services *services;
	struct label_rules *rules;
	struct service_filter *filter;
	bool replay;
	uint64_t unanswered; /* questions to readers, left without an answer or for earlier ones */
	bool by_proc;	     /* control groups by /proc alone, as on kernels that report none */
};

static volatile sig_atomic_t ended;

static void end_early(int number)
{
	(void)number;
	ended = 1;
}

static void fail_now(const char *what, const struct failure *failure)
{
	fprintf(stderr, "agent_services: %s: %s\n", what, failure ? failure->what : "");
	exit(1);
}

static void put_service(struct json_writer *w, const struct agent_window *window, size_t number)
{
	const struct labeled_service *service = &window->services[number];
	const struct profile *p = window->profile;
	uint64_t samples = 0, cpu = 0;

	for (size_t i = 1; i < p->thread_count; i++) {
		const struct profile_thread *t = &p->threads[i];

		if ((!t->samples[SAMPLE_CPU].count && !profile_thread__cpu(t)) ||
		    window->service_of_process[t->process.v] != number)
			continue;
		samples += t->samples[SAMPLE_CPU].tick_sum;
		cpu += profile_thread__cpu(t);
	}
	json_begin_object(w);
	json_key_object(w, "labels");
	for (size_t i = 0; i < service->label_count; i++)
		json_key_string(w, service->labels[i].name, service->labels[i].value);
	json_end_object(w);
	json_key_uint(w, "samples", samples);
	json_key_uint(w, "cpu_ns", cpu);
	json_key_bool(w, "excluded", service->excluded);
	json_end_object(w);
}

static void put_processes(struct json_writer *w, const struct agent_window *window)
{
	const struct profile *p = window->profile;
	uint64_t *samples = calloc(p->process_count, sizeof(*samples));
	uint64_t *cpu = calloc(p->process_count, sizeof(*cpu));

	if (!samples || !cpu)
		fail_now("no memory", NULL);
	for (size_t i = 1; i < p->thread_count; i++) {
		samples[p->threads[i].process.v] += p->threads[i].samples[SAMPLE_CPU].tick_sum;
		cpu[p->threads[i].process.v] += profile_thread__cpu(&p->threads[i]);
	}
	json_key_array(w, "processes");
	for (size_t i = 1; i < p->process_count; i++) {
		if (!samples[i])
			continue;
		json_begin_object(w);
		json_key_uint(w, "pid", p->processes[i].pid);
		json_key_uint(w, "life", p->processes[i].life);
		json_key_uint(w, "state", p->processes[i].facts_state);
		json_key_uint(w, "samples", samples[i]);
		json_key_uint(w, "cpu_ns", cpu[i]);
		json_key_uint(w, "service", window->service_of_process[i]);
		json_end_object(w);
	}
	json_end_array(w);
	free(samples);
	free(cpu);
}

/* Over all CPUs: ticks that were due, that are in the books, and that are there as filtered. */
static void put_books(struct json_writer *w, const struct profile *p)
{
	uint64_t due = 0, counted = 0, filtered = 0;

	for (size_t i = 0; i < p->books_count; i++) {
		due += p->books[i].due;
		filtered += p->books[i].count[BOOK_FILTERED];
		for (int line = 0; line < BOOK_COUNT; line++)
			counted += p->books[i].count[line];
	}
	json_key_uint(w, "due", due);
	json_key_uint(w, "counted", counted);
	json_key_uint(w, "filtered", filtered);
	json_key_uint(w, "sideband_lost", p->lost[LOST_SIDEBAND]);
}

static void count_unanswered(struct tool *tool, const struct profile *p)
{
	for (size_t i = 0; i < p->outside_count; i++)
		if (p->outside[i].reason == OUTSIDE_BY_NO_ANSWER ||
		    p->outside[i].reason == OUTSIDE_BY_BANNED)
			tool->unanswered += p->outside[i].count;
}

static void print_window(struct tool *tool, const struct profile *p, uint64_t number)
{
	struct agent_window window = {.profile = p, .number = number};
	uint64_t began = thread_cpu_ns(), cost;
	struct json_writer w;

	if (services__name(tool->services, &window, monotonic_ns()))
		fail_now("no memory", NULL);
	cost = thread_cpu_ns() - began;
	count_unanswered(tool, p);
	json_writer__init(&w, stdout);
	json_begin_object(&w);
	json_key_uint(&w, "window", number);
	json_key_bool(&w, "replay", tool->replay);
	json_key_uint(&w, "late_ms", tool->replay ? 0 : (monotonic_ns() - p->end) / 1000000);
	json_key_uint(&w, "name_us", cost / 1000);
	json_key_uint(&w, "samples", p->sample_count);
	put_books(&w, p);
	json_key_array(&w, "services");
	for (size_t i = 0; i < window.service_count; i++)
		put_service(&w, &window, i);
	json_end_array(&w);
	put_processes(&w, &window);
	json_end_object(&w);
	if (json_writer__finish(&w))
		fail_now("cannot write", NULL);
	fputc('\n', stdout);
	fflush(stdout);
}

/* In the finisher's thread, one window after the other. */
static void on_window(void *context, const struct finished_window *window)
{
	if (window->err)
		fail_now("window", &window->failure);
	print_window(context, window->profile, window->number);
}

static void new_services(struct tool *tool)
{
	struct failure failure = {};

	services__free(tool->services);
	tool->services = NULL;
	if (services__new(&tool->options, &tool->services, &failure))
		fail_now("services", &failure);
}

/* What a tick costs, if the kernel counts it. */
static void print_cost(struct session *session)
{
	struct bpf_program_info programs[16];
	size_t count = session__programs(session, programs, 16);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(programs[i].name, "tick") && programs[i].runs)
			printf("{\"tick_runs\": %llu, \"tick_ns\": %llu}\n",
			       (unsigned long long)programs[i].runs,
			       (unsigned long long)programs[i].run_ns);
}

static void print_stats(const struct tool *tool)
{
	struct services_stats stats;

	services__stats(tool->services, &stats);
	printf("{\"stats\": true, \"looked_up\": %llu, \"found\": %llu",
	       (unsigned long long)stats.naming.containers.looked_up,
	       (unsigned long long)stats.naming.containers.found);
	for (int i = 0; i < SERVICE_SOURCE_COUNT; i++)
		printf(", \"%s\": %llu", service_source_text(i),
		       (unsigned long long)stats.samples[i]);
	printf(", \"unanswered\": %llu}\n", (unsigned long long)tool->unanswered);
}

static void run_windows(struct session *session, uint64_t seconds, uint64_t interval)
{
	uint64_t begin = monotonic_ns(), end = begin + seconds * 1000000000ull,
		 next = begin + interval;
	struct failure failure = {};

	while (monotonic_ns() < end && !ended) {
		if (session__step(session, next < end ? next : end, &failure))
			fail_now("step", &failure);
		if (monotonic_ns() < next)
			continue;
		next += interval;
		session__rotate(session);
	}
}

/* A group_wanted_fn. */
static bool is_wanted_group(void *context, const char *path)
{
	const struct tool *tool = context;

	return service_filter__may_pass(tool->filter, path);
}

static void record(struct tool *tool, const char *path, uint64_t seconds, uint64_t interval)
{
	struct session_options options = {
		.live =
			{
				.session =
					{
						.target = {.mode = TARGET_ALL},
						.hz = 499,
						.user_stacks = true,
						.kernel_stacks = true,
						.unwind_bytes = 64u << 20,
						.max_depth = 256,
						.follow_groups = !tool->by_proc,
					},
				.target_text = "-a",
				.command_line = "agent_services",
				.facts = true,
				.group_wanted = is_wanted_group,
				.group_context = tool,
			},
		.finished = on_window,
		.context = tool,
	};
	struct recording_writer *writer = NULL;
	struct failure failure = {};
	const struct profile *last;
	struct session *session;
	int statistics;

	options.live.fact_names = label_rules__variables(tool->rules,
							 &options.live.fact_name_count);
	if (path && recording_writer__open(path, &writer, &failure))
		fail_now("writer", &failure);
	options.writer = writer;
	if (session__open(&options, &session, &failure) || session__start(session, 0, -1, &failure))
		fail_now("start", &failure);
	signal(SIGTERM, end_early);
	statistics = session__run_statistics(-1);
	run_windows(session, seconds, interval);
	print_cost(session);
	session__run_statistics(statistics);
	if (session__stop(session, &failure))
		fail_now("stop", &failure);
	session__set_writer(session, NULL);
	if ((writer && recording_writer__close(writer, &failure)) ||
	    session__finish(session, &last, &failure))
		fail_now("finish", &failure);
	print_window(tool, last, 0);
	print_stats(tool);
	session__free(session);
}

static void replay(struct tool *tool, const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	const struct replay_options options = {};
	struct recording_summary summary = {};
	struct failure failure = {};
	const struct profile *p;
	struct windows *windows;

	if (replay_recording(fd, path, &options, &windows, &p, &summary, &failure))
		fail_now("replay", &failure);
	tool->replay = true;
	new_services(tool);
	print_window(tool, p, 0);
	windows__free(windows);
}

static void add_text(struct texts *texts, const char *text)
{
	if (texts->count < TEXTS_MAX)
		texts->text[texts->count++] = text;
}

int main(int argc, char **argv)
{
	struct texts labels = {}, include = {}, exclude = {};
	uint64_t seconds, interval, most = 0;
	struct failure failure = {};
	const char *path = NULL;
	struct tool tool = {};
	int option;

	while ((option = getopt(argc, argv, "l:i:x:r:m:po:g")) != -1) {
		if (option == 'l')
			add_text(&labels, optarg);
		else if (option == 'i')
			add_text(&include, optarg);
		else if (option == 'x')
			add_text(&exclude, optarg);
		else if (option == 'r')
			tool.options.root = optarg;
		else if (option == 'm' && !parse_u64(optarg, 1, 100000, &most))
			tool.options.most = most;
		else if (option == 'p')
			tool.options.pods = true;
		else if (option == 'g')
			tool.by_proc = true;
		else if (option == 'o')
			path = optarg;
		else
			return 2;
	}
	if (argc - optind != 2 || parse_u64(argv[optind], 1, 3600, &seconds) ||
	    parse_u64(argv[optind + 1], 50, 60000, &interval)) {
		fprintf(stderr, "usage: agent_services [OPTIONS] SECONDS MILLISECONDS\n");
		return 2;
	}
	if (label_rules__new(labels.text, labels.count, &tool.rules, &failure) ||
	    service_filter__new(include.text, include.count, exclude.text, exclude.count,
				&tool.filter, &failure))
		fail_now("options", &failure);
	tool.options.rules = tool.rules;
	tool.options.filter = tool.filter;
	new_services(&tool);
	record(&tool, path, seconds, interval * 1000000);
	if (path)
		replay(&tool, path);
	services__free(tool.services);
	label_rules__free(tool.rules);
	service_filter__free(tool.filter);
	return 0;
}
