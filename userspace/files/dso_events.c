/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/dso_events.h"

#include <errno.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/list_column.h"
#include "base/log.h"
#include "base/proc_task.h"
#include "files/dso_files.h"
#include "files/dso_search.h"
#include "files/vdso.h"
#include "tenants/outside_books.h"

#define COMPAT_ADDRESS (1ULL << 32)

/* ---- the file of an event -------------------------------------------------------------------- */

/* No descriptor is free. */
static void note_no_descriptor(struct dso_files *f, struct mmap_event *event)
{
	event->file_state = FILE_STATE_NO_FDS;
	outside_books__add(f->books, outside_books__user_of(f->books, (pid_t)event->pid),
			   OUTSIDE_OPEN_FILES, OUTSIDE_BY_ALL, 1);
}

static void set_identity(struct mmap_event *event, const struct dso_file *file)
{
	build_id_report(&file->build_id, event);
	if (file->build_id.size == 0 || file->shared)
		return;
	event->header.flags |= EVENT_UNSHARED;
	event->major = major(file->device);
	event->minor = minor(file->device);
	event->inode = file->inode;
	event->inode_generation = file->state;
}

static void set_file(struct dso_files *f, struct mmap_event *event, uint32_t i)
{
	event->file = f->files.data[i].number;
	event->file_state = FILE_STATE_RIGHT;
	if (f->files.data[i].fd < 0)
		note_no_descriptor(f, event);
	set_identity(event, &f->files.data[i]);
	dso_files__use(f, i);
}

/* ---- the vDSO -------------------------------------------------------------------------------- */

uint32_t dso_files__vdso(struct dso_files *f)
{
	const struct lru_clock *clock = f->order.clock;
	struct file_finding facts = {.root = SEARCH_MAPPED, .shared = true}; /* by the kernel */
	struct dso_search found = {.facts = &facts};

	if (f->vdso != HASHMAP_NONE || clock->now < f->vdso_retry)
		return f->vdso;
	f->vdso_retry = clock->now + clock->idle;
	found.fd = vdso_copy(&f->vdso_length);
	if (found.fd < 0)
		return HASHMAP_NONE;
	facts.elf = file_search__read_build_id(found.fd, 0, &facts.build_id);
	if (dso_files__adopt(f, &found, &f->vdso))
		f->vdso = HASHMAP_NONE;
	else
		dso_files__hold(f, f->vdso);
	return f->vdso;
}

static void complete_vdso(struct dso_files *f, struct mmap_event *event)
{
	uint32_t i = dso_files__vdso(f);

	event->file_state = FILE_STATE_UNOPENED;
	if (i != HASHMAP_NONE && event->length == f->vdso_length &&
	    (sizeof(void *) != 8 || event->start >= COMPAT_ADDRESS))
		set_file(f, event, i);
}

/* ---- memory that is no file ------------------------------------------------------------------ */

/* Memory into which a runtime writes JIT code, unless it is ELF: no other process can open it. */
static bool may_be_memory(const char *path)
{
	return !strncmp(path, "/memfd:", 7) || mapping_is_deleted(path);
}

/* A memfd with JIT code is not searched for again for a while: its inode may be reused. */
static bool is_plain_memory(const struct dso_files *f, const struct mmap_event *event)
{
	const struct file_numbers numbers = mapping_numbers(event);

	for (size_t i = 0; i < PLAIN_KEPT && numbers.inode; i++)
		if (same_inode(&f->plain[i].numbers, &numbers) &&
		    f->order.clock->now - f->plain[i].time <= f->order.clock->idle)
			return may_be_memory(event->path);
	return false;
}

static void add_plain_memory(struct dso_files *f, const struct mmap_event *event)
{
	f->plain[f->next_plain++ % PLAIN_KEPT] = (struct plain_memory){mapping_numbers(event),
								       f->order.clock->now};
}

/* ---- events ---------------------------------------------------------------------------------- */

bool dso_files__complete_memory(struct dso_files *f, struct mmap_event *event)
{
	if (!strcmp(event->path, VDSO_NAME)) {
		complete_vdso(f, event);
		return true;
	}
	event->file_state = FILE_STATE_NONE;
	if (file_search__is_hopeless(event->path) || is_plain_memory(f, event))
		return true;
	event->file_state = FILE_STATE_UNOPENED;
	return !event->inode; /* nothing to recognize it by */
}

bool dso_files__complete_known(struct dso_files *f, struct mmap_event *event, struct root_id root,
			       uint32_t *file)
{
	uint64_t generation = event->inode_generation;

	*file = dso_files__of_mapping(f, event, root, &generation);
	if (*file == HASHMAP_NONE)
		return false;
	if (root.v && dso_roots__fd(f->roots, f->files.data[*file].root) < 0) /* it was evicted */
		dso_files__set_path(f, *file, root, event->path, mapping_path_length(event->path));
	event->inode_generation = generation;
	set_file(f, event, *file);
	return true;
}

/* Memory for code is no file. 0, -ENOSPC, -ENOMEM. */
static int adopt_found(struct dso_files *f, const struct mmap_event *event,
		       const struct dso_search *found, uint32_t *file)
{
	int err;

	*file = HASHMAP_NONE;
	if (may_be_memory(event->path) && !found->facts->elf && !found->facts->archive) {
		close(found->fd);
		add_plain_memory(f, event);
		return 0;
	}
	err = dso_files__adopt(f, found, file);
	return err ?: dso_sightings__add(&f->sightings, event, found->roots[SEARCH_PROCESS], *file);
}

int dso_files__complete_found(struct dso_files *f, struct mmap_event *event,
			      const struct dso_search *found, uint32_t *file)
{
	int err = adopt_found(f, event, found, file);

	if (err == -ENOSPC) {
		build_id_report(&found->facts->build_id, event);
		note_no_descriptor(f, event);
		if (event->build_id_size) /* no file: it may not be merged with another mapping */
			event->header.flags |= EVENT_UNSHARED;
		return 0;
	}
	if (err)
		return err;
	event->file_state = FILE_STATE_NONE;
	if (*file != HASHMAP_NONE)
		set_file(f, event, *file);
	return 0;
}

void dso_files__complete_like(struct dso_files *f, struct mmap_event *event,
			      const struct mmap_event *like, uint32_t file)
{
	if (file != HASHMAP_NONE) {
		set_file(f, event, file);
		return;
	}
	event->file_state = like->file_state;
	event->header.flags |= like->header.flags & (EVENT_UNSHARED | EVENT_BUILD_ID);
	event->build_id_size = like->build_id_size;
	memcpy(event->build_id, like->build_id, sizeof(event->build_id));
}

void dso_files__give_up(struct mmap_event *event, enum file_state state)
{
	static const char *const texts[] = {FILE_STATES(SECOND_COLUMN)};

	log_debug(LOG_PROCFS, "%s of process %d: %s", event->path, (int)event->pid, texts[state]);
	event->file_state = state;
}

int dso_files__answer_event(struct dso_files *f, struct mmap_event *event, uint32_t i,
			    mapping_answer_fn answer, void *context)
{
	struct dso_file *file = i == HASHMAP_NONE ? NULL : &f->files.data[i];
	struct mmap_event_space inner;
	int entered = 0;

	if (file && file->archive && event->file_state == FILE_STATE_RIGHT)
		entered = dso_archives__enter(&f->archives,
					      &(struct open_archive){i, file->fd, &file->readings},
					      event, &inner);
	return entered < 0 ? entered : answer(context, entered ? &inner.event : event);
}
