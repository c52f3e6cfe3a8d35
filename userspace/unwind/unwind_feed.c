/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file is read once, when the first process that has it mapped is sampled. The builder thread builds its
 * table, and again if the table was evicted and is needed.
 *
 * On a machine that compiles programs continuously, most files are mapped by a single process that has
 * ended before the table is of use. So building has a credit of CPU time, which grows slowly. When it is
 * used up, tables are built only for processes older than YOUNG_NS and deferred for others. Tables in the
 * disk cache are read for all processes: that takes a twentieth of the time.
 */
#include "unwind/unwind_feed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clocks.h"
#include "base/search.h"
#include "base/vec.h"
#include "elf/elf_file.h"
#include "unwind/made_code.h"
#include "unwind/table_builder.h"
#include "unwind/table_cache.h"
#include "unwind/unwind.h"

#define USER_ADDRESS_BITS 47
#define CREDIT_DEFAULT	  2000000000ll	/* ns of CPU */
#define CREDIT_DIVISOR	  20		/* it grows by a twentieth of the time that passes */
#define YOUNG_NS	  1000000000ull /* a process that may not live long */
#define WAIT_NS		  500000000ull	/* longest time that a copied stack waits for its tables */
#define REFUSED_NS	  3000000000ull /* until a refused table is tried again */
#define RUNS_MAX	  8		/* of one mapping that belong to different segments */

#define OPEN_MAX	  512 /* descriptors that are kept */

enum table_state {
	FILE_UNREAD,
	FILE_REQUESTED, /* and not answered yet */
	FILE_PLAIN,	/* it has no table: use frame pointers */
	FILE_LATER,	/* not asked for yet */
	FILE_ASKED,	/* being built */
	FILE_THERE,	/* was put into the store, and may have been evicted since */
	FILE_REFUSED,	/* there was no room for it */
};

struct fed_file {
	enum fed_kind kind;
	struct elf_file *elf; /* its segments are known, also when the descriptor is closed */
	int fd;		      /* valid once it has an elf; -1: closed, to be requested again */
	uint64_t base;	      /* where it begins in the file */
	uint64_t used;	      /* the descriptor: the larger, the later */
	struct table_number number;
	enum table_state state;
	bool not_cached;  /* the cache has been asked */
	uint64_t refused; /* when */
};

/* What a JVM said about its code. */
struct fed_jvm {
	uint32_t tgid;
	uint64_t bias; /* of its library: another one is another program */
	bool keeps_frame_pointers;
};

/* A table of JIT code. */
struct fed_made {
	uint32_t tgid;
	struct table_number number;
};

struct unwind_feed {
	struct unwind_feed_options options;
	struct table_builder *builder;
	VEC(struct fed_file) files; /* by image */
	size_t open;		    /* descriptors */
	uint64_t uses;		    /* of them */
	VEC(struct unwind_placement) placements, pieces;
	VEC(struct made_area) areas;
	VEC(struct unwind_range) ranges;
	VEC(struct fed_jvm) jvms;
	VEC(struct fed_made) mades;
	struct made_code *made_code;
	size_t building; /* requested tables that were not taken yet */
	int64_t credit;
	uint64_t credited; /* when */
	bool ending;
	struct unwind_feed_stats stats;
};

static struct made_code *new_made_code(const struct unwind_feed_options *options)
{
	const struct made_code_options made = {
		.store = options->store,
		.table_limit = options->table_limit,
		.read_frames = options->read_made_frames,
		.context = options->context,
	};

	return made_code__new(&made);
}

