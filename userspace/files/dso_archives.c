/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/dso_archives.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/proc_task.h"
#include "files/zip.h"

#define MEMBER (1u << 31) /* in the lower half of a number: no file has so high a place */

void dso_archives__init(struct dso_archives *a, const struct lru_clock *clock, size_t max,
			struct outside_books *books)
{
	*a = (struct dso_archives){.books = books};
	lru__init(&a->order, clock, max);
}

void dso_archives__fini(struct dso_archives *a)
{
	vec_free_with(&a->members, member, free(member->path));
	lru__fini(&a->order);
}

/* ---- coming and going ------------------------------------------------------------------------ */

static void forget(void *archives, uint32_t i)
{
	struct dso_archives *a = archives;

	free(a->members.data[i].path);
	a->members.data[i].path = NULL;
	lru__release(&a->order, i);
}

void dso_archives__forget_file(struct dso_archives *a, uint32_t archive)
{
	for (size_t i = 0; i < a->members.count; i++)
		if (a->members.data[i].path && a->members.data[i].archive == archive)
			forget(a, i);
}

/* ---- looking into one ------------------------------------------------------------------------ */

static uint32_t member_at(const struct dso_archives *a, uint32_t archive, uint64_t offset)
{
	for (size_t i = 0; i < a->members.count; i++) {
		const struct dso_member *m = &a->members.data[i];

		if (m->path && m->archive == archive && offset >= m->offset &&
		    offset - m->offset < m->size)
			return i;
	}
	return LRU_NONE;
}

/* zip_find() within the limits of CPU time and of readings of this archive; -EAGAIN: not now. */
static int find_entry(struct dso_archives *a, const struct open_archive *archive, uint64_t offset,
		      struct zip_entry *entry)
{
	const struct quota_limit *cpu = &quota_row(QUOTA_ARCHIVES)->all,
				 *readings = &quota_row(QUOTA_ARCHIVE_READS)->each;
	uint64_t now = monotonic_ns(), begin = thread_cpu_ns(), event_now = a->order.clock->now;
	int err;

	if (meter__left(archive->readings, readings, event_now) <= 0 ||
	    meter__left(&a->cpu, cpu, now) <= 0)
		return -EAGAIN;
	err = zip_find(archive->fd, offset, entry);
	meter__take(archive->readings, readings, 1, event_now);
	meter__take(&a->cpu, cpu, thread_cpu_ns() - begin, now);
	return err;
}

/* Add the library at this offset: *member, or LRU_NONE if there is none. 0 or negative errno. */
static int add_member(struct dso_archives *a, const struct open_archive *archive,
		      const char *archive_path, uint64_t offset, uint32_t *member)
{
	_cleanup_free_ char *path = NULL;
	struct dso_member m = {.archive = archive->file};
	struct zip_entry entry;
	uint32_t place;
	int err;

	*member = LRU_NONE;
	if (!lru__make_room(&a->order, 0, forget, a))
		return 0;
	err = find_entry(a, archive, offset, &entry);
	if (err || !file_search__read_build_id(archive->fd, entry.offset, &m.build_id))
		return err;
	m.offset = entry.offset;
	m.size = entry.size;
	if (asprintf(&path, "%.*s" ARCHIVE_MARK "%s", (int)mapping_path_length(archive_path),
		     archive_path, entry.name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	if (strlen(path) >= EVENT_PATH_MAX)
		return 0;
	err = lru__take_in(&a->order, &a->members, 0, &place);
	if (err)
		return err;
	m.path = steal_ptr(path);
	m.number = (uint64_t)++a->serial << 32 | MEMBER | place;
	a->members.data[place] = m;
	lru__use(&a->order, place);
	*member = place;
	return 0;
}

/*
 * Identified by its archive, even one that the administrator put there, because a file with its
 * build-id is another one and begins elsewhere.
 */
static void fill_inner_event(const struct dso_member *member, const struct mmap_event *event,
			     struct mmap_event_space *space)
{
	struct mmap_event *inner = &space->event;

	memset(space, 0, sizeof(*space));
	memcpy(inner, event, sizeof(*event));
	snprintf(inner->path, EVENT_PATH_MAX, "%s%s", member->path,
		 event->path + mapping_path_length(event->path));
	inner->header.size = event_aligned(sizeof(*inner) + strlen(inner->path) + 1);
	inner->page_offset -= member->offset;
	inner->file = member->number;
	build_id_report(&member->build_id, inner);
	if (member->build_id.size)
		inner->header.flags |= EVENT_UNSHARED;
}

/* Counts what a limit left out: `err` of add_member(), or a member whose build-id was not found. */
static void note_left(struct dso_archives *a, const struct mmap_event *event, int err,
		      uint32_t member)
{
	uint32_t user = outside_books__user_of(a->books, (pid_t)event->pid);

	if (err == -EFBIG || err == -EAGAIN)
		outside_books__add(a->books, user, OUTSIDE_ARCHIVES,
				   err == -EFBIG ? OUTSIDE_BY_ITSELF : OUTSIDE_BY_TOO_OFTEN, 1);
	if (member != LRU_NONE && a->members.data[member].build_id.left)
		outside_books__add(a->books, user, OUTSIDE_BUILD_IDS, OUTSIDE_BY_ITSELF, 1);
}

int dso_archives__enter(struct dso_archives *a, const struct open_archive *archive,
			const struct mmap_event *event, struct mmap_event_space *inner)
{
	uint32_t member = member_at(a, archive->file, event->page_offset);

	if (member == LRU_NONE) {
		int err = add_member(a, archive, event->path, event->page_offset, &member);

		note_left(a, event, err, member);
		if (err == -ENOMEM || member == LRU_NONE)
			return err == -ENOMEM ? err : 0;
	}
	lru__use(&a->order, member);
	fill_inner_event(&a->members.data[member], event, inner);
	return 1;
}

/* ---- by number and by name -------------------------------------------------------------------- */

static uint32_t place_of(const struct dso_archives *a, uint64_t number)
{
	uint32_t i = (uint32_t)number & ~MEMBER;

	return number & MEMBER && i < a->members.count && a->members.data[i].path &&
			       a->members.data[i].number == number
		       ? i
		       : LRU_NONE;
}

const struct dso_member *dso_archives__numbered(struct dso_archives *a, uint64_t number)
{
	uint32_t i = place_of(a, number);

	if (i == LRU_NONE)
		return NULL;
	lru__use(&a->order, i);
	return &a->members.data[i];
}

void dso_archives__hold(struct dso_archives *a, uint64_t number)
{
	uint32_t i = place_of(a, number);

	if (i != LRU_NONE)
		lru__hold(&a->order, i);
}

void dso_archives__unhold(struct dso_archives *a, uint64_t number)
{
	uint32_t i = place_of(a, number);

	if (i != LRU_NONE)
		lru__unhold(&a->order, i);
}

int dso_archives__add_by_name(struct dso_archives *a, const struct open_archive *archive,
			      const char *archive_path, const char *name, uint64_t *number)
{
	struct zip_entry entry;
	uint32_t member = LRU_NONE;
	int err = zip_find_name(archive->fd, name, &entry)
			  ?: add_member(a, archive, archive_path, entry.offset, &member);

	if (!err && member == LRU_NONE)
		err = -ENOENT;
	if (!err)
		*number = a->members.data[member].number;
	return err;
}
