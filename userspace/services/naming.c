/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A window takes four steps. Activity: CPU time and samples of each process. Decisions: each active
 * process by what is known of it alone. Neighbours: processes of which too little is known, by
 * others of their control group. Series: which sets of labels there are, and which are too many.
 */
#include "services/naming.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "base/order.h"
#include "base/vec.h"
#include "services/cgroup_path.h"
#include "services/service_memory.h"

#define STACKS_TRIED 64 /* of a process, for its program */

struct numbered_pid {
	uint32_t pid, number;
};

/* A decision, and all that it depends on: of a thousand forks it is the same. */
struct decided {
	uint32_t first_fact, fact_count, cgroup, program;
	bool is_kernel;
	enum service_source source;
	struct label_set *set;
};

static uint64_t hash_decided(const struct decided *d)
{
	return hash_combine(hash_u64((uint64_t)d->first_fact << 32 | d->cgroup),
			    hash_u64((uint64_t)d->program << 1 | d->is_kernel));
}

static bool same_decided(const struct decided *a, const struct decided *b)
{
	return a->first_fact == b->first_fact && a->fact_count == b->fact_count &&
	       a->cgroup == b->cgroup && a->program == b->program && a->is_kernel == b->is_kernel;
}

DEFINE_MAP_OF(decided_map, struct decided, hash_decided, same_decided);

struct naming {
	struct naming_options options;
	char node[LABEL_TEXT_SIZE];
	char host[LABEL_TEXT_SIZE]; /* the node, or else the host of the window's profile */
	struct containers *containers;
	struct label_sets *sets;
	struct service_memory *memory;
	uint64_t window;
	VEC(struct named_process) active; /* by process */
	VEC(struct numbered_pid) pids;	  /* of active processes, in order, once needed */
	struct decided_map decided;	  /* while a profile is named */
};

int naming__new(const struct naming_options *options, struct naming **naming)
{
	struct naming *n = calloc(1, sizeof(*n));
	int err = -ENOMEM;

	if (!n)
		return -ENOMEM;
	n->options = *options;
	if (options->node)
		label_value_set(n->node, sizeof(n->node), options->node);
	n->sets = label_sets__new();
	n->memory = service_memory__new();
	if (n->sets && n->memory)
		err = containers__new(options->root, &n->containers);
	if (err) {
		naming__free(n);
		return err;
	}
	*naming = n;
	return 0;
}

static void forget_window(struct naming *n)
{
	for (size_t i = 0; i < n->active.count; i++)
		free(n->active.data[i].program);
	n->active.count = 0;
}

void naming__free(struct naming *n)
{
	if (!n)
		return;
	forget_window(n);
	containers__free(n->containers);
	service_memory__free(n->memory);
	label_sets__free(n->sets);
	vec_free(&n->active);
	vec_free(&n->pids);
	decided_map__fini(&n->decided);
	free(n);
}

const char *process_fact(const struct profile *p, const struct profile_process *process,
			 const char *key)
{
	for (uint32_t i = 0; i < process->fact_count; i++) {
		const struct profile_fact *fact = &p->facts[process->first_fact + i];

		if (!strcmp(profile__string(p, fact->key), key))
			return profile__string(p, fact->value);
	}
	return NULL;
}

/* ---- activity -------------------------------------------------------------------------------- */

