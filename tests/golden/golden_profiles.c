/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every named profile in every format, byte for byte as in tests/golden/expected/NAME.FORMAT.
 *
 *   golden_profiles                 compare (from the top of the tree); GOLDEN_UPDATE=1 rewrites
 *   golden_profiles NAME FORMAT     write one to standard output
 *   golden_profiles DIR/            write all of them into a directory, with their suffixes
 */
#include <errno.h>

#include "base/cleanup.h"
#include "formats/out/exporters.h"
#include "golden/bytes.h"
#include "golden/profiles.h"

#define EXPECTED "tests/golden/expected"

static int export_profile(const struct named_profile *named, const struct exporter *exporter,
			  struct bytes *bytes)
{
	struct export_request request = {.waits = true, .parked = true};
	struct fixture f;
	char why[256] = "";
	FILE *out;
	int err;

	named->build(&f);
	err = profile_builder__finish(f.b, &request.profile, why, sizeof(why));
	if (err) {
		fprintf(stderr, "%s: finish: %s: %s\n", named->name, strerror(-err), why);
		profile_builder__free(f.b);
		return err;
	}
	out = request.out = open_memstream(&bytes->data, &bytes->size);
	if (!out) {
		profile_builder__free(f.b);
		return -ENOMEM;
	}
	err = exporter->write(&request);
	if (fclose(out) && !err)
		err = -EIO;
	if (err)
		fprintf(stderr, "%s.%s: %s\n", named->name, exporter->name, strerror(-err));
	profile_builder__free(f.b);
	return err;
}

static int each(const char *dir, bool write)
{
	int failed = 0;

	for (size_t i = 0; i < NAMED_PROFILES; i++) {
		for (const struct exporter *const *e = exporters(); *e; e++) {
			struct bytes bytes = {0};
			char path[4096];
			int err;

			if (!has_golden(*e))
				continue;
			err = export_profile(&named_profiles[i], *e, &bytes);

			snprintf(path, sizeof(path), "%s/%s%.*s", dir, named_profiles[i].name,
				 plain_length((*e)->suffixes[0]), (*e)->suffixes[0]);
			if (!err)
				err = write ? write_bytes(path, &bytes)
					    : compare_bytes(path, &bytes);
			failed += err != 0;
			free(bytes.data);
		}
	}
	return failed;
}

static int write_one(const char *name, const char *format)
{
	const struct exporter *exporter = exporter_by_name(format);
	struct bytes bytes = {0};
	int err = -ENOENT;

	for (size_t i = 0; exporter && i < NAMED_PROFILES; i++)
		if (!strcmp(named_profiles[i].name, name))
			err = export_profile(&named_profiles[i], exporter, &bytes);
	if (err == -ENOENT)
		fprintf(stderr, "no such profile or format\n");
	if (!err && fwrite(bytes.data, 1, bytes.size, stdout) != bytes.size)
		err = -EIO;
	free(bytes.data);
	return err;
}

int main(int argc, char **argv)
{
	const char *update = getenv("GOLDEN_UPDATE");
	int failed;

	if (argc == 3)
		return write_one(argv[1], argv[2]) ? 1 : 0;
	if (argc == 2)
		return each(argv[1], true) ? 1 : 0;
	failed = each(EXPECTED, update && *update == '1');
	if (failed)
		fprintf(stderr,
			"%d files differ; after a look at each, make golden-update accepts them\n",
			failed);
	return failed ? 1 : 0;
}
