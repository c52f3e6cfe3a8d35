/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A directory: files for `go tool pprof`, and for collectors of files.
 *
 * One file per window, with labels of services at its samples, not one per service: a day of 15-s
 * windows is 5,760 files whatever runs, names have no tenant's text in them, and pprof merges files
 * of any span and picks a service out of them (-tagfocus=service_name=NAME). Waits are a third
 * value, with the label `state`, as in pprof files of record. Beside each lies a line of JSON that
 * describes it: together an index. Names are times to the nanosecond: they sort and never collide.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "agent/service_samples.h"
#include "agent/sink_format.h"
#include "base/clocks.h"
#include "base/json_writer.h"
#include "formats/out/pprof_writer.h"

#define NAME_SIZE 96

struct dir {
	const struct agent_window *window;
	const struct sink_encoding_options *options;
	struct service_samples *samples;
	struct pprof_writer *writer;
	uint64_t ticks, cpu, wall; /* of all services */
	uint32_t series;	   /* services that are in it */
	char profile_name[NAME_SIZE];
};

/* "20261122T161404.123456789Z.pb.gz": of the beginning, in UTC. */
static void name_file(char *name, const struct agent_window *w, const char *suffix)
{
	time_t seconds = (time_t)(w->start_realtime / NS_PER_SECOND);
	struct tm tm = {};
	char text[64] = "";

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%Y%m%dT%H%M%S", &tm);
	snprintf(name, NAME_SIZE, "%s.%09uZ%s", text,
		 (unsigned int)(w->start_realtime % NS_PER_SECOND), suffix);
}

/* ---- the profile ----------------------------------------------------------------------------- */

static size_t take_labels(struct dir *d, size_t service, struct pprof_label *labels)
{
	const struct labeled_service *s = &d->window->services[service];
	struct code_tables *code = pprof_writer__code(d->writer);
	size_t count = 0;

	for (size_t i = 0; i < s->label_count && i < LABELS_MAX; i++) {
		uint32_t value = code_tables__text(code, s->labels[i].value);

		if (value) /* "" would be read as the number 0 */
			labels[count++] = (struct pprof_label){
				.key = code_tables__text(code, s->labels[i].name), .text = value};
	}
	return count;
}

/* Behind those of the service. How many there are then. */
static size_t take_sample_labels(struct dir *d, const struct service_sample *sample,
				 struct pprof_label *labels, size_t count)
{
	const char *state = wall_state_name(sample->state ? sample->state : WALL_RUNNING);

	if (d->window->parked)
		labels[count++] = pprof_writer__label(d->writer, "state", state);
	if (sample->context)
		labels[count++] = pprof_writer__label(d->writer, "context",
						      sample_context_name(sample->context));
	return count;
}

static void write_service(struct dir *d, size_t service)
{
	struct pprof_label labels[LABELS_MAX + 2];
	bool wall = d->window->parked;
	size_t label_count = take_labels(d, service, labels), count;
	const struct service_sample *samples = service_samples__of(d->samples, service, &count);

	d->series += count > 0;
	for (size_t i = 0; i < count && !pprof_writer__error(d->writer); i++) {
		const uint64_t all = samples[i].cpu + samples[i].wait;
		const int64_t values[] = {(int64_t)samples[i].ticks, (int64_t)samples[i].cpu,
					  (int64_t)all};

		pprof_writer__sample(d->writer, samples[i].stack, values, wall ? 3 : 2, labels,
				     take_sample_labels(d, &samples[i], labels, label_count));
		d->ticks += samples[i].ticks;
		d->cpu += samples[i].cpu;
		d->wall += all;
	}
}

static int write_profile(struct dir *d)
{
	const struct agent_window *w = d->window;
	const struct pprof_facts facts = {
		.time = w->start_realtime,
		.duration = w->end_realtime > w->start_realtime
				    ? w->end_realtime - w->start_realtime
				    : 0,
		.period = w->profile->period,
		.default_sample_type = "cpu",
		.has_comments = true,
	};

	pprof_writer__sample_type(d->writer, "samples", "count");
	pprof_writer__sample_type(d->writer, "cpu", "nanoseconds");
	if (w->parked)
		pprof_writer__sample_type(d->writer, "wall", "nanoseconds");
	for (size_t i = 0; i < w->service_count; i++)
		write_service(d, i);
	pprof_writer__tables(d->writer);
	pprof_writer__facts(d->writer, &facts);
	return pprof_writer__finish(d->writer);
}