int unwind_feed__new(const struct unwind_feed_options *options, struct unwind_feed **feed)
{
	struct unwind_feed *f = calloc(1, sizeof(*f));
	int err;

	if (!f) {
		table_cache__free(options->cache);
		return -ENOMEM;
	}
	f->options = *options;
	if (!f->options.credit)
		f->options.credit = CREDIT_DEFAULT;
	f->credit = f->options.credit;
	f->credited = monotonic_ns();
	f->made_code = new_made_code(options);
	if (f->made_code) {
		err = table_builder__new(options->table_limit, options->cache, &f->builder);
	} else {
		table_cache__free(options->cache);
		err = -ENOMEM;
	}
	if (err) {
		made_code__free(f->made_code);
		free(f);
		return err;
	}
	*feed = f;
	return 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

static void close_descriptor(struct unwind_feed *f, struct fed_file *file)
{
	if (!file->elf || file->fd < 0)
		return;
	elf_file__detach(file->elf);
	close(file->fd);
	file->fd = -1;
	f->open--;
}

static void close_file(struct unwind_feed *f, struct fed_file *file)
{
	close_descriptor(f, file);
	elf_file__free(file->elf);
	file->elf = NULL;
}

/* Closes the least recently used one. */
static void make_room(struct unwind_feed *f)
{
	struct fed_file *oldest = NULL;

	if (f->open < OPEN_MAX)
		return;
	for (size_t i = 0; i < f->files.count; i++) {
		struct fed_file *file = &f->files.data[i];

		/* a JVM's library is read when it is asked */
		if (file->elf && file->fd >= 0 && file->kind != FED_JVM &&
		    (!oldest || file->used < oldest->used))
			oldest = file;
	}
	if (oldest)
		close_descriptor(f, oldest);
}

int unwind_feed__answer_file(struct unwind_feed *f, struct image_id image, int fd, uint64_t base)
{
	struct fed_file *file;
	int copy, err;

	if (image.v >= f->files.count)
		return 0;
	file = &f->files.data[image.v];
	if (file->state == FILE_REQUESTED)
		file->state = FILE_PLAIN;
	if (fd < 0 || (file->elf && file->fd >= 0))
		return 0;
	make_room(f);
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return 0;
	elf_file__free(file->elf);
	file->elf = NULL;
	err = elf_file__open_at(copy, base, &file->elf);
	if (err) {
		close(copy);
		return err == -ENOMEM ? err : 0;
	}
	file->fd = copy;
	file->base = base;
	file->used = ++f->uses;
	f->open++;
	if (file->state == FILE_PLAIN)
		file->state = FILE_LATER;
	return 0;
}

/* Its descriptor; -EAGAIN: it may come later; -ENOENT; -ENOMEM. */
static int descriptor_of(struct unwind_feed *f, struct fed_file *file, struct image_id image)
{
	int err = 0;

	if (!file->elf)
		return -ENOENT;
	if (file->fd < 0)
		err = f->options.request_file(f->options.context, image);
	if (err)
		return err;
	file->used = ++f->uses;
	if (!file->elf)
		return -ENOENT;
	return file->fd < 0 ? -EAGAIN : file->fd;
}

bool unwind_feed__forget(struct unwind_feed *f, struct image_id image)
{
	struct fed_file *file = image.v < f->files.count ? &f->files.data[image.v] : NULL;

	if (!file)
		return true;
	if (file->state == FILE_ASKED || file->state == FILE_REQUESTED)
		return false;
	close_file(f, file);
	*file = (struct fed_file){};
	return true;
}

void unwind_feed__free(struct unwind_feed *f)
{
	if (!f)
		return;
	table_builder__free(f->builder);
	for (size_t i = 0; i < f->files.count; i++)
		close_file(f, &f->files.data[i]);
	vec_free(&f->files);
	made_code__free(f->made_code);
	vec_free(&f->placements);
	vec_free(&f->pieces);
	vec_free(&f->areas);
	vec_free(&f->ranges);
	vec_free(&f->jvms);
	vec_free(&f->mades);
	free(f);
}

/* ---- building -------------------------------------------------------------------------------- */

static bool is_put_off(struct unwind_feed *f, const struct fed_process *process)
{
	return f->credit <= 0 && process->born && process->time - process->born < YOUNG_NS;
}

static int ask_for_table(struct unwind_feed *f, const struct fed_process *process,
			 struct fed_file *file, struct image_id image)
{
	enum table_effort effort = is_put_off(f, process) ? TABLE_READ : TABLE_BUILD;
	int fd, err = 0;

	file->state = FILE_LATER;
	if (effort == TABLE_READ && (!f->options.cache || file->not_cached)) {
		f->stats.put_off++;
		return 0;
	}
	fd = descriptor_of(f, file, image);
	if (fd == -ENOENT)
		file->state = FILE_PLAIN;
	if (fd < 0)
		return fd == -ENOMEM ? fd : 0;
	if (!table_store__owns(f->options.store, &file->number))
		err = table_store__take_number(f->options.store, &file->number);
	if (!err)
		err = table_builder__ask(f->builder, image.v, fd, file->base, effort);
	if (!err) {
		file->state = FILE_ASKED;
		f->building++;
	}
	return err == -ENOMEM ? err : 0;
}

/* Valid until the next one. */
static int file_of(struct unwind_feed *f, const struct fed_process *process, struct image_id image,
		   struct fed_file **result)
{
	int err = vec_reserve(&f->files, image.v + 1);
	struct fed_file *file;

	if (err)
		return err;
	while (f->files.count <= image.v)
		f->files.data[f->files.count++] = (struct fed_file){};
	*result = file = &f->files.data[image.v];
	if (file->state == FILE_UNREAD) {
		file->kind = f->options.kind(f->options.context, image);
		file->state = FILE_REQUESTED;
		err = f->options.request_file(f->options.context, image);
		if (err)
			return err;
	}
	/* no process had it mapped for a while, and its number was reused */
	if (file->state == FILE_LATER ||
	    (file->state == FILE_THERE && !table_store__owns(f->options.store, &file->number)))
		return ask_for_table(f, process, file, image);
	return 0;
}

static void count_table(struct unwind_feed *f, const struct built_table *built)
{
	f->stats.built += !built->err && !built->cached;
	f->stats.cached += !built->err && built->cached;
	f->stats.put_off += built->err == -ENOENT;
	f->stats.build_ns += built->cpu_ns;
	f->credit -= built->cpu_ns;
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
	file->refused = err == -EFBIG ? UINT64_MAX : monotonic_ns();
	f->stats.too_big += err == -EFBIG;
	if (err == -ENOMEM || err == -EFBIG)
		return err == -ENOMEM ? err : 0;
	err = table_store__put(f->options.store, file->number.number,
			       err ? &NOTHING : &built->image);
	if (!err)
		file->state = FILE_THERE;
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
	err = put_table(f, &f->files.data[built.id], &built);
	unwind_table_image__fini(&built.image);
	return err;
}

static void add_credit(struct unwind_feed *f, uint64_t time)
{
	f->credit += (time - f->credited) / CREDIT_DIVISOR;
	f->credited = time;
	if (f->credit > f->options.credit)
		f->credit = f->options.credit;
}

int unwind_feed__take(struct unwind_feed *f)
{
	uint64_t time = monotonic_ns();
	bool took = true;
	int err = 0;

	add_credit(f, time);
	table_store__advance(f->options.store, time);
	while (took && !err)
		err = take_table(f, false, &took);
	return err;
}

bool unwind_feed__is_building(const struct unwind_feed *f)
{
	return f->building > 0;
}

bool unwind_feed__knows(const struct unwind_feed *f, struct mappings maps)
{
	for (size_t i = 0; i < maps.count; i++) {
		uint32_t image = maps.data[i].image.v;

		if (image >= f->files.count || f->files.data[image].state == FILE_UNREAD ||
		    f->files.data[image].state == FILE_REQUESTED ||
		    f->files.data[image].state == FILE_LATER)
			return false;
	}
	return true;
}

static const struct mapping *find_mapping(struct mappings maps, uint64_t address)
{
	size_t i = partition_point(maps.data, maps.count, m, m->end <= address);

	return i < maps.count && maps.data[i].start <= address ? &maps.data[i] : NULL;
}

/* The file mapped there; NULL: none that was ever placed. */
static struct fed_file *file_at(struct unwind_feed *f, const struct fed_process *process,
				uint64_t address, struct image_id *image)
{
	const struct mapping *mapping = find_mapping(process->maps, address);

	if (!mapping || mapping->image.v >= f->files.count)
		return NULL;
	*image = mapping->image;
	return &f->files.data[mapping->image.v];
}

int unwind_feed__await(struct unwind_feed *f, const struct fed_process *process, uint64_t address)
{
	struct image_id image;
	struct fed_file *file = file_at(f, process, address, &image);
	bool took = true;
	int err = 0;

	if (!file || file->state != FILE_ASKED)
		return 0;
	table_builder__hurry(f->builder, image.v);
	if (!f->ending)
		return monotonic_ns() - process->time < WAIT_NS ? -EAGAIN : 0;
	while (file->state == FILE_ASKED && took && !err)
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
	table_store__stats(f->options.store, &stats->store);
}

/* ---- processes ------------------------------------------------------------------------------- */

static uint32_t table_of(const struct unwind_feed *f, const struct fed_file *file)
{
	switch (file->state) {
	case FILE_UNREAD:
	case FILE_PLAIN:
		return UNWIND_NO_TABLE;
	case FILE_REQUESTED:
	case FILE_LATER:
		return UNWIND_LATER;
	default: /* its number may be reused by now, until it is requested again */
		return table_store__owns(f->options.store, &file->number) ? file->number.number
									  : UNWIND_LATER;
	}
}

/* Places of JIT code, and which runtime may have made it. */
struct made_code_of {
	size_t count;
	bool python;
	enum made_by by;
	struct elf_file *jvm; /* NULL: there is none */
	uint64_t bias;
};

/* Places the runs of a mapping of an ELF file; the last of them is left in *placement. */
static int place_code(struct unwind_feed *f, const struct fed_file *file,
		      const struct mapping *mapping, struct unwind_placement *placement)
{
	uint64_t offset = mapping->page_offset, end;
	struct elf_code code;

	if (__builtin_add_overflow(offset, mapping->end - mapping->start, &end))
		end = UINT64_MAX;
	for (size_t runs = 1; offset < end; runs++) {
		if (elf_file__code_at(file->elf, offset, end, &code))
			break;
		placement->table = table_of(f, file);
		placement->bias = placement->start - code.address;
		if (code.end >= end || runs == RUNS_MAX)
			break;
		placement->end = placement->start + (code.end - offset);
		if (vec_push(&f->placements, *placement))
			return -ENOMEM;
		placement->start = placement->end;
		placement->end = mapping->end;
		offset = code.end;
	}
	return 0;
}

static int place_mapping(struct unwind_feed *f, const struct fed_process *process,
			 const struct mapping *mapping, struct made_code_of *made)
{
	struct unwind_placement placement = {
		.start = mapping->start, .end = mapping->end, .table = UNWIND_NO_TABLE};
	struct fed_file *file;
	int err;

	/* [vsyscall], which is the kernel's: searches take the highest bit for a sign */
	if (mapping->end >> USER_ADDRESS_BITS)
		return 0;
	err = file_of(f, process, mapping->image, &file);
	if (!err && file->elf)
		err = place_code(f, file, mapping, &placement);
	else if (!err)
		placement.table = table_of(f, file);
	if (err)
		return err;
	if (file->kind == FED_JVM && file->elf)
		made->jvm = file->elf, made->bias = placement.bias;
	made->python |= file->kind == FED_PYTHON;
	if (file->kind == FED_PYPY || file->kind == FED_LUAJIT)
		made->by = file->kind == FED_PYPY ? MADE_BY_PYPY : MADE_BY_LUAJIT;
	if (file->kind == FED_JIT) {
		placement.table = UNWIND_JAVA; /* until it is known that it is not */
		made->count++;
	}
	return vec_push(&f->placements, placement);
}

static bool jvm_keeps_frame_pointers(struct unwind_feed *f, uint32_t tgid,
				     const struct made_code_of *made)
{
	struct fed_jvm jvm = {.tgid = tgid, .bias = made->bias};

	for (size_t i = 0; i < f->jvms.count; i++)
		if (f->jvms.data[i].tgid == tgid && f->jvms.data[i].bias == made->bias)
			return f->jvms.data[i].keeps_frame_pointers;
	jvm.keeps_frame_pointers = f->options.jvm_keeps_frame_pointers(f->options.context, tgid,
								       made->jvm, made->bias);
	(void)vec_push(&f->jvms, jvm); /* else it is asked again */
	return jvm.keeps_frame_pointers;
}

/* Its number in `mades`, or the count. */
static size_t find_made(const struct unwind_feed *f, uint32_t tgid)
{
	size_t i = 0;

	while (i < f->mades.count && f->mades.data[i].tgid != tgid)
		i++;
	return i;
}

/* The table for JIT code: the jitdump's own, if it has one. */
static bool describes_itself(const struct unwind_feed *f, uint32_t tgid, uint32_t *table)
{
	size_t i = find_made(f, tgid);

	if (i == f->mades.count || !table_store__owns(f->options.store, &f->mades.data[i].number))
		return false;
	*table = f->mades.data[i].number.number;
	return true;
}

/* Splits a placement into the pieces that are known. */
static int place_pieces(struct unwind_feed *f, uint32_t tgid, const struct unwind_placement *whole)
{
	struct unwind_placement piece;
	uint64_t at = whole->start;
	int err = 0;

	for (; at < whole->end && !err; at = piece.end) {
		made_code__place(f->made_code, tgid, at, whole->end, &piece);
		err = vec_push(&f->pieces, piece);
	}
	return err;
}

/* Code of PyPy and LuaJIT, whose frames are read from the process. */
static int place_known_frames(struct unwind_feed *f, uint32_t tgid)
{
	int err = 0;

	f->pieces.count = 0;
	for (size_t i = 0; i < f->placements.count && !err; i++) {
		const struct unwind_placement *p = &f->placements.data[i];

		err = p->table == UNWIND_JAVA ? place_pieces(f, tgid, p) : vec_push(&f->pieces, *p);
	}
	if (!err)
		err = vec_reserve(&f->placements, f->pieces.count);
	if (err)
		return err;
	f->placements.count = f->pieces.count;
	memcpy(f->placements.data, f->pieces.data, f->pieces.count * sizeof(*f->pieces.data));
	return 0;
}

/*
 * Most engines keep frame pointers in JIT code, or leave none that could mislead. CPython's trampolines are so small
 * that they need none.
 */
static int trust_made_code(struct unwind_feed *f, const struct fed_process *process,
			   const struct made_code_of *made)
{
	uint32_t table = made->python ? UNWIND_BY_CODE : UNWIND_NO_TABLE;

	if (!made->count || (made->jvm && !jvm_keeps_frame_pointers(f, process->tgid, made)))
		return 0;
	if (!describes_itself(f, process->tgid, &table) && made->by != MADE_BY_OTHERS)
		return place_known_frames(f, process->tgid);
	for (size_t i = 0; i < f->placements.count; i++)
		if (f->placements.data[i].table == UNWIND_JAVA)
			f->placements.data[i].table = table;
	return 0;
}

static int place_all(struct unwind_feed *f, const struct fed_process *process)
{
	struct made_code_of made = {};
	int err = 0;

	f->placements.count = 0;
	for (size_t i = 0; i < process->maps.count && !err; i++)
		err = place_mapping(f, process, &process->maps.data[i], &made);
	return err ? err : trust_made_code(f, process, &made);
}

int unwind_feed__publish(struct unwind_feed *f, const struct fed_process *process)
{
	int err = place_all(f, process);

	if (!err)
		err = table_store__publish(f->options.store, process->tgid, f->placements.data,
					   f->placements.count, process->time);
	return err == -ENOSPC ? 0 : err;
}

static void forget_made(struct unwind_feed *f, uint32_t tgid)
{
	size_t i = find_made(f, tgid);

	if (i < f->mades.count)
		f->mades.data[i] = f->mades.data[--f->mades.count];
}

static bool is_of_use(const struct fed_file *file)
{
	if (file->state == FILE_REFUSED)
		return file->refused != UINT64_MAX && monotonic_ns() - file->refused > REFUSED_NS;
	return file->state == FILE_LATER || file->state == FILE_THERE;
}

/* The process's JIT code, and the runtime that made it. */
static int find_made_code(struct unwind_feed *f, const struct fed_process *process,
			  enum made_by *by)
{
	int err = 0;

	f->areas.count = 0;
	*by = MADE_BY_OTHERS;
	for (size_t i = 0; i < process->maps.count && !err; i++) {
		const struct mapping *m = &process->maps.data[i];
		enum fed_kind kind = f->options.kind(f->options.context, m->image);

		if (kind == FED_PYPY || kind == FED_LUAJIT)
			*by = kind == FED_PYPY ? MADE_BY_PYPY : MADE_BY_LUAJIT;
		else if (kind == FED_JIT)
			err = vec_push(&f->areas,
				       (struct made_area){.start = m->start, .end = m->end});
	}
	return err;
}

/* Reads the frames of its JIT code again. `registers` NULL: no stack was truncated there. */
static int ask_process(struct unwind_feed *f, const struct fed_process *process, uint64_t missed,
		       const uint64_t *registers)
{
	struct made_moment moment = {.tgid = process->tgid,
				     .time = monotonic_ns(),
				     .missed = missed,
				     .registers = registers};
	int err = find_made_code(f, process, &moment.by);

	if (err || moment.by == MADE_BY_OTHERS)
		return err;
	moment.areas = f->areas.data;
	moment.area_count = f->areas.count;
	return made_code__ask(f->made_code, &moment, &f->stats.build_ns);
}

int unwind_feed__refresh(struct unwind_feed *f, const struct fed_process *process)
{
	return made_code__is_due(f->made_code, process->tgid, monotonic_ns())
		       ? ask_process(f, process, 0, NULL)
		       : 0;
}

static int missed_made_code(struct unwind_feed *f, const struct fed_process *process,
			    uint64_t address, const struct stack_copy *copy)
{
	uint64_t registers[sizeof(copy->general) / sizeof(copy->general[0])] = {};

	if (find_made(f, process->tgid) < f->mades.count) { /* frame pointers will do */
		forget_made(f, process->tgid);
		return 1;
	}
	if (copy)
		memcpy(registers, copy->general, sizeof(registers));
	return ask_process(f, process, address, registers);
}

int unwind_feed__missed(struct unwind_feed *f, const struct fed_process *process, uint64_t address,
			const struct stack_copy *copy)
{
	struct image_id image;
	struct fed_file *file = file_at(f, process, address, &image);
	const void *segment;
	bool later;
	int err;

	if (!file)
		return 0;
	later = file->state == FILE_LATER;
	if (file->state == FILE_ASKED)
		table_builder__hurry(f->builder, image.v);
	if (file->kind == FED_JIT)
		return missed_made_code(f, process, address, copy);
	if (!is_of_use(file))
		return 0;
	/* it has come back since */
	if (file->state == FILE_THERE && table_store__owns(f->options.store, &file->number) &&
	    table_store__get(f->options.store, file->number.number, &segment))
		return 0;
	err = ask_for_table(f, process, file, image);
	if (err)
		return err;
	return later && file->state == FILE_ASKED;
}

void unwind_feed__withdraw(struct unwind_feed *f, uint32_t tgid)
{
	table_store__withdraw(f->options.store, tgid);
	forget_made(f, tgid);
	made_code__forget(f->made_code, tgid);
	for (size_t i = f->jvms.count; i-- > 0;)
		if (f->jvms.data[i].tgid == tgid)
			f->jvms.data[i] = f->jvms.data[--f->jvms.count];
}

/* ---- code that describes itself -------------------------------------------------------------- */

/* The pieces within memory that holds such code: others would stretch the table over all that lies between. */
static size_t choose_pieces(struct unwind_feed *f, const struct fed_process *process,
			    const struct unwind_piece *pieces, size_t count,
			    struct unwind_piece *chosen)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		const struct mapping *m = find_mapping(process->maps, pieces[i].start);

		if (m && f->options.kind(f->options.context, m->image) == FED_JIT)
			chosen[kept++] = pieces[i];
	}
	return kept;
}

