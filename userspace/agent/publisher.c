/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/publisher.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_window.h"
#include "agent/rules.h"
#include "agent/service_samples.h"
#include "agent/services.h"
#include "agent/sink_format.h"
#include "agent/sink_list.h"
#include "base/clocks.h"
#include "formats/out/waits.h"

#define HOST_NAME_MOST 256
#define NO_SERVICE     UINT32_MAX /* no service */

/* Made from the settings; replaced as a whole. */
struct naming {
	struct label_rules *rules;
	struct service_filter *filter;
	struct services *services;
	char node[HOST_NAME_MOST];
	bool synthetic_names;
};

/* A request for a profile that waits. */
struct wanted_profile {
	struct endpoint *endpoint; /* NULL: none */
	struct endpoint_request request;
	uint64_t since;
};

struct publisher {
	FILE *dry_run;
	atomic_ullong windows;
	pthread_mutex_t lock; /* of all below */
	struct naming naming;
	struct naming next; /* between publisher__try_configure() and publisher__settle() */
	struct sink_list *sinks;
	struct wanted_profile wanted;
	struct health health;
	struct agent_metrics sums; /* of windows */
};

/* ---- a dry run ------------------------------------------------------------------------------- */

static void print_service(const struct labeled_service *service,
			  const struct service_sample *samples, size_t count, FILE *out)
{
	const struct service_sample sum = service_samples__sum(samples, count);

	fprintf(out, "%8" PRIu64 " samples %10.3f ms  ", sum.ticks, (double)sum.cpu / 1e6);
	if (sum.wait)
		fprintf(out, "waits %10.3f ms  ", (double)sum.wait / 1e6);
	fputc('{', out);
	for (size_t i = 0; i < service->label_count; i++)
		fprintf(out, "%s%s=\"%s\"", i ? ", " : "", service->labels[i].name,
			service->labels[i].value);
	fputs("}\n", out);
}

static int print_format(const struct agent_window *window, const struct sink_format *format,
			const struct sink_encoding_options *options, FILE *out)
{
	struct sealed_window sealed = {};
	uint64_t bytes = 0;
	int err = format->encode(window, options, &sealed);

	for (size_t i = 0; i < sealed.request_count; i++)
		bytes += sealed.requests[i].size;
	if (!err)
		fprintf(out, "%s: %zu %s, %" PRIu64 " bytes\n", format->name, sealed.request_count,
			format->judge_200 ? "requests" : "files", bytes);
	sealed_window__fini(&sealed);
	return err;
}

static size_t count_excluded(const struct agent_window *window)
{
	size_t count = 0;

	for (size_t i = 0; i < window->service_count; i++)
		count += window->services[i].excluded;
	return count;
}

/* 0 or -ENOMEM; write errors are visible in ferror(). */
static int print_dry_run(const struct agent_window *window,
			 const struct sink_encoding_options *options, FILE *out)
{
	size_t excluded = count_excluded(window);
	struct service_samples *samples;
	int err = service_samples__new(window, NULL, &samples);

	if (err)
		return err;
	fprintf(out, "%.3f s, %zu series:\n",
		(double)(window->end_realtime - window->start_realtime) / 1e9,
		window->service_count - excluded);
	for (size_t i = 0; i < window->service_count; i++) {
		size_t count;
		const struct service_sample *s = service_samples__of(samples, i, &count);

		if (!window->services[i].excluded)
			print_service(&window->services[i], s, count, out);
	}
	if (excluded)
		fprintf(out, "%zu more are left out by --include and --exclude\n", excluded);
	for (const struct sink_format *const *f = sink_formats(); *f && !err; f++)
		err = print_format(window, *f, options, out);
	service_samples__free(samples);
	return err;
}

/* ---- settings -------------------------------------------------------------------------------- */

static void naming__fini(struct naming *n)
{
	services__free(n->services); /* it uses the others */
	service_filter__free(n->filter);
	label_rules__free(n->rules);
	*n = (struct naming){};
}

static void name_node(struct naming *n, const struct agent_settings *settings)
{
	char host[HOST_NAME_MOST] = "";

	if (!settings->node && gethostname(host, sizeof(host) - 1))
		*host = '\0';
	snprintf(n->node, sizeof(n->node), "%s",
		 settings->node ? settings->node
		 : *host	? host
				: "unknown");
}

