/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/in/perf_events.h"

#include <stdio.h>

#define MODIFIERS "ukhGHpPSDIWeb"
#define PRECISION "pP" /* how exact an address is, not what is counted */

static bool are_modifiers(struct span s)
{
	for (const char *at = s.at; at < s.end; at++)
		if (!*at || !strchr(MODIFIERS, *at))
			return false;
	return s.at < s.end;
}

/* "cpu/cycles/u" without terms of a PMU: the name in it and what follows. */
static bool split_pmu(struct span *name, struct span *modifiers)
{
	static const char *const pmus[] = {"cpu/", "cpu_core/", "cpu_atom/"};

	for (size_t i = 0; i < sizeof(pmus) / sizeof(*pmus); i++) {
		const char *at = name->at + strlen(pmus[i]), *slash;

		if (!span_begins(*name, pmus[i]))
			continue;
		slash = memchr(at, '/', (size_t)(name->end - at));
		if (!slash || memchr(at, '=', (size_t)(slash - at)) ||
		    memchr(at, ',', (size_t)(slash - at)))
			return false;
		*modifiers = (struct span){slash + 1, name->end};
		*name = (struct span){at, slash};
		return true;
	}
	return false;
}

/* Probes have names that a user chooses. */
static void split_modifiers(struct span *name, struct span *modifiers)
{
	const char *colon = memrchr(name->at, ':', span_size(*name));

	*modifiers = (struct span){name->end, name->end};
	if (split_pmu(name, modifiers) || !colon || span_begins(*name, "probe"))
		return;
	if (are_modifiers((struct span){colon + 1, name->end})) {
		*modifiers = (struct span){colon + 1, name->end};
		name->end = colon;
	}
}

void perf_event_name(struct span name, char *text)
{
	struct span modifiers;
	char kept[sizeof(MODIFIERS)] = "";
	size_t count = 0;

	split_modifiers(&name, &modifiers);
	for (const char *at = modifiers.at; at < modifiers.end; at++)
		if (count + 1 < sizeof(kept) && *at != ':' && !strchr(PRECISION, *at))
			kept[count++] = *at;
	snprintf(text, PERF_EVENT_NAME_SIZE, "%.*s%s%s",
		 (int)(span_size(name) < PERF_EVENT_NAME_SIZE ? span_size(name)
							      : PERF_EVENT_NAME_SIZE),
		 name.at, count ? ":" : "", kept);
}

static bool is_any(struct span name, const char *const *names)
{
	while (*names && !span_is(name, *names))
		names++;
	return *names;
}

bool perf_event_is_tracepoint(const char *text)
{
	struct span name = {text, text + strlen(text)}, modifiers;

	split_modifiers(&name, &modifiers);
	return memchr(name.at, ':', span_size(name));
}

enum perf_event_rank perf_event_rank(const char *text)
{
	static const char *const clocks[] = {"cpu-clock", "task-clock", NULL};
	static const char *const cycles[] = {"cycles", "cpu-cycles", NULL};
	static const char *const software[] = {
		"page-faults",	   "faults",	       "minor-faults",
		"major-faults",	   "context-switches", "cs",
		"cpu-migrations",  "migrations",       "alignment-faults",
		"cgroup-switches", "emulation-faults", "bpf-output",
		"dummy",	   "offcpu-time",      NULL};
	struct span name = {text, text + strlen(text)}, modifiers;

	split_modifiers(&name, &modifiers);
	if (is_any(name, clocks))
		return PERF_EVENT_CLOCK;
	if (is_any(name, cycles))
		return PERF_EVENT_CYCLES;
	return is_any(name, software) || perf_event_is_tracepoint(text) ? PERF_EVENT_SOFTWARE
									: PERF_EVENT_HARDWARE;
}
