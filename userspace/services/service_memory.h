/* SPDX-License-Identifier: BSD-2-Clause */
/* What was decided about lives and control groups, kept from window to window. One thread. */
#ifndef SERVICES_SERVICE_MEMORY_H
#define SERVICES_SERVICE_MEMORY_H

#include <stdint.h>

#include "services/service_decision.h"

struct label_set;
struct naming_stats;
struct service_memory;

/* Earlier decisions on lives and groups (by their busiest process): the half used last stays. */

#define LIVES_KEPT  65536u
#define GROUPS_KEPT 8192u

struct kept_life {
	uint64_t life;
	uint32_t pid;
	enum service_source source;
	struct label_set *set; /* held */
	uint64_t used;	       /* window */
};

struct kept_group {
	char *path, *program; /* program: of the process; "" unknown */
	enum service_source source;
	struct label_set *set; /* held */
	uint64_t used;	       /* window in which it was set or used */
	uint64_t window, cpu;  /* in which, and of how much CPU time, it was set */
};

struct service_memory *service_memory__new(void); /* NULL: no memory */
/* Before the sets. NULL is fine. */
void service_memory__free(struct service_memory *m);

/* NULL: unknown. Valid until something is added. */
struct kept_life *service_memory__life(struct service_memory *m, uint64_t life);
/* The life of this pid that was kept last. */
struct kept_life *service_memory__pid(struct service_memory *m, uint32_t pid);
/* 0 or -ENOMEM. */
int service_memory__keep_life(struct service_memory *m, const struct kept_life *life);

struct kept_group *service_memory__group(struct service_memory *m, const char *path);
/* Unless a busier process has decided it in this window. 0 or -ENOMEM. */
int service_memory__keep_group(struct service_memory *m, const struct kept_group *group);

/* After a window: evicts lives that were not in the last few. */
void service_memory__sweep(struct service_memory *m, uint64_t window);

/* Into lives_kept, groups_kept and lives_evicted. */
void service_memory__stats(const struct service_memory *m, struct naming_stats *stats);

#endif
