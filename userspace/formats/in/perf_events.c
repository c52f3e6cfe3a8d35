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

static bool is_any(struct span name, const char *const *names)
{
	while (*names && !span_is(name, *names))
		names++;
	return *names;
}

/* "freq=99": how an event is sampled, not what is counted. */
static bool is_sampling_term(struct span term)
{
	static const char *const terms[] = {
		"freq",	     "period",	    "call-graph",      "stack-size", "max-stack",
		"time",	     "inherit",	    "no-inherit",      "overwrite",  "no-overwrite",
		"percore",   "branch_type", "aux-sample-size", "aux-output", "aux-action",
		"metric-id", "nr",	    "ratio-to-prev",   "cpu",	     NULL};
	const char *equals = memchr(term.at, '=', span_size(term));

	return is_any((struct span){term.at, equals ? equals : term.end}, terms);
}

#define CONFIG	      "config="
#define CONFIG_DIGITS 4

/* What the kernel counts as the software event of a number, "config=0x1"; NULL: nothing. */
static const char *software_event(struct span term)
{
	static const char *const events[] = {
		"cpu-clock",	    "task-clock",   "page-faults",  "context-switches",
		"cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
		"emulation-faults", "dummy",	    "bpf-output",   "cgroup-switches"};
	struct span number = {term.at + strlen(CONFIG), term.end};
	bool is_hex = span_begins(number, "0x");
	uint64_t value = 0;

	number.at += is_hex ? 2 : 0;
	if (number.at == number.end || span_size(number) > CONFIG_DIGITS)
		return NULL;
	for (; number.at < number.end; number.at++) {
		if (is_hex ? hex_digit(*number.at) < 0 : !is_digit(*number.at))
			return NULL;
		value = value * (is_hex ? 16 : 10) + (uint64_t)hex_digit(*number.at);
	}
	return value < sizeof(events) / sizeof(*events) ? events[value] : NULL;
}

/* "software/config=1/", "cpu-clock/config=1/": of the PMU of software events the number is the event. */
static bool take_config(struct span before, struct span term, struct span *name)
{
	static const char *const software[] = {"software",    "cpu-clock",	  "task-clock",
					       "page-faults", "context-switches", NULL};
	const char *event = is_any(before, software) ? software_event(term) : NULL;

	if (event)
		*name = (struct span){event, event + strlen(event)};
	return event;
}

/* The one term that is not about sampling; empty: there is none. false: there are several, or it has a value. */
static bool find_event_term(struct span terms, struct span *found)
{
	*found = (struct span){terms.at, terms.at};
	while (terms.at < terms.end) {
		const char *comma = memchr(terms.at, ',', span_size(terms));
		struct span term = {terms.at, comma ? comma : terms.end};

		terms.at = comma ? comma + 1 : terms.end;
		if (is_sampling_term(term))
			continue;
		if (found->at < found->end ||
		    (memchr(term.at, '=', span_size(term)) && !span_begins(term, CONFIG)))
			return false;
		*found = term;
	}
	return true;
}

/* "cpu/cycles/u", "cpu-clock/freq=99/": the name of the event and what follows. */
static bool split_terms(struct span *name, struct span *modifiers)
{
	static const char *const pmus[] = {"cpu", "cpu_core", "cpu_atom", "software", NULL};
	const char *slash = memchr(name->at, '/', span_size(*name));
	const char *end = slash ? memchr(slash + 1, '/', (size_t)(name->end - slash - 1)) : NULL;
	struct span before, term;
	bool is_pmu;

	if (!end || !find_event_term((struct span){slash + 1, end}, &term))
		return false;
	before = (struct span){name->at, slash};
	*modifiers = (struct span){end + 1, name->end};
	if (span_begins(term, CONFIG))
		return take_config(before, term, name);
	is_pmu = is_any(before, pmus);
	if (is_pmu != (term.at < term.end) || before.at == before.end)
		return false;
	*name = is_pmu ? term : before;
	return true;
}

/* Probes have names that a user chooses. */
static void split_modifiers(struct span *name, struct span *modifiers)
{
	const char *colon = memrchr(name->at, ':', span_size(*name));

	if (split_terms(name, modifiers))
		return;
	*modifiers = (struct span){name->end, name->end};
	if (!colon || span_begins(*name, "probe"))
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
