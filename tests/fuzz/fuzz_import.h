/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the targets of the readers of other formats share: what a reader takes is a profile that keeps all
 * invariants, what it refuses it says why; reading it again gives the same; and compared with itself it does not differ.
 */
#ifndef FUZZ_IMPORT_H
#define FUZZ_IMPORT_H

#include <string.h>

#include "compare/compare.h"
#include "compare/output_json.h"
#include "compare/output_text.h"
#include "formats/in/import.h"
#include "formats/out/exporters.h"
#include "formats/out/html_data.h"
#include "fuzz.h"
#include "fuzz_merge.h"
#include "fuzz_parts.h"
#include "models/profile_dump.h"

/* Both sides as one profile keep all invariants, have all samples, and have a page. */
static inline void fuzz_both(const struct comparison *c, const char *facts)
{
	const struct export_difference difference = {.facts = facts};
	struct profile_builder *b = profile_builder__new();
	const struct profile *both;
	uint64_t samples = 0;
	char why[256] = "", *page = NULL;
	size_t size;
	FILE *out;

	MUST(b && !comparison__build_profile(c, true, b));
	if (profile_builder__finish(b, &both, why, sizeof(why))) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
	for (size_t i = 0; i < comparison__file_count(c); i++)
		samples += comparison__file(c, i)->samples;
	MUST(both->uncounted || both->sample_count == samples);
	out = open_memstream(&page, &size);
	MUST(out && !html_write_data(both, &difference, NULL, out));
	fclose(out);
	free(page);
	profile_builder__free(b);
}

static inline void fuzz_compare(const struct profile *profile)
{
	const struct compare_options options = {.view = COMPARE_AUTO, .run_noise = -1};
	struct comparison *c = comparison__new();
	const struct compare_result *result;
	struct failure failure = {};
	char *text = NULL;
	size_t size;
	int err;

	MUST(c);
	err = comparison__add(c, COMPARE_OLD, "a", profile, &failure);
	if (!err)
		err = comparison__add(c, COMPARE_NEW, "b", profile, &failure);
	if (!err)
		err = comparison__finish(c, &options, &result, &failure);
	MUST(!err || *failure.what);
	if (!err) {
		struct compare_output output = {.comparison = c, .result = result, .top = 20};
		FILE *out = open_memstream(&text, &size);

		MUST(!result->row_count);
		for (size_t i = 0; i < result->test_count; i++)
			MUST(result->tests[i].p == 1 && result->tests[i].difference.value == 0);
		MUST(out && !compare_write_text(&output, out) &&
		     !compare_write_markdown(&output, out));
		fclose(out);
		free(text);
		out = open_memstream(&text, &size);
		MUST(out && !compare_write_json(&output, out));
		fclose(out);
		fuzz_both(c, text);
		free(text);
	}
	comparison__free(c);
}

/* The profile as text, or NULL: it was refused. */
static inline char *fuzz_import_once(const struct importer *importer, const uint8_t *data,
				     size_t size)
{
	struct import_request request = {
		.name = "file", .bytes = data, .size = size, .builder = profile_builder__new()};
	struct import_failure failure = {};
	const struct profile *profile;
	char why[256] = "", *text = NULL;
	size_t text_size;
	FILE *out;
	int err;

	MUST(request.builder);
	err = importer->read(&request, &failure);
	if (err) {
		MUST(err == -ENOMEM || *failure.what);
		MUST(failure.offset <= size);
	} else if (!profile_builder__error(request.builder)) {
		if (profile_builder__finish(request.builder, &profile, why, sizeof(why))) {
			fprintf(stderr, "%s\n", why);
			abort();
		}
		out = open_memstream(&text, &text_size);
		MUST(out);
		profile_dump(profile, out);
		fclose(out);
		fuzz_compare(profile);
		fuzz_merge(profile);
		fuzz_parts(profile);
	}
	profile_builder__free(request.builder);
	return text;
}

static inline int fuzz_import(const struct importer *importer, const uint8_t *data, size_t size)
{
	char *once, *twice;

	importer->recognizes(data, size);
	once = fuzz_import_once(importer, data, size);
	twice = fuzz_import_once(importer, data, size);
	MUST(!once == !twice && (!once || !strcmp(once, twice)));
	free(once);
	free(twice);
	return 0;
}

#endif
