/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/place_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clocks.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/order.h"
#include "tenants/quota.h"
#include "tenants/tenant_user.h"
#include "unwind/table_store.h"

#define ROOM		  (UNWIND_PLACES_SIZE - UNWIND_PLACES_ALIGN)
#define LEAST_SHARE	  (UNWIND_PLACES_SIZE / UNWIND_PROCESSES) /* the word is room, too */
#define RECLAIM_RETIRED	  100		/* places that are worth a wait for all CPUs … */
#define RECLAIM_PERIOD_NS 1000000000ull /* … this often */
#define EVICTED_AT_ONCE	  64		/* processes are evicted at most … */
#define EVICTED_BYTES                                                                              \
	(UNWIND_PLACES_SIZE / 16) /* … until so much is free: waiting takes milliseconds */
#define USERS_AT_ONCE 256	  /* whose users are looked up before one is chosen */

static void remove_at(struct extents *e, size_t i)
{
	e->free.count--;
	memmove(&e->free.data[i], &e->free.data[i + 1],
		(e->free.count - i) * sizeof(*e->free.data));
}

int extents__free(struct extents *e, uint64_t start, uint64_t size)
{
	size_t i = 0;
	int err = vec_reserve(&e->free, e->free.count + 1);

	if (err)
		return err;
	while (i < e->free.count && e->free.data[i].start < start)
		i++;
	memmove(&e->free.data[i + 1], &e->free.data[i],
		(e->free.count - i) * sizeof(*e->free.data));
	e->free.data[i] = (struct extent){start, size};
	e->free.count++;
	if (i + 1 < e->free.count && start + size == e->free.data[i + 1].start) {
		e->free.data[i].size += e->free.data[i + 1].size;
		remove_at(e, i + 1);
	}
	if (i && e->free.data[i - 1].start + e->free.data[i - 1].size == start) {
		e->free.data[i - 1].size += e->free.data[i].size;
		remove_at(e, i);
	}
	return 0;
}

int extents__take(struct extents *e, uint64_t size, uint64_t *start)
{
	for (size_t i = 0; i < e->free.count; i++) {
		struct extent *extent = &e->free.data[i];

		if (extent->size < size)
			continue;
		*start = extent->start;
		extent->start += size;
		extent->size -= size;
		if (!extent->size)
			remove_at(e, i);
		return 0;
	}
	return -ENOSPC;
}

void extents__fini(struct extents *e)
{
	vec_free(&e->free);
}

struct retired {
	uint32_t offset, size;
};

/* The process that has a word. */
struct holder {
	uint64_t sampled; /* CLOCK_MONOTONIC */
	uint32_t size;	  /* charged to its user */
	uint32_t user;
	bool user_known;
};

/* A process that needs room. */
struct claim {
	uint32_t tgid, user;
	bool user_known;
	uint64_t room; /* of its places */
	uint64_t size; /* to charge, with the word */
};

struct place_store {
	struct unwind_memory memory;
	struct table_store_options options;
	uint32_t *table_uses; /* by number of a table */
	struct extents free;
	VEC(struct retired) retired; /* that programs may still be reading */
	struct holder *holders;	     /* by word */
	struct quota quota;	     /* of bytes: places and words */
	uint64_t now, last_wait;
	struct place_store_stats *stats;
};

struct place_store *place_store__new(const struct table_store_options *options, uint32_t *uses,
				     struct place_store_stats *stats)
{
	struct place_store *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	quota__init(&s->quota, QUOTA_PLACES);
	s->options = *options;
	s->table_uses = uses;
	s->stats = stats;
	s->memory = *options->memory;
	s->now = monotonic_ns();
	s->holders = calloc(UNWIND_PROCESSES, sizeof(*s->holders));
	/* offset 0 stays unused, because a word of 0 means no process */
	if (!s->holders || extents__free(&s->free, UNWIND_PLACES_ALIGN, ROOM)) {
		place_store__free(s);
		return NULL;
	}
	return s;
}

void place_store__free(struct place_store *s)
{
	if (!s)
		return;
	extents__fini(&s->free);
	vec_free(&s->retired);
	free(s->holders);
	free(s);
}

void place_store__advance(struct place_store *s, uint64_t now)
{
	s->now = max_u64(s->now, now);
}

/* ---- words ----------------------------------------------------------------------------------- */

