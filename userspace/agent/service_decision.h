/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SERVICE_DECISION_H
#define AGENT_SERVICE_DECISION_H

#include <stdbool.h>

#include "agent/label_set.h"
#include "agent/rules.h"

struct cgroup_place;
struct container_names;
struct profile;
struct profile_process;

/* The sources of a name, the most certain first. X(ENUM, value of the label service_source) */
#define SERVICE_SOURCES(X)                                                                         \
	X(OTEL_CONTEXT, "otel_ctx")                                                                \
	X(ENVIRONMENT, "env")                                                                      \
	X(RESOURCE, "resource_attributes")                                                         \
	X(RULE, "rule")                                                                            \
	X(ANNOTATION, "annotation")                                                                \
	X(KUBERNETES, "kubernetes")                                                                \
	X(CONTAINER, "container")                                                                  \
	X(UNIT, "unit")                                                                            \
	X(SCRIPT, "script")                                                                        \
	X(EXE, "exe")                                                                              \
	X(KERNEL, "kernel")                                                                        \
	X(CGROUP, "cgroup") /* the name of its control group, or that of others in it */           \
	X(PARENT, "parent") /* only its parent is known */                                         \
	X(NONE, "none")	    /* gone before anything was read: "unknown" */

enum service_source {
#define X(id, text) SERVICE_FROM_##id,
	SERVICE_SOURCES(X)
#undef X
		SERVICE_SOURCE_COUNT
};

const char *service_source_text(enum service_source source);

#define SERVICE_UNKNOWN "unknown"
#define LABEL_TEXT_SIZE 256

struct service_question {
	const struct profile *profile;
	const struct profile_process *process;
	const char *program; /* its path, where no fact has it: from its samples; NULL: unknown */
	const struct cgroup_place *place;
	const struct container_names *container; /* NULL: unknown */
	const struct label_rules *rules;	 /* NULL: none */
};

/* All texts: fit to be labels; "": none. */
struct service_decision {
	enum service_source source;
	bool container_is_id; /* it has no name: each id is new */
	char name[LABEL_SERVICE_MAX + 1];
	char version[LABEL_TEXT_SIZE], name_space[LABEL_TEXT_SIZE], pod[LABEL_TEXT_SIZE];
	char container[LABEL_TEXT_SIZE], unit[LABEL_TEXT_SIZE], instance[LABEL_TEXT_SIZE];
	char rules[LABEL_RULES_MAX][LABEL_TEXT_SIZE]; /* by rule */
};

void service_decide(const struct service_question *question, struct service_decision *decision);

/* The value of a fact about a process; NULL: there is none. */
const char *process_fact(const struct profile *p, const struct profile_process *process,
			 const char *key);

#endif
