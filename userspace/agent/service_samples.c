/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads are sorted by service, so one map of stacks at a time is enough. Samples of a service are
 * sorted by place in the tree of stacks: neighbours share most callers and compress better.
 */
#include "agent/service_samples.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/order.h"
#include "formats/out/waits.h"

/* Where the sample of a stack, a state and a context is. */
struct stack_slot {
	uint64_t key;
	size_t sample;
};
DEFINE_MAP_BY(places, struct stack_slot, uint64_t, key);

struct service_samples {
	const struct agent_window *window;
	const uint32_t *merged;
	VEC(struct service_sample) samples; /* by service */
	size_t *first;			    /* by service: its first one; one more at the end */
	uint32_t *place;		    /* by stack: in the tree, callers before callees */
	struct places places;		    /* of the service in hand */
};

static int add_sample(struct service_samples *s, struct service_sample sample)
{
	struct stack_slot place = {.sample = s->samples.count};
	const struct stack_slot *known;
	bool is_new;

	if (!sample.ticks && !sample.cpu && !sample.wait)
		return 0;
	sample.stack.v = s->merged ? s->merged[sample.stack.v] : sample.stack.v;
	place.key = (uint64_t)sample.stack.v << 16 | (uint64_t)sample.context << 8 | sample.state;
	known = places__need(&s->places, &place, &is_new);
	if (!known)
		return -ENOMEM;
	if (is_new)
		return vec_push(&s->samples, sample);
	s->samples.data[known->sample].ticks += sample.ticks;
	s->samples.data[known->sample].cpu += sample.cpu;
	s->samples.data[known->sample].wait += sample.wait;
	return 0;
}

static int add_waits(struct service_samples *s, uint32_t thread)
{
	const struct parked *parked = s->window->parked;
	const struct profile_samples *rows =
		&s->window->profile->threads[thread].samples[SAMPLE_WALL];
	int err = 0;

	for (size_t i = 0; parked && i < rows->count && !err; i++)
		if (!parked__has(parked, thread, i))
			err = add_sample(
				s, (struct service_sample){.stack = rows->stack[i],
							   .state = profile_samples__state(rows, i),
							   .wait = rows->weight[i]});
	return err;
}

static int add_thread(struct service_samples *s, uint32_t number)
{
	const struct profile_thread *thread = &s->window->profile->threads[number];
	const struct profile_samples *rows = &thread->samples[SAMPLE_CPU];
	int err = 0;

	if (!rows->count)
		err = add_sample(s, (struct service_sample){.cpu = thread->cpu_tail});
	for (size_t i = 0; i < rows->count && !err; i++) {
		uint64_t tail = i + 1 == rows->count ? thread->cpu_tail : 0;

		err = add_sample(
			s, (struct service_sample){.stack = rows->stack[i],
						   .context = profile_samples__context(rows, i),
						   .ticks = profile_samples__ticks(rows, i),
						   .cpu = rows->weight[i] + tail});
	}
	return err ? err : add_waits(s, number);
}

/* Of the thread's process; service_count: none that is sent. */
static size_t service_of(const struct agent_window *w, size_t thread)
{
	uint32_t process = w->profile->threads[thread].process.v;
	size_t service = process ? w->service_of_process[process] : w->service_count;

	return service < w->service_count && !w->services[service].excluded ? service
									    : w->service_count;
}

/* Thread numbers by service, in order within it; where a service begins is in `first`. */
static void sort_threads(const struct agent_window *w, uint32_t *threads, size_t *first)
{
	size_t at = 0;

	for (size_t i = 1; i < w->profile->thread_count; i++)
		first[service_of(w, i)]++;
	for (size_t i = 0; i <= w->service_count; i++) {
		size_t count = first[i];

		first[i] = at;
		at += count;
	}
	for (uint32_t i = 1; i < w->profile->thread_count; i++)
		threads[first[service_of(w, i)]++] = i;
	for (size_t i = w->service_count; i > 0; i--) /* they are where the next begins now */
		first[i] = first[i - 1];
	first[0] = 0;
}

/* A stack's callees are numbered after it, so one pass up and one down will do. */
static int place_stacks(struct service_samples *s)
{
	const struct profile *p = s->window->profile;
	_cleanup_free_ uint32_t *size = calloc(p->stack_count + 1, sizeof(*size));
	_cleanup_free_ uint32_t *next = calloc(p->stack_count + 1, sizeof(*next));

	s->place = calloc(p->stack_count + 1, sizeof(*s->place));
	if (!size || !next || !s->place)
		return -ENOMEM;
	for (size_t i = p->stack_count; i-- > 1;) {
		size[i]++;
		size[p->stacks[i].parent.v] += size[i];
	}
	next[0] = 1;
	for (size_t i = 1; i < p->stack_count; i++) {
		uint32_t parent = p->stacks[i].parent.v;

		s->place[i] = next[parent];
		next[parent] += size[i];
		next[i] = s->place[i] + 1;
	}
	return 0;
}

static int compare_places(const void *a, const void *b, void *context)
{
	const struct service_sample *x = a, *y = b;
	const uint32_t *place = context;

	return order_of(place[x->stack.v], place[y->stack.v])
		       ?: order_of(x->state, y->state)
		       ?: order_of(x->context, y->context);
}

static int collect_service(struct service_samples *s, const uint32_t *threads, size_t count)
{
	size_t begin = s->samples.count;
	int err = 0;

	places__clear(&s->places);
	for (size_t i = 0; i < count && !err; i++)
		err = add_thread(s, threads[i]);
	if (s->samples.count > begin)
		qsort_r(s->samples.data + begin, s->samples.count - begin, sizeof(*s->samples.data),
			compare_places, s->place);
	return err;
}

static int collect(struct service_samples *s)
{
	const struct agent_window *w = s->window;
	_cleanup_free_ uint32_t *threads = calloc(w->profile->thread_count + 1, sizeof(*threads));
	_cleanup_free_ size_t *begins = calloc(w->service_count + 1, sizeof(*begins));
	int err = threads && begins ? place_stacks(s) : -ENOMEM;

	if (err)
		return err;
	sort_threads(w, threads, begins);
	for (size_t i = 0; i < w->service_count && !err; i++) {
		s->first[i] = s->samples.count;
		err = collect_service(s, threads + begins[i], begins[i + 1] - begins[i]);
	}
	s->first[w->service_count] = s->samples.count;
	return err;
}

int service_samples__new(const struct agent_window *window, const uint32_t *merged,
			 struct service_samples **samples)
{
	struct service_samples *s = calloc(1, sizeof(*s));
	int err = -ENOMEM;

	if (!s)
		return -ENOMEM;
	s->window = window;
	s->merged = merged;
	s->first = calloc(window->service_count + 1, sizeof(*s->first));
	if (s->first)
		err = collect(s);
	return finish_new(err, s, service_samples__free, samples);
}

void service_samples__free(struct service_samples *s)
{
	if (!s)
		return;
	vec_free(&s->samples);
	free(s->first);
	free(s->place);
	places__fini(&s->places);
	free(s);
}

const struct service_sample *service_samples__of(const struct service_samples *s, size_t service,
						 size_t *count)
{
	*count = s->first[service + 1] - s->first[service];
	return s->samples.data ? s->samples.data + s->first[service] : NULL;
}

struct service_sample service_samples__sum(const struct service_sample *samples, size_t count)
{
	struct service_sample sum = {};

	for (size_t i = 0; i < count; i++) {
		sum.ticks += samples[i].ticks;
		sum.cpu += samples[i].cpu;
		sum.wait += samples[i].wait;
	}
	return sum;
}
