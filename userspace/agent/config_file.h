/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent's configuration file. Keys are those of agent/settings.h, in a section [agent]; each sink has one of its own,
 * [sink NAME], with the key `to` for "TYPE:URL":
 *
 *   [agent]
 *   window = 15
 *   spool = /var/lib/sysprof
 *
 *   [sink grafana]
 *   to = pyroscope:https://profiles.example.com
 *   bearer-file = /etc/sysprof/token
 */
#ifndef AGENT_CONFIG_FILE_H
#define AGENT_CONFIG_FILE_H

#include "agent/settings.h"

/*
 * Adds the settings of the file. Unknown sections and keys are errors, with the number of their line. 0 or negative
 * errno with `failure` filled; `settings` may have a part of it then.
 */
int config_file__read(const char *path, struct agent_settings *settings, struct failure *failure);

#endif
