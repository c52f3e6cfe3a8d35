/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of images, their descriptors, and the tables built from them: see unwind_feed.c. */
#include "unwind/unwind_feed_files.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "unwind/unwind_feed_private.h"

#define YOUNG_NS   1000000000ull /* younger processes may be short-lived */
#define WAIT_NS	   500000000ull	 /* for which a copied stack waits for its tables */
#define TAKE_NS	   5000000ull /* per call, for tables in the cache, because the collector is busy */
#define DEATHS_MAX 20	      /* of builders, before the file is considered the cause */

/* ---- files ----------------------------------------------------------------------------------- */

void unwind_feed__close_file(struct unwind_feed *f, struct fed_file *file)
{
	f->with_elf -= file->elf != NULL;
	elf_file__free(file->elf);
	file->elf = NULL;
}

/* Is its table being built, or the file requested? */
static bool is_busy(const struct fed_file *file)
{
	return file->state == FILE_BUILDING || file->state == FILE_REQUESTED || file->pending;
}

/* Forgets a file that was not used for a while. */
static void forget_one(struct unwind_feed *f, const struct fed_file *but)
{
	for (size_t i = 0; i < 2 * f->files.count; i++) {
		struct fed_file *file = &f->files.data[f->hand++ % f->files.count];

		if (!file->elf || file == but || is_busy(file))
			continue;
		if (file->recent) {
			file->recent = false;
			continue;
		}
		unwind_feed__close_file(f, file);
		*file = (struct fed_file){};
		f->stats.forgotten++;
		return;
	}
}

static int open_elf(struct unwind_feed *f, struct fed_file *file, int fd, uint64_t base)
{
	int err = elf_file__open_at(fd, base, &file->elf);

	if (err) {
		file->elf = NULL;
		return err == -ENOMEM ? err : 0;
	}
	elf_file__detach(file->elf);
	file->base = base;
	if (++f->with_elf > f->options.files_max)
		forget_one(f, file);
	return 0;
}

int unwind_feed__answer_file(struct unwind_feed *f, struct image_id image, int fd, uint64_t base)
{
	struct fed_file *file;
	int err;

	if (image.v >= f->files.count)
		return 0;
	file = &f->files.data[image.v];
	file->pending = false;
	if (file->state == FILE_REQUESTED)
		file->state = FILE_PLAIN;
	if (fd < 0)
		return 0;
	err = file->elf ? 0 : open_elf(f, file, fd, base);
	if (err || !file->elf)
		return err;
	if (file->state == FILE_PLAIN)
		file->state = FILE_LATER;
	cleanup_close(&f->open_fd);
	f->open_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	f->open_image = image;
	return 0;
}

static bool is_open(const struct unwind_feed *f, struct image_id image)
{
	return f->open_fd >= 0 && f->open_image.v == image.v;
}

int unwind_feed__descriptor(struct unwind_feed *f, struct image_id image)
{
	struct fed_file *file = &f->files.data[image.v];
	int err = 0;

	if (!file->elf)
		return -ENOENT;
	if (!is_open(f, image)) {
		file->pending = true;
		err = f->options.request_file(f->options.context, image);
	}
	if (err)
		return err;
	return is_open(f, image) ? f->open_fd : -EAGAIN;
}

bool unwind_feed__forget(struct unwind_feed *f, struct image_id image)
{
	struct fed_file *file = image.v < f->files.count ? &f->files.data[image.v] : NULL;

	if (!file)
		return true;
	if (is_busy(file))
		return false;
	if (is_open(f, image)) {
		close(f->open_fd);
		f->open_fd = -1;
	}
	unwind_feed__close_file(f, file);
	*file = (struct fed_file){};
	return true;
}

/* ---- building -------------------------------------------------------------------------------- */

bool unwind_feed__may_build(const struct unwind_feed *f, uint32_t user)
{
	return !f->cached_only && quota__left(&f->building_cpu, user, monotonic_ns()) > 0;
}

