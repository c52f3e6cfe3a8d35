/* SPDX-License-Identifier: BSD-2-Clause */
#include "world/recording_facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/minmax.h"
#include "base/parse.h"
#include "world/recorder.h"

#define VISITS_LIMIT (1ull << 56) /* of hostile recordings */
#define TIMES_LIMIT  (1ull << 56)

struct fact {
	char *key, *value;
};

DEFINE_MAP_BY_STRING(fact_map, struct fact, key);

/* The books of one CPU. */
struct cpu_account {
	struct profile_cpu_books now, begin; /* of the window */
	uint64_t due_before, running_before; /* when the period changed last */
};

DEFINE_MAP_BY(account_map, struct cpu_account, uint32_t, now.cpu);

struct recording_facts {
	struct fact_map facts; /* in the order of their first reports */
	struct account_map accounts;
	struct visit_books_event visits, visits_begin; /* of the window */
	uint64_t start, period, fallback_period;
	bool anchored, marks_interrupts;
	struct clock_moment first, last;
	uint64_t tsc_khz;
};

struct recording_facts *recording_facts__new(void)
{
	return calloc(1, sizeof(struct recording_facts));
}

void recording_facts__free(struct recording_facts *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->facts.count; i++) {
		free(f->facts.data[i].key);
		free(f->facts.data[i].value);
	}
	fact_map__fini(&f->facts);
	account_map__fini(&f->accounts);
	free(f);
}

/* ---- facts ----------------------------------------------------------------------------------- */

static int keep_fact(struct recording_facts *f, const char *key, const char *value)
{
	struct fact fact = {strdup(key), strdup(value)};

	if (fact.key && fact.value && fact_map__need(&f->facts, &fact, NULL))
		return 0;
	free(fact.key);
	free(fact.value);
	return -ENOMEM;
}

static int replace_fact(struct recording_facts *f, const char *key, const char *value)
{
	struct fact *known = fact_map__find(&f->facts, key);
	char *copy;

	if (!known)
		return f->facts.count < PROFILE_META_MAX ? keep_fact(f, key, value) : 0;
	copy = strdup(value);
	if (!copy)
		return -ENOMEM;
	free(known->value);
	known->value = copy;
	return 0;
}

const char *recording_facts__find(const struct recording_facts *f, const char *key)
{
	const struct fact *fact = fact_map__find(&f->facts, key);

	return fact ? fact->value : NULL;
}

int recording_facts__meta(struct recording_facts *f, const char *key, const char *value)
{
	uint64_t number;

	if (!strcmp(key, META_SAMPLING_START)) {
		if (!f->start && !parse_u64(value, 1, UINT64_MAX, &number))
			f->start = number;
	} else if (!strcmp(key, META_PERIOD)) {
		if (!parse_u64(value, 1, UINT64_MAX, &number))
			f->period = number;
	} else if (!strcmp(key, META_INTERRUPTS)) {
		f->marks_interrupts = true;
	} else if (!strcmp(key, META_HZ)) {
		if (!f->fallback_period && !parse_u64(value, 1, 1000000000, &number))
			f->fallback_period = 1000000000 / number;
	}
	return replace_fact(f, key, value);
}

void recording_facts__anchor(struct recording_facts *f, const struct clock_anchor_event *e)
{
	f->last = (struct clock_moment){e->monotonic, e->realtime};
	if (!f->anchored)
		f->first = f->last;
	f->anchored = true;
	if (e->tsc_khz)
		f->tsc_khz = e->tsc_khz;
}

uint64_t recording_facts__start(const struct recording_facts *f)
{
	return f->start;
}

bool recording_facts__marks_interrupts(const struct recording_facts *f)
{
	return f->marks_interrupts;
}

uint64_t recording_facts__period(const struct recording_facts *f)
{
	return f->period ? f->period : f->fallback_period;
}

bool recording_facts__anchors(const struct recording_facts *f, struct clock_moment *first,
			      struct clock_moment *last)
{
	*first = f->first;
	*last = f->last;
	return f->anchored;
}

/* ---- sample accounting ----------------------------------------------------------------------- */

/* Its time only grows; in a damaged recording it may not. */
static uint64_t ticks_due(const struct cpu_account *account, const struct books_event *e)
{
	return e->period ? account->due_before +
				   (e->time_running - account->running_before) / e->period
			 : e->counted;
}

