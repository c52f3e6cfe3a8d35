/* SPDX-License-Identifier: BSD-2-Clause */
/* Splits until it fits. Most services fit at the first try, so nothing is measured before. */
#include "agent/series.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/merged_code.h"
#include "agent/service_samples.h"
#include "agent/validate.h"
#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/strtab.h"
#include "formats/out/pprof_writer.h"

#define TEXT_MAX   4096 /* bytes of a name: what is longer is not read by anyone */
#define VALUES_MAX 2

struct series_maker {
	const struct agent_window *window;
	const struct series_options *options;
	const struct series_requests *kind;
	struct series_request request; /* the one in hand */
	struct part_times *times;
	struct merged_code code;
	struct code_order *order;
	struct pprof_writer *writer;
	struct series_part of; /* the service in hand, without its bytes */
	bool wall;	       /* … and which of its two profiles */
};

/* ---- one part -------------------------------------------------------------------------------- */

/* Backends drop a sample that has nothing but zeros. */
static bool is_sent(const struct series_maker *m, const struct service_sample *sample)
{
	if (m->wall)
		return sample->cpu || sample->wait;
	return !sample->state && (m->options->counts || sample->cpu);
}

static void write_samples(struct pprof_writer *w, const struct series_maker *m,
			  const struct service_sample *samples, size_t count)
{
	bool counts = m->options->counts && !m->wall;

	for (size_t i = 0; i < count; i++) {
		const int64_t values[VALUES_MAX] = {(int64_t)samples[i].ticks,
						    (int64_t)(samples[i].cpu + samples[i].wait)};

		if (!is_sent(m, &samples[i]))
			continue;
		pprof_writer__set_leaf(w, samples[i].state);
		pprof_writer__sample(w, samples[i].stack, counts ? values : values + 1,
				     counts ? 2 : 1, NULL, 0);
	}
}

/* Numbers the code of the samples, before they are written. 0, -ENOMEM. */
static int number_code(const struct series_maker *m, const struct service_sample *samples,
		       size_t count, uint32_t depth_max)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++)
		if (is_sent(m, &samples[i]))
			err = code_order__add_stack(m->order, samples[i].stack, depth_max);
	code_order__number(m->order, pprof_writer__code(m->writer));
	return err;
}

static int write_part(struct pprof_writer *w, const struct series_maker *m,
		      const struct service_sample *samples, size_t count)
{
	const struct agent_window *window = m->window;
	const struct pprof_facts facts = {
		.time = part_times__next(m->times, m->of.service, 0),
		/* without a duration Parca makes another type of it */
		.duration = window->end_realtime > window->start_realtime
				    ? window->end_realtime - window->start_realtime
				    : 1,
		.period = m->wall ? agent_window__visit_period(window) : window->profile->period,
		.default_sample_type = m->wall ? "wall" : "cpu",
		.period_type = m->wall ? "wall" : "cpu",
	};

	if (m->options->counts && !m->wall)
		pprof_writer__sample_type(w, "samples", "count");
	pprof_writer__sample_type(w, m->wall ? "wall" : "cpu", "nanoseconds");
	write_samples(w, m, samples, count);
	pprof_writer__tables(w);
	pprof_writer__facts(w, &facts);
	return pprof_writer__finish(w);
}

struct part_samples {
	const struct series_maker *maker;
	const struct service_sample *samples;
	size_t count;
	uint32_t depth_max;
};

static int write_pprof(void *context, FILE *out)
{
	const struct part_samples *part = context;
	const struct series_maker *m = part->maker;

	return pprof_writer__again(m->writer, part->depth_max, out)
			?: number_code(m, part->samples, part->count, part->depth_max)
			?: write_part(m->writer, m, part->samples, part->count);
}

static int encode(const struct series_maker *m, const struct service_sample *samples, size_t count,
		  uint32_t depth_max, struct bytes *out)
{
	struct part_samples part = {m, samples, count, depth_max};

	return bytes__write(write_pprof, &part, out) ? -ENOMEM : 0;
}

