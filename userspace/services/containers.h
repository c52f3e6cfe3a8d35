/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of containers and pods, from files of their runtimes (containerd, CRI-O, Podman, Docker)
 * and the names of kubelet's log files. No API server is queried. The files are the
 * administrator's, their contents the tenants': size, depth and every text may be hostile.
 *
 * A container is looked up once; if not found, a few times more, because it may begin before its
 * files are there. Of the many that come and go, those used last are kept.
 */
#ifndef SERVICES_CONTAINERS_H
#define SERVICES_CONTAINERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTAINERS_KEPT	   8192u
#define CONTAINER_FILE_MAX (1u << 20) /* bytes of one */

struct containers;

#define CONTAINER_TEXT_MAX 512

/* X(field, key): the key of a process's fact is CONTAINER_FACT and this. */
#define CONTAINER_NAMES(X)                                                                         \
	X(pod, "pod") /* Kubernetes */                                                             \
	X(pod_namespace, "namespace")                                                              \
	X(container, "container")                                                                  \
	X(name, "name")	      /* Docker's, Podman's or of a Compose or Swarm service */            \
	X(image, "image")     /* "registry/shop:1.2" */                                            \
	X(service, "service") /* from the pod's or container's own label or annotation */
#define CONTAINER_FACT "container:"

/* NULL: not known. As they are in the files, of any bytes: at most CONTAINER_TEXT_MAX each. */
struct container_names {
#define X(field, key) char *field;
	CONTAINER_NAMES(X)
#undef X
};

void container_names__fini(struct container_names *names);
/* Those among the facts of a process, whose texts they are. False: there are none. */
bool container_names__take_facts(struct container_names *names,
				 const char *(*fact)(const void *context, const char *key),
				 const void *context);

/*
 * `root`: where the host's files are, "/"; NULL: nothing is read. 0, -ENOMEM, or why it cannot be
 * opened.
 */
int containers__new(const char *root, struct containers **containers);
void containers__free(struct containers *c);

/*
 * The names of a container, or of one in this pod, by ids ("": unknown); NULL: not known. `now`:
 * CLOCK_MONOTONIC ns. Valid until the next call.
 */
const struct container_names *containers__find(struct containers *c, const char *id,
					       const char *pod_uid, uint64_t now);

/* Does containers__find() read files for it at `now`? */
bool containers__is_due(const struct containers *c, const char *id, const char *pod_uid,
			uint64_t now);
/* When it first did, by that call's `now`; 0: it has not. */
uint64_t containers__first_try(const struct containers *c, const char *id, const char *pod_uid);

/* Adds names that are known from elsewhere; they are copied. 0 or -ENOMEM. */
int containers__put(struct containers *c, const char *id, const char *pod_uid,
		    const struct container_names *names);

struct containers_stats {
	uint64_t looked_up, found, evicted;
};
void containers__stats(const struct containers *c, struct containers_stats *stats);

/* Names from an OCI runtime's config.json or Docker's config.v2.json. 0, -EBADMSG, -ENOMEM. */
int container_config__parse(const char *json, size_t size, struct container_names *names);

#endif
