/* SPDX-License-Identifier: BSD-2-Clause */
/* What would be sent of a window: its series with their labels, and how much each format makes of them. */
#ifndef AGENT_DRY_RUN_H
#define AGENT_DRY_RUN_H

#include <stdio.h>

#include "agent/agent_window.h"
#include "agent/sink_format.h"

/* 0 or -ENOMEM; write errors are visible in ferror(). */
int print_dry_run(const struct agent_window *window, const struct sink_encoding_options *options,
		  FILE *out);

#endif
