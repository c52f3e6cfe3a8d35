/* SPDX-License-Identifier: BSD-2-Clause */
/* A comparison as a profile of both sides: a page, pprof, Firefox. */
#include <errno.h>

#include "base/cleanup.h"
#include "base/suffix.h"
#include "cli/diffing.h"
#include "cli/outputs.h"
#include "export/exporters.h"

const struct exporter *diffing__profile_format(const char *path)
{
	static const char *const formats[] = {"html", "pprof", "firefox"};
	static const char *const suffixes[] = {".html", ".pb.gz", ".json.gz"};

	for (size_t i = 0; path && i < sizeof(formats) / sizeof(*formats); i++)
		if (has_suffix(path, suffixes[i]))
			return exporter_by_name(formats[i]);
	return NULL;
}

/* In ns of OLD's CPU time per file, or in billionths of OLD if that is unknown. */
static void set_values(struct export_difference *difference, const struct compare_output *output,
		       double *values)
{
	const struct compare_side_sum *old = &output->result->side[COMPARE_OLD];
	double whole = output->result->tests[0].side[COMPARE_OLD].value;
	double size = old->cpu_ns ? (double)old->cpu_ns / (double)old->files : 1e9;

	difference->type = old->cpu_ns ? "cpu" : "share";
	difference->unit = old->cpu_ns ? "nanoseconds" : "ppb";
	difference->tick_value = values;
	for (size_t i = 0; i < comparison__file_count(output->comparison); i++)
		values[i + 1] = comparison__tick_value(output->comparison, i) * size / whole;
}

static int write_both(const struct exporter *exporter, const struct compare_output *output,
		      const char *facts, const char *path, FILE *out)
{
	struct profile_builder *b = profile_builder__new();
	double values[COMPARE_FILES_MAX + 1] = {};
	struct export_difference difference = {.facts = facts};
	struct export_request request = {.difference = &difference};
	uint64_t size;
	bool waits = exporter == exporter_by_name("html");
	int err = b ? comparison__build_profile(output->comparison, waits, b) : -ENOMEM;

	if (!err)
		err = profile_builder__finish(b, &request.profile, NULL, 0);
	if (!err) {
		set_values(&difference, output, values);
		err = outputs__write_format(exporter, request, path, out, &size);
	}
	profile_builder__free(b);
	return err;
}

int diffing__write_profile(const struct exporter *exporter, const struct compare_output *output,
			   const char *path, FILE *out)
{
	_cleanup_free_ char *facts = NULL;
	size_t size = 0;
	FILE *text = open_memstream(&facts, &size);
	int err = text ? compare_write_json(output, text) : -ENOMEM;

	if (text && fclose(text))
		err = err ? err : -ENOMEM;
	return err ? err : write_both(exporter, output, facts, path, out);
}
