/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file is read once, when the first process that maps it is sampled. A builder process builds its
 * table, and again if the table was evicted and is needed.
 *
 * On a machine that compiles programs continuously, most files are mapped by one process, which
 * ends before a table is of use. So each user has a credit of CPU time for building, which grows
 * slowly. When it is used up, tables are deferred for processes younger than YOUNG_NS, and tables
 * of JIT code for all, because a process can change its code at any time. Files of older processes
 * get tables without credit: users take turns, and few builders work at once. Tables in the disk
 * cache are read for all processes: that takes a twentieth of the time.
 */
#include "runtimes/table.h"
#include "unwind/unwind_feed_files.h"
#include "unwind/unwind_feed_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "unwind/build.h"
#include "unwind/table_cache.h"
#include "unwind/unwind.h"

#define USER_ADDRESS_BITS 47
#define REFUSED_NS	  3000000000ull /* until a refused table is tried again */
#define RUNS_MAX	  64		/* of one mapping, in different segments */
#define FILES_MAX	  8192		/* whose segments are kept */

MAP_FUNCTIONS_BY(made_map, struct fed_made, uint32_t, tgid);

static struct made_code *new_made_code(const struct unwind_feed_options *options)
{
	const struct made_code_options made = {
		.store = options->store,
		.table_limit = options->table_limit,
		.request = options->request_frames,
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
	f->places = table_store__places(options->store);
	f->open_fd = -1;
	if (!f->options.files_max)
		f->options.files_max = FILES_MAX;
	quota__init(&f->building_cpu, QUOTA_TABLE_BUILDING);
	if (f->options.credit)
		f->building_cpu.user = (struct quota_limit){.limit = (uint64_t)f->options.credit};
	f->made_code = new_made_code(options);
	err = table_builder__new(options->table_limit, options->builders, options->cache,
				 &f->builder)
		      ?: (f->made_code ? 0 : -ENOMEM);
	if (err) {
		unwind_feed__free(f);
		return err;
	}
	table_builder__count_large(f->builder, options->large_children);
	*feed = f;
	return 0;
}

void unwind_feed__free(struct unwind_feed *f)
{
	if (!f)
		return;
	table_builder__free(f->builder);
	vec_free_with(&f->files, file, unwind_feed__close_file(f, file));
	cleanup_close(&f->open_fd);
	made_code__free(f->made_code);
	vec_free(&f->placements);
	vec_free(&f->pieces);
	vec_free(&f->areas);
	made_map__fini(&f->mades);
	free(f);
}

/* ---- processes ------------------------------------------------------------------------------- */

static uint32_t table_of(const struct unwind_feed *f, const struct fed_file *file)
{
	switch (file->state) {
	case FILE_UNREAD:
	case FILE_PLAIN:
		return UNWIND_BY_CODE;
	case FILE_REQUESTED:
	case FILE_LATER:
		return UNWIND_LATER;
	default: /* its number may have been reused; then it is requested again */
		return table_store__owns(f->options.store, &file->number) ? file->number.number
									  : UNWIND_LATER;
	}
}

/* Places the runs of a mapping of an ELF file; leaves the last one in *placement. */
static int place_code(struct unwind_feed *f, struct fed_file *file, const struct mapping *mapping,
		      struct unwind_placement *placement)
{
	uint64_t offset = mapping->page_offset, end;
	struct elf_code code;

