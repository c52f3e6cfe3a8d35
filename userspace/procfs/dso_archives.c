/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Libraries mapped from a zip archive that stores them uncompressed: Android's packages.
 *
 * The directory of an archive is untrusted and may be large. So it is read only at the first mapping of each
 * library, with a limit of reads per minute for each archive and of CPU time for all.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/zip.h"
#include "procfs/dso_opener_private.h"

void dso_archives__init(struct dso_opener *o)
{
	lru__init(&o->member_order);
}

void dso_archives__fini(struct dso_opener *o)
{
	for (size_t i = 0; i < o->members.count; i++)
		free(o->members.data[i].path);
	vec_free(&o->members);
	lru__fini(&o->member_order);
}

/* ---- coming and going ------------------------------------------------------------------------ */

static void forget_member(struct dso_opener *o, uint32_t index)
{
	free(o->members.data[index].path);
	o->members.data[index].path = NULL;
	lru__release(&o->member_order, index);
}

void dso_archives__forget_image(struct dso_opener *o, uint32_t archive)
{
	for (size_t i = 0; i < o->members.count; i++)
		if (o->members.data[i].path && o->members.data[i].archive == archive)
			forget_member(o, i);
}

static bool make_member_room(struct dso_opener *o)
{
	while (o->member_order.count >= o->caps.members_max) {
		uint32_t index = lru__idle(&o->member_order, o->now, o->caps.idle);

		if (index == LRU_NONE)
			return false;
		forget_member(o, index);
	}
	return true;
}

/* ---- looking into one ------------------------------------------------------------------------ */

static uint32_t member_at(const struct dso_opener *o, uint32_t archive, uint64_t offset)
{
	for (size_t i = 0; i < o->members.count; i++) {
		const struct member *m = &o->members.data[i];

		if (m->path && m->archive == archive && offset >= m->offset &&
		    offset - m->offset < m->size)
			return i;
	}
	return LRU_NONE;
}

/* zip_find() within the limits of CPU time and of readings of this archive; -EAGAIN: not now. */
static int find_entry(struct dso_opener *o, struct dso_image *archive, uint64_t offset,
		      struct zip_entry *entry)
{
	const struct quota_limit *cpu = &quota_row(QUOTA_ARCHIVES)->all,
				 *readings = &quota_row(QUOTA_ARCHIVE_READS)->each;
	uint64_t now = monotonic_ns(), begin = thread_cpu_ns();
	int err;

	if (meter__left(&archive->readings, readings, o->now) <= 0 ||
	    meter__left(&o->archive_cpu, cpu, now) <= 0)
		return -EAGAIN;
	err = zip_find(archive->fd, offset, entry);
	meter__take(&archive->readings, readings, 1, o->now);
	meter__take(&o->archive_cpu, cpu, thread_cpu_ns() - begin, now);
	return err;
}

/* The library at this offset of an archive: 0, and which, or LRU_NONE where there is none; -ENOMEM. */
static int add_member(struct dso_opener *o, uint32_t archive, const struct wanted *w,
		      uint64_t offset, uint32_t *member)
{
	struct dso_image *image = &o->images.data[archive];
	_cleanup_free_ char *path = NULL;
	struct member m = {
		.archive = archive,
		.major = w->major,
		.minor = w->minor,
		.inode = w->inode,
		.generation = w->generation,
	};
	struct zip_entry entry;
	uint32_t place;
	int err;

	*member = LRU_NONE;
	if (image->fd < 0 || !make_member_room(o))
		return 0;
	err = find_entry(o, image, offset, &entry);
	if (err || !file_search__read_build_id(image->fd, entry.offset, &m.build_id))
		return err == -ENOMEM ? err : 0;
	m.offset = entry.offset;
	m.size = entry.size;
	if (asprintf(&path, "%.*s" ARCHIVE_MARK "%s", (int)w->path_length, w->path, entry.name) <
	    0) {
		path = NULL;
		return -ENOMEM;
	}
	if (strlen(path) >= EVENT_PATH_MAX)
		return 0;
	err = lru__take_in(&o->member_order, &o->members, &place);
	if (err)
		return err;
	m.path = steal_ptr(path);
	o->members.data[place] = m;
	*member = place;
	return 0;
}

static void fill_inner_event(const struct member *member, const struct mmap_event *event,
			     struct mmap_event_space *space)
{
	struct mmap_event *inner = &space->event;

	memset(space, 0, sizeof(*space));
	memcpy(inner, event, sizeof(*event));
	snprintf(inner->path, EVENT_PATH_MAX, "%s%s", member->path,
		 event->path + mapping_path_length(event->path));
	inner->header.size = event_aligned(sizeof(*inner) + strlen(inner->path) + 1);
	inner->page_offset -= member->offset;
	dso_event__set_build_id(inner, &member->build_id);
}

int dso_archives__enter(struct dso_opener *o, uint32_t archive, const struct wanted *w,
			const struct mmap_event *event, struct mmap_event_space *inner)
{
	uint32_t member = member_at(o, archive, event->page_offset);

	if (member == LRU_NONE) {
		int err = add_member(o, archive, w, event->page_offset, &member);

		if (err || member == LRU_NONE)
			return err;
	}
	lru__use(&o->member_order, member, o->now);
	fill_inner_event(&o->members.data[member], event, inner);
	return 1;
}

/* ---- requested by identity ------------------------------------------------------------------- */

/* Without a build-id it is identified by where it was mapped from, as sightings are. */
static bool member_is(const struct member *m, const struct wanted *w)
{
	if (!m->path)
		return false;
	if (w->build_id.size > 0)
		return build_id_equal(&w->build_id, &m->build_id);
	return !m->build_id.size && m->inode == w->inode && m->major == w->major &&
	       m->minor == w->minor && m->generation == w->generation &&
	       !strncmp(m->path, w->path, w->path_length) && !m->path[w->path_length];
}

/* It may be in several archives, some of which no longer exist. */
void dso_archives__locate(struct dso_opener *o, const struct wanted *w, struct located *located)
{
	for (size_t i = 0; i < o->members.count && located->fd < 0 && located->fd != -EAGAIN; i++) {
		const struct member *m = &o->members.data[i];

		if (!member_is(m, w))
			continue;
		lru__use(&o->member_order, i, o->now);
		located->image = m->archive;
		located->base = m->offset;
		dso_images__locate(o, located, &m->build_id);
	}
}

int dso_archives__open_by_name(struct dso_opener *o, const struct wanted *w)
{
	const char *mark = strstr(w->path, ARCHIVE_MARK);
	_cleanup_free_ char *path = mark ? strndup(w->path, mark - w->path) : NULL;
	struct wanted outer = {
		.path = path,
		.major = w->major,
		.minor = w->minor,
		.inode = w->inode,
		.generation = w->generation,
	};
	struct found found = {};
	struct zip_entry entry;
	uint32_t archive, member;
	int err;

	if (!path)
		return mark ? -ENOMEM : -ENOENT;
	outer.path_length = strlen(path);
	err = dso_searches__own(o, &outer, &found);
	if (!err)
		err = dso_images__adopt(o, &found, &archive);
	if (err)
		return err;
	if (!o->images.data[archive].archive || o->images.data[archive].fd < 0)
		return -ENOENT;
	err = zip_find_name(o->images.data[archive].fd, mark + strlen(ARCHIVE_MARK), &entry);
	if (!err)
		err = add_member(o, archive, &outer, entry.offset, &member);
	if (!err && member != LRU_NONE)
		lru__use(&o->member_order, member, o->now);
	return err;
}
