/* SPDX-License-Identifier: BSD-2-Clause */
/* The user's browser, and what to do where it is on another machine. */
#ifndef CLI_BROWSER_H
#define CLI_BROWSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Can a browser show anything here? There is a display. */
bool browser__can_open(void);

/* Starts $BROWSER, or xdg-open, and does not wait for it. false: neither could be started. */
bool browser__open(const char *url);

/*
 * In a session of ssh: the command for the user's own machine that makes `port` of this machine's loopback
 * interface reachable there. "" elsewhere. Looks at the processes above us if sudo has removed the
 * variables; that needs the privileges to do so.
 */
void describe_ssh_forward(uint16_t port, char *text, size_t size);

#endif
