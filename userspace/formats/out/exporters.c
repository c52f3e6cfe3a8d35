/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of formats, and how a name or a path picks one. */
#include "formats/out/exporters.h"

#include <stdint.h>
#include <string.h>

static const struct exporter *const table[] = {
	&firefox_exporter, &cpuprofile_exporter, &trace_exporter, &pprof_exporter,
	&folded_exporter,  &html_exporter,	 &text_exporter,  NULL,
};

const struct exporter *const *exporters(void)
{
	return table;
}

const struct exporter *exporter_by_name(const char *name)
{
	for (size_t i = 0; table[i]; i++)
		if (!strcmp(table[i]->name, name))
			return table[i];
	return NULL;
}

/* The length of the suffix if the path ends with it, else 0. "/tmp/.json" has no suffix. */
static size_t suffix_size(const char *path, const char *suffix)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	size_t length = strlen(name), size = strlen(suffix);

	return length > size && !strcmp(name + length - size, suffix) ? size : 0;
}

const struct exporter *exporter_for_path(const char *path, const char **why)
{
	const struct exporter *best = NULL;
	static const char problem[] =
		"unknown suffix: use .json, .json.gz, .cpuprofile, .trace.json, "
		".trace.json.gz, .pb.gz, .folded, .html, .txt or .sysprof, or put the "
		"format before the name, as in folded:NAME";
	size_t best_size = 0;

	for (size_t i = 0; table[i]; i++) {
		for (const char *const *suffix = table[i]->suffixes; *suffix; suffix++) {
			size_t size = suffix_size(path, *suffix);

			if (size <= best_size)
				continue;
			best = table[i];
			best_size = size;
		}
	}
	if (!best)
		*why = problem;
	return best;
}

/* V8's longest string: its viewers read a JSON text as one. Firefox's limit is twice that. */
#define V8_STRING_MAX ((1u << 29) - 24)

const char *export_size_problem(const struct exporter *exporter, uint64_t size)
{
	if (!exporter->is_json || size <= V8_STRING_MAX)
		return NULL;
	return "more than 512 MiB of JSON, which Chrome, VS Code, speedscope and others that are built on "
	       "V8 cannot open; .pb.gz is smaller, and so is a shorter recording or a lower rate (-F)";
}

struct thread_id export_busiest_thread(const struct profile *profile)
{
	struct thread_id busiest = {0};

	for (uint32_t i = 1; i < profile->thread_count; i++)
		if (!busiest.v || profile->threads[i].samples[SAMPLE_CPU].event_sum >
					  profile->threads[busiest.v].samples[SAMPLE_CPU].event_sum)
			busiest.v = i;
	return busiest;
}
