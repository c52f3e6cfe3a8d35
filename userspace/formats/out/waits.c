/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/out/waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"

const char *wait_leaf(enum wall_state state)
{
	static const char *const leaves[WALL_STATE_COUNT] = {
#define X(id, name, text) "[waiting: " name "]",
		WALL_STATES(X)
#undef X
	};

	return (unsigned int)state < WALL_STATE_COUNT ? leaves[state] : leaves[WALL_OTHER];
}

uint64_t wait_period(const struct profile *p)
{
	if (p->period > 1)
		return p->period;
	return p->visits.hz ? 1000000000u / p->visits.hz + 1 : 1;
}

uint64_t wait_ticks(uint64_t weight, uint64_t period, uint64_t *rest)
{
	uint64_t ticks = weight / period;

	*rest += weight % period;
	ticks += *rest / period;
	*rest %= period;
	return ticks;
}

int write_requested_waits(const struct export_request *request,
			  int (*write)(const struct export_request *request))
{
	const struct profile *p = request->profile;
	_cleanup_free_ struct profile_thread *threads = NULL;
	_cleanup_free_ struct profile_clause *clauses = NULL;
	struct export_request plain = *request;
	struct profile profile = *p;

	if (request->waits || !p->visits.hz)
		return write(request);
	threads = malloc(p->thread_count * sizeof(*threads));
	clauses = malloc((p->clause_count + 1) * sizeof(*clauses));
	if (!threads || !clauses)
		return -ENOMEM;
	memcpy(threads, p->threads, p->thread_count * sizeof(*threads));
	for (size_t i = 0; i < p->clause_count; i++) {
		clauses[i] = p->clauses[i];
		clauses[i].wall = 0;
	}
	for (size_t i = 0; i < p->thread_count; i++) {
		threads[i].samples[SAMPLE_WALL] = (struct profile_samples){};
		threads[i].wall = (struct profile_wall){};
	}
	profile.threads = threads;
	profile.clauses = clauses;
	profile.visits = (struct profile_visits){};
	plain.profile = &profile;
	return write(&plain);
}

/* ---- parked threads -------------------------------------------------------------------------- */

#define NEARLY_ALL 0.95	       /* of the blocked time of a thread */
#define RARELY	   1000000000u /* ns: so long is a wait of a pool that has nothing to do */
#define WHOLE	   0.95	       /* of the lifetime: a wait that never ended */

/* Stubs of a runtime ("[monitorenter stub]") rank as a library, not as the program. */
static int rank_of(const struct profile *p, const struct profile_location *l)
{
	static const int ranks[CATEGORY_COUNT] = {
		[CATEGORY_JIT] = 3, [CATEGORY_USER] = 2, [CATEGORY_LIBRARY] = 1};
	struct function_id f = p->lines[l->first_line].function;

	if (l->category == CATEGORY_JIT && profile__string(p, p->functions[f.v].name)[0] == '[')
		return ranks[CATEGORY_LIBRARY];
	return ranks[l->category];
}

const struct profile_location *waiting_place(const struct profile *p, struct stack_id id)
{
	const struct profile_location *best = &p->locations[p->stacks[id.v].location.v];

	for (; id.v; id = p->stacks[id.v].parent) {
		const struct profile_location *l = &p->locations[p->stacks[id.v].location.v];

		if (rank_of(p, l) > rank_of(p, best))
			best = l;
	}
	return best;
}

/*
 * A place is a whole stack and a state, because servers have one waiting function, which others
 * call for whatever they wait for. How the kernel waits is no part of it.
 */
static uint64_t place_of(const struct parked *parked, const struct profile_samples *waits,
			 size_t row)
{
	return hash_combine(parked->of_stack[waits->stack[row].v],
			    profile_samples__state(waits, row)) |
	       1;
}

/* The file that calls the outermost function of a runtime's program. `above`: the caller's. */
static struct dso_id engine_of(const struct profile *p, const struct profile_stack *stack,
			       struct dso_id above)
{
	const struct profile_location *caller =
		&p->locations[p->stacks[stack->parent.v].location.v];

	return !above.v && p->locations[stack->location.v].category == CATEGORY_JIT &&
			       caller->category != CATEGORY_JIT
		       ? caller->dso
		       : above;
}

/*
 * A caller has a smaller number than its callees. How a runtime calls its own functions is no part
 * of a place either, because it changes as code is optimized.
 */
static int find_places(struct parked *parked)
{
	const struct profile *p = parked->p;
	_cleanup_free_ struct dso_id *engines = calloc(p->stack_count + 1, sizeof(*engines));

	if (!engines)
		return -ENOMEM;
	for (size_t i = 1; i < p->stack_count; i++) {
		uint32_t parent = p->stacks[i].parent.v;
		const struct profile_location *l = &p->locations[p->stacks[i].location.v];
		const struct profile_function *f =
			&p->functions[p->lines[l->first_line].function.v];
		uint64_t above = parked->of_stack[parent];

		engines[i] = engine_of(p, &p->stacks[i], engines[parent]);
		parked->of_stack[i] =
			l->category == CATEGORY_KERNEL ||
					(engines[parent].v && l->dso.v == engines[parent].v)
				? above
				: hash_combine(above, hash_u64((uint64_t)f->name.v << 32 |
							       p->dsos[l->dso.v].name.v));
	}
	return 0;
}

