/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the targets of the readers of other formats share: what a reader takes is a profile that keeps all
 * invariants, what it refuses it says why; and reading it again gives the same.
 */
#ifndef FUZZ_IMPORT_H
#define FUZZ_IMPORT_H

#include <string.h>

#include "fuzz.h"
#include "import/import.h"
#include "models/profile_dump.h"

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