static int put_made(struct unwind_feed *f, uint32_t tgid, const struct unwind_table_image *image)
{
	struct fed_made made = {.tgid = tgid};
	size_t i = find_made(f, tgid);
	int err = table_store__take_number(f->options.store, &made.number);

	if (!err)
		err = table_store__put(f->options.store, made.number.number, image);
	if (err)
		return err == -ENOMEM ? err : 0;
	if (i < f->mades.count)
		f->mades.data[i] = made;
	else
		err = vec_push(&f->mades, made);
	return err ? err : 1;
}

int unwind_feed__describe(struct unwind_feed *f, const struct fed_process *process,
			  const struct unwind_piece *pieces, size_t count)
{
	struct unwind_piece *chosen = calloc(count + 1, sizeof(*chosen));
	struct unwind_table_image image;
	uint64_t begin = monotonic_ns();
	int err;

	if (!chosen)
		return -ENOMEM;
	count = choose_pieces(f, process, pieces, count, chosen);
	err = unwind_table__build_pieces(chosen, count, f->options.table_limit, &image);
	free(chosen);
	f->stats.build_ns += monotonic_ns() - begin;
	if (err)
		return err == -ENOMEM ? err : 0;
	err = put_made(f, process->tgid, &image);
	unwind_table_image__fini(&image);
	return err;
}

