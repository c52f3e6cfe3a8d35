/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/sink_list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/hashmap.h"
#include "base/order.h"
#include "base/vec.h"

struct listed_sink {
	char *name;	 /* "TYPE:URL" */
	uint64_t place;	 /* of its name, tenant and spool */
	uint64_t access; /* of its credentials and certificates */
	const struct sink_format *format;
	struct sink *sink;
	/* of settings that are tried */
	bool is_new, is_wanted;
	uint64_t next_access;
	struct http_client *next_client; /* NULL: it keeps its own */
};

struct sink_list {
	VEC(struct listed_sink) sinks;
};

struct sink_list *sink_list__new(void)
{
	return calloc(1, sizeof(struct sink_list));
}

static void end_sink(struct listed_sink *s, uint64_t patience)
{
	sink__free(s->sink, patience);
	free(s->name);
}

void sink_list__free(struct sink_list *list, uint64_t patience)
{
	uint64_t until = monotonic_ns() + patience;

	if (!list)
		return;
	for (size_t i = 0; i < list->sinks.count; i++) {
		uint64_t now = monotonic_ns();

		end_sink(&list->sinks.data[i], now < until ? until - now : 0);
	}
	vec_free(&list->sinks);
	free(list);
}

/* ---- from settings --------------------------------------------------------------------------- */

void sink_options_of(const struct sink_settings *sink, struct sink_options *options)
{
	const char *colon = strchr(sink->to, ':');
	_cleanup_free_ char *type = strndup(sink->to, colon - sink->to);

	*options = (struct sink_options){
		.format = type ? sink_format__find(type) : NULL,
		.http = {.url = colon + 1,
			 .credentials = {sink->bearer_file, sink->basic_file, sink->header_file},
			 .ca_file = sink->ca_file,
			 .tenant = sink->tenant},
	};
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	return hash_combine(hash, text ? hash_bytes(text, strlen(text) + 1) : 1);
}

static uint64_t place_of(const struct sink_settings *sink, const char *spool)
{
	return hash_text(hash_text(hash_text(0, sink->to), sink->tenant ?: ""), spool);
}

static uint64_t access_of(const struct sink_settings *sink)
{
	uint64_t hash = hash_text(0, sink->bearer_file);

	hash = hash_text(hash, sink->basic_file);
	hash = hash_text(hash, sink->header_file);
	return hash_text(hash, sink->ca_file);
}

/* A directory for each place, the same after a restart with other settings. NULL: no memory. */
static char *spool_of(const struct sink_settings *sink, const struct sink_options *options,
		      const char *spool)
{
	_cleanup_free_ char *place = NULL;
	char *path;

	if (asprintf(&place, "%s %s", sink->to, sink->tenant ? sink->tenant : "") < 0) {
		place = NULL;
		return NULL;
	}
	if (asprintf(&path, "%s/%s-%016" PRIx64, spool, options->format->name,
		     hash_stable(place, strlen(place))) < 0)
		return NULL;
	return path;
}

static int begin_sink(const struct sink_settings *settings, const char *spool,
		      struct listed_sink *made, struct failure *failure)
{
	_cleanup_free_ char *directory = NULL;
	struct sink_options options;
	int err;

	*made = (struct listed_sink){.place = place_of(settings, spool),
				     .access = access_of(settings),
				     .is_new = true,
				     .is_wanted = true};
	sink_options_of(settings, &options);
	made->name = strdup(settings->to);
	if (!made->name || !options.format)
		goto no_memory;
	made->format = options.format;
	if (spool && options.format->judge_200) {
		directory = spool_of(settings, &options, spool);
		if (!directory)
			goto no_memory;
		options.spool.directory = directory;
	}
	err = sink__new(&options, &made->sink, failure);
	if (err)
		free(made->name);
	return err;
no_memory:
	free(made->name);
	return fail(failure, -ENOMEM, "cannot start sink %s: out of memory", settings->to);
}

static struct listed_sink *find(struct sink_list *list, uint64_t place)
{
	return find_first(list->sinks.data, list->sinks.count, s, s->place == place);
}

/* The sink stays, since its spool cannot be another one's at the same time. */
static int keep_sink(struct listed_sink *s, const struct sink_settings *settings,
		     struct failure *failure)
{
	struct sink_options options;

	s->is_wanted = true;
	s->next_access = access_of(settings);
	if (s->next_access == s->access || !s->format->judge_200)
		return 0;
	sink_options_of(settings, &options);
	return http_client__new(&options.http, &s->next_client, failure);
}

int sink_list__try(struct sink_list *list, const struct agent_settings *settings,
		   struct failure *failure)
{
	int err = vec_reserve(&list->sinks, list->sinks.count + settings->sinks.count);

	if (err)
		return fail(failure, err, "cannot start the sinks: out of memory");
	for (size_t i = 0; i < settings->sinks.count && !err; i++) {
		const struct sink_settings *wanted = &settings->sinks.data[i];
		struct listed_sink *known = find(list, place_of(wanted, settings->spool)), made;

		err = known ? keep_sink(known, wanted, failure)
			    : begin_sink(wanted, settings->spool, &made, failure);
		if (!err && !known)
			(void)vec_push(&list->sinks, made); /* there is room */
	}
	return err;
}

void sink_list__settle(struct sink_list *list, bool accepted)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->sinks.count; i++) {
		struct listed_sink s = list->sinks.data[i];

		if (accepted && s.next_client)
			sink__set_client(s.sink, steal_ptr(s.next_client));
		http_client__free(s.next_client);
		if (accepted ? !s.is_wanted : s.is_new) {
			end_sink(&s, 0);
			continue;
		}
		if (accepted && !s.is_new)
			s.access = s.next_access;
		s.next_client = NULL;
		s.is_new = s.is_wanted = false;
		list->sinks.data[kept++] = s;
	}
	list->sinks.count = kept;
}

/* ---- windows --------------------------------------------------------------------------------- */

size_t sink_list__count(const struct sink_list *list)
{
	return list->sinks.count;
}

const char *sink_list__name(const struct sink_list *list, size_t i)
{
	return list->sinks.data[i].name;
}

void sink_list__stats(const struct sink_list *list, size_t i, struct sink_stats *stats)
{
	sink__stats(list->sinks.data[i].sink, stats);
}

unsigned int sink_list__put(struct sink_list *list, const struct agent_window *window,
			    const struct sink_encoding_options *options)
{
	unsigned int failed = 0;

	for (size_t i = 0; i < list->sinks.count; i++) {
		const struct listed_sink *s = &list->sinks.data[i];
		struct sealed_window sealed = {};
		int err = s->format->encode(window, options, &sealed)
				  ?: sink__put(s->sink, &sealed);

		if (err)
			log_debug(LOG_AGENT, "%s: window %" PRIu64 " is lost: %s", s->name,
				  window->number, strerror(-err));
		sealed_window__fini(&sealed);
		failed += err != 0;
	}
	return failed;
}
