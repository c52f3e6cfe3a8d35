/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sysprof record: parse, open the session, start the target, step until a signal, the duration or
 * the target's end, stop, symbolize, finish, export, summary.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <sysprof/symbolizer.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/minmax.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "cli/commands.h"
#include "cli/give_up.h"
#include "cli/held_command.h"
#include "cli/record_options.h"
#include "cli/serving.h"
#include "cli/summary.h"
#include "live/proc/descendants.h"
#include "session/session.h"
#include "stream/recording_file.h"

#define PROGRESS_NS	100000000ull
#define CODE_PART	0.15
#define CODE_SIZE_LEAST (256u << 10)
#define SILENCE_PERIODS 20 /* a target that used so much CPU must have samples */

/* ---- progress -------------------------------------------------------------------------------- */

/* The progress on a terminal: one line on stderr, rewritten in place. */
struct progress {
	bool wanted;		 /* stderr is a terminal and the user did not say -q */
	bool shown;		 /* a line is on the screen */
	unsigned long long last; /* CLOCK_MONOTONIC ns of the last line */
};

static void progress__init(struct progress *p, bool quiet)
{
	*p = (struct progress){.wanted = !quiet && isatty(STDERR_FILENO)};
}

/* At most ten lines a second. */
static bool progress__is_due(const struct progress *p)
{
	return p->wanted && (!p->shown || monotonic_ns() - p->last >= PROGRESS_NS);
}