static int measure_processes(struct naming *n, const struct profile *p)
{
	if (!vec_at(&n->active, p->process_count))
		return -ENOMEM;
	for (size_t i = 1; i < p->thread_count; i++) {
		const struct profile_thread *t = &p->threads[i];
		struct named_process *a = &n->active.data[t->process.v];

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
static int find_programs(struct naming *n, const struct profile *p)
{
	for (size_t i = 1; i < p->thread_count; i++) {
		const struct profile_thread *t = &p->threads[i];
		const struct profile_samples *samples = &t->samples[SAMPLE_CPU];
		const struct profile_process *process = &p->processes[t->process.v];
		struct named_process *a = &n->active.data[t->process.v];
		const char *program = NULL;

		if (a->program || process_fact(p, process, "exe") || process->program.v)
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

static void list_labels(const struct naming *n, const struct service_decision *d,
			struct label_list *list)
{
	const struct naming_policy *policy = &n->options.policy;

	list->count = 0;
	label_list__add(list, "service_name", d->name);
	label_list__add(list, "service_source", service_source_text(d->source));
	if (policy->add_labels)
		policy->add_labels(policy->context, list);
	label_list__add(list, "service_version", d->version);
	label_list__add(list, "namespace", d->name_space);
	if (n->options.pods)
		label_list__add(list, "pod", d->pod);
	if (n->options.pods || !d->container_is_id)
		label_list__add(list, "container", d->container);
	label_list__add(list, "unit", d->unit);
	label_list__add(list, "instance", d->instance);
	label_list__add(list, "node", n->node);
}

static struct label_set *set_of(struct naming *n, const struct service_decision *d,
				const char *group)
{
	const struct naming_policy *policy = &n->options.policy;
	bool excluded = policy->excludes && policy->excludes(policy->context, group, d);
	struct label_list list;

	list_labels(n, d, &list);
	return naming__set(n, &list, excluded);
}

/* A process and its profile. */
struct subject {
	const struct profile *profile;
	const struct profile_process *process;
};

static const char *fact_of(const void *context, const char *key)
{
	const struct subject *subject = context;

	return process_fact(subject->profile, subject->process, key);
}

static void decide_by_itself(struct naming *n, const struct subject *subject, const char *program,
			     uint64_t now, struct service_decision *decision)
{
	const struct naming_policy *policy = &n->options.policy;
	const struct profile *p = subject->profile;
	struct cgroup_place place;
	struct service_question question = {
		.fact = fact_of,
		.context = subject,
		.is_kernel = subject->process->is_kernel,
		.cgroup = group_of(p, subject->process),
		.mapped = profile__string(p, subject->process->program),
		.program = program,
		.place = &place,
		.host = n->host,
	};

	cgroup_place__of_process(&place, question.cgroup);
	question.container = containers__find(n->containers, place.container, place.pod_uid, now);
	if (policy->rule)
		question.ruled = policy->rule(policy->context, &question);
	service_decide(&question, decision);
}

/* By what is known of the process alone. 0 or -ENOMEM. */
static int decide_alone(struct naming *n, const struct subject *subject, struct named_process *a,
			const struct kept_life *kept, uint64_t now)
{
	const struct profile_process *process = subject->process;
	struct decided wanted = {
		.first_fact = process->first_fact,
		.fact_count = process->fact_count,
		.cgroup = process->cgroup.v,
		.program = process->program.v,
		.is_kernel = process->is_kernel,
	};
	const struct decided *known = a->program ? NULL : decided_map__find(&n->decided, &wanted);
	struct service_decision decision;

	if (known) {
		a->source = known->source;
		a->set = known->set;
		return 0;
	}
	decide_by_itself(n, subject, a->program, now, &decision);
	a->source = decision.source;
	if (kept && kept->source < a->source)
		return 0;
	a->set = set_of(n, &decision, group_of(subject->profile, process));
	wanted.source = a->source;
	wanted.set = a->set;
	return a->set && (a->program || decided_map__need(&n->decided, &wanted, NULL)) ? 0
										       : -ENOMEM;
}

/* The new decision, or the earlier one if that is more certain. 0 or -ENOMEM. */
static int decide(struct naming *n, const struct profile *p, uint32_t number, uint64_t now)
{
	const struct subject subject = {p, &p->processes[number]};
	const struct kept_life *kept = service_memory__life(n->memory, subject.process->life);
	struct named_process *a = &n->active.data[number];
	int err = decide_alone(n, &subject, a, kept, now);

	if (!err && kept && kept->source < a->source) {
		a->source = kept->source;
		a->set = kept->set;
		a->set->used = n->window;
	}
	return err;
}

static int decide_all(struct naming *n, const struct profile *p, uint64_t now)
{
	int err = 0;

	decided_map__clear(&n->decided);
	for (uint32_t i = 1; i < p->process_count && !err; i++)
		if (n->options.idle || n->active.data[i].cpu || n->active.data[i].samples)
			err = decide(n, p, i, now);
	return err;
}

/* ---- neighbours ------------------------------------------------------------------------------ */

/* In the root are all processes that were never put anywhere: they have nothing in common. */
static bool is_group(const char *path)
{
	return strspn(path, "/.") < strlen(path);
}

static const char *program_of(const struct naming *n, const struct profile *p, uint32_t number)
{
	const char *exe = process_fact(p, &p->processes[number], "exe");

	if (!exe)
		exe = profile__string(p, p->processes[number].program);
	return *exe || !n->active.data[number].program ? exe : n->active.data[number].program;
}

/* Processes with all of their facts stand for their control groups. 0 or -ENOMEM. */
static int note_groups(struct naming *n, const struct profile *p)
{
	int err = 0;

	for (uint32_t i = 1; i < p->process_count && !err; i++) {
		const struct profile_process *process = &p->processes[i];
		const struct named_process *a = &n->active.data[i];

		if (!a->set || !is_group(group_of(p, process)) ||
		    process->facts_state != FACTS_STATE_WHOLE)
			continue;
		err = service_memory__keep_group(
			n->memory, &(struct kept_group){.path = (char *)group_of(p, process),
							.program = (char *)program_of(n, p, i),
							.source = a->source,
							.set = a->set,
							.used = n->window,
							.window = n->window,
							.cpu = a->cpu});
	}
	return err;
}

/*
 * A process with some facts, and another of its group with more: taken for the same if its program
 * is unknown, or the same and with a given name (many scripts have one interpreter).
 */
static bool follows(const struct naming *n, const struct profile *p, uint32_t number,
		    const struct kept_group *group)
{
	const struct profile_process *process = &p->processes[number];
	const char *program = program_of(n, p, number);

	if (process->is_kernel || process->facts_state == FACTS_STATE_WHOLE ||
	    group->source >= n->active.data[number].source)
		return false;
	return !*program ||
	       (group->source <= SERVICE_FROM_ANNOTATION && !strcmp(program, group->program));
}

/* The same labels, but for what decided. 0 or -ENOMEM. */
static int take_set(struct naming *n, struct named_process *a, const struct label_set *other,
		    enum service_source source)
{
	const struct labeled_service *known = &other->service;
	struct label_list list = {.count = known->label_count};

	for (size_t i = 0; i < known->label_count; i++) {
		list.labels[i] = known->labels[i];
		if (!strcmp(list.labels[i].name, "service_source"))
			list.labels[i].value = service_source_text(source);
	}
	a->set = naming__set(n, &list, known->excluded);
	a->source = source;
	return a->set ? 0 : -ENOMEM;
}

static int inherit_from_neighbours(struct naming *n, const struct profile *p)
{
	for (uint32_t i = 1; i < p->process_count; i++) {
		struct named_process *a = &n->active.data[i];
		struct kept_group *group;

		if (!a->set || !is_group(group_of(p, &p->processes[i])))
			continue;
		group = service_memory__group(n->memory, group_of(p, &p->processes[i]));
		if (!group || !follows(n, p, i, group))
			continue;
		group->used = n->window;
		if (take_set(n, a, group->set, SERVICE_FROM_CGROUP))
			return -ENOMEM;
	}
	return 0;
}

DEFINE_ORDER(compare_pids, struct numbered_pid, ASCENDING(pid) ?: ASCENDING(number));

/* Of all active processes, in order. */
static int list_pids(struct naming *n, const struct profile *p)
{
	n->pids.count = 0;
	for (uint32_t i = 1; i < p->process_count; i++)
		if (n->active.data[i].set &&
		    vec_push(&n->pids, (struct numbered_pid){p->processes[i].pid, i}))
			return -ENOMEM;
	vec_sort(&n->pids, compare_pids);
	return 0;
}

/* The last life of a pid in this window; NULL: it did nothing. */
static const struct named_process *last_life(const struct naming *n, uint32_t pid)
{
	const struct numbered_pid *pids = n->pids.data;
	size_t end = partition_point(pids, n->pids.count, p, p->pid <= pid);

	return end && pids[end - 1].pid == pid ? &n->active.data[pids[end - 1].number] : NULL;
}

/* Of what has this pid, or had it when it last ran; NULL: unknown. Kernel threads start nothing. */
static struct label_set *set_of_pid(const struct naming *n, uint32_t pid)
{
	const struct named_process *a = last_life(n, pid);
	const struct kept_life *kept = a ? NULL : service_memory__pid(n->memory, pid);

	if (a)
		return a->source == SERVICE_FROM_KERNEL || a->source == SERVICE_FROM_NONE ? NULL
											  : a->set;
	return kept && kept->source != SERVICE_FROM_KERNEL ? kept->set : NULL;
}

/* For processes of which nothing is known: their parent's service, if known. 0 or -ENOMEM. */
static int inherit_from_parents(struct naming *n, const struct profile *p)
{
	bool listed = false;

	for (uint32_t i = 1; i < p->process_count; i++) {
		struct named_process *a = &n->active.data[i];
		const struct label_set *parent;
		int err = 0;

		if (!a->set || a->source != SERVICE_FROM_NONE)
			continue;
		if (!listed)
			err = list_pids(n, p);
		if (err)
			return err;
		listed = true;
		parent = set_of_pid(n, p->processes[i].ppid);
		if (!parent)
			log_debug(LOG_AGENT, "no service: process %" PRIu32 " (%s) of %" PRIu32,
				  p->processes[i].pid, profile__string(p, p->processes[i].name),
				  p->processes[i].ppid);
		else if (take_set(n, a, parent, SERVICE_FROM_PARENT))
			return -ENOMEM;
	}
	return 0;
}

/* Not those named by neighbours: their own facts count as soon as they are known. 0 or -ENOMEM. */
static int keep_lives(struct naming *n, const struct profile *p)
{
	int err = 0;

	for (uint32_t i = 1; i < p->process_count && !err; i++) {
		const struct named_process *a = &n->active.data[i];

		if (a->set && a->source < SERVICE_FROM_CGROUP)
			err = service_memory__keep_life(
				n->memory, &(struct kept_life){.life = p->processes[i].life,
							       .pid = p->processes[i].pid,
							       .source = a->source,
							       .set = a->set,
							       .used = n->window});
	}
	return err;
}

static void find_host(struct naming *n, const struct profile *p)
{
	const char *host = *n->node ? n->node : profile__meta(p, META_HOSTNAME);

	if (!host || !label_value_set(n->host, sizeof(n->host), host))
		n->host[0] = '\0';
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Names of containers that a reader has found, of all of their processes. 0 or -ENOMEM. */
static int learn_containers(struct naming *n, const struct profile *p)
{
	int err = 0;

	for (uint32_t i = 1; i < p->process_count && !n->options.root && !err; i++) {
		const struct profile_process *process = &p->processes[i];
		struct container_names names = {};
		struct cgroup_place place;

		if (!container_names__take_facts(&names, fact_of, &(struct subject){p, process}))
			continue;
		cgroup_place__of_process(&place, group_of(p, process));
		err = containers__put(n->containers, place.container, place.pod_uid, &names);
	}
	return err;
}

int naming__name(struct naming *n, const struct profile *p, uint64_t now)
{
	int err;

	forget_window(n);
	n->window++;
	find_host(n, p);
	err = measure_processes(n, p)
			?: learn_containers(n, p)
			?: find_programs(n, p)
			?: decide_all(n, p, now)
			?: note_groups(n, p)
			?: inherit_from_neighbours(n, p)
			?: inherit_from_parents(n, p)
			?: keep_lives(n, p);
	if (!err)
		service_memory__sweep(n->memory, n->window);
	return err;
}

struct named_process *naming__processes(const struct naming *n, size_t *count)
{
	*count = n->active.count;
	return n->active.data;
}

struct label_set *naming__set(struct naming *n, struct label_list *list, bool excluded)
{
	return label_sets__find(n->sets, list, excluded, n->window);
}

void naming__sweep(struct naming *n)
{
	label_sets__sweep(n->sets, n->window);
}

void naming__stats(const struct naming *n, struct naming_stats *stats)
{
	stats->sets_kept = label_sets__count(n->sets);
	service_memory__stats(n->memory, stats);
	containers__stats(n->containers, &stats->containers);
}
