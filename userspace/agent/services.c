/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A window takes four steps. Activity: CPU time and samples of each process. Decisions: each active
 * process by what is known of it alone. Neighbours: processes of which too little is known, by
 * others of their control group. Series: which sets of labels there are, and which are too many.
 */
#include "agent/services.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/service_memory.h"
#include "base/order.h"
#include "base/vec.h"

#define STACKS_TRIED 64 /* of a process, for its program */

/* A process of the window. */
struct active {
	uint64_t cpu, samples;
	enum service_source source;
	struct label_set *set; /* NULL: it did nothing */
	char *program;	       /* by its samples, where no fact has it */
};

struct numbered_pid {
	uint32_t pid, number;
};

struct services {
	struct services_options options;
	char node[LABEL_TEXT_SIZE];
	struct containers *containers;
	struct label_sets *sets;
	struct service_memory *memory;
	uint64_t window;
	VEC(struct active) active;     /* by process */
	VEC(struct numbered_pid) pids; /* of active processes, in order, once needed */
	VEC(struct label_set *) used;
	VEC(struct agent_service) services;
	VEC(uint32_t) service_of_process;
	struct services_stats stats;
};

int services__new(const struct services_options *options, struct services **services,
		  struct failure *failure)
{
	const char *root = options->root ? options->root : "/";
	struct services *s = calloc(1, sizeof(*s));
	int err = s ? 0 : -ENOMEM;

	if (!err) {
		s->options = *options;
		s->options.root = NULL;
		s->options.most = options->most ? options->most : SERVICES_MAX;
		if (options->node)
			label_value_set(s->node, sizeof(s->node), options->node);
		s->sets = label_sets__new();
		s->memory = service_memory__new();
		err = s->sets && s->memory ? containers__new(root, &s->containers) : -ENOMEM;
	}
	if (err) {
		services__free(s);
		return fail(failure, err, "cannot look for containers in %s: %s", root,
			    strerror(-err));
	}
	*services = s;
	return 0;
}

static void forget_window(struct services *s)
{
	for (size_t i = 0; i < s->active.count; i++)
		free(s->active.data[i].program);
	s->active.count = s->used.count = s->services.count = s->service_of_process.count = 0;
}

void services__free(struct services *s)
{
	if (!s)
		return;
	forget_window(s);
	containers__free(s->containers);
	service_memory__free(s->memory);
	label_sets__free(s->sets);
	vec_free(&s->active);
	vec_free(&s->pids);
	vec_free(&s->used);
	vec_free(&s->services);
	vec_free(&s->service_of_process);
	free(s);
}

/* ---- activity -------------------------------------------------------------------------------- */

static int measure_processes(struct services *s, const struct profile *p)
{
	if (!vec_at(&s->active, p->process_count) ||
	    !vec_at(&s->service_of_process, p->process_count))
		return -ENOMEM;
	for (size_t i = 1; i < p->thread_count; i++) {
		const struct profile_thread *t = &p->threads[i];
		struct active *a = &s->active.data[t->process.v];

		a->cpu += profile_thread__cpu(t);
		for (int kind = 0; kind < SAMPLE_KIND_COUNT; kind++)
			a->samples += t->samples[kind].tick_sum;
	}
	return 0;
}

/* The program in this stack: what is mapped and no library. */
static const char *program_in_stack(const struct profile *p, struct stack_id stack)
{
	for (; stack.v; stack = p->stacks[stack.v].parent) {
		const struct profile_location *l = &p->locations[p->stacks[stack.v].location.v];
		const struct profile_dso *dso = &p->dsos[l->dso.v];

		if (dso->kind == DSO_FILE && !dso->is_library)
			return profile__string(p, dso->path);
	}
	return NULL;
}

