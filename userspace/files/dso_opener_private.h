/* SPDX-License-Identifier: BSD-2-Clause */
/* The opener's parts, also for its tests. */
#ifndef FILES_DSO_OPENER_PRIVATE_H
#define FILES_DSO_OPENER_PRIVATE_H

#include "files/dso_files.h"
#include "files/dso_roots.h"
#include "files/dso_waits.h"
#include "files/lru.h"

struct dso_opener {
	struct lru_clock clock; /* the latest time of an event */
	struct dso_roots roots;
	struct dso_files files;
	struct dso_waits waits;
	uint64_t events;
};

#endif
