/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sysprof agent: parse, note the start, open, step until SIGTERM, stop. SIGHUP reloads the file.
 *
 * Signals come through a descriptor, and are blocked before there is a thread.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/service_unit.h"
#include "agent/settings.h"
#include "agent/sink_list.h"
#include "base/clocks.h"
#include "cli/commands.h"
#include "cli/summary.h"
#include "live/capture/features.h"

#define CONFIG_DEFAULT "/etc/sysprof/agent.conf"
#define SPOOL_ROOM     (UINT64_C(64) << 20) /* a sink's */

struct running_agent {
	struct agent_options *options;
	struct agent *agent;
	int signal_fd;
	uint64_t watchdog, notified; /* ns between messages to the manager; time of the last one */
	bool safe, reload;	     /* reload: SIGHUP has come */
};

/* ---- options and settings -------------------------------------------------------------------- */

enum agent_mode { AGENT_RUN, AGENT_CHECK, AGENT_DRY_RUN };

struct agent_options {
	int argc; /* as given: a file is read again with the same flags */
	char **argv;
	const char *config; /* NULL: the default one, if there is one */
	enum agent_mode mode;
	bool debug;
	struct agent_settings settings;
};

#define FIELD(name) .field = offsetof(struct agent_options, name)

/* Flags are rows of the settings' table, and these, which are no settings. */
static const struct cli_option agent_option_rows[] = {
	{"config", 0, true, option_text, FIELD(config)},
	{"check", 0, false, option_choose, FIELD(mode), AGENT_CHECK},
	{"dry-run", 0, false, option_choose, FIELD(mode), AGENT_DRY_RUN},
	{"verbose", 'v', false, option_set, FIELD(debug)},
	{},
};

struct settings_pass {
	struct agent_settings *settings;
	bool given[AGENT_SETTINGS_MAX];
};

static int take_setting(const struct given_option *o)
{
	const struct setting *setting = agent_settings__find(o->row->name);
	struct settings_pass *pass = o->fields;
	bool *given = &pass->given[setting - agent_settings__table()];
	const char *value = o->value ? o->value : "yes";
	struct failure why = {};
	int err;

	if (setting->is_list && !*given)
		agent_settings__clear(pass->settings, setting);
	*given = true;
	err = setting->set(pass->settings, setting, value, &why);
	if (err == -ENOMEM)
		return fail(o->failure, err, "out of memory");
	return err ? fail(o->failure, err, "--%s %s: %s", setting->key, value, why.what) : 0;
}

/* All flags; with `settings` NULL only those that are not settings. */
static int take_flags(struct agent_options *o, struct agent_settings *settings,
		      struct failure *failure)
{
	struct settings_pass pass = {.settings = settings};
	struct cli_option rows[OPTIONS_MAX] = {}, *row = rows;
	int err;

	for (const struct cli_option *own = agent_option_rows; own->name; own++) {
		*row = *own;
		row++->take = settings ? NULL : own->take;
	}
	for (const struct setting *s = agent_settings__table(); s->key; s++)
		*row++ = (struct cli_option){.name = s->key,
					     .letter = s->flag,
					     .has_value = s->argument != NULL,
					     .take = settings ? take_setting : NULL};
	err = options__take(rows, false, settings ? (void *)&pass : o, o->argc, o->argv, failure);
	if (!err && optind < o->argc)
		return fail(failure, -EINVAL, "unexpected argument '%s'", o->argv[optind]);
	return err;
}

static int read_settings(struct agent_options *o, struct agent_settings *settings,
			 struct failure *failure)
{
	const char *file = o->config ? o->config : CONFIG_DEFAULT;
	int err = 0;

	agent_settings__init(settings);
	if (o->config || !access(file, F_OK))
		err = config_file__read(file, settings, failure);
	if (!err)
		err = take_flags(o, settings, failure) ?: agent_settings__check(settings, failure);
	if (err)
		agent_settings__fini(settings);
	return err;
}

/* 0, or an exit code after printing what is wrong. */
static int agent_options__parse(struct agent_options *o, int argc, char **argv)
{
	struct failure failure = {};
	int err;

	*o = (struct agent_options){.argc = argc, .argv = argv};
	err = take_flags(o, NULL, &failure) ?: read_settings(o, &o->settings, &failure);
	return err ? usage_error(&cmd_agent, "%s", failure.what) : 0;
}

