/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent as a service of this host: messages to its manager, and how often it was started. */
#ifndef AGENT_SERVICE_UNIT_H
#define AGENT_SERVICE_UNIT_H

#include <stdbool.h>
#include <stdint.h>

/* Messages of a service to its manager: sd_notify(3), a datagram to $NOTIFY_SOCKET. Without a manager nothing happens. */

/* "READY=1", "RELOADING=1\nMONOTONIC_USEC=…", "STATUS=…", "STOPPING=1", "WATCHDOG=1". Never waits; errors are left. */
void notify_manager(const char *text);

/* How often the manager expects a message, ns: half of WATCHDOG_USEC, if that is meant for this process; 0: never. */
uint64_t notify_interval(void);

/*
 * When the agent was started, and did not end as it should: a file in the spool's directory with a line for each such
 * start. After three of them in ten minutes it starts in safe mode, in which it reads no files of others: whatever made it
 * end may be in one of them.
 */

#define START_LOG_FAILURES 3
#define START_LOG_NS	   UINT64_C(600000000000)

/*
 * Notes a start at `now` (CLOCK_REALTIME ns) in the directory; returns whether it has to be a safe one. A file that is
 * damaged counts as empty. 0 or negative errno: the start is not noted.
 */
int start_log__begin(const char *directory, uint64_t now, bool *safe);

/* It ends as it should: nothing is counted against the next start. 0 or negative errno. */
int start_log__end(const char *directory);

#endif
