/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that have no runtime in them whose functions could be read: each program is looked into once, however many processes
 * run it. Bounded: when it is full all are forgotten, and looked into again.
 */
#ifndef LIVE_PLAIN_FILES_H
#define LIVE_PLAIN_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/event.h>

#include "base/map.h"

#define PLAIN_FILES_MAX 8192u

DEFINE_SET(file_set, uint64_t);

/* Zeroed, it is empty. */
struct plain_files {
	struct file_set files;
};

void plain_files__fini(struct plain_files *p);

/* Which file it is that is mapped; never 0. A build-id that others than the administrator may have written is not enough. */
uint64_t plain_files__identity(const struct mmap_event *mapping);

/* The same, of a process on that account (helpers/owner.h). */
uint64_t plain_files__of_owner(uint64_t file, uint64_t owner);

bool plain_files__has(const struct plain_files *p, uint64_t file);
/* Without memory for it the file is looked into again. */
void plain_files__add(struct plain_files *p, uint64_t file);

#endif
