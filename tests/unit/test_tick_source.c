/* SPDX-License-Identifier: BSD-2-Clause */
/* Events by perf's names, and those of PMUs as a made-up sysfs describes them. */
#include <linux/perf_event.h>

#include "unit.h"
#include "live/capture/pmu.h"
#include "live/capture/tick_source.h"

static struct tick_source find(const char *name)
{
	struct tick_source source = {};
	struct failure failure = {};

	assert_int_equal(tick_source__find(name, &source, &failure), 0);
	return source;
}

static void assert_refused(const char *name, int error, const char *why)
{
	struct tick_source source = {.type = 77};
	struct failure failure = {};

	assert_int_equal(tick_source__find(name, &source, &failure), error);
	assert_int_equal(source.type, 77);
	if (!strstr(failure.what, why) && !strstr(failure.remedy, why))
		fail_msg("%s: \"%s\"; \"%s\"", name, failure.what, failure.remedy);
}

TEST(events_have_names)
{
	static const struct {
		const char *text, *name;
		uint32_t type;
		uint64_t config;
	} cases[] = {
		{"cpu-clock", "cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
		{"faults", "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
		{"cs", "context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
		{"cpu-cycles", "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
		{"LLC-load-misses", "LLC-load-misses", PERF_TYPE_HW_CACHE,
		 PERF_COUNT_HW_CACHE_LL | PERF_COUNT_HW_CACHE_RESULT_MISS << 16},
		{"dTLB-stores", "dTLB-stores", PERF_TYPE_HW_CACHE,
		 PERF_COUNT_HW_CACHE_DTLB | PERF_COUNT_HW_CACHE_OP_WRITE << 8},
		{"r1a3c", "r1a3c", PERF_TYPE_RAW, 0x1a3c},
	};
	struct tick_source source = {};
	struct failure failure = {};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		source = find(cases[i].text);

		assert_string_equal(source.name, cases[i].name);
		assert_int_equal(source.type, cases[i].type);
		assert_int_equal(source.config[0], cases[i].config);
		assert_int_equal(source.clock, i == 0);
	}
	assert_refused("cycle", -ENOENT, "\"cycle\"");
	assert_refused("cycle", -ENOENT, "everywhere: cpu-clock, task-clock, page-faults");
	/* a machine without a PMU has none of the others */
	assert_int_equal(tick_source__find("cycles,instructions", &source, &failure), -ENOENT);
	assert_non_null(strstr(failure.remedy, "emulation-faults"));
	assert_null(strstr(failure.remedy, "instructions"));
	assert_refused("", -ENOENT, "unknown event");
	assert_refused("r", -ENOENT, "unknown event");
	assert_refused("sched:sched_switch", -ENOENT, "tracepoints are not supported");
	assert_refused("no-such-pmu/x/", -ENOENT, "no PMU \"no-such-pmu\"");
	assert_refused("../x/y/", -ENOENT, "no PMU");
}

TEST(modifiers_say_where_it_counts)
{
	struct tick_source source = find("cycles:u");

	assert_true(source.exclude_kernel && !source.exclude_user);
	assert_string_equal(source.name, "cycles:u");
	source = find("faults:k");
	assert_true(source.exclude_user && !source.exclude_kernel);
	assert_string_equal(source.name, "page-faults:k");
	source = find("instructions:ukpp");
	assert_true(!source.exclude_user && !source.exclude_kernel && source.precise == 2);
	assert_refused("cycles:G", -ENOENT, "of modifiers u, k and p");
	assert_refused("cycles:uu", -ENOENT, "of modifiers u, k and p");
	assert_refused("cycles:pppp", -ENOENT, "of modifiers u, k and p");
	assert_refused("cpu-clock:u", -EINVAL, "no modifiers");
}

TEST(rates_are_periods_of_clocks)
{
	struct tick_source clock = find("task-clock"), faults = find("page-faults");

	assert_int_equal(tick_source__period(&clock, &(struct tick_rate){.hz = 1000}), 1000000);
	assert_int_equal(tick_source__period(&clock, &(struct tick_rate){1000, 77000}), 77000);
	assert_int_equal(tick_source__period(&faults, &(struct tick_rate){1000, 77000}), 0);
}

/* ---- PMUs ------------------------------------------------------------------------------------ */

static char root[256];

static void put(const char *name, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "%s\n", text);
	fclose(f);
}

static void make_pmu(void)
{
	const char *scratch = getenv("SCRATCH");
	static const char *const directories[] = {"", "/core", "/core/events", "/core/format"};
	char path[512];

	snprintf(root, sizeof(root), "%s/pmus", scratch ? scratch : "/tmp");
	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", root, directories[i]);
		assert_false(mkdir(path, 0700) && errno != EEXIST);
	}
	put("core/type", "4");
	put("core/format/event", "config:0-7,32-35");
	put("core/format/umask", "config:8-15");
	put("core/format/edge", "config:18");
	put("core/format/latency", "config1:0-15");
	put("core/format/odd", "nothing:1");
	put("core/events/mem-loads", "event=0xcd,umask=0x1,latency=3");
	put("core/events/mem-loads.unit", "MiB");
	put("core/events/asks", "event=0x1,umask=?");
	put("core/events/loop", "loop");
}

static int find_in_pmu(const char *text, struct tick_source *source, struct failure *failure)
{
	*source = (struct tick_source){};
	return pmu__find(root, text, source, failure);
}

TEST_WITH(fields_are_put_into_their_bits, make_pmu, NULL)
{
	static const struct {
		const char *text;
		uint64_t config, config1;
	} cases[] = {
		{"core/event=0x3c/", 0x3c, 0},
		{"core/event=0x53c,umask=7,edge/", 0x3c | 7 << 8 | 1 << 18 | 5ull << 32, 0},
		{"core/mem-loads/", 0xcd | 1 << 8, 3},
		{"core/mem-loads,edge=1/", 0xcd | 1 << 8 | 1 << 18, 3},
		{"core/config=0x1234,config1=9/", 0x1234, 9},
	};
	struct failure failure = {};
	struct tick_source source;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(find_in_pmu(cases[i].text, &source, &failure), 0);
		assert_int_equal(source.type, 4);
		assert_string_equal(source.name, cases[i].text);
		assert_int_equal(source.config[0], cases[i].config);
		assert_int_equal(source.config[1], cases[i].config1);
	}
}