/* ---- copies of stacks ------------------------------------------------------------------------ */

struct copied {
	struct unwind_feed *feed;
	const struct fed_process *process;
	const struct stack_copy *copy;
};

/* Code is in the file that was mapped. */
static int read_code(const struct copied *c, void *to, size_t size, uint64_t address)
{
	const struct mapping *m = find_mapping(c->process->maps, address);
	struct unwind_feed *f = c->feed;
	struct fed_file *file;
	uint64_t at;
	int fd;

	if (!m || m->image.v >= f->files.count || size > m->end - address)
		return -EFAULT;
	file = &f->files.data[m->image.v];
	fd = descriptor_of(f, file, m->image);
	if (fd < 0 || __builtin_add_overflow(file->base, m->page_offset, &at) ||
	    __builtin_add_overflow(at, address - m->start, &at) || at > INT64_MAX - size)
		return -EFAULT;
	return pread(fd, to, size, (off_t)at) == (ssize_t)size ? 0 : -EFAULT;
}

/* Are all of these pages in the copy? Its walk reads a page at most, and so of two. */
static bool has_pages(const struct stack_copy *copy, uint64_t address, size_t size)
{
	uint64_t first = address / STACK_PAGE - copy->start / STACK_PAGE;
	uint64_t last = (address + size - 1) / STACK_PAGE - copy->start / STACK_PAGE;

	return last < 64 && !(copy->holes >> first & 1) && !(copy->holes >> last & 1);
}

