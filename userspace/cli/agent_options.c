/* SPDX-License-Identifier: BSD-2-Clause */
/* Flags are rows of the settings' table, and the few that are no settings. */
#include "cli/agent_options.h"

#include <errno.h>
#include <getopt.h>
#include <unistd.h>

#include "agent/config_file.h"
#include "cli/commands.h"

#define CONFIG_DEFAULT "/etc/sysprof/agent.conf"

static int take_verbose(const struct given_option *given)
{
	struct agent_options *o = given->fields;

	o->debug = o->verbose;
	o->verbose = true;
	return 0;
}

#define FIELD(name) .field = offsetof(struct agent_options, name)

const struct cli_option agent_option_rows[] = {
	{"config", 0, true, option_text, FIELD(config)},
	{"check", 0, false, option_choose, FIELD(mode), AGENT_CHECK},
	{"dry-run", 0, false, option_choose, FIELD(mode), AGENT_DRY_RUN},
	{"verbose", 'v', .take = take_verbose},
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

/* All flags; with `settings` NULL only those that are none of its. */
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