/* Without credit, does it wait? See unwind_feed.c. */
static bool is_put_off(struct unwind_feed *f, const struct fed_process *process, uint32_t user)
{
	bool is_young = process->born && process->time - process->born < YOUNG_NS;

	return (f->cached_only || is_young) && !unwind_feed__may_build(f, user);
}

void unwind_feed__set_cached_only(struct unwind_feed *f, bool cached_only)
{
	f->cached_only = cached_only;
}

int unwind_feed__request_table(struct unwind_feed *f, const struct fed_process *process,
			       struct fed_file *file, struct image_id image)
{
	uint32_t user = place_store__user(f->places, process->tgid);
	enum table_effort effort = is_put_off(f, process, user) ? TABLE_READ : TABLE_BUILD;
	struct table_request request = {.id = image.v, .effort = effort, .owner = user};
	int err = 0;

	file->state = FILE_LATER;
	if (effort == TABLE_READ && (!f->options.cache || file->not_cached)) {
		f->stats.put_off++;
		return 0;
	}
	request.fd = unwind_feed__descriptor(f, image);
	if (request.fd == -ENOENT)
		file->state = FILE_PLAIN;
	if (request.fd < 0)
		return request.fd == -ENOMEM ? request.fd : 0;
	request.base = file->base;
	if (!table_store__owns(f->options.store, &file->number))
		err = table_store__take_number(f->options.store, process->tgid, &file->number);
	if (!err)
		err = table_builder__request(f->builder, &request);
	if (!err) {
		file->requester = process->tgid;
		file->state = FILE_BUILDING;
		f->building++;
	}
	return err == -ENOMEM ? err : 0;
}

int unwind_feed__file(struct unwind_feed *f, const struct fed_process *process,
		      struct image_id image, struct fed_file **result)
{
	struct fed_file *file = vec_at(&f->files, image.v);
	int err;

	if (!file)
		return -ENOMEM;
	*result = file;
	file->recent = true;
	if (file->state == FILE_UNREAD) {
		file->is_made = f->options.describe(f->options.context, image).is_made;
		file->state = FILE_REQUESTED;
		err = f->options.request_file(f->options.context, image);
		if (err)
			return err;
	}
	/* THERE: no process mapped the file for a while, and its number was reused */
	if (file->state == FILE_LATER ||
	    (file->state == FILE_THERE && !table_store__owns(f->options.store, &file->number)))
		return unwind_feed__request_table(f, process, file, image);
	return 0;
}

static void count_table(struct unwind_feed *f, const struct built_table *built)
{
	f->stats.built += !built->err && !built->cached;
	f->stats.cached += !built->err && built->cached;
	f->stats.put_off += built->err == -ENOENT;
}

void unwind_feed__count_left(struct unwind_feed *f, struct fed_file *file, uint64_t bytes)
{
	if (file->left_counted || !bytes)
		return;
	file->left_counted = true;
	table_store__leave(f->options.store, file->requester, OUTSIDE_CODE, bytes);
}

/* Since when it is refused, see is_of_use(). The builder may have been killed, or the disk slow. */
static uint64_t refused_since(struct fed_file *file, const struct built_table *built)
{
	switch (built->refusal) {
	case TABLE_REFUSAL_NONE:
	case TABLE_REFUSAL_BANNED: /* the next request may be another user's */
		return monotonic_ns();
	case TABLE_REFUSAL_DIED:
	case TABLE_REFUSAL_HUNG:
		return ++file->deaths < DEATHS_MAX ? monotonic_ns() : UINT64_MAX;
	default:
		return UINT64_MAX;
	}
}

/* Is the error the file's? Others may pass: too few descriptors, no memory, a failing disk. */
static bool describes_nothing(int err)
{
	return err == -ENODATA || err == -ENOTSUP || err == -EBADMSG || err == -ENOEXEC;
}

