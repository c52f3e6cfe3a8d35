/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Container, pod and systemd unit from a control group's path. Runtimes, kubelet and systemd have
 * grammars of their own and are nested (docker in docker, systemd in a container), so the last one
 * found counts. Users may name groups below their own.
 */
#ifndef AGENT_CGROUP_PATH_H
#define AGENT_CGROUP_PATH_H

#include <stdbool.h>

#define CONTAINER_ID_SIZE 80  /* 64 hexadecimal digits, mostly */
#define CGROUP_NAME_SIZE  256 /* of a part of a path */

/* All texts: "" if there is none. Valid UTF-8 they need not be. */
struct cgroup_place {
	char container[CONTAINER_ID_SIZE];     /* its id */
	char container_name[CGROUP_NAME_SIZE]; /* LXC and machines of systemd have no id */
	char pod_uid[CONTAINER_ID_SIZE];
	char unit
		[CGROUP_NAME_SIZE]; /* "nginx.service", "postgresql@.service", "app-chrome.scope" */
	char instance[CGROUP_NAME_SIZE]; /* of a unit: "14-main" */
	/* The service that this unit is; "": none (a user's session, a job, a transient unit). */
	char unit_service[CGROUP_NAME_SIZE];
	bool is_monitor; /* of a container: what runs there is the runtime's */
};

void cgroup_place__parse(struct cgroup_place *place, const char *path);

#endif