static uint32_t probe(uint32_t tgid, uint32_t i)
{
	return (unwind_hash(tgid) + i) & (UNWIND_PROCESSES - 1);
}

/* The word of a process, or UNWIND_PROCESSES. */
static uint32_t find_word(const struct place_store *s, uint32_t tgid)
{
	for (uint32_t i = 0; i < UNWIND_PROBES; i++) {
		uint64_t word = s->memory.processes[probe(tgid, i)];

		if (word && unwind_word_tgid(word) == tgid)
			return probe(tgid, i);
	}
	return UNWIND_PROCESSES;
}

static uint32_t find_free_word(const struct place_store *s, uint32_t tgid)
{
	for (uint32_t i = 0; i < UNWIND_PROBES; i++)
		if (!s->memory.processes[probe(tgid, i)])
			return probe(tgid, i);
	return UNWIND_PROCESSES;
}

/* ---- places ---------------------------------------------------------------------------------- */

static size_t places_size(size_t count)
{
	return align_up(8 + count * (8 + sizeof(struct unwind_place)), UNWIND_PLACES_ALIGN);
}

static const struct unwind_place *places_of(const struct place_store *s, uint32_t offset,
					    size_t count)
{
	return (const void *)(s->memory.places + offset + 8 + count * 8);
}

static void retire_places(struct place_store *s, uint64_t word)
{
	const size_t count = unwind_word_count(word);
	const struct retired old = {unwind_word_offset(word), places_size(count)};
	const struct unwind_place *places = places_of(s, old.offset, count);

	for (size_t i = 0; i < count; i++)
		if (places[i].table < UNWIND_TABLES)
			s->table_uses[places[i].table]--;
	/* if there is no memory for this entry, its room is lost */
	(void)vec_push(&s->retired, old);
}

static void reclaim_places(struct place_store *s)
{
	uint64_t begun = monotonic_ns();
	int err = s->retired.count ? s->memory.wait_for_programs(s->memory.context) : -ENOENT;

	if (err)
		return;
	s->last_wait = s->now;
	s->stats->waited_ns += monotonic_ns() - begun;
	for (size_t i = 0; i < s->retired.count; i++)
		extents__free(&s->free, s->retired.data[i].offset, s->retired.data[i].size);
	s->retired.count = 0;
}

static void write_places(struct place_store *s, const struct unwind_placement *placements,
			 size_t count, uint64_t as_of, unsigned char *to)
{
	uint64_t *starts = (uint64_t *)(void *)to;
	struct unwind_place *places = (struct unwind_place *)(void *)(to + 8 + count * 8);

	*starts++ = as_of;
	for (size_t i = 0; i < count; i++) {
		const struct unwind_placement *p = &placements[i];

		starts[i] = p->start;
		places[i] = (struct unwind_place){
			.end = p->end,
			.bias = p->bias,
			.table = p->table,
		};
		if (p->table < UNWIND_TABLES)
			s->table_uses[p->table]++;
	}
}

/* ---- shares ---------------------------------------------------------------------------------- */

/* Is half of the room in use? From then on shares of users count. */
static bool is_scarce(const struct place_store *s)
{
	return s->quota.total.used > ROOM / 2 || s->stats->processes > UNWIND_PROCESSES / 2;
}

uint32_t place_store__user(const struct place_store *s, uint32_t tgid)
{
	return s->options.user_of ? s->options.user_of(s->options.context, tgid) : TENANT_UNKNOWN;
}

static void learn_user(const struct place_store *s, struct claim *claim)
{
	if (claim->user_known)
		return;
	claim->user = place_store__user(s, claim->tgid);
	claim->user_known = true;
}

static void charge(struct place_store *s, uint32_t word, const struct claim *claim)
{
	struct holder *h = &s->holders[word];

	*h = (struct holder){.sampled = s->now,
			     .size = claim->size,
			     .user = claim->user,
			     .user_known = claim->user_known};
	quota__take(&s->quota, h->user, h->size, 0);
	s->stats->processes++;
}

static void discharge(struct place_store *s, uint32_t word)
{
	struct holder *h = &s->holders[word];

	quota__give(&s->quota, h->user, h->size);
	s->stats->processes--;
	*h = (struct holder){};
}

