/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/agent_check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agent/sink_list.h"
#include "capture/features.h"
#include "cli/commands.h"

#define SPOOL_ROOM (UINT64_C(64) << 20) /* a sink's */

static void print_finding(bool good, const char *name, const char *detail, const char *remedy)
{
	printf("  %-8s %-24s %s\n", good ? "ok" : "MISSING", name, detail);
	if (!good && *remedy)
		printf("  %-8s   fix: %s\n", "", remedy);
}

/* What sampling needs. False: it is impossible. */
static bool check_features(void)
{
	struct features *features;
	const struct feature *list;
	size_t count;
	bool can;

	if (features__probe(&features)) {
		print_finding(false, "features", "out of memory", "");
		return false;
	}
	list = features__list(features, &count);
	can = features__can_record(features);
	for (size_t i = 0; i < count; i++)
		if (!list[i].available && list[i].level != FEATURE_INFO)
			print_finding(false, list[i].name, list[i].detail, list[i].remedy);
	features__free(features);
	if (can)
		print_finding(true, "sampling", "possible", "");
	return can;
}

static bool check_spool(const struct agent_settings *settings)
{
	uint64_t wanted = SPOOL_ROOM * settings->sinks.count;
	struct statvfs fs;
	char detail[256];

	if (!settings->spool) {
		print_finding(true, "spool", "none: windows are kept in memory, four per sink", "");
		return true;
	}
	if (access(settings->spool, W_OK | X_OK) || statvfs(settings->spool, &fs)) {
		snprintf(detail, sizeof(detail), "%.150s: %s", settings->spool, strerror(errno));
		print_finding(false, "spool", detail,
			      "create the directory, owned by the agent's user (mode 0700)");
		return false;
	}
	snprintf(detail, sizeof(detail), "%.150s: %llu MB free, at most %llu MB are used",
		 settings->spool, (unsigned long long)(fs.f_bavail * fs.f_frsize >> 20),
		 (unsigned long long)(wanted >> 20));
	print_finding(fs.f_bavail * fs.f_frsize >= wanted, "spool", detail,
		      "free space, or choose another directory");
	return fs.f_bavail * fs.f_frsize >= wanted;
}

static bool check_sinks(const struct agent_settings *settings)
{
	bool good = settings->sinks.count > 0;

	if (!good)
		print_finding(false, "sink", "none", "--sink pyroscope:URL");
	for (size_t i = 0; i < settings->sinks.count; i++) {
		const struct sink_settings *sink = &settings->sinks.data[i];
		struct sink_options options;
		struct failure failure = {};
		int err;

		sink_options_of(sink, &options);
		err = sink__probe(&options, &failure);
		print_finding(!err, "sink", err ? failure.what : sink->to, failure.remedy);
		good &= !err;
	}
	return good;
}

int agent_check(const struct agent_settings *settings)
{
	bool good = check_features();

	good &= check_spool(settings);
	good &= check_sinks(settings);
	printf("\n%s\n", good ? "the agent can run here" : "see MISSING above");
	return good ? EXIT_DONE : EXIT_FAILED;
}