static int seal_request(struct series_maker *m)
{
	struct series_request *request = &m->request;
	int err = 0;

	if (request->facts.series)
		err = m->kind->seal(request);
	request->facts = (struct request_facts){};
	return err;
}

static int add_part(struct series_maker *m, const struct series_part *part)
{
	const struct series_requests *kind = m->kind;
	struct series_request *request = &m->request;
	_cleanup_bytes_ struct bytes made = {};
	int err = kind->make(part, &made);

	if (!err && request->facts.series &&
	    (request->facts.series == kind->series_max ||
	     request->body.count + made.count > kind->size_max))
		err = seal_request(m);
	if (!err)
		err = kind->add(request, &made);
	request->facts.series++;
	request->facts.samples += part->samples;
	request->facts.cpu_ns += part->cpu_ns;
	if (part->wall_ns)
		request->sealed->wall_bytes += part->pprof.count;
	request->sealed->wall_ns += part->wall_ns;
	return err;
}

static int keep_part(struct series_maker *m, const struct service_sample *samples, size_t count,
		     const struct bytes *pprof)
{
	struct series_part part = m->of;
	size_t sent = 0;
	char why[128];

	for (size_t i = 0; i < count; i++) {
		if (!is_sent(m, &samples[i]))
			continue;
		sent++;
		part.samples += m->wall ? 0 : samples[i].ticks;
		part.cpu_ns += m->wall ? 0 : samples[i].cpu;
		part.wall_ns += m->wall ? samples[i].cpu + samples[i].wait : 0;
	}
	if (!sent)
		return 0;
	if (!validate_labels(part.labels, part.label_count, why, sizeof(why)) ||
	    !validate_pprof(pprof->data, pprof->count, NULL, why, sizeof(why))) {
		m->request.sealed->series_invalid++;
		m->request.sealed->samples_invalid += part.samples;
		return 0;
	}
	part.pprof = *pprof;
	part_times__take(m->times, part.service);
	return add_part(m, &part);
}

/* ---- a service ------------------------------------------------------------------------------- */

/* One sample that is too big alone: as much of its stack as fits. */
static int add_big_sample(struct series_maker *m, const struct service_sample *sample)
{
	_cleanup_bytes_ struct bytes pprof = {};
	uint32_t depth = SERIES_DEPTH_MAX;
	int err;

	do {
		depth /= 2;
		free(pprof.data);
		err = encode(m, sample, 1, depth, &pprof);
	} while (!err && depth > 1 && pprof.count > m->options->size_max);
	return err ?: keep_part(m, sample, 1, &pprof);
}

static int add_samples(struct series_maker *m, const struct service_sample *samples, size_t count)
{
	_cleanup_bytes_ struct bytes pprof = {};
	int err = encode(m, samples, count, SERIES_DEPTH_MAX, &pprof);

	if (err)
		return err;
	if (pprof.count <= m->options->size_max)
		return keep_part(m, samples, count, &pprof);
	if (count == 1)
		return add_big_sample(m, samples);
	return add_samples(m, samples, count / 2)
		       ?: add_samples(m, samples + count / 2, count - count / 2);
}

static void take_labels(struct series_maker *m, const struct labeled_service *service)
{
	const char *node = m->options->add_node;
	struct series_part *of = &m->of;

	of->labels[0] = (struct service_label){"__name__",
					       m->wall ? SERIES_NAME_WALL : SERIES_NAME};
	of->label_count = 1;
	for (size_t i = 0; i < service->label_count && i < LABELS_MAX; i++)
		of->labels[of->label_count++] = service->labels[i];
	if (node && validate_label_value(node) && !labeled_service__label(service, "node"))
		of->labels[of->label_count++] = (struct service_label){"node", node};
}

