/* SPDX-License-Identifier: BSD-2-Clause */
/* Flags are rows of the settings' table, and the few that are no settings. */
#include "cli/agent_options.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <unistd.h>

#include "agent/config_file.h"
#include "cli/commands.h"

#define CONFIG_DEFAULT "/etc/sysprof/agent.conf"
#define OPT_SETTING    256 /* and the row */

enum { OPT_CONFIG = 'c', OPT_CHECK = 'k', OPT_DRY_RUN = 'n' };

static const struct option own_options[] = {
	{"config", required_argument, NULL, OPT_CONFIG},
	{"check", no_argument, NULL, OPT_CHECK},
	{"dry-run", no_argument, NULL, OPT_DRY_RUN},
	{"verbose", no_argument, NULL, 'v'},
	{NULL, 0, NULL, 0},
};
#define OWN_COUNT (sizeof(own_options) / sizeof(own_options[0]))

struct flags {
	struct option options[AGENT_SETTINGS_MAX + OWN_COUNT];
	char letters[2 * AGENT_SETTINGS_MAX + 4]; /* as getopt wants them */
};

static void make_flags(struct flags *f)
{
	const struct setting *table = agent_settings__table();
	size_t count = 0, used = 0;

	f->letters[used++] = ':';
	f->letters[used++] = 'v';
	for (const struct setting *s = table; s->key; s++) {
		f->options[count++] =
			(struct option){s->key, s->argument ? required_argument : no_argument, NULL,
					s->flag ? s->flag : OPT_SETTING + (int)(s - table)};
		if (s->flag) {
			f->letters[used++] = s->flag;
			f->letters[used++] = ':';
		}
	}
	f->letters[used] = '\0';
	memcpy(f->options + count, own_options, sizeof(own_options));
}

static const struct setting *setting_of(int option)
{
	const struct setting *table = agent_settings__table();

	if (option >= OPT_SETTING)
		return &table[option - OPT_SETTING];
	for (const struct setting *s = table; s->key; s++)
		if (s->flag && s->flag == option)
			return s;
	return NULL;
}

static int take_setting(struct agent_settings *settings, const struct setting *setting, bool *given,
			struct failure *failure)
{
	const char *value = setting->argument ? optarg : "yes";
	struct failure why = {};
	int err;

	if (setting->is_list && !*given)
		agent_settings__clear(settings, setting);
	*given = true;
	err = setting->set(settings, value, &why);
	if (err == -ENOMEM)
		return fail(failure, err, "out of memory");
	return err ? fail(failure, err, "--%s %s: %s", setting->key, value, why.what) : 0;
}

static int take_own(struct agent_options *o, int option)
{
	switch (option) {
	case OPT_CONFIG:
		o->config = optarg;
		return 0;
	case OPT_CHECK:
		o->mode = AGENT_CHECK;
		return 0;
	case OPT_DRY_RUN:
		o->mode = AGENT_DRY_RUN;
		return 0;
	case 'v':
		o->debug = o->verbose;
		o->verbose = true;
		return 0;
	}
	return -EINVAL;
}

/* All flags; with `settings` NULL only those that are none of its. */
static int take_flags(struct agent_options *o, struct agent_settings *settings,
		      struct failure *failure)
{
	bool given[AGENT_SETTINGS_MAX] = {};
	struct flags flags;
	int option, err = 0;

	make_flags(&flags);
	optind = 1;
	while (!err &&
	       (option = getopt_long(o->argc, o->argv, flags.letters, flags.options, NULL)) != -1) {
		const struct setting *setting = setting_of(option);

		if (option == ':')
			return fail(failure, -EINVAL, "%s requires a value", o->argv[optind - 1]);
		if (option == '?')
			return fail(failure, -EINVAL, "unknown option '%s'", o->argv[optind - 1]);
		if (!setting && !settings)
			err = take_own(o, option);
		else if (setting && settings)
			err = take_setting(settings, setting,
					   &given[setting - agent_settings__table()], failure);
	}
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
		err = take_flags(o, settings, failure);
	if (!err)
		err = agent_settings__check(settings, failure);
	if (err)
		agent_settings__fini(settings);
	return err;
}

int agent_options__parse(struct agent_options *o, int argc, char **argv)
{
	struct failure failure = {};
	int err;

	*o = (struct agent_options){.argc = argc, .argv = argv};
	err = take_flags(o, NULL, &failure);
	if (!err)
		err = read_settings(o, &o->settings, &failure);
	return err ? usage_error(&cmd_agent, "%s", failure.what) : 0;
}

int agent_options__read_again(const struct agent_options *options, struct agent_settings *settings,
			      struct failure *failure)
{
	struct agent_options o = *options;

	return read_settings(&o, settings, failure);
}

void agent_options__fini(struct agent_options *o)
{
	agent_settings__fini(&o->settings);
}

void agent_options__print(FILE *out)
{
	for (const struct setting *s = agent_settings__table(); s->key; s++) {
		char flag[64];

		snprintf(flag, sizeof(flag), "--%s%s%s", s->key, s->argument ? " " : "",
			 s->argument ? s->argument : "");
		fprintf(out, "  %c%c%c %-22s %s\n", s->flag ? '-' : ' ', s->flag ? s->flag : ' ',
			s->flag ? ',' : ' ', flag, s->help);
	}
}