/* For processes of which neither /proc nor a mapping is known: by their samples. 0 or -ENOMEM. */
static int find_programs(struct services *s, const struct profile *p)
{
	for (size_t i = 1; i < p->thread_count; i++) {
		const struct profile_thread *t = &p->threads[i];
		const struct profile_samples *samples = &t->samples[SAMPLE_CPU];
		struct active *a = &s->active.data[t->process.v];
		const char *program = NULL;

		if (a->program || p->processes[t->process.v].fact_count ||
		    p->processes[t->process.v].program.v)
			continue;
		for (size_t k = 0; k < samples->count && k < STACKS_TRIED && !program; k++)
			program = program_in_stack(p, samples->stack[k]);
		if (program && !(a->program = strdup(program)))
			return -ENOMEM;
	}
	return 0;
}

/* ---- decisions ------------------------------------------------------------------------------- */

static const char *group_of(const struct profile *p, const struct profile_process *process)
{
	return profile__string(p, process->cgroup);
}

static void list_labels(const struct services *s, const struct service_decision *d,
			struct label_list *list)
{
	list->count = 0;
	label_list__add(list, "service_name", d->name);
	label_list__add(list, "service_source", service_source_text(d->source));
	for (size_t i = 0; i < label_rules__count(s->options.rules); i++)
		label_list__add(list, label_rules__name(s->options.rules, i), d->rules[i]);
	label_list__add(list, "service_version", d->version);
	label_list__add(list, "namespace", d->name_space);
	if (s->options.pods)
		label_list__add(list, "pod", d->pod);
	if (s->options.pods || !d->container_is_id)
		label_list__add(list, "container", d->container);
	label_list__add(list, "unit", d->unit);
	label_list__add(list, "instance", d->instance);
	label_list__add(list, "node", s->node);
}

static struct label_set *set_of(struct services *s, const struct service_decision *d,
				const char *group)
{
	bool passes = service_filter__passes(s->options.filter, group, d->unit, d->name);
	struct label_list list;

	list_labels(s, d, &list);
	return label_sets__find(s->sets, &list, !passes, s->window);
}

/* The new decision, or the earlier one if that is more certain. 0 or -ENOMEM. */
static int decide(struct services *s, const struct profile *p, uint32_t number, uint64_t now)
{
	const struct profile_process *process = &p->processes[number];
	struct active *a = &s->active.data[number];
	const char *group = group_of(p, process);
	struct service_decision decision;
	struct cgroup_place place;
	struct service_question question = {
		.profile = p,
		.process = process,
		.program = a->program,
		.place = &place,
		.rules = s->options.rules,
	};
	const struct kept_life *kept;

	cgroup_place__parse(&place, group);
	if (place.is_monitor)
		place.container[0] = place.container_name[0] = place.pod_uid[0] = '\0';
	question.container = containers__find(s->containers, place.container, place.pod_uid, now);
	service_decide(&question, &decision);
	kept = service_memory__life(s->memory, process->life);
	if (kept && kept->source < decision.source) {
		a->source = kept->source;
		a->set = kept->set;
		a->set->used = s->window;
	} else {
		a->source = decision.source;
		a->set = set_of(s, &decision, group);
	}
	return a->set ? 0 : -ENOMEM;
}

static int decide_all(struct services *s, const struct profile *p, uint64_t now)
{
	int err = 0;

	for (uint32_t i = 1; i < p->process_count && !err; i++)
		if (s->active.data[i].cpu || s->active.data[i].samples)
			err = decide(s, p, i, now);
	return err;
}

/* ---- neighbours ------------------------------------------------------------------------------ */

/* In the root are all processes that were never put anywhere: they have nothing in common. */
static bool is_group(const char *path)
{
	return strspn(path, "/.") < strlen(path);
}

static const char *program_of(const struct services *s, const struct profile *p, uint32_t number)
{
	const char *exe = process_fact(p, &p->processes[number], "exe");

	if (!exe)
		exe = profile__string(p, p->processes[number].program);
	return *exe || !s->active.data[number].program ? exe : s->active.data[number].program;
}