static int naming__init(struct naming *n, const struct agent_settings *s, struct failure *failure)
{
	struct services_options options = {.node = n->node, .pods = s->pods, .most = s->series};
	int err;

	*n = (struct naming){.synthetic_names = s->synthetic_names};
	name_node(n, s);
	err = label_rules__new((const char *const *)s->labels.data, s->labels.count, &n->rules,
			       failure)
		      ?: service_filter__new((const char *const *)s->includes.data,
					     s->includes.count,
					     (const char *const *)s->excludes.data,
					     s->excludes.count, &n->filter, failure);
	options.rules = n->rules;
	options.filter = n->filter;
	if (!err)
		err = services__new(&options, &n->services, failure);
	if (err)
		naming__fini(n);
	return err;
}

/* Services are decided anew. */
void publisher__settle(struct publisher *p, bool accepted)
{
	struct naming left = accepted ? p->naming : p->next;

	if (accepted)
		p->naming = p->next;
	naming__fini(&left);
	p->next = (struct naming){};
	sink_list__settle(p->sinks, accepted);
	pthread_mutex_unlock(&p->lock);
}

int publisher__try_configure(struct publisher *p, const struct agent_settings *settings,
			     struct failure *failure)
{
	int err;

	if (pthread_mutex_trylock(&p->lock))
		return -EBUSY;
	err = naming__init(&p->next, settings, failure);
	if (!err && !p->dry_run)
		err = sink_list__try(p->sinks, settings, failure);
	if (err)
		publisher__settle(p, false);
	return err;
}

int publisher__new(FILE *dry_run, struct publisher **publisher, struct failure *failure)
{
	struct publisher *p = calloc(1, sizeof(*p));

	if (p)
		p->sinks = sink_list__new();
	if (!p || !p->sinks) {
		free(p);
		return fail(failure, -ENOMEM, "cannot start: out of memory");
	}
	pthread_mutex_init(&p->lock, NULL);
	p->dry_run = dry_run;
	*publisher = p;
	return 0;
}

