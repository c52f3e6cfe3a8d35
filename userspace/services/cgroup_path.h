/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Container, pod and systemd unit from a control group's path. Runtimes, kubelet and systemd have
 * grammars of their own and are nested (docker in docker, systemd in a container), so the last one
 * found counts. Users may name groups below their own.
 */
#ifndef SERVICES_CGROUP_PATH_H
#define SERVICES_CGROUP_PATH_H

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
/* Of a process: what monitors a container is not in it. */
void cgroup_place__of_process(struct cgroup_place *place, const char *path);

/*
 * The first part of a path; what is behind it. "": it is empty or, which no group's is, longer than
 * CGROUP_NAME_SIZE.
 */
const char *cgroup_path_part(const char *path, char name[CGROUP_NAME_SIZE]);

enum cgroup_owner { CGROUP_OF_NONE, CGROUP_OF_USER, CGROUP_OF_CONTAINER };

/* Who names the groups below one of this name as they like? */
enum cgroup_owner cgroup_owner_of(const char *name);

/*
 * Such groups can have the names of any unit or container. So a pattern (as of fnmatch()) is for
 * groups below only if it begins with their owner: "user@*.service/nginx.service". What is to match
 * below a group of this name; NULL: nothing.
 */
const char *cgroup_pattern_below(const char *pattern, const char *name);

#endif