/* Processes with all of their facts stand for their control groups. 0 or -ENOMEM. */
static int note_groups(struct services *s, const struct profile *p)
{
	int err = 0;

	for (uint32_t i = 1; i < p->process_count && !err; i++) {
		const struct profile_process *process = &p->processes[i];
		const struct active *a = &s->active.data[i];

		if (!a->set || !is_group(group_of(p, process)) ||
		    process->facts_state != FACTS_STATE_WHOLE)
			continue;
		err = service_memory__keep_group(
			s->memory, &(struct kept_group){.path = (char *)group_of(p, process),
							.program = (char *)program_of(s, p, i),
							.source = a->source,
							.set = a->set,
							.used = s->window,
							.window = s->window,
							.cpu = a->cpu});
	}
	return err;
}

/*
 * A process with some facts, and another of its group with more: taken for the same if its program
 * is unknown, or the same and with a given name (many scripts have one interpreter).
 */
static bool follows(const struct services *s, const struct profile *p, uint32_t number,
		    const struct kept_group *group)
{
	const struct profile_process *process = &p->processes[number];
	const char *program = program_of(s, p, number);

	if (process->is_kernel || process->facts_state == FACTS_STATE_WHOLE ||
	    group->source >= s->active.data[number].source)
		return false;
	return !*program ||
	       (group->source <= SERVICE_FROM_ANNOTATION && !strcmp(program, group->program));
}

/* The same labels, but for what decided. 0 or -ENOMEM. */
static int take_set(struct services *s, struct active *a, const struct label_set *other,
		    enum service_source source)
{
	const struct agent_service *known = &other->service;
	struct label_list list = {.count = known->label_count};

	for (size_t i = 0; i < known->label_count; i++) {
		list.labels[i] = known->labels[i];
		if (!strcmp(list.labels[i].name, "service_source"))
			list.labels[i].value = service_source_text(source);
	}
	a->set = label_sets__find(s->sets, &list, known->excluded, s->window);
	a->source = source;
	return a->set ? 0 : -ENOMEM;
}

static int inherit_from_neighbours(struct services *s, const struct profile *p)
{
	for (uint32_t i = 1; i < p->process_count; i++) {
		struct active *a = &s->active.data[i];
		struct kept_group *group;

		if (!a->set || !is_group(group_of(p, &p->processes[i])))
			continue;
		group = service_memory__group(s->memory, group_of(p, &p->processes[i]));
		if (!group || !follows(s, p, i, group))
			continue;
		group->used = s->window;
		if (take_set(s, a, group->set, SERVICE_FROM_CGROUP))
			return -ENOMEM;
	}
	return 0;
}

DEFINE_ORDER(compare_pids, struct numbered_pid, ASCENDING(pid) ?: ASCENDING(number));

/* Of all active processes, in order. */
static int list_pids(struct services *s, const struct profile *p)
{
	s->pids.count = 0;
	for (uint32_t i = 1; i < p->process_count; i++)
		if (s->active.data[i].set &&
		    vec_push(&s->pids, (struct numbered_pid){p->processes[i].pid, i}))
			return -ENOMEM;
	vec_sort(&s->pids, compare_pids);
	return 0;
}

/* The last life of a pid in this window; NULL: it did nothing. */
static const struct active *last_life(const struct services *s, uint32_t pid)
{
	const struct numbered_pid *pids = s->pids.data;
	size_t end = partition_point(pids, s->pids.count, p, p->pid <= pid);

	return end && pids[end - 1].pid == pid ? &s->active.data[pids[end - 1].number] : NULL;
}

/* Of what has this pid, or had it when it last ran; NULL: unknown. Kernel threads start nothing. */
static struct label_set *set_of_pid(const struct services *s, uint32_t pid)
{
	const struct active *a = last_life(s, pid);
	const struct kept_life *kept = a ? NULL : service_memory__pid(s->memory, pid);

