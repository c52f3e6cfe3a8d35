/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent as a service of this host: messages to its manager, and how often it was started. */
#ifndef AGENT_SERVICE_UNIT_H
#define AGENT_SERVICE_UNIT_H

#include <stdbool.h>
#include <stdint.h>

/* As sd_notify(3), if there is a manager: "READY=1", "STATUS=…". Never waits; ignores errors. */
void notify_manager(const char *text);

/* How often the manager expects a message, ns: half of WATCHDOG_USEC, if it is ours; 0: never. */
uint64_t notify_interval(void);

/*
 * Starts without a proper end: a file in the spool's directory, a line each. After three in ten
 * minutes the agent starts in safe mode and reads no files of others: one may be the cause.
 */

#define START_LOG_FAILURES 3
#define START_LOG_NS	   UINT64_C(600000000000)

/*
 * Notes a start at `now` (CLOCK_REALTIME ns) in the directory. *safe: it has to be a safe one. A
 * damaged file counts as empty. 0 or negative errno: the start is not noted.
 */
int start_log__begin(const char *directory, uint64_t now, bool *safe);

/* It ends as it should: nothing is counted against the next start. 0 or negative errno. */
int start_log__end(const char *directory);

#endif