static int put_table(struct unwind_feed *f, struct fed_file *file, struct built_table *built)
{
	static const struct unwind_table_image NOTHING = {};
	int err = built->err;

	count_table(f, built);
	file->state = FILE_LATER;
	file->not_cached = err == -ENOENT;
	if (file->not_cached || !table_store__owns(f->options.store, &file->number))
		return 0;
	file->state = FILE_REFUSED;
	file->refused = refused_since(file, built);
	f->stats.too_big += err == -EFBIG;
	if (built->refusal)
		table_store__leave(f->options.store, file->requester, OUTSIDE_TABLES, 1);
	if (err && !describes_nothing(err))
		return 0;
	err = table_store__put(f->options.store, file->number.number, file->requester,
			       err ? &NOTHING : &built->image);
	if (!err)
		file->state = FILE_THERE;
	if (!built->err)
		unwind_feed__count_left(f, file, built->image.left);
	return err == -ENOMEM ? err : 0;
}

static int take_table(struct unwind_feed *f, bool wait, bool *took)
{
	struct built_table built;
	int err;

	*took = table_builder__take(f->builder, wait, &built);
	if (!*took)
		return 0;
	f->building--;
	f->stats.build_ns += built.cpu_ns;
	quota__take(&f->building_cpu, built.owner, built.cpu_ns, monotonic_ns());
	if (built.kind == BUILD_PIECES)
		err = unwind_feed__put_made(f, &built);
	else
		err = put_table(f, &f->files.data[built.id], &built);
	unwind_table_image__fini(&built.image);
	return err;
}

int unwind_feed__take(struct unwind_feed *f)
{
	uint64_t time = monotonic_ns();
	bool took = true;
	int err = 0;

	table_store__advance(f->options.store, time);
	while (took && !err && monotonic_ns() - time < TAKE_NS)
		err = take_table(f, false, &took);
	return err;
}

bool unwind_feed__is_building(const struct unwind_feed *f)
{
	return f->building > 0;
}

bool unwind_feed__has_tables(const struct unwind_feed *f, struct mappings maps)
{
	struct mapping_cursor at = {};

	for (const struct mapping *m; (m = mappings__next(maps, &at));) {
		uint32_t image = m->image.v;

		if (image >= f->files.count || f->files.data[image].state == FILE_UNREAD ||
		    f->files.data[image].state == FILE_REQUESTED ||
		    f->files.data[image].state == FILE_LATER)
			return false;
	}
	return true;
}

struct fed_file *unwind_feed__file_at(struct unwind_feed *f, const struct fed_process *process,
				      uint64_t address, struct image_id *image)
{
	const struct mapping *mapping = mappings__find(process->maps, address);

	if (!mapping || mapping->image.v >= f->files.count)
		return NULL;
	*image = mapping->image;
	return &f->files.data[mapping->image.v];
}

int unwind_feed__await(struct unwind_feed *f, const struct fed_process *process, uint64_t address)
{
	struct image_id image;
	struct fed_file *file = unwind_feed__file_at(f, process, address, &image);
	bool took = true;
	int err = 0;

	if (!file || file->state != FILE_BUILDING)
		return 0;
	table_builder__hurry(f->builder, image.v);
	if (!f->ending)
		return monotonic_ns() - process->time < WAIT_NS ? -EAGAIN : 0;
	while (file->state == FILE_BUILDING && took && !err)
		err = take_table(f, true, &took);
	return err ? err : file->state == FILE_THERE;
}

void unwind_feed__end(struct unwind_feed *f)
{
	f->ending = true;
}

int unwind_feed__fd(const struct unwind_feed *f)
{
	return table_builder__fd(f->builder);
}

void unwind_feed__stats(const struct unwind_feed *f, struct unwind_feed_stats *stats)
{
	*stats = f->stats;
	stats->build_ns += made_code__cpu(f->made_code);
	table_store__stats(f->options.store, &stats->store);
	table_builder__refusals(f->builder, &stats->refusals);
}