	if (a)
		return a->source == SERVICE_FROM_KERNEL || a->source == SERVICE_FROM_NONE ? NULL
											  : a->set;
	return kept && kept->source != SERVICE_FROM_KERNEL ? kept->set : NULL;
}

/* For processes of which nothing is known: their parent's service, if known. 0 or -ENOMEM. */
static int inherit_from_parents(struct services *s, const struct profile *p)
{
	bool listed = false;

	for (uint32_t i = 1; i < p->process_count; i++) {
		struct active *a = &s->active.data[i];
		const struct label_set *parent;
		int err = 0;

		if (!a->set || a->source != SERVICE_FROM_NONE)
			continue;
		if (!listed)
			err = list_pids(s, p);
		if (err)
			return err;
		listed = true;
		parent = set_of_pid(s, p->processes[i].ppid);
		if (!parent)
			log_debug(LOG_AGENT, "no service: process %" PRIu32 " (%s) of %" PRIu32,
				  p->processes[i].pid, profile__string(p, p->processes[i].name),
				  p->processes[i].ppid);
		else if (take_set(s, a, parent, SERVICE_FROM_PARENT))
			return -ENOMEM;
	}
	return 0;
}

/* Not those named by neighbours: their own facts count as soon as they are known. 0 or -ENOMEM. */
static int keep_lives(struct services *s, const struct profile *p)
{
	int err = 0;

	for (uint32_t i = 1; i < p->process_count && !err; i++) {
		const struct active *a = &s->active.data[i];

		if (a->set && a->source < SERVICE_FROM_CGROUP)
			err = service_memory__keep_life(
				s->memory, &(struct kept_life){.life = p->processes[i].life,
							       .pid = p->processes[i].pid,
							       .source = a->source,
							       .set = a->set,
							       .used = s->window});
	}
	return err;
}

/* ---- series ---------------------------------------------------------------------------------- */

static int compare_cpu(const void *a, const void *b)
{
	const struct label_set *x = *(struct label_set *const *)a,
			       *y = *(struct label_set *const *)b;
	const struct agent_service *m = &x->service, *n = &y->service;

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
	for (size_t i = 0; i < s->active.count; i++)
		if (s->active.data[i].set)
			s->active.data[i].set->cpu = s->active.data[i].set->number = 0;
	for (size_t i = 0; i < s->active.count; i++) {
		struct active *a = &s->active.data[i];

		if (!a->set)
			continue;
		a->set->cpu += a->cpu;
		if (!a->set->number++ && vec_push(&s->used, a->set))
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
	return label_sets__find(s->sets, &list, false, s->window);
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

static void assign(struct services *s)
{
	for (size_t i = 1; i < s->active.count; i++) {
		const struct active *a = &s->active.data[i];

		if (!a->set)
			continue;
		s->service_of_process.data[i] = a->set->number;
		s->stats.samples[a->source] += a->samples;
	}
}

int services__name(struct services *s, struct agent_window *window, uint64_t now)
{
	const struct profile *p = window->profile;
	int err;

	forget_window(s);
	s->window++;
	s->stats.services = s->stats.excluded = s->stats.overflowed = 0;
	err = measure_processes(s, p)
			?: find_programs(s, p)
			?: decide_all(s, p, now)
			?: note_groups(s, p)
			?: inherit_from_neighbours(s, p)
			?: inherit_from_parents(s, p)
			?: keep_lives(s, p)
			?: list_used(s)
			?: number_services(s);
	if (err)
		return err;
	service_memory__sweep(s->memory, s->window);
	label_sets__sweep(s->sets, s->window);
	assign(s);
	window->services = s->services.data;
	window->service_count = s->services.count;
	window->service_of_process = s->service_of_process.data;
	return 0;
}

void services__stats(const struct services *s, struct services_stats *stats)
{
	*stats = s->stats;
	stats->sets_kept = label_sets__count(s->sets);
	service_memory__stats(s->memory, stats);
	containers__stats(s->containers, &stats->containers);
}