/* The waits of a thread at one place. */
struct stay {
	uint64_t key, ns, seen, count;
	size_t row; /* one of them */
	bool held;  /* by a known thread, at least once */
};

DEFINE_MAP_BY(stays, struct stay, uint64_t, key);

static bool is_one_of(const char *name, const char *const *parts, bool whole)
{
	for (; *parts; parts++)
		if (whole ? !strcmp(name, *parts) : strstr(name, *parts) != NULL)
			return true;
	return false;
}

/* Is one of these functions in the stack? `whole`: they are names, not parts of names. */
static bool is_in(const struct profile *p, struct stack_id id, const char *const *functions,
		  bool whole)
{
	for (; id.v; id = p->stacks[id.v].parent) {
		const struct profile_location *l = &p->locations[p->stacks[id.v].location.v];

		for (uint32_t i = 0; i < l->line_count; i++) {
			struct function_id f = p->lines[l->first_line + i].function;

			if (is_one_of(profile__string(p, p->functions[f.v].name), functions, whole))
				return true;
		}
	}
	return false;
}

static bool accepts(const struct profile *p, struct stack_id id)
{
	static const char *const names[] = {"accept",	     "accept4",		"__libc_accept",
					    "__sys_accept4", "inet_csk_accept", NULL};

	return is_in(p, id, names, true);
}

/* pthread_cond_timedwait(), sem_clockwait(), … */
static bool has_timer(const struct profile *p, struct stack_id id)
{
	static const char *const parts[] = {"timedwait", "clockwait", NULL};

	return is_in(p, id, parts, false);
}

/* Did its waits there last long, or did the only one never end? */
static bool is_rare(const struct stay *stay, const struct profile_wall *wall)
{
	return stay->seen / stay->count >= RARELY ||
	       (stay->count == 1 &&
		(double)stay->seen >= WHOLE * (double)(wall->until - wall->since));
}

/* Does the wait end by a timer or from outside of the program? */
static bool ends_from_outside(const struct profile *p, const struct profile_thread *thread,
			      const struct stay *stay)
{
	const struct profile_samples *waits = &thread->samples[SAMPLE_WALL];

	switch (profile_samples__state(waits, stay->row)) {
	case WALL_POLL:
	case WALL_SLEEP:
		return true;
	case WALL_NETWORK:
		return accepts(p, waits->stack[stay->row]) || is_rare(stay, &thread->wall);
	case WALL_LOCK:
		return !stay->held &&
		       (is_rare(stay, &thread->wall) || has_timer(p, waits->stack[stay->row]));
	case WALL_PIPE:
	case WALL_CHILD:
		return is_rare(stay, &thread->wall);
	default:
		return false;
	}
}

static int find_stays(const struct parked *parked, const struct profile_samples *waits,
		      struct stays *stays)
{
	for (size_t i = 0; i < waits->count; i++) {
		const struct stay wanted = {.key = place_of(parked, waits, i), .row = i};
		struct stay *stay = stays__need(stays, &wanted, NULL);

		if (!stay)
			return -ENOMEM;
		stay->ns += waits->weight[i];
		stay->seen += waits->until[i] - waits->since[i];
		stay->count++;
		stay->held |= waits->holder[i].v > 0;
	}
	return 0;
}

static int find_place(struct parked *parked, uint32_t number)
{
	const struct profile_thread *thread = &parked->p->threads[number];
	struct stays stays = {};
	int err = find_stays(parked, &thread->samples[SAMPLE_WALL], &stays);

	for (size_t i = 0; i < stays.count && !err; i++) {
		const struct stay *stay = &stays.data[i];

		if ((double)stay->ns < NEARLY_ALL * (double)thread->wall.blocked || !stay->ns ||
		    !ends_from_outside(parked->p, thread, stay))
			continue;
		parked->place[number] = stay->key;
		parked->ns += stay->ns;
		parked->threads++;
		break;
	}
	stays__fini(&stays);
	return err;
}

int parked__init(struct parked *parked, const struct profile *p)
{
	int err = 0;

	*parked = (struct parked){.p = p};
	parked->place = calloc(p->thread_count + 1, sizeof(*parked->place));
	parked->of_stack = calloc(p->stack_count + 1, sizeof(*parked->of_stack));
	if (!parked->place || !parked->of_stack)
		return -ENOMEM;
	err = find_places(parked);
	for (uint32_t i = 1; i < p->thread_count && !err; i++)
		err = find_place(parked, i);
	return err;
}

void parked__fini(struct parked *parked)
{
	free(parked->place);
	free(parked->of_stack);
	*parked = (struct parked){};
}

bool parked__has(const struct parked *parked, uint32_t thread, size_t row)
{
	return parked->place[thread] &&
	       parked->place[thread] ==
		       place_of(parked, &parked->p->threads[thread].samples[SAMPLE_WALL], row);
}
