/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that are compared byte for byte, or accepted as they are. */
#ifndef TESTS_GOLDEN_BYTES_H
#define TESTS_GOLDEN_BYTES_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sysprof/exporter.h>

#include "base/cleanup.h"

struct bytes {
	char *data;
	size_t size;
};

/* Pages change with every line of web/: they are judged by tests/unit/test_export_html.c and tests/e2e/html_page.py. */
static inline bool has_golden(const struct exporter *exporter)
{
	return strcmp(exporter->name, "html") != 0;
}

/* How long a suffix is without ".gz" at its end: what is compared is not compressed. */
static inline int plain_length(const char *suffix)
{
	size_t length = strlen(suffix);

	return (int)(length > 3 && !strcmp(suffix + length - 3, ".gz") ? length - 3 : length);
}

static inline int write_bytes(const char *path, const struct bytes *bytes)
{
	_cleanup_fclose_ FILE *file = fopen(path, "we");

	if (!file || fwrite(bytes->data, 1, bytes->size, file) != bytes->size || fflush(file)) {
		perror(path);
		return -EIO;
	}
	return 0;
}

static inline void report_difference(const char *path, const struct bytes *want,
				     const struct bytes *got)
{
	size_t i = 0, from;

	while (i < want->size && i < got->size && want->data[i] == got->data[i])
		i++;
	from = i > 60 ? i - 60 : 0;
	fprintf(stderr, "%s differs at byte %zu (expected %zu bytes, got %zu)\n", path, i,
		want->size, got->size);
	fprintf(stderr, "  expected …%.*s…\n",
		(int)(want->size - from < 120 ? want->size - from : 120), want->data + from);
	fprintf(stderr, "  got      …%.*s…\n",
		(int)(got->size - from < 120 ? got->size - from : 120), got->data + from);
}

static inline int compare_bytes(const char *path, const struct bytes *got)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	struct bytes want = {0};
	_cleanup_free_ char *data = NULL;
	bool equal;

	if (!file) {
		perror(path);
		return -ENOENT;
	}
	data = malloc(got->size + (1 << 20));
	if (!data)
		return -ENOMEM;
	want.data = data;
	want.size = fread(data, 1, got->size + (1 << 20), file);
	equal = want.size == got->size && !memcmp(want.data, got->data, want.size);
	if (!equal)
		report_difference(path, &want, got);
	return equal ? 0 : -EINVAL;
}

#endif