static int add_profile(struct series_maker *m, size_t service, bool wall,
		       const struct service_sample *samples, size_t count)
{
	int err = 0;

	m->wall = wall;
	m->of = (struct series_part){.service = service};
	take_labels(m, &m->window->services[service]);
	for (size_t i = 0; i < count && !err; i += m->options->samples_max)
		err = add_samples(m, samples + i, min_u64(m->options->samples_max, count - i));
	return err;
}

static int make_series(struct series_maker *m)
{
	const struct agent_window *window = m->window;
	const struct pprof_writer_options options = {
		.code = {.split_unnamed = true,
			 .name_all = m->options->name_all,
			 .map_all = true,
			 .no_addresses = m->options->no_addresses,
			 .merged = m->code.locations,
			 .text_max = TEXT_MAX},
		.names_first = true,
	};
	struct service_samples *samples;
	int err = service_samples__new(window, m->code.stacks, &samples);

	if (err)
		return err;
	m->writer = pprof_writer__new(window->profile, &options, NULL);
	m->order = code_order__new(window->profile, &m->code);
	if (!m->writer || !m->order)
		err = -ENOMEM;
	for (size_t i = 0; i < window->service_count && !err; i++) {
		size_t count;
		const struct service_sample *of = service_samples__of(samples, i, &count);

		err = add_profile(m, i, false, of, count);
		if (window->parked && !err)
			err = add_profile(m, i, true, of, count);
	}
	code_order__free(m->order);
	pprof_writer__free(m->writer);
	service_samples__free(samples);
	return err;
}

int series__seal(const struct agent_window *window, const struct series_options *options,
		 const struct series_requests *kind, struct sealed_window *sealed)
{
	struct series_maker m = {
		.window = window, .options = options, .kind = kind, .request.sealed = sealed};
	int err;

	*sealed = sealed_window__of(window);
	err = merged_code__init(&m.code, window->profile)
			?: part_times__new(window, &m.times)
			?: make_series(&m)
			?: seal_request(&m);
	free(m.request.body.data);
	part_times__free(m.times);
	merged_code__fini(&m.code);
	return err;
}

/* ---- times of profiles ----------------------------------------------------------------------- */

#define STEP UINT64_C(1000000) /* ns */

struct part_times {
	const struct agent_window *window;
	uint32_t *set;	 /* by service */
	uint32_t *taken; /* by set */
};

static int64_t intern_labels(struct strtab *texts, const struct labeled_service *service)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	for (size_t i = 0; i < service->label_count; i++)
		fprintf(out, "%s=%s\n", service->labels[i].name, service->labels[i].value);
	if (fclose(out))
		return -ENOMEM;
	return strtab__intern(texts, text);
}

static int number_sets(struct part_times *s, struct strtab *texts)
{
	for (size_t i = 0; i < s->window->service_count; i++) {
		int64_t number = intern_labels(texts, &s->window->services[i]);

		if (number < 0)
			return (int)number;
		s->set[i] = (uint32_t)number;
	}
	return 0;
}

int part_times__new(const struct agent_window *window, struct part_times **times)
{
	struct part_times *s = calloc(1, sizeof(*s));
	struct strtab *texts = strtab__new();
	int err = -ENOMEM;

	if (s && texts) {
		s->window = window;
		s->set = calloc(window->service_count + 1, sizeof(*s->set));
		s->taken = calloc(window->service_count + 2, sizeof(*s->taken));
		err = s->set && s->taken ? number_sets(s, texts) : -ENOMEM;
	}
	strtab__free(texts);
	return finish_new(err, s, part_times__free, times);
}

void part_times__free(struct part_times *s)
{
	if (!s)
		return;
	free(s->set);
	free(s->taken);
	free(s);
}

uint64_t part_times__next(const struct part_times *s, size_t service, uint32_t ahead)
{
	return s->window->start_realtime + (s->taken[s->set[service]] + ahead) * STEP;
}

void part_times__take(struct part_times *s, size_t service)
{
	s->taken[s->set[service]]++;
}

bool part_times__same(const struct part_times *s, size_t service, size_t other)
{
	return s->set[service] == s->set[other];
}
