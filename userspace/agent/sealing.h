/* SPDX-License-Identifier: BSD-2-Clause */
/* What the formats share when they put requests together. */
#ifndef AGENT_SEALING_H
#define AGENT_SEALING_H

#include "agent/agent_window.h"
#include "agent/bytes.h"
#include "agent/sink_format.h"

extern const struct sink_format pyroscope_format;
extern const struct sink_format parca_format;
extern const struct sink_format otlp_format;
extern const struct sink_format dir_format;

/* A request without its strings and its body. */
struct request_facts {
	const char *path, *content_type, *content_encoding;
	uint64_t samples, cpu_ns;
	uint32_t series;
};

/* Number and times of a window, and nothing yet to send. */
struct sealed_window sealed_window__of(const struct agent_window *window);

/* Appends a request. Takes the body, which is empty afterwards, whatever happens. 0, -ENOMEM. */
int sealed_window__add(struct sealed_window *sealed, const struct request_facts *facts,
		       struct bytes *body);

#endif
