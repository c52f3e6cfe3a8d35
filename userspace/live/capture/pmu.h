/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of a PMU, as sysfs describes it: /sys/bus/event_source/devices/PMU. */
#ifndef LIVE_CAPTURE_PMU_H
#define LIVE_CAPTURE_PMU_H

#include "live/capture/tick_source.h"

/*
 * "PMU/TERM,TERM=VALUE/": names of events and of fields, and config, config1, config2. `root` is
 * the directory of the PMUs; NULL: sysfs. -ENOENT, -EINVAL: with the term that is wrong.
 */
int pmu__find(const char *root, const char *text, struct tick_source *source,
	      struct failure *failure);

/* Calls `take` for every event that a PMU has by name: "cpu/mem-loads/". 0 or its result. */
int pmu__list(const char *root, int (*take)(void *context, const char *name), void *context);

#endif
