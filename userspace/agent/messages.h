/* SPDX-License-Identifier: BSD-2-Clause */
/* The protobuf messages of backends. The only door to protobuf-c of the agent. */
#ifndef AGENT_MESSAGES_H
#define AGENT_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

#include "agent/agent_window.h"
#include "agent/bytes.h"
#include "export/code_tables.h"

/* ---- Pyroscope ------------------------------------------------------------------------------- */

struct push_series {
	const struct service_label *labels;
	size_t label_count;
	const void *pprof;
	size_t size;
};

/* Appends a series to a PushRequest, which is nothing but series. 0, -ENOMEM. */
int push_message__add_series(struct bytes *request, const struct push_series *series);

/*
 * The pprof of each series of a PushRequest whose label service_name is `service`. 0; -EBADMSG; what `take` returns, which ends
 * it unless it is 0.
 */
int push_message__read(const void *request, size_t size, const char *service,
		       int (*take)(void *context, const void *pprof, size_t size), void *context);

/* ---- OTLP ------------------------------------------------------------------------------------ */

/* The oldest release whose numbers of fields these are. Nothing on the wire has it. */
#define OTLP_PROFILES_VERSION "1.10"

/* Pieces of a dictionary, in any order. Each appends a row to its table. 0, -ENOMEM. */
int otlp_dictionary__add_zeros(struct bytes *dictionary); /* element 0 of all but the strings */
int otlp_dictionary__add_location(struct bytes *dictionary, const struct code_location *l);
/* `attribute`: number of the build id's; 0: none */
int otlp_dictionary__add_mapping(struct bytes *dictionary, const struct code_mapping *m,
				 uint32_t attribute);
int otlp_dictionary__add_function(struct bytes *dictionary, const struct code_function *f);
int otlp_dictionary__add_string(struct bytes *dictionary, const char *text);
int otlp_dictionary__add_attribute(struct bytes *dictionary, uint32_t key, const char *value);
int otlp_dictionary__add_stack(struct bytes *dictionary, const int32_t *locations, size_t count);

struct otlp_sample {
	uint32_t stack; /* of the dictionary */
	int64_t value;
};

struct otlp_profile {
	const struct service_label *attributes; /* of the resource */
	size_t attribute_count;
	const char *scope, *scope_version;
	uint32_t samples_text, count_text, cpu_text,
		nanoseconds_text;	 /* strings of the dictionary */
	uint64_t time, duration, period; /* ns */
	uint8_t id[16];
	const struct otlp_sample *samples;
	size_t sample_count;
};

/* Appends a resource with one profile, of samples/count, to a request. 0, -ENOMEM. */
int otlp_request__add_profile(struct bytes *request, const struct otlp_profile *profile);
/* Appends the dictionary, which is complete, to a request. 0, -ENOMEM. */
int otlp_request__add_dictionary(struct bytes *request, const struct bytes *dictionary);

/* As push_message__read(): each profile of the resource whose service.name is `service`, with the dictionary, as pprof. */
int otlp_request__read(const void *request, size_t size, const char *service,
		       int (*take)(void *context, const void *pprof, size_t size), void *context);

#endif
