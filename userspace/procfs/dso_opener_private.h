/* SPDX-License-Identifier: BSD-2-Clause */
/* The opener's parts, also for its tests. */
#ifndef PROCFS_DSO_OPENER_PRIVATE_H
#define PROCFS_DSO_OPENER_PRIVATE_H

#include "procfs/dso_files.h"
#include "procfs/dso_roots.h"
#include "procfs/dso_waits.h"
#include "procfs/lru.h"

struct dso_opener {
	struct lru_clock clock; /* the latest time of an event */
	struct dso_roots roots;
	struct dso_files files;
	struct dso_waits waits;
	uint64_t events;
};

#endif