static int read_copy(void *context, void *to, size_t size, uint64_t address)
{
	const struct copied *c = context;
	uint64_t offset = address - c->copy->start;

	if (offset > c->copy->size || size > c->copy->size - offset ||
	    !has_pages(c->copy, address, size))
		return read_code(c, to, size, address);
	memcpy(to, c->copy->stack + offset, size);
	return 0;
}

static int make_ranges(struct unwind_feed *f, const struct fed_process *process)
{
	int err = place_all(f, process);

	if (!err)
		err = vec_reserve(&f->ranges, f->placements.count);
	if (err)
		return err;
	f->ranges.count = f->placements.count;
	for (size_t i = 0; i < f->ranges.count; i++) {
		const struct unwind_placement *p = &f->placements.data[i];
		struct unwind_range *range = &f->ranges.data[i];

		*range = (struct unwind_range){
			.start = p->start, .end = p->end, .bias = p->bias, .instead = p->table};
		if (p->table >= UNWIND_TABLES)
			continue;
		range->instead = UNWIND_LATER;
		range->table = table_store__get(f->options.store, p->table, &range->segment);
	}
	return 0;
}

enum stack_end unwind_feed__walk(struct unwind_feed *f, const struct fed_process *process,
				 const struct stack_copy *copy, uint64_t *frames, size_t max,
				 size_t *count)
{
	uint64_t registers[UNWIND_REGISTERS];
	struct copied copied = {.feed = f, .process = process, .copy = copy};
	struct unwind_space space = {.read = read_copy, .context = &copied};
	enum stack_end end;

	memcpy(registers, copy->general, sizeof(copy->general));
	registers[UNWIND_X86_RA] = copy->ip;
	*count = 0;
	if (make_ranges(f, process))
		return STACK_END_NO_FRAME;
	space.ranges = f->ranges.data;
	space.is_fresh = copy->is_fresh;
	space.count = f->ranges.count;
	end = unwind_stack(&space, registers, copy->in_system_call, frames, max, count);
	return end == STACK_END_FAULT ? STACK_END_COPY : end;
}
