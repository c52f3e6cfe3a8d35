/* SPDX-License-Identifier: BSD-2-Clause */
/* sysprof agent --check: each capability, setting and sink that is missing, and how to mend it. */
#ifndef CLI_AGENT_CHECK_H
#define CLI_AGENT_CHECK_H

#include "agent/settings.h"

/* Prints to standard output. EXIT_DONE, or EXIT_FAILED where something is missing. */
int agent_check(const struct agent_settings *settings);

#endif