/* Show this line instead of the last one, if one is due. */
__attribute__((format(printf, 2, 3))) static void progress__line(struct progress *p,
								 const char *format, ...)
{
	va_list arguments;

	if (!progress__is_due(p))
		return;
	p->last = monotonic_ns();
	p->shown = true;
	fputs("\r\033[K", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fflush(stderr);
}

/* Take the line away before something else is printed. */
static void progress__clear(struct progress *p)
{
	if (!p->shown)
		return;
	p->shown = false;
	fputs("\r\033[K", stderr);
	fflush(stderr);
}

/* The progress of reading symbols. */
static void progress__symbols(struct progress *p, const struct symbolizer_progress *symbols)
{
	char name[256];

	if (!symbols->file)
		progress__line(p, "symbols: %zu of %zu addresses · Ctrl-C skips the rest",
			       symbols->done, symbols->total);
	else if (symbols->of_bytes)
		progress__line(p, "debug file of %s: %.1f of %.1f MB",
			       utf8_sanitize(name, sizeof(name), symbols->file),
			       symbols->bytes / 1048576.0, symbols->of_bytes / 1048576.0);
	else
		progress__line(p, "debug file of %s: %.1f MB",
			       utf8_sanitize(name, sizeof(name), symbols->file),
			       symbols->bytes / 1048576.0);
}

/* ---- the recording --------------------------------------------------------------------------- */

struct recording {
	struct record_options options;
	struct session *session;
	struct recording_writer *writer;
	struct held_command command;
	VEC(int) pidfds; /* of the requested processes; -1: this one has ended */
	struct progress progress;
	int signal_fd;
	bool awaits_named; /* its end is not that of the requested processes */
	uint64_t started;
	uint64_t target_cpu; /* used while recording, ns, as far as known */
	pid_t server;	     /* --open: the child that serves the profile */
};

/* ---- opening --------------------------------------------------------------------------------- */

static int check_targets(const struct record_options *options, struct failure *failure)
{
	int err = 0;

	for (size_t i = 0; i < options->processes.count && !err; i++)
		err = target_check_process(options->processes.data[i], failure);
	for (size_t i = 0; i < options->threads.count && !err; i++)
		err = target_check_thread(options->threads.data[i], failure);
	return err;
}

static int watch_processes(struct recording *r, struct failure *failure)
{
	for (size_t i = 0; i < r->options.processes.count; i++) {
		pid_t pid = r->options.processes.data[i];
		int fd = syscall(SYS_pidfd_open, pid, 0), err;

		if (fd < 0 && errno == ESRCH)
			return fail(failure, -ESRCH, "process %d has ended", pid);
		if (fd < 0)
			return fail(failure, -errno, "cannot watch process %d: %s", pid,
				    strerror(errno));
		err = vec_push(&r->pidfds, fd);
		if (err) {
			close(fd);
			return fail(failure, err, "cannot watch process %d: out of memory", pid);
		}
	}
	return 0;
}

static char *join_words(int argc, char **argv)
{
	size_t size = sizeof("sysprof");
	char *text, *at;

	for (int i = 0; i < argc; i++)
		size += strlen(argv[i]) + 1;
	text = malloc(size);
	if (!text)
		return NULL;
	at = stpcpy(text, "sysprof");
	for (int i = 0; i < argc; i++) {
		*at++ = ' ';
		at = stpcpy(at, argv[i]);
	}
	return text;
}

static int open_session(struct recording *r, int argc, char **argv, struct failure *failure)
{
	_cleanup_free_ char *command_line = join_words(argc, argv);
	struct session_options options = r->options.session;
	char target[1024], command_short[1024];

	if (!command_line)
		return fail(failure, -ENOMEM, "cannot start: out of memory");
	record_options__describe_target(&r->options, target, sizeof(target));
	record_options__describe_run(&r->options, command_short, sizeof(command_short));
	options.arguments = r->options.arguments == ARGUMENTS_SHOWN;
	options.blank_code = !(r->options.symbols.code_share > 0);
	options.jit_text = !options.blank_code && outputs__have_code(&r->options.outputs);
	options.live.sources = options.jit_text && r->options.symbols.sources;
	options.live.target_text = target;
	options.live.command_line = r->options.arguments == ARGUMENTS_NOWHERE ? command_short
									      : command_line;
	options.live.command_short = command_short;
	options.live.facts = options.live.owners = true;
	return session__open(&options, &r->session, failure);
}

static int open_recording_file(struct recording *r, struct failure *failure)
{
	const char *path = outputs__recording(&r->options.outputs);
	char temporary[PATH_MAX];
	int err;

	if (!path)
		return 0;
	err = recording_writer__open(path, &r->writer, failure);
	if (err)
		return err;
	session__set_writer(r->session, r->writer);
	if (!recording_writer__temporary(r->writer, temporary, sizeof(temporary)))
		give_up__remember_file(temporary);
	return 0;
}

/* For how long tables of processes are built before the first tick, ns. A held COMMAND is one. */
static uint64_t tables_patience(const struct record_options *options)
{
	if (options->processes.count || options->threads.count ||
	    target_names__include(options->names))
		return SESSION_TABLES_NS;
	return options->command ? SESSION_COMMAND_TABLES_NS : 0;
}

/* Targets by name may come later, unless the user does not wait for them. */
static int find_named(struct recording *r, struct failure *failure)
{
	const struct target_names *names = r->options.names;
	bool waits = r->options.wait != WAIT_NO;
	char text[1024];

	if (!target_names__include(names))
		return 0;
	r->awaits_named = session__find_named(r->session);
	if (r->awaits_named)
		return 0;
	r->awaits_named = waits;
	target_names__describe(names, text, sizeof(text));
	if (waits || r->options.processes.count) {
		log_print(LOG_WARNING, "no process matches %s%s", text,
			  waits ? ": waiting for one" : "");
		return 0;
	}
	fail(failure, -ESRCH, "no process matches %s", text);
	return fail_remedy(failure, -ESRCH, "--wait (records what starts later)");
}

/* Everything up to the first tick. COMMAND is held meanwhile. */
static int open_everything(struct recording *r, int argc, char **argv, struct failure *failure)
{
	int err = outputs__check(&r->options.outputs, failure)
			?: check_targets(&r->options, failure)
			?: watch_processes(r, failure);

	/* before the session raises the limit of open files: COMMAND keeps ours */
	if (!err && r->options.command)
		err = held_command__start(&r->command, r->options.command, failure);
	if (!err)
		err = open_session(r, argc, argv, failure) ?: open_recording_file(r, failure);
	if (!err && r->options.command) {
		held_command__await(&r->command);
		err = session__add_command(r->session, r->command.pid, failure);
	}
	if (!err)
		err = find_named(r, failure)
			      ?: session__start(r->session, tables_patience(&r->options),
						r->signal_fd, failure);
	return err;
}

/* ---- running --------------------------------------------------------------------------------- */

static bool processes_ended(struct recording *r)
{
	bool all = r->pidfds.count;

	for (size_t i = 0; i < r->pidfds.count; i++) {
		struct pollfd ended = {.fd = r->pidfds.data[i], .events = POLLIN};

		if (ended.fd >= 0 && poll(&ended, 1, 0) == 1)
			close(steal_fd(r->pidfds.data[i]));
		all &= r->pidfds.data[i] < 0;
	}
	return all;
}

/* Is it time to stop? A Ctrl-C went to COMMAND too, so that decides when we end. */
static bool should_stop(struct recording *r, uint64_t now)
{
	bool from_terminal;

	if (give_up__signalled(&from_terminal) && !(from_terminal && r->command.pid))
		return true;
	if (r->options.duration && now - r->started >= r->options.duration)
		return true;
	if (r->command.pid)
		return held_command__poll(&r->command);
	/* targets by name may come until then */
	if (r->awaits_named)
		return false;
	return processes_ended(r) || session__threads_ended(r->session);
}

/* CPU time of this process and its helpers, ns. COMMAND is a child as well. */
static uint64_t own_cpu(const struct recording *r)
{
	uint64_t cpu = family_cpu_ns(r->command.ended ? 0 : r->command.pid);

	return cpu - min_u64(cpu, r->command.cpu_time);
}

static void show_status(struct recording *r, uint64_t now)
{
	struct session_stats stats;

	if (!progress__is_due(&r->progress))
		return;
	session__stats(r->session, &stats);
	progress__line(
		&r->progress,
		"%.1f s · %llu samples · %zu thread%s · %llu lost · own CPU %.2f s · Ctrl-C to stop",
		(now - r->started) / 1e9, (unsigned long long)stats.live.samples, stats.threads,
		stats.threads == 1 ? "" : "s", (unsigned long long)session__lost(r->session),
		own_cpu(r) / 1e9);
}

/* Watches the events that end a recording before its time. */
static int watch_ends(struct recording *r, struct failure *failure)
{
	int err = session__watch(r->session, r->signal_fd);

	if (!err && r->command.pid)
		err = session__watch(r->session, r->command.pidfd);
	for (size_t i = 0; i < r->pidfds.count && !err; i++)
		err = session__watch(r->session, r->pidfds.data[i]);
	return err ? fail(failure, err, "cannot wait for an end: %s", strerror(-err)) : 0;
}

static int run_until_the_end(struct recording *r, struct failure *failure)
{
	uint64_t now = monotonic_ns();
	uint64_t end = r->options.duration ? r->started + r->options.duration : UINT64_MAX;
	int err = watch_ends(r, failure);

	while (!err && !should_stop(r, now)) {
		err = session__step(r->session, end, failure);
		now = monotonic_ns();
		show_status(r, now);
	}
	/* CPU time of a command that has ended includes its children */
	r->target_cpu = r->command.ended && r->options.session.live.session.target.inherit
				? r->command.cpu_time
				: session__target_cpu(r->session);
	progress__clear(&r->progress);
	return err;
}

/* ---- finishing ------------------------------------------------------------------------------- */

static int close_recording_file(struct recording *r, struct failure *failure)
{
	uint64_t bytes;
	const char *path;
	char *other;
	int err;

	session__set_writer(r->session, NULL);
	recording_writer__flush(r->writer);
	bytes = recording_writer__bytes(r->writer);
	other = recording_writer__other_path(r->writer);
	if (other)
		outputs__recording_is_at(&r->options.outputs, other);
	path = outputs__recording(&r->options.outputs);
	err = recording_writer__close(steal_ptr(r->writer), NULL);
	if (!err)
		return 0;
	fail(failure, err, "cannot write %s: %s", path, strerror(-err));
	if (bytes && err != -ENOENT)
		fail_remedy(failure, err,
			    "sysprof report %s (it keeps everything written before the error)",
			    path);
	return err;
}

/* After a failure the recording keeps what it has. If writing it failed, report that. */
static void abandon_recording_file(struct recording *r, int err, struct failure *failure)
{
	struct failure why = {};

	if (r->writer && close_recording_file(r, &why) == err)
		*failure = why;
}

/*
 * If the target ran without a sample, recording has failed (another pid namespace, a filter that
 * does not match): an error, not an empty profile. An event that is no clock may not have occurred.
 */
static int check_silence(const struct recording *r, const struct profile *profile,
			 struct failure *failure)
{
	const struct bpf_session_options *o = &r->options.session.live.session;
	uint64_t period = 1000000000ull / o->hz;

	if (profile->sample_count || profile->event.v || o->target.cpus || o->target.cgroup ||
	    r->options.names || r->target_cpu < SILENCE_PERIODS * period)
		return 0;
	fail(failure, -ENODATA, "the target used %.3f s of CPU but no samples were received",
	     r->target_cpu / 1e9);
	return fail_remedy(failure, -ENODATA,
			   "sysprof check; in a container, run sysprof on the host");
}

/* symbolizer_options.progress: shows the progress, and cancels after a signal. */
static int on_symbols(void *context, const struct symbolizer_progress *symbols)
{
	struct recording *r = context;
	bool from_terminal;

	progress__symbols(&r->progress, symbols);
	return give_up__signalled(&from_terminal);
}

/* Machine code may take a part of a recording file; a small file has room for some even so. */
static uint64_t limit_code(const struct recording *r, uint64_t limit)
{
	uint64_t part = (uint64_t)((double)recording_writer__bytes(r->writer) * CODE_PART);

	return min_u64(limit, max_u64(part, CODE_SIZE_LEAST));
}

/* A signal here skips the remaining symbols; another one, while files are written, aborts. */
static int symbolize(struct recording *r, struct symbolizer_counts *counts, struct failure *failure)
{
	struct symbolizer_options options = r->options.symbols;
	int err;

	options.progress = on_symbols;
	options.context = r;
	if (r->writer)
		options.code_size = limit_code(r, options.code_size);
	else if (!outputs__have_code(&r->options.outputs))
		options.code_share = 0;
	give_up__expect_one_more();
	err = session__symbolize(r->session, &options, counts, failure);
	progress__clear(&r->progress);
	return err;
}

static int start_server(struct recording *r, const struct profile *profile, struct failure *failure)
{
	const struct serving_options options = {
		.what = "the recording",
		.browser = true,
		.quiet = r->options.verbosity == QUIET,
	};

	return serving__start(profile, &options, &r->server, failure);
}

static int finish(struct recording *r, struct failure *failure)
{
	struct summary summary = {.options = &r->options};
	struct written_files files = {};
	int err;

	/* given up or not, the recording stays: under its own name */
	if (r->writer)
		recording_writer__flush(r->writer);
	err = symbolize(r, &summary.symbols, failure);
	give_up__arm();
	if (r->writer) {
		int close_err = close_recording_file(r, failure);

		err = err ? err : close_err;
	}
	if (!err)
		err = session__finish(r->session, &summary.profile, failure)
				?: check_silence(r, summary.profile, failure)
				?: outputs__write(&r->options.outputs, summary.profile, &files,
						  failure);
	if (!err && r->options.verbosity != QUIET) {
		session__stats(r->session, &summary.session);
		summary.own_cpu = own_cpu(r);
		summary.files = &files;
		summary__print(&summary);
	}
	if (!err && r->options.open)
		err = start_server(r, summary.profile, failure);
	written_files__fini(&files);
	return err;
}

static void print_session(const struct recording *r)
{
	const struct bpf_session_info *info = session__kernel_info(r->session);
	struct bpf_program_info programs[8];
	size_t count = session__programs(r->session, programs, 8);

	for (size_t i = 0; i < count; i++)
		log_print(LOG_INFO, "program %s: %u verified instructions", programs[i].name,
			  programs[i].verified_insns);
	log_print(LOG_INFO, "event %s on %u CPUs, clock %s (%s), CPU time from %s", info->event,
		  info->cpus, info->tsc ? "tsc" : "monotonic", info->clock_reason,
		  info->cpu_time_source);
	log_print(
		LOG_INFO,
		"rings per CPU: samples %zu bytes (requested %zu), side-band %zu bytes (requested %zu)",
		info->sample_ring_size, info->sample_ring_wanted, info->sideband_ring_size,
		info->sideband_ring_wanted);
}

/* COMMAND may have ended meanwhile, or still runs. */
static int exit_code(const struct recording *r)
{
	return r->command.ended ? held_command__exit_code(&r->command) : EXIT_DONE;
}

/* The child has the profile: nothing of the recording is needed any more. */
static int wait_for_server(struct recording *r)
{
	int status;

	session__free(steal_ptr(r->session));
	status = serving__supervise(r->server, r->signal_fd);
	return status ? EXIT_FAILED : exit_code(r);
}

static int failed(const struct failure *failure)
{
	print_failure(failure);
	return EXIT_FAILED;
}

static int record(struct recording *r, int argc, char **argv)
{
	struct failure failure = {};
	int err = open_everything(r, argc, argv, &failure), stop_err;

	if (err && err == recording_writer__error(r->writer))
		fail(&failure, err, "cannot write %s: %s", outputs__recording(&r->options.outputs),
		     strerror(-err));
	if (err)
		return failed(&failure);
	if (r->options.verbosity >= VERBOSE)
		print_session(r);
	r->started = session__kernel_info(r->session)->started;
	if (r->options.command) {
		err = held_command__release(&r->command, r->options.command[0], &failure);
		if (err) {
			failed(&failure);
			return err == -ESRCH	? EXIT_FAILED
			       : err == -ENOENT ? EXIT_NOT_FOUND
						: EXIT_NOT_EXECUTABLE;
		}
	}
	err = run_until_the_end(r, &failure);
	/* after a failure too: a recording that has its end is worth more */
	stop_err = session__stop(r->session, err ? NULL : &failure);
	if (!err)
		err = stop_err;
	if (err)
		abandon_recording_file(r, err, &failure);
	else
		err = finish(r, &failure);
	if (err)
		return failed(&failure);
	return r->server ? wait_for_server(r) : exit_code(r);
}

static void recording__fini(struct recording *r)
{
	/* if COMMAND was never released it must not wait longer than we live */
	held_command__fini(&r->command);
	recording_writer__free(r->writer);
	session__free(r->session);
	for (size_t i = 0; i < r->pidfds.count; i++)
		if (r->pidfds.data[i] >= 0)
			close(r->pidfds.data[i]);
	vec_free(&r->pidfds);
	if (r->signal_fd >= 0)
		close(r->signal_fd);
	record_options__fini(&r->options);
}

static int run_record(int argc, char **argv)
{
	struct recording r = {
		.signal_fd = -1,
		.command = {.pidfd = -1, .release_fd = -1, .error_fd = -1},
	};
	int status = record_options__parse(&r.options, argc, argv);

	if (!status) {
		static const enum log_level LEVELS[] = {LOG_ERROR, LOG_WARNING, LOG_INFO,
							LOG_DEBUG};

		log_set_level(LEVELS[r.options.verbosity]);
		/* debug lines come at any time: they would break a line that is rewritten */
		progress__init(&r.progress,
			       r.options.verbosity == QUIET || r.options.verbosity == DEBUGGING);
		r.signal_fd = give_up__watch();
		status = record(&r, argc, argv);
	}
	recording__fini(&r);
	return status;
}

const struct command cmd_record = {
	.name = "record",
	.arguments =
		"(-p PID[,PID…] | -t TID[,TID…] | -a | --unit NAME … | -- COMMAND [ARG…]) [OPTION…]",
	.summary = "sample stacks and write a profile",
	.help = "  sudo sysprof record -p 1234                    until Ctrl-C; writes sysprof.json.gz\n"
		"  sudo sysprof record -a -d 10 -o all.json.gz    the whole system, ten seconds\n"
		"  sudo sysprof record -o a.cpuprofile -o a.folded -- make\n"
		"\n"
		"What to record:\n"
		"  -p, --pid PID[,PID…]      processes: all threads; existing and future children\n"
		"  -t, --tid TID[,TID…]      threads\n"
		"  -a, --all-cpus            the whole system\n"
		"  -- COMMAND [ARG…]         a command, from its first instruction to its end\n"
		"      --comm GLOB           processes of that name: those that run, and what starts later\n"
		"      --exe GLOB            … whose program has that path or name\n"
		"      --user NAME           … of that user, or user number\n"
		"      --unit NAME           … of that systemd unit\n"
		"      --container NAME|ID   … of that container\n"
		"      --service RE          … whose service, as report shows it, matches the regular\n"
		"                            expression. What several of these match is recorded together,\n"
		"                            and with -p\n"
		"      --exclude-comm GLOB   not processes of that name, with -a or another target\n"
		"      --exclude-exe GLOB    … not those of that program\n"
		"      --exclude-user NAME   … not those of that user\n"
		"      --exclude-unit NAME   … not those of that systemd unit\n"
		"      --exclude-container NAME|ID\n"
		"                            … not those of that container\n"
		"      --exclude-service RE  … not those of such a service\n"
		"      --wait=no             end if no process matches at the start; else wait for one\n"
		"  -C, --cpus LIST           only on these CPUs, as in 0,2-4\n"
		"      --cgroup PATH         only in this cgroup (v2) and those below it\n"
		"      --no-inherit          without child processes\n"
		"      --exclude-self        without sysprof itself\n"
		"\n"
		"How:\n"
		"  -F, --frequency HZ        samples per second of CPU time; default 999, with -a 99\n"
		"  -c, --count PERIOD        a sample each so many events, or ns of a clock; instead of -F\n"
		"  -d, --duration SECONDS    stop after that time\n"
		"  -e, --event EVENT         cpu-clock (default), task-clock, page-faults, cycles, …: see\n"
		"                            sysprof check --events\n"
		"  -g, --call-graph MODE     user stacks: auto (default: unwind tables, frame pointers\n"
		"                            where a file has none), fp (frame pointers only), none\n"
		"      --unwind-mem MIB      memory limit of the unwind tables, default 64\n"
		"      --ring-mem MIB        memory limit of the rings of all CPUs, default 64\n"
		"      --no-kernel           without kernel stacks\n"
		"      --interrupts          a root frame for the work of interrupts\n"
		"      --max-depth N         user frames per stack, default 256\n"
		"      --clock CLOCK         auto (default), tsc or monotonic\n"
		"      --wall[=HZ]           what threads wait for (report --wall), with -a as well, and in\n"
		"                            all formats: visits per second, default 200, with -a 20\n"
		"      --no-wall             without what threads wait for (default with -a)\n"
		"      --parked              folded stacks: event loops and idle threads of pools, too\n"
		"      --wall-cpu SHARE      CPU time limit of visits, default 0.5% of one CPU\n"
		"\n"
		"Output:\n"
		"  -o, --output FILE         may be repeated; the suffix picks the format, or FORMAT:FILE:\n"
		"                            .json .json.gz (Firefox Profiler), .cpuprofile (Chrome, one\n"
		"                            thread), .trace.json .trace.json.gz (Chrome), .pb.gz (pprof),\n"
		"                            .html (a page, for any browser), .folded, .txt,\n"
		"                            .sysprof (the recording itself); - is standard output\n"
		"      --arguments           the arguments of COMMAND in every format; by default they are in\n"
		"                            .sysprof alone, because passwords may be among them\n"
		"      --no-arguments        the arguments of COMMAND in no format\n"
		"      --thread TID          which thread, for formats with one thread per file\n"
		"      --merge-threads process  one file for all threads of a process, in those formats\n"
		"      --lines               with source lines, where the format supports them\n"
		"      --open                then show the profile in the browser, as sysprof open does\n"
		"\n"
		"Symbols:\n"
		"      --debuginfod          fetch debug files and sources from DEBUGINFOD_URLS\n"
		"      --no-symbol-cache     do not use the on-disk cache of symbols and unwind tables\n"
		"      --code SHARE          machine code of functions with this share of the samples, and\n"
		"                            its lines, in the recording; default 0.05%\n"
		"      --no-code             without machine code\n"
		"      --code-size SIZE      limit of machine code and sources, default 16M\n"
		"      --no-source           without the text of source files of that code\n"
		"      --source-map FROM=TO  sources of FROM are in TO on this machine; may be repeated\n"
		"      --jvm-perfmap         request perf maps of Java processes, as jcmd does\n"
		"      --java-signatures     Java methods with the types of their parameters and result\n"
		"\n"
		"  -q, --quiet               errors only\n"
		"  -v, --verbose             more details; -vv: debug log\n",
	.run = run_record,
	.options = record_option_rows,
	.stops = true,
};