static void take_back(struct place_store *s, uint32_t word)
{
	uint64_t old = s->memory.processes[word];

	__atomic_store_n(&s->memory.processes[word], 0, __ATOMIC_RELEASE);
	discharge(s, word);
	retire_places(s, old);
}

/* Looks up users of processes that got their places while room was not scarce. */
static void learn_users(struct place_store *s, uint32_t first, uint32_t count)
{
	unsigned int learned = 0;

	for (uint32_t i = 0; i < count && learned < USERS_AT_ONCE; i++) {
		uint32_t word = (first + i) & (UNWIND_PROCESSES - 1);
		struct holder *h = &s->holders[word];

		if (!s->memory.processes[word] || h->user_known)
			continue;
		learned++;
		h->user_known = true;
		quota__give(&s->quota, h->user, h->size);
		h->user = place_store__user(s, unwind_word_tgid(s->memory.processes[word]));
		quota__take(&s->quota, h->user, h->size, 0);
	}
}

/* Why a process has to give way to another, best reason first. */
enum reason {
	REASON_IDLE,
	REASON_SHARE, /* its user has more than the other one would have */
	REASON_SIZE,  /* same user, and more than twice as much */
	REASON_NONE
};

struct victim {
	uint32_t word;
	enum reason reason;
	uint64_t used; /* REASON_SHARE: by its user; TENANT_UNKNOWN has a share like any other */
};

static struct victim judge(const struct place_store *s, uint32_t word, const struct claim *claim)
{
	const struct holder *h = &s->holders[word];
	struct victim v = {.word = word, .reason = REASON_NONE};

	if (!s->memory.processes[word] ||
	    unwind_word_tgid(s->memory.processes[word]) == claim->tgid)
		return v;
	if (s->now - h->sampled > PLACE_IDLE_NS) {
		v.reason = REASON_IDLE;
	} else if (h->user == claim->user) {
		v.reason = h->size > 2 * claim->size ? REASON_SIZE : REASON_NONE;
	} else {
		v.used = quota__used(&s->quota, h->user);
		if (v.used > quota__used(&s->quota, claim->user) + claim->size)
			v.reason = REASON_SHARE;
	}
	return v;
}

/* Compares by reason, then user with the most, then time without a sample. */
static bool goes_before(const struct place_store *s, const struct victim *x, const struct victim *y)
{
	int order = ASCENDING(reason) ?: DESCENDING(used);

	return order ? order < 0 : s->holders[x->word].sampled < s->holders[y->word].sampled;
}

/* Evicts one process among these words, if any may be. Returns the bytes freed. */
static size_t evict_one(struct place_store *s, uint32_t first, uint32_t count,
			const struct claim *claim)
{
	struct victim victim = {.reason = REASON_NONE};
	size_t size;

	for (uint32_t i = 0; i < count; i++) {
		struct victim v = judge(s, (first + i) & (UNWIND_PROCESSES - 1), claim);

		if (v.reason != REASON_NONE && goes_before(s, &v, &victim))
			victim = v;
	}
	if (victim.reason == REASON_NONE)
		return 0;
	size = s->holders[victim.word].size;
	s->stats->idle_evicted += victim.reason == REASON_IDLE;
	s->stats->shared += victim.reason != REASON_IDLE;
	if (victim.reason != REASON_IDLE)
		outside_books__add(s->options.books, s->holders[victim.word].user, OUTSIDE_PLACES,
				   OUTSIDE_BY_GAVE_WAY, 1);
	log_debug(LOG_UNWIND, "places of process %u make room: %zu bytes",
		  unwind_word_tgid(s->memory.processes[victim.word]), size);
	take_back(s, victim.word);
	return size;
}

static int make_room(struct place_store *s, struct claim *claim, uint64_t *offset)
{
	size_t left = 0, size;
	unsigned int evicted = 0;

	learn_user(s, claim);
	learn_users(s, 0, UNWIND_PROCESSES);
	while (left < max_u64(2 * claim->size, EVICTED_BYTES) && evicted++ < EVICTED_AT_ONCE &&
	       (size = evict_one(s, 0, UNWIND_PROCESSES, claim)))
		left += size;
	reclaim_places(s);
	return extents__take(&s->free, claim->room, offset);
}

