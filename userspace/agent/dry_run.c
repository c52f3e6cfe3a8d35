/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/dry_run.h"

#include <inttypes.h>

#include "agent/service_samples.h"

static void print_service(const struct agent_service *service, const struct service_sample *samples,
			  size_t count, FILE *out)
{
	uint64_t ticks = 0, cpu = 0;

	for (size_t i = 0; i < count; i++) {
		ticks += samples[i].ticks;
		cpu += samples[i].cpu;
	}
	fprintf(out, "%8" PRIu64 " samples %10.3f ms  {", ticks, (double)cpu / 1e6);
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

	if (err)
		return err;
	for (size_t i = 0; i < sealed.request_count; i++)
		bytes += sealed.requests[i].size;
	fprintf(out, "%s: %zu %s, %" PRIu64 " bytes\n", format->name, sealed.request_count,
		format->judge ? "requests" : "files", bytes);
	sealed_window__fini(&sealed);
	return 0;
}

static size_t count_excluded(const struct agent_window *window)
{
	size_t count = 0;

	for (size_t i = 0; i < window->service_count; i++)
		count += window->services[i].excluded;
	return count;
}

int print_dry_run(const struct agent_window *window, const struct sink_encoding_options *options,
		  FILE *out)
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
