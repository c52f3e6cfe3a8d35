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
#include "unwind/unwind_feed_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clocks.h"
#include "unwind/table_cache.h"
#include "unwind/unwind.h"

#define USER_ADDRESS_BITS 47
#define CREDIT_DEFAULT	  2000000000ll	/* ns of CPU */
#define REFUSED_NS	  3000000000ull /* until a table without room is tried again */
#define RUNS_MAX	  8		/* of one mapping that belong to different segments */

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

void unwind_feed__free(struct unwind_feed *f)
{
	if (!f)
		return;
	table_builder__free(f->builder);
	for (size_t i = 0; i < f->files.count; i++)
		unwind_feed__close_file(f, &f->files.data[i]);
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
	err = unwind_feed__file(f, process, mapping->image, &file);
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

static struct fed_jvm *find_jvm(struct unwind_feed *f, uint32_t tgid, uint64_t bias)
{
	for (size_t i = 0; i < f->jvms.count; i++)
		if (f->jvms.data[i].tgid == tgid && f->jvms.data[i].bias == bias)
			return &f->jvms.data[i];
	return NULL;
}

int unwind_feed__answer_jvm(struct unwind_feed *f, uint32_t tgid, uint64_t bias,
			    bool keeps_frame_pointers)
{
	struct fed_jvm *jvm = find_jvm(f, tgid, bias);

	if (!jvm || jvm->answered)
		return 0;
	jvm->answered = true;
	jvm->keeps_frame_pointers = keeps_frame_pointers;
	return keeps_frame_pointers;
}

/* Until it is known, its code is not followed. 1, 0, -ENOMEM. */
static int jvm_keeps_frame_pointers(struct unwind_feed *f, uint32_t tgid,
				    const struct made_code_of *made)
{
	struct fed_jvm *jvm = find_jvm(f, tgid, made->bias);
	int err = 0;

	if (!jvm) {
		err = vec_push(&f->jvms, ((struct fed_jvm){.tgid = tgid, .bias = made->bias}));
		if (!err)
			err = f->options.request_jvm(f->options.context, tgid, made->jvm,
						     made->bias);
		if (err)
			return err;
		jvm = find_jvm(f, tgid, made->bias);
	}
	return jvm && jvm->keeps_frame_pointers;
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

	int keeps = 1;

	if (made->count && made->jvm)
		keeps = jvm_keeps_frame_pointers(f, process->tgid, made);
	if (!made->count || keeps <= 0)
		return keeps < 0 ? keeps : 0;
	if (!describes_itself(f, process->tgid, &table) && made->by != MADE_BY_OTHERS)
		return place_known_frames(f, process->tgid);
	for (size_t i = 0; i < f->placements.count; i++)
		if (f->placements.data[i].table == UNWIND_JAVA)
			f->placements.data[i].table = table;
	return 0;
}

int unwind_feed__place_all(struct unwind_feed *f, const struct fed_process *process)
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
	int err = unwind_feed__place_all(f, process);

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
	return made_code__ask(f->made_code, &moment);
}

int unwind_feed__answer_frames(struct unwind_feed *f, const struct made_answer *answer)
{
	return made_code__answer(f->made_code, answer);
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
	struct fed_file *file = unwind_feed__file_at(f, process, address, &image);
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
	err = unwind_feed__ask_for_table(f, process, file, image);
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
		const struct mapping *m = find_fed_mapping(process->maps, pieces[i].start);

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
