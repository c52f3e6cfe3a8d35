/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * services/naming decides, with the user's rules; here are the series: which sets of labels there
 * are, and which are too many.
 */
#include "agent/services.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rules.h"
#include "base/vec.h"

struct services {
	struct services_options options;
	char node[LABEL_TEXT_SIZE];
	struct naming *naming;
	char ruled[LABEL_SERVICE_MAX + 1];
	char rules[LABEL_RULES_MAX][LABEL_TEXT_SIZE]; /* by rule, of the last process */
	VEC(struct label_set *) used;
	VEC(struct labeled_service) services;
	VEC(uint32_t) service_of_process;
	struct services_stats stats;
};

/* ---- the user's own -------------------------------------------------------------------------- */

static const char *look_up_variable(const void *context, const char *name)
{
	const struct service_question *q = context;
	char key[LABEL_TEXT_SIZE];

	snprintf(key, sizeof(key), "env:%s", name);
	return q->fact(q->context, key);
}

static const char *apply_rules(void *context, const struct service_question *q)
{
	struct services *s = context;
	const struct label_rules *rules = s->options.rules;
	const struct label_subject subject = {
		.cgroup = *q->cgroup ? q->cgroup : NULL,
		.exe = service_program(q),
		.variable = look_up_variable,
		.context = q,
	};

	s->ruled[0] = '\0';
	for (size_t i = 0; i < label_rules__count(rules); i++) {
		s->rules[i][0] = '\0';
		if (q->is_kernel)
			continue;
		if (strcmp(label_rules__name(rules, i), "service_name"))
			label_rules__apply(rules, i, &subject, s->rules[i], sizeof(s->rules[i]));
		else if (!s->ruled[0])
			label_rules__apply(rules, i, &subject, s->ruled, sizeof(s->ruled));
	}
	return s->ruled;
}

static void add_labels(void *context, struct label_list *list)
{
	const struct services *s = context;

	for (size_t i = 0; i < label_rules__count(s->options.rules); i++)
		label_list__add(list, label_rules__name(s->options.rules, i), s->rules[i]);
}

static bool excludes(void *context, const char *cgroup, const struct service_decision *d)
{
	const struct services *s = context;

	return !service_filter__passes(s->options.filter, cgroup, d->unit, d->name);
}

int services__new(const struct services_options *options, struct services **services,
		  struct failure *failure)
{
	const char *root = options->root ? options->root : "/";
	struct services *s = calloc(1, sizeof(*s));
	const struct naming_options naming = {
		.node = options->node,
		.pods = options->pods,
		.root = root,
		.policy = {s, apply_rules, add_labels, excludes},
	};
	int err = s ? naming__new(&naming, &s->naming) : -ENOMEM;

	if (err) {
		services__free(s);
		return fail(failure, err, "cannot look for containers in %s: %s", root,
			    strerror(-err));
	}
	s->options = *options;
	s->options.root = NULL;
	s->options.most = options->most ? options->most : SERVICES_MAX;
	if (options->node)
		label_value_set(s->node, sizeof(s->node), options->node);
	*services = s;
	return 0;
}

void services__free(struct services *s)
{
	if (!s)
		return;
	naming__free(s->naming);
	vec_free(&s->used);
	vec_free(&s->services);
	vec_free(&s->service_of_process);
	free(s);
}

/* ---- series ---------------------------------------------------------------------------------- */

static int compare_cpu(const void *a, const void *b)
{
	const struct label_set *x = *(struct label_set *const *)a,
			       *y = *(struct label_set *const *)b;
	const struct labeled_service *m = &x->service, *n = &y->service;

	if (x->cpu != y->cpu)
		return x->cpu > y->cpu ? -1 : 1;
	/* in an order that does not depend on where they are in memory */
	for (size_t i = 0; i < m->label_count && i < n->label_count; i++) {
		int order = strcmp(m->labels[i].name, n->labels[i].name);

		order = order ? order : strcmp(m->labels[i].value, n->labels[i].value);
		if (order)
			return order;
	}
	return m->label_count < n->label_count ? -1 : m->label_count > n->label_count;
}

static int list_used(struct services *s)
{
	size_t count;
	struct named_process *named = naming__processes(s->naming, &count);

	for (size_t i = 0; i < count; i++)
		if (named[i].set)
			named[i].set->cpu = named[i].set->number = 0;
	for (size_t i = 0; i < count; i++) {
		if (!named[i].set)
			continue;
		named[i].set->cpu += named[i].cpu;
		if (!named[i].set->number++ && vec_push(&s->used, named[i].set))
			return -ENOMEM;
	}
	vec_sort(&s->used, compare_cpu);
	return 0;
}

static struct label_set *other_set(struct services *s)
{
	struct label_list list = {};

	label_list__add(&list, "service_name", SERVICE_OTHER);
	label_list__add(&list, "service_source", "overflow");
	label_list__add(&list, "node", s->node);
	return naming__set(s->naming, &list, false);
}

/* The smallest become SERVICE_OTHER. Excluded ones are no series and do not count. 0 or -ENOMEM. */
static int number_services(struct services *s)
{
	size_t series = 0, kept = 0, other = SIZE_MAX;

	for (size_t i = 0; i < s->used.count; i++)
		series += !s->used.data[i]->service.excluded;
	if (vec_reserve(&s->services, s->used.count + 1))
		return -ENOMEM;
	for (size_t i = 0; i < s->used.count; i++) {
		struct label_set *set = s->used.data[i];
		bool fits = set->service.excluded || series <= s->options.most ||
			    kept + 1 < s->options.most;

		if (!fits && other == SIZE_MAX) {
			const struct label_set *shared = other_set(s);

			if (!shared)
				return -ENOMEM;
			other = s->services.count;
			s->services.data[s->services.count++] = shared->service;
		}
		set->number = (uint32_t)(fits ? s->services.count : other);
		s->stats.excluded += set->service.excluded;
		kept += fits && !set->service.excluded;
		s->stats.overflowed += !fits;
		if (fits)
			s->services.data[s->services.count++] = set->service;
	}
	s->stats.services = s->services.count;
	return 0;
}

/* 0 or -ENOMEM. */
static int assign(struct services *s)
{
	size_t count;
	const struct named_process *named = naming__processes(s->naming, &count);

	if (count && !vec_at(&s->service_of_process, count - 1))
		return -ENOMEM;
	for (size_t i = 1; i < count; i++) {
		if (!named[i].set)
			continue;
		s->service_of_process.data[i] = named[i].set->number;
		s->stats.samples[named[i].source] += named[i].samples;
	}
	return 0;
}

int services__name(struct services *s, struct agent_window *window, uint64_t now)
{
	int err;

	s->used.count = s->services.count = s->service_of_process.count = 0;
	s->stats.services = s->stats.excluded = s->stats.overflowed = 0;
	err = naming__name(s->naming, window->profile, now)
			?: list_used(s)
			?: number_services(s)
			?: assign(s);
	if (err)
		return err;
	naming__sweep(s->naming);
	window->services = s->services.data;
	window->service_count = s->services.count;
	window->service_of_process = s->service_of_process.data;
	return 0;
}

void services__stats(const struct services *s, struct services_stats *stats)
{
	*stats = s->stats;
	naming__stats(s->naming, &stats->naming);
}
