/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/recording_facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/search.h"
#include "base/vec.h"

#define FACTS_MAX     4096 /* a damaged recording must not make searches expensive */
#define BOOKS_CPU_MAX 65536

struct fact {
	char *key, *value;
};

struct cpu_account {
	uint32_t cpu;
	struct profile_cpu_books now, begin; /* of the window */
};

struct recording_facts {
	VEC(struct fact) facts;		  /* in the order in which they were told first */
	VEC(struct cpu_account) accounts; /* by cpu */
	uint64_t start, period, fallback_period;
	bool anchored;
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
	vec_free(&f->facts);
	vec_free(&f->accounts);
	free(f);
}

/* ---- facts ----------------------------------------------------------------------------------- */

static int keep_fact(struct recording_facts *f, const char *key, const char *value)
{
	struct fact fact = {strdup(key), strdup(value)};

	if (!fact.key || !fact.value || vec_push(&f->facts, fact)) {
		free(fact.key);
		free(fact.value);
		return -ENOMEM;
	}
	return 0;
}

static int replace_fact(struct recording_facts *f, const char *key, const char *value)
{
	for (size_t i = 0; i < f->facts.count; i++) {
		struct fact *fact = &f->facts.data[i];
		char *copy;

		if (strcmp(fact->key, key))
			continue;
		copy = strdup(value);
		if (!copy)
			return -ENOMEM;
		free(fact->value);
		fact->value = copy;
		return 0;
	}
	return f->facts.count < FACTS_MAX ? keep_fact(f, key, value) : 0;
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

uint64_t recording_facts__period(const struct recording_facts *f)
{
	return f->period ? f->period : f->fallback_period;
}

bool recording_facts__first_anchor(const struct recording_facts *f, struct clock_moment *moment)
{
	*moment = f->first;
	return f->anchored;
}

bool recording_facts__last_anchor(const struct recording_facts *f, struct clock_moment *moment)
{
	*moment = f->last;
	return f->anchored;
}

/* ---- sample accounting ----------------------------------------------------------------------- */

static struct profile_cpu_books books_of(const struct books_event *e)
{
	struct profile_cpu_books books = {
		.cpu = e->cpu,
		.period = e->period,
		.time_enabled = e->time_enabled,
		.time_running = e->time_running,
		.due = e->period ? e->time_running / e->period : 0,
		.received = e->received,
	};

	memcpy(books.count, e->count, sizeof(books.count));
	return books;
}

/* Where the account of this CPU is, or would be. */
static size_t account_index(const struct recording_facts *f, uint32_t cpu)
{
	return partition_point(f->accounts.data, f->accounts.count, a, a->cpu < cpu);
}

static const struct cpu_account *find_account(const struct recording_facts *f, uint32_t cpu)
{
	size_t at = account_index(f, cpu);

	return at < f->accounts.count && f->accounts.data[at].cpu == cpu ? &f->accounts.data[at]
									 : NULL;
}

int recording_facts__books(struct recording_facts *f, const struct books_event *e)
{
	size_t at = account_index(f, e->cpu);
	struct cpu_account account = {.cpu = e->cpu};

	if (e->cpu >= BOOKS_CPU_MAX)
		return 0;
	if (!f->period)
		f->period = e->period;
	if (at == f->accounts.count || f->accounts.data[at].cpu != e->cpu) {
		if (vec_push(&f->accounts, account))
			return -ENOMEM;
		memmove(&f->accounts.data[at + 1], &f->accounts.data[at],
			(f->accounts.count - 1 - at) * sizeof(account));
		f->accounts.data[at] = account;
	}
	f->accounts.data[at].now = books_of(e);
	return 0;
}

struct profile_cpu_books recording_facts__window_books(const struct recording_facts *f,
						       const struct books_event *e)
{
	const struct cpu_account *account = find_account(f, e->cpu);
	struct profile_cpu_books books = books_of(e);

	if (!account)
		return books;
	books.time_enabled -= account->begin.time_enabled;
	books.time_running -= account->begin.time_running;
	books.due -= account->begin.due;
	books.received -= account->begin.received;
	for (int line = 0; line < BOOK_COUNT; line++)
		books.count[line] -= account->begin.count[line];
	return books;
}

/* ---- windows --------------------------------------------------------------------------------- */

int recording_facts__begin_window(struct recording_facts *f, struct profile_builder *builder)
{
	struct profile *session = profile_builder__session(builder);

	for (size_t i = 0; i < f->facts.count; i++)
		profile_builder__meta(builder, f->facts.data[i].key, f->facts.data[i].value);
	for (size_t i = 0; i < f->accounts.count; i++)
		f->accounts.data[i].begin = f->accounts.data[i].now;
	session->tsc_khz = f->tsc_khz;
	session->clock_epochs = f->anchored;
	return profile_builder__error(builder);
}
