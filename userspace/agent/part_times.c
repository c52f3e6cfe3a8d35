/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/part_times.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/strtab.h"

#define STEP UINT64_C(1000000) /* ns */

struct part_times {
	const struct agent_window *window;
	uint32_t *set;	 /* by service */
	uint32_t *taken; /* by set */
};

static int64_t intern_labels(struct strtab *texts, const struct agent_service *service)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	for (size_t i = 0; i < service->label_count; i++)
		fprintf(out, "%s=%s\n", service->labels[i].name, service->labels[i].value);
	if (fclose(out))
		return -ENOMEM;
	return strtab__intern(texts, text);
}

int part_times__new(const struct agent_window *window, struct part_times **times)
{
	struct part_times *s = calloc(1, sizeof(*s));
	struct strtab *texts = strtab__new();
	int64_t number = -ENOMEM;

	if (!s || !texts)
		goto err_out;
	s->window = window;
	s->set = calloc(window->service_count + 1, sizeof(*s->set));
	s->taken = calloc(window->service_count + 2, sizeof(*s->taken));
	if (!s->set || !s->taken)
		goto err_out;
	number = 0;
	for (size_t i = 0; i < window->service_count && number >= 0; i++) {
		number = intern_labels(texts, &window->services[i]);
		s->set[i] = number < 0 ? 0 : (uint32_t)number;
	}
	if (number < 0)
		goto err_out;
	strtab__free(texts);
	*times = s;
	return 0;
err_out:
	strtab__free(texts);
	part_times__free(s);
	return (int)number;
}

void part_times__free(struct part_times *s)
{
	if (!s)
		return;
	free(s->set);
	free(s->taken);
	free(s);
}

uint64_t part_times__next(const struct part_times *s, size_t service, uint32_t ahead)
{
	return s->window->start_realtime + (s->taken[s->set[service]] + ahead) * STEP;
}

void part_times__take(struct part_times *s, size_t service)
{
	s->taken[s->set[service]]++;
}

bool part_times__same(const struct part_times *s, size_t service, size_t other)
{
	return s->set[service] == s->set[other];
}
