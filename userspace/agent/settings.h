/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent's settings: one table makes the flags, the keys of the configuration file, the help and
 * the shells' completions. The file comes first, then flags: a list given by a flag replaces it.
 */
#ifndef AGENT_SETTINGS_H
#define AGENT_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "base/vec.h"

/* A sink, as configured. All strings are its own; NULL: not given. */
struct sink_settings {
	char *to; /* "TYPE:URL" */
	char *bearer_file, *basic_file, *header_file, *ca_file, *tenant;
};

typedef VEC(char *) agent_rules; /* as they were written */

struct agent_settings {
	VEC(struct sink_settings) sinks;
	agent_rules includes, excludes, labels;
	uint64_t window; /* ns */
	unsigned int hz;
	unsigned int wall; /* visits of threads that wait, a second; 0: none */
	double cpu;	   /* share of one CPU that the agent may use; 0: no limit */
	uint64_t memory;   /* bytes that it may use; 0: no limit */
	char *spool;	   /* directory; NULL: memory alone */
	char *listen;	   /* "127.0.0.1:4041", "unix:PATH", "none"; NULL: the first of these */
	char *node;	   /* label `node`; NULL: the host's name */
	bool pods;	   /* label `pod` */
	bool synthetic_names;
	unsigned int series; /* of a window at most */
};

/* A setting. `key` is the key in the file, and with "--" before it the flag. */
struct setting {
	const char *key;
	char flag;	      /* the short one; 0: none */
	const char *argument; /* "SECONDS"; NULL: a flag without one, "yes" or "no" in the file */
	bool is_list;	      /* may be given several times */
	bool of_sink;	      /* belongs to the sink given before it; in the file: to its section */
	const char *help;
	/* -EINVAL with `failure` filled (what is expected), -ENOMEM. */
	int (*set)(struct agent_settings *settings, const struct setting *setting,
		   const char *value, struct failure *failure);
	size_t field;	  /* offset of what is set */
	unsigned int max; /* of a number, which is at least 1 */
	bool negated;	  /* "yes" sets false */
};

/* Ends with a key of NULL. */
const struct setting *agent_settings__table(void);
const struct setting *agent_settings__find(const char *key);

void agent_settings__init(struct agent_settings *settings);
void agent_settings__fini(struct agent_settings *settings);

/* Removes all values of a setting that may be given several times. */
void agent_settings__clear(struct agent_settings *settings, const struct setting *setting);

/* Checks settings against each other, after all were set. 0 or -EINVAL with `failure` filled. */
int agent_settings__check(const struct agent_settings *settings, struct failure *failure);

#define AGENT_SETTINGS_MAX 32 /* rows of the table */

/* ---- the file -------------------------------------------------------------------------------- */

/*
 * The agent's configuration file. Keys are those of the table, in a section [agent]; each sink has
 * a section [sink NAME], with the key `to` for "TYPE:URL":
 *
 *   [agent]
 *   window = 15
 *   spool = /var/lib/sysprof
 *
 *   [sink grafana]
 *   to = pyroscope:https://profiles.example.com
 *   bearer-file = /etc/sysprof/token
 */

/*
 * Adds the settings of the file. Unknown sections and keys are errors, with their line. 0 or
 * negative errno with `failure` filled; `settings` may have a part of it then.
 */
int config_file__read(const char *path, struct agent_settings *settings, struct failure *failure);

#endif