static struct profile_cpu_books books_of(const struct cpu_account *account,
					 const struct books_event *e)
{
	struct profile_cpu_books books = {
		.cpu = e->cpu,
		.period = e->period,
		.time_enabled = e->time_enabled,
		.time_running = e->time_running,
		.due = ticks_due(account, e),
		.counts_events = !e->period && e->counted,
		.received = e->received,
	};

	memcpy(books.count, e->count, sizeof(books.count));
	memcpy(books.times, account->now.times, sizeof(books.times));
	return books;
}

/* A period begins at the last reading of the one before, which gets all of the ticks until then. */
static void note_period(struct cpu_account *account, const struct books_event *e)
{
	if (e->time_running < account->running_before)
		account->due_before = account->running_before = 0;
	if (!account->now.period || account->now.period == e->period ||
	    e->time_running < account->now.time_running)
		return;
	account->due_before = account->now.due;
	account->running_before = account->now.time_running;
}

int recording_facts__books(struct recording_facts *f, const struct books_event *e)
{
	struct cpu_account *account;

	if (!f->period)
		f->period = e->period;
	account = account_map__need(&f->accounts, &(struct cpu_account){.now.cpu = e->cpu}, NULL);
	if (!account)
		return -ENOMEM;
	note_period(account, e);
	account->now = books_of(account, e);
	return 0;
}

/* Its books follow. */
int recording_facts__cpu_times(struct recording_facts *f, const struct cpu_times_event *e)
{
	struct cpu_account *account =
		account_map__need(&f->accounts, &(struct cpu_account){.now.cpu = e->cpu}, NULL);

	if (!account)
		return -ENOMEM;
	for (int i = 0; i < CPU_TIME_COUNT; i++)
		account->now.times[i] = min_u64(e->time[i], TIMES_LIMIT);
	return 0;
}

struct profile_cpu_books recording_facts__window_books(const struct recording_facts *f,
						       const struct books_event *e)
{
	const struct cpu_account none = {}, *account = account_map__find(&f->accounts, e->cpu);
	struct profile_cpu_books books = books_of(account ? account : &none, e);

	if (!account)
		return books;
	books.period_changed = account->running_before > account->begin.time_running;
	books.time_enabled -= account->begin.time_enabled;
	books.time_running -= account->begin.time_running;
	books.due -= account->begin.due;
	books.received -= account->begin.received;
	for (int line = 0; line < BOOK_COUNT; line++)
		books.count[line] -= account->begin.count[line];
	for (int i = 0; i < CPU_TIME_COUNT; i++)
		books.times[i] -= min_u64(account->begin.times[i], books.times[i]);
	return books;
}

static uint64_t grown(uint64_t since, uint64_t now)
{
	return now > since ? min_u64(now - since, VISITS_LIMIT) : 0;
}

/* In the middle of a visit some looks have no result yet: they count in the next books. */
struct profile_visits recording_facts__visits(struct recording_facts *f,
					      const struct visit_books_event *e)
{
	const struct visit_books_event *begin = &f->visits_begin;
	struct profile_visits visits = {.hz = e->hz, .cpu = grown(begin->cpu, e->cpu)};

	f->visits = *e;
	for (int line = 0; line < VISIT_LINE_COUNT; line++)
		visits.count[line] = grown(begin->count[line], e->count[line]);
	visits.count[VISIT_LINE_LOOKS] = 0;
	for (int line = VISIT_LINE_LOOKS + 1; line < VISIT_LINE_COUNT; line++)
		visits.count[VISIT_LINE_LOOKS] += visits.count[line];
	return visits;
}

/* ---- windows --------------------------------------------------------------------------------- */

int recording_facts__begin_window(struct recording_facts *f, struct profile_builder *builder)
{
	struct profile *session = profile_builder__session(builder);

	for (size_t i = 0; i < f->facts.count; i++)
		profile_builder__meta(builder, f->facts.data[i].key, f->facts.data[i].value);
	for (size_t i = 0; i < f->accounts.count; i++)
		f->accounts.data[i].begin = f->accounts.data[i].now;
	f->visits_begin = f->visits;
	session->tsc_khz = f->tsc_khz;
	session->clock_epochs = f->anchored;
	return profile_builder__error(builder);
}
