/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SENDER_H
#define AGENT_SENDER_H

#include <stdbool.h>

struct sink;

/* sender.c. One more turn of the thread; false: it is to end. */
bool sender__turn(struct sink *s);

#endif
