/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/capture/tick_source.h"

#include <errno.h>
#include <sched.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clocks.h"
#include "base/parse.h"
#include "live/capture/perf_events.h"
#include "live/capture/pmu.h"

#define LISTED_HZ  99
#define MODIFIERS  "ukp"
#define KIND_CLOCK "clock"

/* ---- events by name -------------------------------------------------------------------------- */

struct named_event {
	const char *name, *alias, *kind;
	uint32_t type;
	uint64_t config;
};

#define SOFTWARE(name, alias, id)                                                                  \
	{                                                                                          \
		name, alias, "software", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##id                    \
	}
#define HARDWARE(name, alias, id)                                                                  \
	{                                                                                          \
		name, alias, "hardware", PERF_TYPE_HARDWARE, PERF_COUNT_HW_##id                    \
	}

static const struct named_event named_events[] = {
	{TICK_SOURCE_DEFAULT, "", KIND_CLOCK, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
	{"task-clock", "", KIND_CLOCK, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
	SOFTWARE("page-faults", "faults", PAGE_FAULTS),
	SOFTWARE("minor-faults", "", PAGE_FAULTS_MIN),
	SOFTWARE("major-faults", "", PAGE_FAULTS_MAJ),
	SOFTWARE("context-switches", "cs", CONTEXT_SWITCHES),
	SOFTWARE("cpu-migrations", "migrations", CPU_MIGRATIONS),
	SOFTWARE("alignment-faults", "", ALIGNMENT_FAULTS),
	SOFTWARE("emulation-faults", "", EMULATION_FAULTS),
	HARDWARE("cycles", "cpu-cycles", CPU_CYCLES),
	HARDWARE("instructions", "", INSTRUCTIONS),
	HARDWARE("cache-references", "", CACHE_REFERENCES),
	HARDWARE("cache-misses", "", CACHE_MISSES),
	HARDWARE("branches", "branch-instructions", BRANCH_INSTRUCTIONS),
	HARDWARE("branch-misses", "", BRANCH_MISSES),
	HARDWARE("bus-cycles", "", BUS_CYCLES),
	HARDWARE("stalled-cycles-frontend", "idle-cycles-frontend", STALLED_CYCLES_FRONTEND),
	HARDWARE("stalled-cycles-backend", "idle-cycles-backend", STALLED_CYCLES_BACKEND),
	HARDWARE("ref-cycles", "", REF_CPU_CYCLES),
};
#define NAMED_EVENTS (sizeof(named_events) / sizeof(named_events[0]))

/* By enum perf_hw_cache_id. */
static const char *const caches[PERF_COUNT_HW_CACHE_MAX] = {"L1-dcache", "L1-icache", "LLC", "dTLB",
							    "iTLB",	 "branch",    "node"};
static const struct {
	const char *name;
	uint64_t config; /* operation and result */
} cache_operations[] = {
#define OPERATION(name, operation, result)                                                         \
	{                                                                                          \
		name, PERF_COUNT_HW_CACHE_OP_##operation << 8 |                                    \
			      PERF_COUNT_HW_CACHE_RESULT_##result << 16                            \
	}
	OPERATION("loads", READ, ACCESS),	   OPERATION("load-misses", READ, MISS),
	OPERATION("stores", WRITE, ACCESS),	   OPERATION("store-misses", WRITE, MISS),
	OPERATION("prefetches", PREFETCH, ACCESS), OPERATION("prefetch-misses", PREFETCH, MISS),
#undef OPERATION
};
#define CACHE_OPERATIONS (sizeof(cache_operations) / sizeof(cache_operations[0]))

static void take_named(const struct named_event *event, struct tick_source *source)
{
	snprintf(source->name, sizeof(source->name), "%s", event->name);
	source->type = event->type;
	source->config[0] = event->config;
	source->clock = !strcmp(event->kind, KIND_CLOCK);
}

/* Number `i` of all events of caches: "LLC-load-misses". False: there are no more. */
static bool take_cache_event(size_t i, struct tick_source *source)
{
	size_t cache = i / CACHE_OPERATIONS, operation = i % CACHE_OPERATIONS;

	if (cache >= PERF_COUNT_HW_CACHE_MAX)
		return false;
	snprintf(source->name, sizeof(source->name), "%s-%s", caches[cache],
		 cache_operations[operation].name);
	source->type = PERF_TYPE_HW_CACHE;
	source->config[0] = cache | cache_operations[operation].config;
	return true;
}

static bool find_named(const char *name, struct tick_source *source)
{
	struct tick_source cache = {};

	for (size_t i = 0; i < NAMED_EVENTS; i++) {
		if (strcmp(name, named_events[i].name) &&
		    (!*name || strcmp(name, named_events[i].alias)))
			continue;
		take_named(&named_events[i], source);
		return true;
	}
	for (size_t i = 0; take_cache_event(i, &cache); i++) {
		if (strcmp(name, cache.name))
			continue;
		*source = cache;
		return true;
	}
	return false;
}

/* "r13c": the CPU's own number of an event. */
static bool find_raw(const char *name, struct tick_source *source)
{
	const char *digits = name + 1;

	if (*name != 'r' || parse_hex(&digits, &source->config[0]) || *digits)
		return false;
	source->type = PERF_TYPE_RAW;
	snprintf(source->name, sizeof(source->name), "%s", name);
	return true;
}

/* ---- what -e says ---------------------------------------------------------------------------- */

static int refuse_unknown(const char *name, struct failure *failure)
{
	char names[400];
	size_t used = 0;

	if (strchr(name, ':'))
		return fail(failure, -ENOENT,
			    "unknown event \"%s\": tracepoints are not supported, and of modifiers "
			    "u, k and p",
			    name);
	for (size_t i = 0; i < NAMED_EVENTS && used < sizeof(names); i++) {
		if (named_events[i].type != PERF_TYPE_SOFTWARE)
			continue;
		used += snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "",
				 named_events[i].name);
	}
	fail(failure, -ENOENT, "unknown event \"%s\"", name);
	return fail_remedy(failure, -ENOENT,
			   "sysprof check --events lists what this machine has; everywhere: %s",
			   names);
}

/* What follows the last slash or colon: each letter once, but p up to three times. */
static bool take_modifiers(const char *letters, struct tick_source *source)
{
	bool user = false, kernel = false;

	for (; *letters; letters++) {
		if (*letters == 'u' && !user)
			user = true;
		else if (*letters == 'k' && !kernel)
			kernel = true;
		else if (*letters == 'p' && source->precise < 3)
			source->precise++;
		else
			return false;
	}
	source->exclude_kernel = user && !kernel;
	source->exclude_user = kernel && !user;
	return true;
}

/* Where the modifiers begin; the end of the text if there are none. */
static size_t find_modifiers(const char *text)
{
	const char *slash = strrchr(text, '/'), *colon = strrchr(text, ':');

	if (colon && (!slash || colon > slash) && colon[1] &&
	    strspn(colon + 1, MODIFIERS) == strlen(colon + 1))
		return colon - text;
	if (slash && slash[1] && slash > strchr(text, '/'))
		return slash + 1 - text;
	return strlen(text);
}

int tick_source__find(const char *text, struct tick_source *source, struct failure *failure)
{
	struct tick_source found = {};
	char name[TICK_SOURCE_NAME_MAX];
	size_t size = find_modifiers(text);
	const char *modifiers = text[size] == ':' ? text + size + 1 : text + size;

	if (strlen(text) + 2 > sizeof(name))
		return fail(failure, -ENOENT, "unknown event: its name is too long");
	memcpy(name, text, size);
	name[size] = '\0';
	if (strchr(name, '/')) {
		int err = pmu__find(NULL, name, &found, failure);

		if (err)
			return err;
	} else if (!find_named(name, &found) && !find_raw(name, &found)) {
		return refuse_unknown(text, failure);
	}
	if (!take_modifiers(modifiers, &found))
		return refuse_unknown(text, failure);
	if (found.clock && *modifiers)
		return fail(
			failure, -EINVAL,
			"the clock \"%s\" has no modifiers: --no-kernel leaves out kernel stacks",
			found.name);
	if (*modifiers)
		snprintf(found.name + strlen(found.name), sizeof(found.name) - strlen(found.name),
			 ":%s", modifiers);
	*source = found;
	return 0;
}

uint64_t tick_source__period(const struct tick_source *source, const struct tick_rate *rate)
{
	if (!source->clock)
		return 0;
	return rate->period ? rate->period : NS_PER_SECOND / rate->hz;
}

int tick_event_open(const struct tick_source *source, int cpu, const struct tick_rate *rate)
{
	struct perf_event_attr attr = {
		.type = source->type,
		.config = source->config[0],
		.config1 = source->config[1],
		.config2 = source->config[2],
		.disabled = 1,
		.exclude_user = source->exclude_user,
		.exclude_kernel = source->exclude_kernel,
		.precise_ip = source->precise,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};

	if (source->clock || rate->period) {
		attr.sample_period = source->clock ? tick_source__period(source, rate)
						   : rate->period;
	} else {
		attr.freq = 1;
		attr.sample_freq = rate->hz;
	}
	return perf_event_open_attr(&attr, -1, cpu);
}

const char *tick_source__refusal(int err)
{
	switch (-err) {
	case ENOENT:
	case ENODEV:
	case ENXIO:
		return "this machine's PMU has no such event";
	case EINVAL:
	case EOPNOTSUPP:
		return "it can be counted, not sampled";
	case EACCES:
	case EPERM:
		return "not permitted: CAP_PERFMON, or kernel.perf_event_paranoid";
	case EBUSY:
		return "its counter is in use";
	}
	return strerror(-err);
}

/* ---- what there is --------------------------------------------------------------------------- */

struct listing {
	int (*take)(void *context, const struct listed_event *event);
	void *context;
	int cpu;
};

static int list_event(const struct listing *l, const char *kind, const char *name,
		      const struct tick_source *source, const struct failure *failure)
{
	struct listed_event event = {.kind = kind};
	int fd = source ? tick_event_open(source, l->cpu, &(struct tick_rate){.hz = LISTED_HZ})
			: -1;

	snprintf(event.name, sizeof(event.name), "%s", name);
	event.available = fd >= 0;
	if (!event.available)
		snprintf(event.detail, sizeof(event.detail), "%s",
			 source ? tick_source__refusal(fd) : failure->what);
	else
		close(fd);
	return l->take(l->context, &event);
}

static int list_of_pmu(void *context, const char *name)
{
	struct tick_source source = {};
	struct failure failure = {};
	int err = pmu__find(NULL, name, &source, &failure);

	return list_event(context, "pmu", name, err ? NULL : &source, &failure);
}

int tick_sources__list(int (*take)(void *context, const struct listed_event *event), void *context)
{
	struct listing l = {.take = take, .context = context, .cpu = sched_getcpu()};
	int err = 0;

	for (size_t i = 0; i < NAMED_EVENTS && !err; i++) {
		struct tick_source source = {};

		take_named(&named_events[i], &source);
		err = list_event(&l, named_events[i].kind, source.name, &source, NULL);
	}
	for (size_t i = 0; !err; i++) {
		struct tick_source source = {};

		if (!take_cache_event(i, &source))
			break;
		err = list_event(&l, "cache", source.name, &source, NULL);
	}
	return err ?: pmu__list(NULL, list_of_pmu, &l);
}
