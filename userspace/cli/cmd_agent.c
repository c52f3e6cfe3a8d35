/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sysprof agent: parse, note the start, open, step until SIGTERM, stop. SIGHUP reads the file again.
 *
 * Signals come through a descriptor, and are blocked before there is a thread.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/notify.h"
#include "agent/start_log.h"
#include "base/clocks.h"
#include "capture/features.h"
#include "cli/agent_check.h"
#include "cli/agent_options.h"
#include "cli/commands.h"
#include "cli/summary.h"

struct running_agent {
	struct agent_options *options;
	struct agent *agent;
	int signal_fd;
	uint64_t watchdog,
		notified;  /* how often the manager expects a message; when it got the last, ns */
	bool safe, reload; /* the latter: SIGHUP has come */
};

/* ---- signals --------------------------------------------------------------------------------- */

static int watch_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* The next signal that has come; 0: none. */
static int next_signal(int fd)
{
	struct signalfd_siginfo info;

	return read(fd, &info, sizeof(info)) == sizeof(info) ? (int)info.ssi_signo : 0;
}

/* ---- running --------------------------------------------------------------------------------- */

static void say(const char *text)
{
	log_print(LOG_INFO, "%s", text);
}

/* A window is being handed over at times: then it is tried again with the next step. */
static void reload(struct running_agent *r)
{
	struct agent_settings settings;
	struct failure failure = {};
	const char *remark = "";
	char text[64];
	int err;

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu",
		 (unsigned long long)(monotonic_ns() / 1000));
	notify_manager(text);
	err = agent_options__read_again(r->options, &settings, &failure);
	if (!err) {
		err = agent__configure(r->agent, &settings, &remark, &failure);
		agent_settings__fini(&settings);
	}
	r->reload = err == -EBUSY;
	if (err && !r->reload)
		log_print(LOG_ERROR, "the configuration is unchanged: %s", failure.what);
	else if (!err)
		log_print(LOG_INFO, "the configuration was reloaded%s%s", *remark ? "; " : "",
			  remark);
	if (!r->reload)
		notify_manager("READY=1");
}

static void report_manager(struct running_agent *r)
{
	uint64_t now = monotonic_ns();

	if (!r->watchdog || now - r->notified < r->watchdog)
		return;
	r->notified = now;
	notify_manager("WATCHDOG=1");
}

static bool is_done(const struct running_agent *r)
{
	return r->options->mode == AGENT_DRY_RUN && agent__windows(r->agent);
}

static int run_until_the_end(struct running_agent *r, struct failure *failure)
{
	int err = 0, number = 0;

	while (!err && !is_done(r) && number != SIGTERM && number != SIGINT) {
		err = agent__step(r->agent, failure);
		report_manager(r);
		number = next_signal(r->signal_fd);
		if (number == SIGHUP || r->reload)
			reload(r);
	}
	return err;
}

/* In the spool's directory, made if need be. */
static void note_start(struct running_agent *r)
{
	const char *spool = r->options->settings.spool;
	int err;

	if (!spool || r->options->mode != AGENT_RUN)
		return;
	if (mkdir(spool, 0700) && errno != EEXIST)
		log_print(LOG_WARNING, "cannot make %s: %s; windows are kept in memory", spool,
			  strerror(errno));
	err = start_log__begin(spool, realtime_ns(), &r->safe);
	if (err)
		log_print(LOG_WARNING, "cannot note the start in %s: %s", spool, strerror(-err));
	if (r->safe)
		log_print(LOG_WARNING,
			  "three failures in ten minutes: starting without unwind tables and "
			  "without reading files of programs");
}

static void note_end(const struct running_agent *r)
{
	if (r->options->settings.spool && r->options->mode == AGENT_RUN)
		(void)start_log__end(r->options->settings.spool);
}

static int run(struct running_agent *r, struct failure *failure)
{
	const struct agent_start start = {
		.settings = &r->options->settings,
		.version = SYSPROF_VERSION,
		.safe = r->safe,
		.dry_run = r->options->mode == AGENT_DRY_RUN ? stdout : NULL,
		.wake_fd = r->signal_fd,
		.say = say,
	};
	int err = agent__new(&start, &r->agent, failure), stop_err;

	if (!err)
		err = agent__start(r->agent, failure);
	if (!err) {
		notify_manager("READY=1");
		err = run_until_the_end(r, failure);
		notify_manager("STOPPING=1");
		stop_err = is_done(r) ? 0 : agent__stop(r->agent, err ? NULL : failure);
		err = err ? err : stop_err;
	}
	agent__free(r->agent);
	return err;
}

static int run_modes(struct agent_options *options)
{
	struct running_agent r = {
		.options = options, .watchdog = notify_interval(), .signal_fd = watch_signals()};
	struct failure failure = {};
	int err;

	if (options->debug)
		log_set_level(LOG_DEBUG);
	if (options->mode == AGENT_CHECK)
		return agent_check(&options->settings);
	if (r.signal_fd < 0)
		err = fail(&failure, -errno, "cannot watch signals: %s", strerror(errno));
	else if (!options->settings.sinks.count && options->mode == AGENT_RUN)
		err = fail_remedy(&failure, fail(&failure, -EINVAL, "no sink is configured"),
				  "--sink pyroscope:URL, or --dry-run to show one window");
	else {
		note_start(&r);
		err = run(&r, &failure);
	}
	if (err)
		print_failure(&failure);
	else
		note_end(&r);
	if (r.signal_fd >= 0)
		close(r.signal_fd);
	return err ? EXIT_FAILED : EXIT_DONE;
}

static int run_agent(int argc, char **argv)
{
	struct agent_options options;
	int status = agent_options__parse(&options, argc, argv);

	if (status)
		return status;
	status = run_modes(&options);
	agent_options__fini(&options);
	return status;
}

const struct command cmd_agent = {
	.name = "agent",
	.arguments = "[--config FILE] [--sink TYPE:URL]… [--check | --dry-run] …",
	.summary = "profile this host continuously",
	.help = "  sudo sysprof agent --sink pyroscope:http://127.0.0.1:4040 --spool /var/lib/sysprof\n"
		"  sudo sysprof agent --dry-run         one window: its series, labels and sizes\n"
		"  sudo sysprof agent --check           what is missing: capabilities, settings, sinks\n"
		"\n"
		"Runs until SIGTERM. SIGHUP reloads the configuration.\n"
		"\n"
		"      --config FILE          default /etc/sysprof/agent.conf, if it exists\n"
		"      --check                list what is missing, and exit\n"
		"      --dry-run              show what would be sent for one window; send nothing\n"
		"  -v, --verbose              more details; -vv: each decision and its reason\n"
		"\n"
		"Settings, also keys of the file:\n",
	.run = run_agent,
	.options = agent_option_rows,
	.print_options = agent_options__print,
};