	if (__builtin_add_overflow(offset, mapping->end - mapping->start, &end))
		end = UINT64_MAX;
	for (size_t runs = 1; offset < end; runs++) {
		if (elf_file__code_at(file->elf, offset, end, &code))
			break;
		if (runs == RUNS_MAX) {
			placement->table = UNWIND_NO_TABLE;
			unwind_feed__count_left(f, file, end - offset);
			break;
		}
		placement->table = table_of(f, file);
		placement->bias = placement->start - code.address;
		if (code.end >= end)
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

/* Appends to the placements. JIT code gets UNWIND_JAVA until place_made_code(). */
static int place_mapping(struct unwind_feed *f, const struct fed_process *process,
			 const struct mapping *mapping)
{
	struct unwind_placement placement = {
		.start = mapping->start, .end = mapping->end, .table = UNWIND_NO_TABLE};
	struct fed_file *file;
	int err;

	/* [vsyscall] is the kernel's; searches take the highest bit as a sign */
	if (mapping->end >> USER_ADDRESS_BITS)
		return 0;
	err = unwind_feed__file(f, process, mapping->image, &file);
	if (!err && file->elf)
		err = place_code(f, file, mapping, &placement);
	else if (!err)
		placement.table = table_of(f, file);
	if (err)
		return err;
	if (file->is_made)
		placement.table = UNWIND_JAVA;
	return vec_push(&f->placements, placement);
}

void unwind_feed__note_runtime(const struct unwind_feed *f, const struct mapping *mapping,
			       struct fed_runtimes *runtimes)
{
	const struct runtime *runtime =
		f->options.describe(f->options.context, mapping->image).runtime;

	if (!runtime)
		return;
	runtimes->has_own_walk |= runtime->has_own_walk;
	if (!runtime->has_own_walk) {
		runtimes->some_keep |= runtime->keeps_frame_pointers;
		runtimes->others_may_not |= !runtime->keeps_frame_pointers;
	}
	if (runtime->frame_sizes)
		runtimes->by = runtime->by;
}

/* Does the process's jitdump have a table for its JIT code? */
static bool describes_itself(const struct unwind_feed *f, uint32_t tgid, uint32_t *table)
{
	const struct fed_made *made = made_map__find(&f->mades, tgid);

	if (!made || !table_store__owns(f->options.store, &made->number))
		return false;
	*table = made->number.number;
	return true;
}

/* Splits a placement into pieces with known frames and without. */
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

/* Code of runtimes whose frame sizes are read from the process. */
static int place_known_frames(struct unwind_feed *f, uint32_t tgid)
{
	int err = 0;

	f->pieces.count = 0;
	for (size_t i = 0; i < f->placements.count && !err; i++) {
		const struct unwind_placement *p = &f->placements.data[i];

		err = p->table == UNWIND_JAVA ? place_pieces(f, tgid, p) : vec_push(&f->pieces, *p);
	}
	if (err)
		return err;
	f->placements.count = 0;
	return vec_append(&f->placements, f->pieces.data, f->pieces.count);
}

/*
 * Engines that keep frame pointers in JIT code are known by name (runtime.keeps_frame_pointers).
 * HotSpot keeps them if started with a flag; until that is read, its code is not followed. Of all
 * others the instructions are followed at the sample, which takes longer. True: *table is how to
 * unwind all JIT code of the process; false: each piece differs.
 */
static bool table_of_made_code(struct unwind_feed *f, const struct fed_process *process,
			       uint32_t *table)
{
	const struct fed_runtimes *runtimes = &process->runtimes;

	*table = UNWIND_JAVA;
	if ((runtimes->has_own_walk && !runtimes->keeps_frame_pointers) ||
	    describes_itself(f, process->tgid, table))
		return true;
	*table = (runtimes->some_keep || runtimes->keeps_frame_pointers) &&
				 !runtimes->others_may_not
			 ? UNWIND_NO_TABLE
			 : UNWIND_BY_CODE;
	return runtimes->by == MADE_BY_OTHERS;
}

static int place_made_code(struct unwind_feed *f, const struct fed_process *process)
{
	uint32_t table;
	size_t i = 0;

	while (i < f->placements.count && f->placements.data[i].table != UNWIND_JAVA)
		i++;
	if (i == f->placements.count)
		return 0;
	if (!table_of_made_code(f, process, &table))
		return place_known_frames(f, process->tgid);
	for (; i < f->placements.count; i++)
		if (f->placements.data[i].table == UNWIND_JAVA)
			f->placements.data[i].table = table;
	return 0;
}

/* Joins neighbours that are unwound alike. */
static void join_neighbours(struct unwind_feed *f)
{
	struct unwind_placement *p = f->placements.data;
	size_t kept = 0;

	for (size_t i = 0; i < f->placements.count; i++) {
		struct unwind_placement *last = kept ? &p[kept - 1] : NULL;

		if (last && last->end == p[i].start && last->table == p[i].table &&
		    (last->table >= UNWIND_TABLES || last->bias == p[i].bias))
			last->end = p[i].end;
		else
			p[kept++] = p[i];
	}
	f->placements.count = kept;
}

static int place_all(struct unwind_feed *f, const struct fed_process *process)
{
	struct mapping_cursor at = {};
	int err = 0;

	f->placements.count = 0;
	for (const struct mapping *m; !err && (m = mappings__next(process->maps, &at));)
		err = place_mapping(f, process, m);
	if (!err)
		err = place_made_code(f, process);
	if (!err)
		join_neighbours(f);
	return err;
}

/* The place of one address, as it would be published now. 1; 0: no mapping has it; -ENOMEM. */
static int place_at(struct unwind_feed *f, const struct fed_process *process, uint64_t address,
		    struct unwind_placement *placement)
{
	const struct mapping *m = mappings__find(process->maps, address);
	const struct unwind_placement *p;
	int err = 0;

	f->placements.count = 0;
	if (m)
		err = place_mapping(f, process, m);
	for (p = f->placements.data; !err && p < f->placements.data + f->placements.count; p++)
		if (p->start <= address && address < p->end)
			break;
	if (err || p == f->placements.data + f->placements.count)
		return err;
	*placement = *p;
	if (p->table != UNWIND_JAVA)
		return 1;
	if (!table_of_made_code(f, process, &placement->table))
		made_code__place(f->made_code, process->tgid, address, m->end, placement);
	return 1;
}

int unwind_feed__publish(struct unwind_feed *f, const struct fed_process *process)
{
	int err = process->maps.count > UNWIND_FEED_MAPPINGS ? -E2BIG : place_all(f, process);

	if (err == -E2BIG)
		place_store__refuse(f->places, process->tgid);
	else if (!err)
		err = place_store__publish(f->places, process->tgid, f->placements.data,
					   f->placements.count, process->time);
	return err;
}

static bool is_of_use(const struct fed_file *file)
{
	if (file->state == FILE_REFUSED)
		return file->refused != UINT64_MAX && monotonic_ns() - file->refused > REFUSED_NS;
	return file->state == FILE_LATER || file->state == FILE_THERE;
}

/* Lists the areas of the process's JIT code. */
static int find_made_code(struct unwind_feed *f, const struct fed_process *process)
{
	struct mapping_cursor at = {};
	int err = 0;

	f->areas.count = 0;
	for (const struct mapping *m; !err && (m = mappings__next(process->maps, &at));)
		if (f->options.describe(f->options.context, m->image).is_made)
			err = vec_push(&f->areas,
				       (struct made_area){.start = m->start, .end = m->end});
	return err;
}

/* Requests the frames of its JIT code again. `registers` NULL: no stack was truncated there. */
static int reread_frames(struct unwind_feed *f, const struct fed_process *process, uint64_t missed,
			 const uint64_t *registers)
{
	struct made_moment moment = {.tgid = process->tgid,
				     .by = process->runtimes.by,
				     .time = monotonic_ns(),
				     .missed = missed,
				     .registers = registers};
	int err;

	/* no runtime whose frames are requested has more mappings */
	if (moment.by == MADE_BY_OTHERS || process->maps.count > UNWIND_FEED_MAPPINGS)
		return 0;
	err = find_made_code(f, process);
	if (err)
		return err;
	moment.areas = f->areas.data;
	moment.area_count = f->areas.count;
	return made_code__request(f->made_code, &moment);
}

int unwind_feed__answer_frames(struct unwind_feed *f, const struct made_answer *answer)
{
	return made_code__answer(f->made_code, answer);
}

int unwind_feed__refresh(struct unwind_feed *f, const struct fed_process *process)
{
	return made_code__is_due(f->made_code, process->tgid, monotonic_ns())
		       ? reread_frames(f, process, 0, NULL)
		       : 0;
}

static int missed_made_code(struct unwind_feed *f, const struct fed_process *process,
			    uint64_t address, const struct stack_copy *copy)
{
	uint64_t registers[sizeof(copy->general) / sizeof(copy->general[0])] = {};
	struct fed_made *made = made_map__find(&f->mades, process->tgid);

	if (made && made->number.holder) { /* use frame pointers from now on */
		made->number = (struct table_number){};
		return 1;
	}
	if (copy)
		memcpy(registers, copy->general, sizeof(registers));
	return reread_frames(f, process, address, registers);
}

int unwind_feed__missed(struct unwind_feed *f, const struct fed_process *process, uint64_t address,
			const struct stack_copy *copy)
{
	struct image_id image;
	struct fed_file *file = unwind_feed__file_at(f, process, address, &image);
	const void *segment;
	bool later;
	int err;

	if (!file)
		return 0;
	later = file->state == FILE_LATER;
	if (file->state == FILE_BUILDING)
		table_builder__hurry(f->builder, image.v);
	if (file->is_made)
		return missed_made_code(f, process, address, copy);
	if (!is_of_use(file))
		return 0;
	/* it has been loaded again since */
	if (file->state == FILE_THERE && table_store__owns(f->options.store, &file->number) &&
	    table_store__get(f->options.store, file->number.number, &segment))
		return 0;
	err = unwind_feed__request_table(f, process, file, image);
	if (err)
		return err;
	return later && file->state == FILE_BUILDING;
}

/* Requests that a builder has are answered; the answer is outdated. */
static void cancel_made_table(struct unwind_feed *f, struct fed_made *made)
{
	if (made->ticket && table_builder__cancel_pieces(f->builder, made->ticket))
		f->building--;
	made->ticket = 0;
}

void unwind_feed__withdraw(struct unwind_feed *f, uint32_t tgid)
{
	struct fed_made *made = made_map__find(&f->mades, tgid);

	place_store__withdraw(f->places, tgid);
	if (made) {
		cancel_made_table(f, made);
		made_map__remove(&f->mades, made);
	}
	made_code__forget(f->made_code, tgid);
}

/* ---- JIT code with CFI in a jitdump ---------------------------------------------------------- */

/* Keeps pieces in mappings of JIT code: others would stretch the table over all between them. */
static size_t choose_pieces(struct unwind_feed *f, const struct fed_process *process,
			    const struct unwind_piece *pieces, size_t count,
			    struct unwind_piece *chosen)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		const struct mapping *m = mappings__find(process->maps, pieces[i].start);

		if (m && f->options.describe(f->options.context, m->image).is_made)
			chosen[kept++] = pieces[i];
	}
	return kept;
}

static int load_made(struct unwind_feed *f, struct fed_made *made,
		     const struct unwind_table_image *image)
{
	struct table_number number;
	int err = table_store__take_number(f->options.store, made->tgid, &number)
			  ?: table_store__put(f->options.store, number.number, made->tgid, image);

	if (err)
		return err == -ENOMEM ? err : 0;
	made->number = number;
	return f->options.described(f->options.context, made->tgid);
}

int unwind_feed__put_made(struct unwind_feed *f, const struct built_table *built)
{
	for (size_t i = 0; i < f->mades.count; i++) {
		struct fed_made *made = &f->mades.data[i];

		if (made->ticket != built->id)
			continue;
		made->ticket = 0;
		return built->err ? 0 : load_made(f, made, &built->image);
	}
	return 0; /* the process has ended, or made more code since */
}

static int request_made_table(struct unwind_feed *f, uint32_t tgid,
			      const struct unwind_piece *pieces, size_t count)
{
	struct table_request request = {
		.kind = BUILD_PIECES,
		.effort = TABLE_BUILD,
		.owner = place_store__user(f->places, tgid),
	};
	_cleanup_close_ int fd = build_pieces__write(pieces, count);
	struct fed_made *made;
	int err = fd < 0 ? fd : 0;

	if (err == -E2BIG)
		table_store__leave(f->options.store, tgid, OUTSIDE_TABLES, 1);
	if (err)
		return err == -ENOMEM ? err : 0;
	made = made_map__need(&f->mades, &(struct fed_made){.tgid = tgid}, NULL);
	if (!made)
		return -ENOMEM;
	cancel_made_table(f, made);
	request.fd = fd;
	request.id = ++f->tickets;
	err = table_builder__request(f->builder, &request);
	if (err)
		return err == -ENOMEM ? err : 0;
	made->ticket = request.id;
	f->building++;
	return 0;
}

bool unwind_feed__may_describe(struct unwind_feed *f, uint32_t tgid)
{
	bool may = unwind_feed__may_build(f, place_store__user(f->places, tgid));

	f->stats.put_off += !may;
	return may;
}

int unwind_feed__describe(struct unwind_feed *f, const struct fed_process *process,
			  const struct unwind_piece *pieces, size_t count)
{
	_cleanup_free_ struct unwind_piece *chosen = calloc(count + 1, sizeof(*chosen));

	if (!chosen)
		return -ENOMEM;
	count = choose_pieces(f, process, pieces, count, chosen);
	return count ? request_made_table(f, process->tgid, chosen, count) : 0;
}

/* ---- walks of copied stacks, by the current tables and mappings ------------------------------ */

struct copied {
	struct unwind_feed *feed;
	const struct fed_process *process;
	const struct stack_copy *copy;
};

/* Reads code from the mapped file. */
static int read_code(const struct copied *c, void *to, size_t size, uint64_t address)
{
	const struct mapping *m = mappings__find(c->process->maps, address);
	struct unwind_feed *f = c->feed;
	struct fed_file *file;
	uint64_t at;
	int fd;

	if (!m || m->image.v >= f->files.count || size > m->end - address)
		return -EFAULT;
	file = &f->files.data[m->image.v];
	fd = unwind_feed__descriptor(f, m->image);
	if (fd < 0 || __builtin_add_overflow(file->base, m->page_offset, &at) ||
	    __builtin_add_overflow(at, address - m->start, &at) || at > INT64_MAX - size)
		return -EFAULT;
	return pread(fd, to, size, (off_t)at) == (ssize_t)size ? 0 : -EFAULT;
}

/* Are these pages in the copy? A read has at most a page, so it touches at most two. */
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

/* A stack has few of a process's mappings, so each is looked up when the walk reaches it. */
static bool find_range(void *context, uint64_t address, struct unwind_range *range)
{
	const struct copied *c = context;
	struct unwind_placement p;

	if (place_at(c->feed, c->process, address, &p) <= 0)
		return false;
	*range = (struct unwind_range){
		.start = p.start, .end = p.end, .bias = p.bias, .instead = p.table};
	if (p.table >= UNWIND_TABLES)
		return true;
	range->instead = UNWIND_LATER;
	range->table = table_store__get(c->feed->options.store, p.table, &range->segment);
	return true;
}

enum stack_end unwind_feed__walk(struct unwind_feed *f, const struct fed_process *process,
				 const struct stack_copy *copy, uint64_t *frames, size_t max,
				 size_t *count)
{
	uint64_t registers[UNWIND_REGISTERS];
	struct copied copied = {.feed = f, .process = process, .copy = copy};
	struct unwind_space space = {
		.find = find_range,
		.count = process->maps.count,
		.is_fresh = copy->is_fresh,
		.read = read_copy,
		.context = &copied,
	};
	enum stack_end end;

	memcpy(registers, copy->general, sizeof(copy->general));
	registers[UNWIND_X86_RA] = copy->ip;
	*count = 0;
	end = unwind_stack(&space, registers, copy->in_system_call, frames, max, count);
	return end == STACK_END_FAULT ? STACK_END_COPY : end;
}
