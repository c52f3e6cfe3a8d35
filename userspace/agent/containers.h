/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of containers and pods, from files of their runtimes (containerd, CRI-O, Podman, Docker)
 * and the names of kubelet's log files. No API server is queried. The files are the
 * administrator's, their contents the tenants': size, depth and every text may be hostile.
 *
 * A container is looked up once; if not found, a few times more, because it may begin before its
 * files are there. Of the many that come and go, those used last are kept.
 */
#ifndef AGENT_CONTAINERS_H
#define AGENT_CONTAINERS_H

#include <stddef.h>
#include <stdint.h>

#define CONTAINERS_KEPT	   8192u
#define CONTAINER_FILE_MAX (1u << 20) /* bytes of one */

struct containers;

#define CONTAINER_TEXT_MAX 512

/* NULL: not known. As they are in the files, of any bytes: at most CONTAINER_TEXT_MAX each. */
struct container_names {
	char *pod, *pod_namespace, *container; /* Kubernetes */
	char *name;    /* Docker's, Podman's or of a Compose or Swarm service */
	char *image;   /* "registry/shop:1.2" */
	char *service; /* from the pod's or container's own label or annotation */
};

void container_names__fini(struct container_names *names);

/* `root`: where the host's files are, "/". 0, -ENOMEM, or why it cannot be opened. */
int containers__new(const char *root, struct containers **containers);
void containers__free(struct containers *c);

/*
 * The names of a container, or of one in this pod, by ids ("": unknown); NULL: not known. `now`:
 * CLOCK_MONOTONIC ns. Valid until the next call.
 */
const struct container_names *containers__find(struct containers *c, const char *id,
					       const char *pod_uid, uint64_t now);

struct containers_stats {
	uint64_t looked_up, found, evicted;
};
void containers__stats(const struct containers *c, struct containers_stats *stats);

/* Names from an OCI runtime's config.json or Docker's config.v2.json. 0, -EBADMSG, -ENOMEM. */
int container_config__parse(const char *json, size_t size, struct container_names *names);

#endif
