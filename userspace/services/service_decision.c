/* SPDX-License-Identifier: BSD-2-Clause */
#include "services/service_decision.h"

#include <stdio.h>
#include <string.h>

#include "base/list_column.h"
#include "base/proc_task.h"
#include "services/cgroup_path.h"
#include "services/containers.h"

#define SHIM_PREFIX                                                                                \
	"containerd-shim-" /* the shim gives this to what it starts: it names no service */

const char *service_source_text(enum service_source source)
{
	static const char *const texts[SERVICE_SOURCE_COUNT] = {SERVICE_SOURCES(SECOND_COLUMN)};

	return texts[source];
}

static const char *fact(const struct service_question *q, const char *key)
{
	return q->fact(q->context, key);
}

/* False: `text` is NULL, or nothing of it is left. */
static bool set(char *label, size_t size, const char *text)
{
	return text && label_value_set(label, size, text);
}

#define SET(label, text) set((label), sizeof(label), (text))

static const char *last_part(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

/* A path too long to be read is an empty fact, and cut in its mapping. */
const char *service_program(const struct service_question *q)
{
	const char *exe = fact(q, "exe");

	if (exe)
		return *exe ? exe : "toolong";
	return q->mapped && *q->mapped ? q->mapped : q->program;
}

/* A program's name by its path; if in memory, its memfd's: "memfd:runc_cloned". "": none. */
static void program_name(const struct service_question *q, char *name, size_t size)
{
	static const char memory[] = "/memfd:";
	const char *path = service_program(q), *begin;
	size_t length = path ? mapping_path_length(path) : 0;

	*name = '\0';
	if (!length)
		return;
	if (!strncmp(path, memory, sizeof(memory) - 1)) {
		begin = path + 1;
		length = sizeof(memory) - 2 + strcspn(path + sizeof(memory) - 1, ":/ ");
	} else {
		begin = memrchr(path, '/', length);
		begin = begin ? begin + 1 : path;
		length -= begin - path;
	}
	snprintf(name, size, "%.*s", (int)length, begin);
}

/* ---- facts of a process ---------------------------------------------------------------------- */

static bool attribute(const struct service_question *q, const char *name, char *label, size_t size)
{
	const char *text = fact(q, "env:OTEL_RESOURCE_ATTRIBUTES");

	return text && resource_attribute(text, name, label, size);
}

static bool name_by_environment(const struct service_question *q, struct service_decision *d)
{
	static const char *const names[] = {"env:DD_SERVICE", "env:OTEL_SERVICE_NAME"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *text = fact(q, names[i]);

		if (text && strncmp(text, SHIM_PREFIX, strlen(SHIM_PREFIX)) && SET(d->name, text))
			return true;
	}
	return false;
}

static bool name_by_itself(const struct service_question *q, struct service_decision *d)
{
	if (SET(d->name, fact(q, "otel:service.name")))
		d->source = SERVICE_FROM_OTEL_CONTEXT;
	else if (name_by_environment(q, d))
		d->source = SERVICE_FROM_ENVIRONMENT;
	else if (attribute(q, "service.name", d->name, sizeof(d->name)))
		d->source = SERVICE_FROM_RESOURCE;
	else
		return false;
	return true;
}

/* ---- what others say about it ---------------------------------------------------------------- */

/* "<namespace>/<container>" */
static bool name_by_pod(const struct service_question *q, struct service_decision *d)
{
	const struct container_names *c = q->container;
	const char *container = c && c->container ? c->container : fact(q, "script");
	char text[4 * LABEL_TEXT_SIZE], program[2 * LABEL_TEXT_SIZE];

	program_name(q, program, sizeof(program));
	container = container ? container : program;
	if (!c || !c->pod_namespace || !*container)
		return false;
	snprintf(text, sizeof(text), "%s/%s", c->pod_namespace, container);
	return SET(d->name, text);
}

static bool name_by_owner(const struct service_question *q, struct service_decision *d)
{
	const struct container_names *c = q->container;

	if (c && SET(d->name, c->service))
		d->source = SERVICE_FROM_ANNOTATION;
	else if (name_by_pod(q, d))
		d->source = SERVICE_FROM_KUBERNETES;
	else if ((c && SET(d->name, c->name)) || SET(d->name, q->place->container_name))
		d->source = SERVICE_FROM_CONTAINER;
	else if (!q->place->container[0] && SET(d->name, q->place->unit_service))
		d->source = SERVICE_FROM_UNIT;
	else
		return false;
	return true;
}

static void name_by_program(const struct service_question *q, struct service_decision *d)
{
	char program[2 * LABEL_TEXT_SIZE];

	program_name(q, program, sizeof(program));
	if (SET(d->name, fact(q, "script"))) {
		d->source = SERVICE_FROM_SCRIPT;
	} else if (SET(d->name, program)) {
		d->source = SERVICE_FROM_EXE;
	} else if (SET(d->name, last_part(q->cgroup))) {
		d->source = SERVICE_FROM_CGROUP;
	} else {
		SET(d->name, SERVICE_UNKNOWN);
	}
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* The tag, if it is a version. */
static void version_of_image(const char *image, char *label, size_t size)
{
	const char *name = last_part(image);
	const char *tag = name && !strchr(name, '@') ? strchr(name, ':') : NULL;

	if (tag && strcmp(tag + 1, "latest"))
		set(label, size, tag + 1);
}

static void set_version(const struct service_question *q, struct service_decision *d)
{
	if (SET(d->version, fact(q, "otel:service.version")) ||
	    SET(d->version, fact(q, "env:DD_VERSION")) ||
	    attribute(q, "service.version", d->version, sizeof(d->version)))
		return;
	if (q->container)
		version_of_image(q->container->image, d->version, sizeof(d->version));
}

static void set_namespace(const struct service_question *q, struct service_decision *d)
{
	if ((q->container && SET(d->name_space, q->container->pod_namespace)) ||
	    SET(d->name_space, fact(q, "otel:k8s.namespace.name")) ||
	    SET(d->name_space, fact(q, "otel:service.namespace")))
		return;
	attribute(q, "service.namespace", d->name_space, sizeof(d->name_space));
}

static void set_pod(const struct service_question *q, struct service_decision *d)
{
	if ((q->container && SET(d->pod, q->container->pod)) || !q->place->pod_uid[0])
		return;
	if (SET(d->pod, fact(q, "otel:k8s.pod.name")))
		return;
	/* with the host's network a pod has the host's name */
	if (SET(d->pod, fact(q, "env:HOSTNAME")) && q->host && !strcmp(d->pod, q->host))
		d->pod[0] = '\0';
}

/* Of one without a name the beginning of its id, as other tools show it. */
static void set_container(const struct service_question *q, struct service_decision *d)
{
	char id[13];

	if (q->container &&
	    (SET(d->container, q->container->container) || SET(d->container, q->container->name)))
		return;
	if (SET(d->container, q->place->container_name))
		return;
	snprintf(id, sizeof(id), "%.12s", q->place->container);
	d->container_is_id = SET(d->container, id);
}

static void clear(struct service_decision *d)
{
	d->source = SERVICE_FROM_NONE;
	d->container_is_id = false;
	d->name[0] = d->version[0] = d->name_space[0] = d->pod[0] = '\0';
	d->container[0] = d->unit[0] = d->instance[0] = '\0';
}

void service_decide(const struct service_question *q, struct service_decision *d)
{
	clear(d);
	if (q->is_kernel) {
		d->source = SERVICE_FROM_KERNEL;
		SET(d->name, "kernel");
		return;
	}
	if (name_by_itself(q, d)) {
		/* there is no better source */
	} else if (SET(d->name, q->ruled)) {
		d->source = SERVICE_FROM_RULE;
	} else if (!name_by_owner(q, d)) {
		name_by_program(q, d);
	}
	set_version(q, d);
	set_namespace(q, d);
	set_pod(q, d);
	set_container(q, d);
	SET(d->unit, q->place->unit);
	SET(d->instance, q->place->instance);
}
