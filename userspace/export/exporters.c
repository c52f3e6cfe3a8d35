/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of formats, and how a name or a path picks one. */
#include "export/exporters.h"

#include <stdint.h>
#include <string.h>

static const struct exporter *const table[] = {
	&firefox_exporter, &cpuprofile_exporter, &folded_exporter,
	&html_exporter,	   &text_exporter,	 NULL,
};

/*
 * Suffixes of formats that other versions write. Without this list "x.trace.json" would become a Firefox
 * profile, which trace viewers cannot open.
 */
#define NOT_HERE(suffix) "this version cannot write " suffix
static const struct {
	const char *suffix, *why;
} unavailable[] = {
	{".trace.json", NOT_HERE(".trace.json")},
	{".trace.json.gz", NOT_HERE(".trace.json.gz")},
	{".pb.gz", NOT_HERE(".pb.gz")},
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

/* The length of the suffix if the path ends with it, else 0. "/tmp/.json" is a hidden file without a suffix. */
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
	const char *problem =
		"unknown suffix: use .json, .json.gz, .cpuprofile, .folded, .txt, .html or "
		".sysprof, or put the format before the name, as in folded:NAME";
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
	for (size_t i = 0; i < sizeof(unavailable) / sizeof(unavailable[0]); i++) {
		size_t size = suffix_size(path, unavailable[i].suffix);

		if (size <= best_size)
			continue;
		best = NULL;
		best_size = size;
		problem = unavailable[i].why;
	}
	if (!best)
		*why = problem;
	return best;
}

struct thread_id export_busiest_thread(const struct profile *profile)
{
	struct thread_id busiest = {0};

	for (uint32_t i = 1; i < profile->thread_count; i++)
		if (!busiest.v || profile->threads[i].samples[SAMPLE_CPU].tick_sum >
					  profile->threads[busiest.v].samples[SAMPLE_CPU].tick_sum)
			busiest.v = i;
	return busiest;
}
