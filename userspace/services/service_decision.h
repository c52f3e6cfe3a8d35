/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SERVICES_SERVICE_DECISION_H
#define SERVICES_SERVICE_DECISION_H

#include <stdbool.h>

#include "services/label_set.h"

struct cgroup_place;
struct container_names;

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

/* All that is known of a process. Texts: "" or NULL: unknown. */
struct service_question {
	/* A fact about it, as in struct facts_event; NULL: there is none. */
	const char *(*fact)(const void *context, const char *key);
	const void *context;
	bool is_kernel;
	const char *cgroup;  /* the path of its control group */
	const char *mapped;  /* the path of its program, by its mappings */
	const char *program; /* the same by its samples */
	const struct cgroup_place *place;
	const struct container_names *container; /* NULL: unknown */
	const char *ruled; /* what a rule of the user's calls the service; NULL: none does */
	const char *host;  /* the name of its host, as a label; NULL: unknown */
};

/* All texts: fit to be labels; "": none. */
struct service_decision {
	enum service_source source;
	bool container_is_id; /* it has no name: each id is new */
	char name[LABEL_SERVICE_MAX + 1];
	char version[LABEL_TEXT_SIZE], name_space[LABEL_TEXT_SIZE], pod[LABEL_TEXT_SIZE];
	char container[LABEL_TEXT_SIZE], unit[LABEL_TEXT_SIZE], instance[LABEL_TEXT_SIZE];
};

void service_decide(const struct service_question *question, struct service_decision *decision);

/* The path of its program; NULL: unknown. */
const char *service_program(const struct service_question *question);

#endif