static int write_profile_to(void *context, FILE *out)
{
	struct dir *d = context;
	const struct pprof_writer_options options = {
		.code = {.split_unnamed = true, .name_all = d->options->name_all, .map_all = true},
	};
	int err = -ENOMEM;

	d->writer = pprof_writer__new(d->window->profile, &options, out);
	if (d->writer)
		err = write_profile(d);
	pprof_writer__free(d->writer);
	return err;
}

static int make_profile(struct dir *d, struct bytes *made)
{
	_cleanup_bytes_ struct bytes plain = {};

	return bytes__write(write_profile_to, d, &plain) ? -ENOMEM
							 : bytes__gzip(&plain, NULL, 0, made);
}

/* ---- what is in it --------------------------------------------------------------------------- */

static void write_service_facts(const struct dir *d, size_t service, struct json_writer *w)
{
	const struct labeled_service *s = &d->window->services[service];
	size_t count;
	const struct service_sample *samples = service_samples__of(d->samples, service, &count);
	const struct service_sample sum = service_samples__sum(samples, count);

	if (!count)
		return;
	json_begin_object(w);
	json_key_object(w, "labels");
	for (size_t i = 0; i < s->label_count; i++)
		json_key_string(w, s->labels[i].name, s->labels[i].value);
	json_end_object(w);
	json_key_uint(w, "samples", sum.ticks);
	json_key_uint(w, "cpu_ns", sum.cpu);
	if (d->window->parked)
		json_key_uint(w, "wall_ns", sum.cpu + sum.wait);
	json_end_object(w);
}

static int write_facts(void *context, FILE *out)
{
	const struct dir *d = context;
	struct json_writer w;
	int err;

	json_writer__init(&w, out);
	json_begin_object(&w);
	json_key_string(&w, "file", d->profile_name);
	json_key_uint(&w, "window", d->window->number);
	json_key_uint(&w, "start_ns", d->window->start_realtime);
	json_key_uint(&w, "end_ns", d->window->end_realtime);
	json_key_string(&w, "node", d->options->node ? d->options->node : "");
	json_key_uint(&w, "samples", d->ticks);
	json_key_uint(&w, "cpu_ns", d->cpu);
	if (d->window->parked)
		json_key_uint(&w, "wall_ns", d->wall);
	JSON_COLUMN(&w, "services", d->window->service_count, write_service_facts(d, i, &w));
	json_end_object(&w);
	err = json_writer__finish(&w);
	fputc('\n', out);
	return err;
}

static int seal(struct dir *d, struct sealed_window *made)
{
	char facts_name[NAME_SIZE];
	struct request_facts profile = {.path = d->profile_name,
					.content_type = "application/vnd.google.protobuf",
					.content_encoding = ""};
	const struct request_facts facts = {
		.path = facts_name, .content_type = "application/json", .content_encoding = ""};
	struct bytes body = {};
	int err = make_profile(d, &body);

	if (d->window->parked) {
		made->wall_ns = d->wall;
		made->wall_bytes = body.count;
	}
	name_file(d->profile_name, d->window, ".pb.gz");
	name_file(facts_name, d->window, ".json");
	profile.samples = d->ticks;
	profile.cpu_ns = d->cpu;
	profile.series = d->series;
	if (!err)
		err = sealed_window__add(made, &profile, &body);
	free(body.data);
	body = (struct bytes){};
	if (!err)
		err = bytes__write(write_facts, d, &body)
			      ?: sealed_window__add(made, &facts, &body);
	free(body.data);
	return err;
}

static int encode(const struct agent_window *window, const struct sink_encoding_options *options,
		  struct sealed_window *sealed)
{
	struct dir d = {.window = window, .options = options};
	int err;

	*sealed = sealed_window__of(window);
	err = service_samples__new(window, NULL, &d.samples) ?: seal(&d, sealed);
	service_samples__free(d.samples);
	return err;
}

/* Not sent: there is no answer. */
const struct sink_format dir_format = {
	.name = "dir",
	.encode = encode,
};