TEST_WITH(wrong_terms_are_named, make_pmu, NULL)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"core/nope/", "no event or field \"nope\""},
		{"core/umask=256/", "the field has the bits 8-15"},
		{"core/edge=2/", "the field has the bits 18"},
		{"core/event=/", "not a number"},
		{"core/event=-1/", "not a number"},
		{"core/event=1x/", "not a number"},
		{"core/odd=1/", "\"nothing:1\""},
		{"core/asks/", "umask=NUMBER"},
		{"core/loop/", "no event or field \"loop\""},
		{"core/../type/", "no event or field \"../type\""},
		{"core/event=1", "is not PMU/EVENT/"},
		{"core/", "is not PMU/EVENT/"},
		{"other/event=1/", "no PMU \"other\""},
		{"./event=1/", "no PMU \".\""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct failure failure = {};
		struct tick_source source;

		assert_true(find_in_pmu(cases[i].text, &source, &failure) < 0);
		if (!strstr(failure.what, cases[i].why))
			fail_msg("%s: \"%s\"", cases[i].text, failure.what);
	}
}

static int count_names(void *context, const char *name)
{
	assert_true(!strcmp(name, "core/mem-loads/") || !strcmp(name, "core/asks/") ||
		    !strcmp(name, "core/loop/"));
	++*(int *)context;
	return 0;
}

TEST_WITH(events_of_a_pmu_are_listed, make_pmu, NULL)
{
	int count = 0;

	assert_int_equal(pmu__list(root, count_names, &count), 0);
	assert_int_equal(count, 3);
}

/* ---- this machine ---------------------------------------------------------------------------- */

static int look_at(void *context, const struct listed_event *event)
{
	assert_true(*event->name && *event->kind);
	assert_true(event->available || *event->detail);
	++*(int *)context;
	return 0;
}

TEST(this_machine_is_listed)
{
	int count = 0;

	assert_int_equal(tick_sources__list(look_at, &count), 0);
	assert_true(count > 40);
}