/* For the help. */
static void agent_options__print(FILE *out)
{
	for (const struct setting *s = agent_settings__table(); s->key; s++) {
		char flag[64];

		snprintf(flag, sizeof(flag), "--%s%s%s", s->key, s->argument ? " " : "",
			 s->argument ? s->argument : "");
		fprintf(out, "  %c%c%c %-22s %s\n", s->flag ? '-' : ' ', s->flag ? s->flag : ' ',
			s->flag ? ',' : ' ', flag, s->help);
	}
}

/* ---- sysprof agent --check ------------------------------------------------------------------- */

static void print_finding(bool good, const char *name, const char *detail, const char *remedy)
{
	print_line(good ? "ok" : "MISSING", name, detail);
	if (!good)
		print_remedy(remedy);
}

/* The features that sampling needs, and visits if requested. False: sampling is impossible. */
static bool check_features(const struct agent_settings *settings)
{
	struct features *features;
	const struct feature *list;
	size_t count;
	bool can, waits = true;

	if (features__probe(&features)) {
		print_finding(false, "features", "out of memory", "");
		return false;
	}
	list = features__list(features, &count);
	can = features__can_record(features);
	for (size_t i = 0; i < count; i++) {
		bool is_waits = settings->wall && !strcmp(list[i].name, "visits");

		if (is_waits || (!list[i].available && list[i].level != FEATURE_INFO))
			print_finding(list[i].available, list[i].name, list[i].detail,
				      list[i].remedy);
		waits &= !is_waits || list[i].available;
	}
	features__free(features);
	if (can)
		print_finding(true, "sampling", "possible", "");
	return can && waits;
}

static bool check_spool(const struct agent_settings *settings)
{
	uint64_t wanted = SPOOL_ROOM * settings->sinks.count;
	struct statvfs fs;
	char detail[256];

	if (!settings->spool) {
		print_finding(true, "spool", "none: windows are kept in memory, four per sink", "");
		return true;
	}
	if (access(settings->spool, W_OK | X_OK) || statvfs(settings->spool, &fs)) {
		snprintf(detail, sizeof(detail), "%.150s: %s", settings->spool, strerror(errno));
		print_finding(false, "spool", detail,
			      "create the directory, owned by the agent's user (mode 0700)");
		return false;
	}
	snprintf(detail, sizeof(detail), "%.150s: %llu MB free, at most %llu MB are used",
		 settings->spool, (unsigned long long)(fs.f_bavail * fs.f_frsize >> 20),
		 (unsigned long long)(wanted >> 20));
	print_finding(fs.f_bavail * fs.f_frsize >= wanted, "spool", detail,
		      "free space, or choose another directory");
	return fs.f_bavail * fs.f_frsize >= wanted;
}

static bool check_sinks(const struct agent_settings *settings)
{
	bool good = settings->sinks.count > 0;

	if (!good)
		print_finding(false, "sink", "none", "--sink pyroscope:URL");
	for (size_t i = 0; i < settings->sinks.count; i++) {
		const struct sink_settings *sink = &settings->sinks.data[i];
		struct sink_options options;
		struct failure failure = {};
		int err;

		sink_options_of(sink, &options);
		err = sink__probe(&options, &failure);
		print_finding(!err, "sink", err ? failure.what : sink->to, failure.remedy);
		good &= !err;
	}
	return good;
}

/* Prints to standard output. EXIT_DONE, or EXIT_FAILED if something is missing. */
static int agent_check(const struct agent_settings *settings)
{
	bool good = check_features(settings);

	good &= check_spool(settings);
	good &= check_sinks(settings);
	printf("\n%s\n", good ? "the agent can run here" : "see MISSING above");
	return !print_ended(0) && good ? EXIT_DONE : EXIT_FAILED;
}

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

/* While a window is being handed over, this is retried with the next step. */
static void reload(struct running_agent *r)
{
	struct agent_settings settings;
	struct failure failure = {};
	char text[64];
	int err;

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu",
		 (unsigned long long)(monotonic_ns() / 1000));
	notify_manager(text);
	/* with the same command line */
	err = read_settings(r->options, &settings, &failure);
	if (!err) {
		err = agent__configure(r->agent, &settings, &failure);
		agent_settings__fini(&settings);
	}
	r->reload = err == -EBUSY;
	if (err && !r->reload)
		log_print(LOG_ERROR, "the configuration is unchanged: %s", failure.what);
	else if (!err)
		log_print(LOG_INFO, "the configuration was reloaded");
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
	else if (options->mode == AGENT_DRY_RUN)
		err = print_ended(0);
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
	agent_settings__fini(&options.settings);
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
		"  -v, --verbose              log each decision and its reason\n"
		"\n"
		"Settings, also keys of the file:\n",
	.run = run_agent,
	.options = agent_option_rows,
	.print_options = agent_options__print,
};
