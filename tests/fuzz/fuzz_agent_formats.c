/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The formats of the agent, of whatever a pprof file makes of a profile: nothing is lost, nothing is left out by our own
 * check, requests are within their limits; and answers and profiles of any bytes are judged.
 */
#include <string.h>

#include "agent/sink_format.h"
#include "agent/validate.h"
#include "formats/in/import.h"
#include "fuzz.h"

#define SERVICES_MAX 7
#define REQUEST_MAX  (2u << 20)

struct sums {
	uint64_t samples, cpu;
};

static struct sums sums_of(const struct profile *p)
{
	struct sums sums = {p->sample_count, 0};

	for (size_t i = 1; i < p->thread_count; i++)
		sums.cpu += profile_thread__cpu(&p->threads[i]);
	return sums;
}

static struct sums sums_sent(const struct sealed_window *sealed)
{
	struct sums sums = {};

	for (size_t i = 0; i < sealed->request_count; i++) {
		MUST(sealed->requests[i].size && sealed->requests[i].size <= REQUEST_MAX);
		fuzz_read(sealed->requests[i].body, sealed->requests[i].size);
		sums.samples += sealed->requests[i].samples;
		sums.cpu += sealed->requests[i].cpu_ns;
	}
	return sums;
}

static void encode(const struct agent_window *window, const struct sink_format *format,
		   bool name_all)
{
	const struct sink_encoding_options options = {.node = "fuzz", .name_all = name_all};
	struct sums wanted = sums_of(window->profile), sent;
	struct sealed_window sealed = {};

	MUST(!format->encode(window, &options, &sealed));
	MUST(!sealed.series_invalid && !sealed.samples_invalid);
	sent = sums_sent(&sealed);
	if (strcmp(format->name, "parca") != 0)
		MUST(sent.samples == wanted.samples);
	if (strcmp(format->name, "otlp") != 0)
		MUST(sent.cpu == wanted.cpu);
	sealed_window__fini(&sealed);
}

static void encode_all(const struct profile *p, unsigned int choice)
{
	static const struct service_label labels[SERVICES_MAX][2] = {
		{{"pod", "a"}, {"service_name", "a"}}, {{"pod", "b"}, {"service_name", "b"}},
		{{"pod", "a"}, {"service_name", "a"}}, {{"pod", "d"}, {"service_name", "d"}},
		{{"pod", "e"}, {"service_name", "e"}}, {{"pod", "f"}, {"service_name", "f"}},
		{{"pod", "g"}, {"service_name", "g"}},
	};
	struct labeled_service services[SERVICES_MAX];
	struct agent_window window = {.profile = p,
				      .start_realtime = 1700000000000000000,
				      .end_realtime = 1700000015000000000,
				      .services = services,
				      .service_count = 1 + choice % SERVICES_MAX};
	uint32_t *of_process = calloc(p->process_count + 1, sizeof(*of_process));

	MUST(of_process);
	for (size_t i = 0; i < SERVICES_MAX; i++)
		services[i] = (struct labeled_service){labels[i], 2};
	for (size_t i = 1; i < p->process_count; i++)
		of_process[i] = (uint32_t)(i % window.service_count);
	window.service_of_process = of_process;
	for (const struct sink_format *const *f = sink_formats(); *f; f++)
		encode(&window, *f, choice & 8);
	free(of_process);
}

static void judge_all(const uint8_t *data, size_t size, unsigned int choice)
{
	static const char *const types[] = {"", "application/json", "application/x-protobuf",
					    "application/proto", "text/html"};
	static const long statuses[] = {0, 200, 400, 401, 429, 500, 503};

	for (size_t i = 0; i < COUNT(statuses); i++) {
		struct http_answer answer = {.status = statuses[i],
					     .sent = choice & 1,
					     .body = (char *)data,
					     .size = size};

		strcpy(answer.type, types[choice % COUNT(types)]);
		for (const struct sink_format *const *f = sink_formats(); *f; f++)
			MUST(!(*f)->judge_200 ||
			     sink_format__judge(*f, &answer) < SINK_VERDICT_COUNT);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct import_request request = {.name = "file", .bytes = data, .size = size};
	struct import_failure failure = {};
	const struct profile *p;
	unsigned int choice = size ? data[size - 1] : 0;
	char why[256];

	judge_all(data, size, choice);
	validate_pprof(data, size, NULL, why, sizeof(why));
	request.builder = profile_builder__new();
	MUST(request.builder);
	if (!pprof_importer.read(&request, &failure) && !profile_builder__error(request.builder) &&
	    !profile_builder__finish(request.builder, &p, why, sizeof(why)))
		encode_all(p, choice);
	profile_builder__free(request.builder);
	return 0;
}
