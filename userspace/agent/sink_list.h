/* SPDX-License-Identifier: BSD-2-Clause */
/* The configured sinks, and each window's way to all of them. */
#ifndef AGENT_SINK_LIST_H
#define AGENT_SINK_LIST_H

#include "agent/settings.h"
#include "agent/sink.h"

struct sink_list;

/* An empty one; NULL: no memory. */
struct sink_list *sink_list__new(void);
/* Windows that wait stay in spools; requests have this long (ns), all together. NULL is fine. */
void sink_list__free(struct sink_list *list, uint64_t patience);

/*
 * Prepares the sinks of `settings`, beside those that are there. 0, or negative errno with
 * `failure`. Before any other call, sink_list__settle() makes them the list's (accepted), or takes
 * everything back. Sinks of the same place continue; windows of others stay in their spools.
 */
int sink_list__try(struct sink_list *list, const struct agent_settings *settings,
		   struct failure *failure);
void sink_list__settle(struct sink_list *list, bool accepted);

/* Options of a configured sink, without the spool; pointers into `sink`. */
void sink_options_of(const struct sink_settings *sink, struct sink_options *options);

size_t sink_list__count(const struct sink_list *list);
/* "TYPE:URL" */
const char *sink_list__name(const struct sink_list *list, size_t i);
void sink_list__stats(const struct sink_list *list, size_t i, struct sink_stats *stats);

/* Seals and hands over the window for each sink, even if others fail. Returns how many failed. */
unsigned int sink_list__put(struct sink_list *list, const struct agent_window *window,
			    const struct sink_encoding_options *options);

#endif
