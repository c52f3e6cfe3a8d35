/* SPDX-License-Identifier: BSD-2-Clause */
/* Facts about the machine, as events: the first group of <sysprof/meta_keys.h>. */
#ifndef PROCFS_MACHINE_FACTS_H
#define PROCFS_MACHINE_FACTS_H

#include <stdint.h>

#include "stream/event_queue.h"

/* Unknown facts are left out. 0, or what `push` returned. */
int machine_facts__emit(event_push_fn push, void *context, uint64_t time);

#endif
