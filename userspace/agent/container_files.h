/* SPDX-License-Identifier: BSD-2-Clause */
/* The state files of container runtimes, one at a time (containers.h). */
#ifndef AGENT_CONTAINER_FILES_H
#define AGENT_CONTAINER_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "agent/containers.h"

/* The same as struct container_names, owned; each at most CONTAINER_TEXT_MAX bytes. */
struct container_texts {
	char *pod, *pod_namespace, *container, *name, *image, *service;
};
#define CONTAINER_TEXT_MAX 512

void container_texts__fini(struct container_texts *t);

struct container_files_stats {
	uint64_t read, bad;
};

/*
 * What the files below `root_fd` say about a container. The names that are found first stay. 0 or -ENOMEM; that there is
 * no file, or none that is sound, is no error.
 */
int container_files__read(int root_fd, const char *id, struct container_texts *texts,
			  struct container_files_stats *stats);

/* The texts in one such file: an OCI runtime's config.json, or Docker's config.v2.json. 0, -EBADMSG, -ENOMEM. */
int container_config__parse(const char *json, size_t size, struct container_texts *texts);

#endif
