/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of a service to its manager: sd_notify(3), a datagram to $NOTIFY_SOCKET. Without a manager nothing happens. */
#ifndef AGENT_NOTIFY_H
#define AGENT_NOTIFY_H

#include <stdint.h>

/* "READY=1", "RELOADING=1\nMONOTONIC_USEC=…", "STATUS=…", "STOPPING=1", "WATCHDOG=1". Never waits; errors are left. */
void notify_manager(const char *text);

/* How often the manager expects a message, ns: half of WATCHDOG_USEC, if that is meant for this process; 0: never. */
uint64_t notify_interval(void);

#endif
