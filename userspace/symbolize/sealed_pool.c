/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbolize/sealed_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/log.h"
#include "base/vec.h"
#include "helpers/watch.h"

#define KEPT_MAX  16
#define KEPT_TIME UINT64_C(90000000000) /* ns without a question */

struct pooled_child {
	struct symbol_key key;
	struct kept_child child;
	size_t bytes;
	uint64_t used_at; /* CLOCK_MONOTONIC ns */
};

struct sealed_pool {
	pid_t keeper;
	int control; /* -1: there is no keeper */
	size_t limit;
	VEC(struct pooled_child) places; /* in the order of their last request */
};

struct sealed_pool *sealed_pool__new(size_t bytes)
{
	struct sealed_pool *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->limit = bytes;
	if (sealed_child__start_keeper(&p->keeper, &p->control))
		p->control = -1;
	return p;
}

static struct kept_child take_place(struct sealed_pool *p, size_t number)
{
	struct kept_child child = p->places.data[number].child;

	p->places.count--;
	memmove(&p->places.data[number], &p->places.data[number + 1],
		(p->places.count - number) * sizeof(*p->places.data));
	return child;
}

int sealed_pool__end(const struct kept_child *child, int *status, struct rusage *usage)
{
	int ignored, err = end_process(child->pid, REAP_NS, status ? status : &ignored, usage);

	close(child->socket);
	if (child->listener >= 0)
		close(child->listener);
	return err;
}

static void end_place(struct sealed_pool *p, size_t number)
{
	struct kept_child child = take_place(p, number);

	sealed_pool__end(&child, NULL, NULL);
}

/* Its children continue. */
static void end_keeper(struct sealed_pool *p)
{
	int status;

	if (p->control < 0)
		return;
	close(p->control);
	p->control = -1;
	end_process(p->keeper, REAP_NS, &status, NULL);
}

void sealed_pool__make_room(struct sealed_pool *p)
{
	while (p && p->places.count)
		end_place(p, p->places.count - 1);
}

void sealed_pool__free(struct sealed_pool *p)
{
	if (!p)
		return;
	sealed_pool__make_room(p);
	vec_free(&p->places);
	end_keeper(p);
	free(p);
}

pid_t sealed_pool__start(struct sealed_pool *p, const struct sealed_child_request *request,
			 int *socket)
{
	pid_t pid = sealed_child__start(request, p ? p->control : -1, socket);

	if (pid > 0 || !p || p->control < 0)
		return pid;
	if (pid == -EPIPE)
		end_keeper(p);
	return sealed_child__start(request, -1, socket);
}

bool sealed_pool__take(struct sealed_pool *p, const struct symbol_key *key,
		       struct kept_child *child)
{
	for (size_t i = 0; p && i < p->places.count; i++)
		if (!memcmp(&p->places.data[i].key, key, sizeof(*key))) {
			*child = take_place(p, i);
			return true;
		}
	return false;
}

/* Private pages: not those of its files, nor those that it shares with us. */
static size_t own_bytes(pid_t pid)
{
	char path[64], line[128];
	unsigned long long kilobytes, sum = 0;
	_cleanup_fclose_ FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %llu kB", &kilobytes) == 1 ||
		    sscanf(line, "RssShmem: %llu kB", &kilobytes) == 1)
			sum += kilobytes << 10;
	return sum;
}

static size_t bytes_of_all(const struct sealed_pool *p)
{
	size_t sum = 0;

	for (size_t i = 0; i < p->places.count; i++)
		sum += p->places.data[i].bytes;
	return sum;
}

static bool is_worth_less(const struct pooled_child *a, const struct pooled_child *b)
{
	return (double)a->child.opening * (double)b->bytes <
	       (double)b->child.opening * (double)a->bytes;
}

static size_t least_worth(const struct sealed_pool *p)
{
	size_t least = 0;

	for (size_t i = 1; i < p->places.count; i++)
		if (is_worth_less(&p->places.data[i], &p->places.data[least]))
			least = i;
	return least;
}

bool sealed_pool__keeps(const struct sealed_pool *p)
{
	return p && p->limit;
}

void sealed_pool__limit(struct sealed_pool *p, size_t bytes)
{
	p->limit = bytes;
	while (p->places.count > KEPT_MAX || bytes_of_all(p) > p->limit)
		end_place(p, least_worth(p));
}

void sealed_pool__put(struct sealed_pool *p, const struct symbol_key *key,
		      const struct kept_child *child)
{
	struct pooled_child place = {.key = *key,
				     .child = *child,
				     .bytes = own_bytes(child->pid),
				     .used_at = monotonic_ns()};

	log_debug(LOG_SYMBOLS, "sealed child %d is kept: %.1f MB", child->pid,
		  place.bytes / 1048576.0);
	if (place.bytes > p->limit || vec_push(&p->places, place)) {
		sealed_pool__end(child, NULL, NULL);
		return;
	}
	sealed_pool__limit(p, p->limit);
}

void sealed_pool__tidy(struct sealed_pool *p)
{
	uint64_t now = monotonic_ns();

	while (p && p->places.count && now - p->places.data[0].used_at > KEPT_TIME)
		end_place(p, 0);
}
