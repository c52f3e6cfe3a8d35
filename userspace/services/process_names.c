/* SPDX-License-Identifier: BSD-2-Clause */
#include "services/process_names.h"

#include <string.h>

#include <sysprof/profile_builder.h>

#include "services/cgroup_path.h"
#include "services/naming.h"

static bool has_facts(const struct profile *p)
{
	for (size_t i = 1; i < p->process_count; i++)
		if (p->processes[i].facts_state != FACTS_STATE_NONE)
			return true;
	return false;
}

static struct string_id add_label(struct profile_builder *b, const char *text)
{
	char value[LABEL_VALUE_MAX + 1];

	return profile_builder__string(
		b, text && label_value_set(value, sizeof(value), text) ? value : NULL);
}

/* The parts that are no label of the service. Facts do not move while strings are added. */
static void add_own(struct profile_builder *b, const struct profile *p,
		    struct profile_process *process)
{
	struct cgroup_place place;

	cgroup_place__of_process(&place, profile_builder__get_string(b, process->cgroup));
	process->names.container_id = add_label(b, place.container);
	for (uint32_t i = 0; i < process->fact_count; i++) {
		const struct profile_fact *fact = &p->facts[process->first_fact + i];

		if (!strcmp(profile_builder__get_string(b, fact->key), "user"))
			process->names.user =
				add_label(b, profile_builder__get_string(b, fact->value));
	}
}

static void add_labels(struct profile_builder *b, struct profile_process *process,
		       const struct labeled_service *service)
{
#define X(field, label)                                                                            \
	process->names.field = profile_builder__string(b, labeled_service__label(service, label));
	PROCESS_NAMES(X)
#undef X
}

static void set_names(struct profile_builder *b, const struct profile *p,
		      const struct named_process *named, size_t count)
{
	for (uint32_t i = 1; i < p->process_count && i < count; i++) {
		struct profile_process *process =
			profile_builder__get_process(b, (struct process_id){i});

		if (named[i].set)
			add_labels(b, process, &named[i].set->service);
		add_own(b, p, process);
	}
}

int name_processes(struct profile_builder *b)
{
	const struct naming_options options = {.pods = true, .idle = true};
	const struct profile *p = profile_builder__view(b);
	const struct named_process *named;
	struct naming *naming;
	size_t count;
	int err;

	if (!has_facts(p))
		return 0;
	err = naming__new(&options, &naming);
	if (err)
		return err;
	err = naming__name(naming, p, 0);
	named = naming__processes(naming, &count);
	if (!err)
		set_names(b, p, named, count);
	naming__free(naming);
	return err;
}
