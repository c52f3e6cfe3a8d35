/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of `sysprof agent`, and its configuration file: settings, and what to do with them. */
#ifndef CLI_AGENT_OPTIONS_H
#define CLI_AGENT_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "agent/settings.h"
#include "cli/options.h"

enum agent_mode { AGENT_RUN, AGENT_CHECK, AGENT_DRY_RUN };

struct agent_options {
	int argc; /* as given: a file that is read again is under the same flags */
	char **argv;
	const char *config; /* NULL: the default one, if there is one */
	enum agent_mode mode;
	bool verbose, debug;
	struct agent_settings settings;
};

extern const struct cli_option agent_option_rows[]; /* those that are no settings */

/* 0, or an exit code after telling the user what is wrong. */
int agent_options__parse(struct agent_options *options, int argc, char **argv);

/* The file once more: settings of the same command line. 0 or negative errno, `failure` filled, *settings untouched. */
int agent_options__read_again(const struct agent_options *options, struct agent_settings *settings,
			      struct failure *failure);

void agent_options__fini(struct agent_options *options);

/* For the help. */
void agent_options__print(FILE *out);

#endif
