/* SPDX-License-Identifier: BSD-2-Clause */
/* Completes the events of mappings by the files that are known or found. */
#ifndef FILES_DSO_EVENTS_H
#define FILES_DSO_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/event.h>

#include "files/dso_opener.h"
#include "files/dso_roots.h"

struct dso_files;
struct dso_search;

/* Our own vDSO, which is that of all 64-bit processes and always kept. */
uint32_t dso_files__vdso(struct dso_files *f);

/* Completes the event if it is of the vDSO or of memory. */
bool dso_files__complete_memory(struct dso_files *f, struct mmap_event *event);
/* Completes the event if its file is known and needs no search. */
bool dso_files__complete_known(struct dso_files *f, struct mmap_event *event, struct root_id root,
			       uint32_t *file);
/* By a search that has found it. 0 or -ENOMEM. *file may be HASHMAP_NONE. */
int dso_files__complete_found(struct dso_files *f, struct mmap_event *event,
			      const struct dso_search *found, uint32_t *file);
/* By another event of the same file. */
void dso_files__complete_like(struct dso_files *f, struct mmap_event *event,
			      const struct mmap_event *like, uint32_t file);
/* Nothing was found. */
void dso_files__give_up(struct mmap_event *event, enum file_state state);
/* Answers a complete event (of an archive: its mapped library). `answer`'s result or -ENOMEM. */
int dso_files__answer_event(struct dso_files *f, struct mmap_event *event, uint32_t file,
			    mapping_answer_fn answer, void *context);

#endif