static int take_places(struct place_store *s, struct claim *claim, uint64_t *offset)
{
	int err;

	if (s->retired.count > RECLAIM_RETIRED && s->now - s->last_wait > RECLAIM_PERIOD_NS)
		reclaim_places(s);
	err = extents__take(&s->free, claim->room, offset);
	if (!err)
		return 0;
	reclaim_places(s);
	err = extents__take(&s->free, claim->room, offset);
	return err == -ENOSPC ? make_room(s, claim, offset) : err;
}

/* A word for a process that has none, or UNWIND_PROCESSES. */
static uint32_t take_word(struct place_store *s, struct claim *claim)
{
	uint32_t word = find_free_word(s, claim->tgid);

	if (word < UNWIND_PROCESSES)
		return word;
	learn_user(s, claim);
	learn_users(s, unwind_hash(claim->tgid), UNWIND_PROBES);
	if (!evict_one(s, unwind_hash(claim->tgid), UNWIND_PROBES, claim))
		return UNWIND_PROCESSES;
	return find_free_word(s, claim->tgid);
}

bool place_store__evict(struct place_store *s, uint32_t tgid)
{
	struct claim claim = {.tgid = tgid, .user = TENANT_UNKNOWN, .size = LEAST_SHARE};

	learn_user(s, &claim);
	learn_users(s, 0, UNWIND_PROCESSES);
	return evict_one(s, 0, UNWIND_PROCESSES, &claim);
}

/* ---- publishing ------------------------------------------------------------------------------ */

static int publish(struct place_store *s, const struct unwind_placement *placements, size_t count,
		   uint64_t as_of, struct claim *claim)
{
	uint32_t word = find_word(s, claim->tgid);
	bool known = word < UNWIND_PROCESSES;
	uint64_t sampled = known ? s->holders[word].sampled : s->now, offset;
	int err;

	if (count > UNWIND_PLACES_MAX)
		return -E2BIG;
	if (known && s->holders[word].user_known) {
		claim->user = s->holders[word].user;
		claim->user_known = true;
	} else if (is_scarce(s)) {
		learn_user(s, claim);
	}
	if (!known)
		word = take_word(s, claim);
	err = word < UNWIND_PROCESSES ? take_places(s, claim, &offset) : -ENOSPC;
	if (err == -ENOSPC && known) { /* perhaps in the room of its old places */
		take_back(s, word);
		reclaim_places(s);
		known = false;
		err = extents__take(&s->free, claim->room, &offset);
	}
	if (err)
		return err;
	write_places(s, placements, count, as_of, s->memory.places + offset);
	if (known) {
		uint64_t old = s->memory.processes[word];

		discharge(s, word);
		retire_places(s, old);
	}
	/* retired places are reused only after a wait, so the kernel side may still read them */
	__atomic_store_n(&s->memory.processes[word], unwind_word(claim->tgid, count, offset),
			 __ATOMIC_RELEASE);
	charge(s, word, claim);
	s->holders[word].sampled = sampled;
	return 0;
}

int place_store__publish(struct place_store *s, uint32_t tgid,
			 const struct unwind_placement *placements, size_t count, uint64_t as_of)
{
	struct claim claim = {
		.tgid = tgid,
		.user = TENANT_UNKNOWN,
		.room = places_size(count),
		.size = max_u64(places_size(count), LEAST_SHARE),
	};
	int err = publish(s, placements, count, as_of, &claim);

	if (!err)
		return 0;
	if (err == -E2BIG) {
		place_store__refuse(s, tgid);
		return err;
	}
	s->stats->refused++;
	learn_user(s, &claim);
	outside_books__add(s->options.books, claim.user, OUTSIDE_PLACES, OUTSIDE_BY_USER, 1);
	place_store__withdraw(s, tgid);
	return err;
}

void place_store__withdraw(struct place_store *s, uint32_t tgid)
{
	uint32_t word = find_word(s, tgid);

	if (word < UNWIND_PROCESSES)
		take_back(s, word);
}

void place_store__refuse(struct place_store *s, uint32_t tgid)
{
	s->stats->too_many++;
	outside_books__add(s->options.books, place_store__user(s, tgid), OUTSIDE_PLACES,
			   OUTSIDE_BY_ITSELF, 1);
	place_store__withdraw(s, tgid);
}

void place_store__sampled(struct place_store *s, uint32_t tgid)
{
	uint32_t word = find_word(s, tgid);

	if (word < UNWIND_PROCESSES)
		s->holders[word].sampled = s->now;
}
