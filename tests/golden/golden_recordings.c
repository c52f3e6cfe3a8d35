/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every recording of tests/golden/recordings (recordings.py says where they come from): the profile that is
 * made of it, as profile_dump() shows it and in every format, byte for byte as in the files beside it.
 *
 *   golden_recordings              compare (from the top of the tree); GOLDEN_UPDATE=1 rewrites
 *   golden_recordings RECORDING    dump one, any one, to standard output
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>

#include "base/cleanup.h"
#include "formats/out/exporters.h"
#include "golden/bytes.h"
#include "models/profile_dump.h"
#include "window/replay.h"

#define RECORDINGS "tests/golden/recordings/"
#define SUFFIX	   ".sysprof"

/* One that is missing would not be missed by who looks at what is there. */
static const char *const cases[] = {
	"code",
	"containers",
	"cut-short",
	"epoch-change",
	"fork-exec",
	"jit-reuse",
	"kernel-code",
	"hardware-events",
	"left-out",
	"lost-records",
	"overlapping-mmaps",
	"pid-reuse",
	"processes-over-time",
	"services",
	"waits",
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static int load(const char *path, struct windows **windows, const struct profile **profile)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	const struct replay_options options = {.symbols = {.cache = false}};
	struct recording_summary summary = {};
	struct failure failure = {};
	int err = replay_recording(fd, path, &options, windows, profile, &summary, &failure);

	if (err)
		fprintf(stderr, "%s: %s\n", path, failure.what);
	return err;
}

/* The dump where there is no exporter. */
static int render(const struct profile *p, const struct exporter *exporter, struct bytes *bytes)
{
	FILE *out = open_memstream(&bytes->data, &bytes->size);
	const struct export_request request = {
		.profile = p, .out = out, .waits = true, .parked = true};
	int err = 0;

	if (!out)
		return -ENOMEM;
	if (exporter)
		err = exporter->write(&request);
	else
		profile_dump(p, out);
	return fclose(out) && !err ? -EIO : err;
}

static int check_one(const struct profile *p, const char *name, const struct exporter *exporter,
		     bool update)
{
	struct bytes bytes = {0};
	char path[4096];
	const char *suffix = exporter ? exporter->suffixes[0] : ".dump";
	int err = render(p, exporter, &bytes);

	snprintf(path, sizeof(path), RECORDINGS "%s%.*s", name, plain_length(suffix), suffix);
	if (!err)
		err = update ? write_bytes(path, &bytes) : compare_bytes(path, &bytes);
	free(bytes.data);
	return err;
}

static int check(const char *name, bool update)
{
	const struct profile *p;
	struct windows *windows;
	char path[4096];
	int failed;

	snprintf(path, sizeof(path), RECORDINGS "%s" SUFFIX, name);
	if (load(path, &windows, &p))
		return 1;
	failed = check_one(p, name, NULL, update) != 0;
	for (const struct exporter *const *e = exporters(); *e; e++)
		if (has_golden(*e))
			failed += check_one(p, name, *e, update) != 0;
	windows__free(windows);
	return failed;
}

static int dump(const char *path)
{
	const struct profile *p;
	struct windows *windows;

	if (load(path, &windows, &p))
		return 1;
	profile_dump(p, stdout);
	windows__free(windows);
	return 0;
}

/* All that lie there are among the cases. */
static int count_strangers(void)
{
	glob_t found;
	int count = -1;

	if (!glob(RECORDINGS "*" SUFFIX, 0, NULL, &found))
		count = (int)found.gl_pathc - (int)CASES;
	globfree(&found);
	if (count)
		fprintf(stderr, RECORDINGS " does not have the %zu cases\n", CASES);
	return count != 0;
}

int main(int argc, char **argv)
{
	const char *update = getenv("GOLDEN_UPDATE");
	int failed = 0;

	if (argc == 2)
		return dump(argv[1]);
	for (size_t i = 0; i < CASES; i++)
		failed += check(cases[i], update && *update == '1');
	failed += count_strangers();
	if (failed)
		fprintf(stderr,
			"%d files differ; after a look at each, make golden-update accepts them\n",
			failed);
	return failed ? 1 : 0;
}