void publisher__free(struct publisher *p, uint64_t patience)
{
	if (!p)
		return;
	sink_list__free(p->sinks, patience);
	naming__fini(&p->naming);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* ---- a requested profile -------------------------------------------------------------------- */

static bool is_wanted(const struct endpoint_request *request, const struct agent_window *w,
		      size_t process)
{
	uint32_t service = w->service_of_process[process];
	const char *name;

	if (request->pid && w->profile->processes[process].pid != request->pid)
		return false;
	name = service < w->service_count
		       ? labeled_service__label(&w->services[service], "service_name")
		       : NULL;
	return !*request->service || (name && !strcmp(name, request->service));
}

static bool has_time(const struct sealed_window *sealed)
{
	for (size_t i = 0; i < sealed->request_count; i++)
		if (sealed->requests[i].samples || sealed->requests[i].cpu_ns)
			return true;
	return sealed->wall_ns > 0;
}

/* The first file of a directory's format is the profile: all of its own bytes. */
static void grant(struct wanted_profile *wanted, const struct agent_window *part,
		  const struct sink_encoding_options *encoding)
{
	const struct sink_format *format = sink_format__find("dir");
	struct sealed_window sealed = {};

	if (format->encode(part, encoding, &sealed)) {
		endpoint__refuse(wanted->endpoint, wanted->request.id, 503, "out of memory");
	} else if (!has_time(&sealed)) {
		endpoint__refuse(wanted->endpoint, wanted->request.id, 404,
				 "no such process or service was sampled in that time");
	} else {
		endpoint__grant(wanted->endpoint, wanted->request.id, sealed.requests[0].body,
				sealed.requests[0].size);
		sealed.requests[0].body = NULL;
	}
	sealed_window__fini(&sealed);
}

static void grant_request(struct publisher *p, const struct agent_window *window,
			  const struct sink_encoding_options *encoding)
{
	struct wanted_profile wanted = p->wanted;
	struct agent_window part = *window;
	uint32_t *services;

	if (!wanted.endpoint || window->profile->start < wanted.since)
		return;
	p->wanted.endpoint = NULL;
	services = calloc(window->profile->process_count + 1, sizeof(*services));
	if (!services)
		return endpoint__refuse(wanted.endpoint, wanted.request.id, 503, "out of memory");
	for (size_t i = 1; i < window->profile->process_count; i++)
		services[i] = is_wanted(&wanted.request, window, i) ? window->service_of_process[i]
								    : NO_SERVICE;
	part.service_of_process = services;
	grant(&wanted, &part, encoding);
	free(services);
}

bool publisher__try_request(struct publisher *p, struct endpoint *endpoint,
			    const struct endpoint_request *request, uint64_t since)
{
	bool taken;

	if (pthread_mutex_trylock(&p->lock))
		return false;
	taken = !p->wanted.endpoint;
	if (taken)
		p->wanted = (struct wanted_profile){endpoint, *request, since};
	pthread_mutex_unlock(&p->lock);
	return taken;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static void add_thread(struct agent_metrics *m, const struct profile *p,
		       const struct profile_thread *thread)
{
	const struct profile_samples *rows = &thread->samples[SAMPLE_CPU];

	for (size_t i = 0; i < rows->count; i++) {
		struct location_id leaf = p->stacks[rows->stack[i].v].location;
		uint64_t ticks = profile_samples__ticks(rows, i);

		if (p->locations[leaf.v].unnamed)
			m->frames_unnamed += ticks;
		else
			m->frames_named += ticks;
	}
}

static uint64_t windows_sent(const struct publisher *p)
{
	uint64_t sent = 0;

	for (size_t i = 0; i < sink_list__count(p->sinks); i++) {
		struct sink_stats stats;

		sink_list__stats(p->sinks, i, &stats);
		sent += stats.windows_sent;
	}
	return sent;
}

static void add_window(struct publisher *p, const struct profile *profile,
		       const struct parked *parked)
{
	metrics__add(&p->sums, profile);
	if (parked)
		p->sums.parked_ns += parked->ns;
	for (size_t i = 1; i < profile->thread_count; i++)
		add_thread(&p->sums, profile, &profile->threads[i]);
	if (!p->dry_run)
		health__window(&p->health, profile->sample_count, windows_sent(p),
			       (unsigned int)sink_list__count(p->sinks));
}

bool publisher__try_fill(struct publisher *p, struct agent_metrics *m,
			 struct metrics_sink sinks[METRICS_SINKS_MAX])
{
	struct services_stats services;

	if (pthread_mutex_trylock(&p->lock))
		return false;
	*m = p->sums;
	m->healthy = health__is_well(&p->health);
	services__stats(p->naming.services, &services);
	m->services = services.services;
	m->services_other = services.overflowed;
	m->samples_unknown_service = services.samples[SERVICE_FROM_NONE];
	m->sink_count = 0;
	for (size_t i = 0; i < sink_list__count(p->sinks) && i < METRICS_SINKS_MAX; i++) {
		sinks[i].name = sink_list__name(p->sinks, i);
		sink_list__stats(p->sinks, i, &sinks[i].stats);
		m->sink_count++;
	}
	m->sinks = sinks;
	pthread_mutex_unlock(&p->lock);
	return true;
}

unsigned long long publisher__windows(const struct publisher *p)
{
	return atomic_load(&p->windows);
}

/* ---- a window -------------------------------------------------------------------------------- */

static int publish(struct publisher *p, struct agent_window *window)
{
	const struct sink_encoding_options encoding = {
		.node = p->naming.node,
		.name_all = p->naming.synthetic_names,
	};
	int err = services__name(p->naming.services, window, monotonic_ns());

	if (err)
		return err;
	add_window(p, window->profile, window->parked);
	grant_request(p, window, &encoding);
	if (p->dry_run)
		return print_dry_run(window, &encoding, p->dry_run);
	return sink_list__put(p->sinks, window, &encoding) ? -EIO : 0;
}

static int take_profile(struct publisher *p, uint64_t number, const struct profile *profile)
{
	struct parked parked = {};
	struct agent_window window = {
		.profile = profile,
		.number = number,
		.start_realtime = profile->start_realtime,
		.end_realtime = profile->start_realtime + (profile->end - profile->start),
	};
	int err = profile->visits.hz ? parked__init(&parked, profile) : 0;

	window.parked = profile->visits.hz ? &parked : NULL;
	if (!err)
		err = publish(p, &window);
	parked__fini(&parked);
	return err;
}

void publisher__take(struct publisher *p, uint64_t number, const struct profile *profile)
{
	int err;

	pthread_mutex_lock(&p->lock);
	err = profile ? take_profile(p, number, profile) : -EIO;
	p->sums.windows_finished += !err;
	p->sums.windows_failed += err != 0;
	pthread_mutex_unlock(&p->lock);
	if (err)
		log_debug(LOG_AGENT, "window %" PRIu64 ": %s", number, strerror(-err));
	atomic_fetch_add(&p->windows, 1);
}

/* ---- health ---------------------------------------------------------------------------------- */

void health__window(struct health *h, uint64_t samples, uint64_t sent, unsigned int sinks)
{
	bool progress = sent != h->sent;

	h->sent = sent;
	if (progress || !sinks)
		h->silent = 0;
	else if (samples && h->silent < HEALTH_SILENT_WINDOWS)
		h->silent++;
}

bool health__is_well(const struct health *h)
{
	return h->silent < HEALTH_SILENT_WINDOWS;
}
