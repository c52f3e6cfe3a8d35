/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The entries of a perf map go into the timeline as they come. Records of a jitdump have exact times,
 * but several threads may write them, a little out of order: they are kept, and sorted at the end.
 */
#include "jit/jit_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/cleanup.h"
#include "base/hashmap.h"
#include "base/log.h"
#include "base/search.h"
#include "base/strtab.h"
#include "jit/jit_name.h"
#include "jit/jitdump.h"
#include "jit/perf_map.h"

struct dump_line {
	uint64_t offset; /* from the start of the code */
	uint32_t line, column;
	uint32_t file; /* in names */
};

#define ENTRIES_MAX (16u << 20) /* of one file */

enum dump_action { DUMP_LOAD, DUMP_MOVE, DUMP_CLOSE };

/* A load, or what happens to one. */
struct dump_record {
	enum dump_action action;
	bool tsc; /* that is what the time is of */
	uint64_t time;
	uint64_t from; /* of a move */
	uint64_t address, size;
	uint32_t name;
	uint32_t first_line, line_count;
	uint32_t unwinding, unwinding_size; /* in `unwinding`; 0 bytes: there is none */
	uint32_t order;			    /* in the file */
};

struct jit_code {
	enum jit_code_use use;
	bool gave_up;
	size_t settled; /* records that are in the timeline */
	struct strtab *names;
	struct jit_timeline *timeline;
	struct perf_map_reader map;
	struct jitdump_reader dump;
	struct jit_code_counts before; /* of dumps that this one has replaced */
	const struct jit_piece *piece; /* that is being read */
	VEC(char) name;		       /* with its NUL */
	VEC(struct dump_record) records;
	VEC(struct dump_line) lines;
	VEC(unsigned char) unwinding;
	size_t unwinding_told;	 /* of it */
	struct hashmap by_start; /* entries of the timeline, the last of each address */
};

static bool is_dump(const struct jit_code *c)
{
	return c->use != JIT_CODE_MAP;
}

static bool starts_at(const void *owner, uint32_t entry, const void *address)
{
	const struct jit_code *c = owner;

	return jit_timeline__range(c->timeline, entry).start == *(const uint64_t *)address;
}

struct jit_code *jit_code__new(enum jit_code_use use)
{
	struct jit_code *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->use = use;
	hashmap__init(&c->by_start, starts_at, c);
	c->names = strtab__new();
	c->timeline = jit_timeline__new();
	if (c->names && c->timeline)
		return c;
	jit_code__free(c);
	return NULL;
}

void jit_code__free(struct jit_code *c)
{
	if (!c)
		return;
	strtab__free(c->names);
	jit_timeline__free(c->timeline);
	perf_map_reader__fini(&c->map);
	jitdump_reader__fini(&c->dump);
	vec_free(&c->name);
	vec_free(&c->records);
	vec_free(&c->lines);
	vec_free(&c->unwinding);
	hashmap__fini(&c->by_start);
	free(c);
}

/* ---- perf maps ------------------------------------------------------------------------------- */

/* Its number, or negative errno. A NUL would end the name for everybody else. */
static int64_t keep_name(struct jit_code *c, const char *name, size_t size)
{
	if (vec_reserve(&c->name, size + 1))
		return -ENOMEM;
	if (size)
		memcpy(c->name.data, name, size);
	c->name.data[size] = 0;
	for (char *nul = c->name.data; (nul = memchr(nul, 0, c->name.data + size - nul));)
		*nul = '?';
	return strtab__intern(c->names, c->name.data);
}

static int add_map_entry(void *context, const struct perf_map_entry *entry)
{
	struct jit_code *c = context;
	const struct code_range range = {entry->start, entry->end};
	int64_t name = keep_name(c, entry->name, entry->name_size);

	if (name < 0)
		return name;
	return jit_timeline__add(c->timeline, &range, c->piece->after, c->piece->before, name);
}

static int feed_map(struct jit_code *c, const struct jit_piece *piece)
{
	int err = 0;

	c->piece = piece;
	if (piece->begins_snapshot) {
		c->map.rest.count = 0;
		c->map.skipping = false;
		err = jit_timeline__begin_snapshot(c->timeline, piece->after, piece->before);
	}
	if (!err)
		err = perf_map_reader__feed(&c->map, piece->bytes, piece->size, add_map_entry, c);
	if (piece->ends_snapshot)
		jit_timeline__end_snapshot(c->timeline);
	return err;
}

/* ---- jitdumps -------------------------------------------------------------------------------- */

static int add_dump_line(struct jit_code *c, const struct jitdump_load *load,
			 const struct jitdump_line *line, uint32_t file)
{
	const struct dump_line kept = {
		.offset = line->address - load->address,
		.line = line->line,
		.column = line->column,
		.file = file,
	};

	/* what lies outside of the code is none of its lines */
	return line->address < load->address || kept.offset >= load->size
		       ? 0
		       : vec_push(&c->lines, kept);
}

/* Most lines have the file of the one before: it is the very same text. */
static int add_dump_lines(struct jit_code *c, const struct jitdump_load *load)
{
	int64_t file = 0;
	int err = 0;

	for (size_t i = 0; i < load->line_count && !err; i++) {
		if (!i || load->lines[i].file != load->lines[i - 1].file)
			file = strtab__intern(c->names, load->lines[i].file);
		err = file < 0 ? (int)file
			       : add_dump_line(c, load, &load->lines[i], (uint32_t)file);
	}
	return err;
}

#define UNWINDING_MAX (64u << 20) /* bytes of one dump */

static int keep_unwinding(struct jit_code *c, const struct jitdump_load *load,
			  struct dump_record *record)
{
	size_t size = load->unwinding_size - load->eh_frame_header_size;

	if (!load->unwinding || !size || c->unwinding.count + size > UNWINDING_MAX)
		return 0;
	if (vec_reserve(&c->unwinding, c->unwinding.count + size))
		return -ENOMEM;
	record->unwinding = c->unwinding.count;
	record->unwinding_size = size;
	memcpy(c->unwinding.data + c->unwinding.count, load->unwinding, size);
	c->unwinding.count += size;
	return 0;
}

/* What is asked for: its frames, or its name and lines. */
static int keep_load(void *context, const struct jitdump_load *load)
{
	struct jit_code *c = context;
	bool frames = c->use == JIT_CODE_FRAMES;
	int64_t name = frames ? 0 : strtab__intern(c->names, load->name);
	struct dump_record record = {
		.action = DUMP_LOAD,
		.tsc = c->dump.header.tsc,
		.time = load->time,
		.address = load->address,
		.size = load->size,
		.name = (uint32_t)name,
		.first_line = c->lines.count,
		.order = c->records.count,
	};
	int err = name < 0 ? (int)name : 0;

	if (!err)
		err = frames ? keep_unwinding(c, load, &record) : add_dump_lines(c, load);
	record.line_count = c->lines.count - record.first_line;
	return err ? err : vec_push(&c->records, record);
}

static int keep_move(void *context, const struct jitdump_move *move)
{
	struct jit_code *c = context;

	return vec_push(&c->records, ((struct dump_record){
					     .action = DUMP_MOVE,
					     .tsc = c->dump.header.tsc,
					     .time = move->time,
					     .from = move->from,
					     .address = move->to,
					     .size = move->size,
					     .order = c->records.count,
				     }));
}

static int keep_close(void *context, uint64_t time)
{
	struct jit_code *c = context;

	return vec_push(&c->records, ((struct dump_record){
					     .action = DUMP_CLOSE,
					     .tsc = c->dump.header.tsc,
					     .time = time,
					     .order = c->records.count,
				     }));
}

static int feed_dump(struct jit_code *c, const struct jit_piece *piece)
{
	const struct jitdump_handler handler = {
		.context = c, .load = keep_load, .move = keep_move, .close = keep_close};

	/* written anew by the same process: a dump of its own, and the times say the rest */
	if (piece->begins_snapshot) {
		c->before.entries += c->dump.counts.loads + c->dump.counts.moves;
		c->before.bad_lines += c->dump.counts.bad_records;
		jitdump_reader__fini(&c->dump);
	}
	return jitdump_reader__feed(&c->dump, piece->bytes, piece->size, &handler);
}

/* What comes after is not known: what was there until then is in doubt. */
static int give_up(struct jit_code *c, uint64_t time)
{
	int err = jit_timeline__begin_snapshot(c->timeline, time, UINT64_MAX);

	jit_timeline__end_snapshot(c->timeline);
	c->gave_up = true;
	return err;
}

int jit_code__feed(struct jit_code *c, const struct jit_piece *piece)
{
	int err;

	if (c->gave_up)
		return 0;
	if (jit_timeline__count(c->timeline) + c->records.count > ENTRIES_MAX)
		err = -E2BIG;
	else
		err = is_dump(c) ? feed_dump(c, piece) : feed_map(c, piece);
	if (!err)
		return 0;
	if (is_dump(c))
		c->gave_up = true; /* the rest has no names */
	else if (give_up(c, piece->after))
		return -ENOMEM;
	return err;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static int compare_unwinding(const void *a, const void *b)
{
	const struct jit_unwinding *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

/* Its references are as if it lay behind the code, at the next multiple of eight. */
static struct jit_unwinding unwinding_of(const struct jit_code *c, const struct dump_record *r)
{
	return (struct jit_unwinding){
		.address = r->address,
		.size = r->size,
		.eh_frame = c->unwinding.data + r->unwinding,
		.eh_frame_size = r->unwinding_size,
		.eh_frame_address = r->address + align_up(r->size, 8),
	};
}

int jit_code__unwinding(struct jit_code *c, struct jit_unwinding **list, size_t *count)
{
	size_t records = c->records.count;
	_cleanup_free_ struct code_range *ranges = NULL;
	_cleanup_free_ bool *fresh = NULL;

	if (c->unwinding.count <= c->unwinding_told + c->unwinding_told / 16)
		return 1;
	c->unwinding_told = c->unwinding.count;
	ranges = calloc(records + 1, sizeof(*ranges));
	fresh = calloc(records + 1, sizeof(*fresh));
	*list = calloc(records + 1, sizeof(**list));
	*count = 0;
	if (!ranges || !fresh || !*list)
		return -ENOMEM;
	for (size_t i = 0; i < records; i++)
		ranges[i] =
			(struct code_range){c->records.data[i].address,
					    c->records.data[i].address + c->records.data[i].size};
	if (find_fresh(ranges, records, fresh))
		return -ENOMEM;
	for (size_t i = 0; i < records; i++)
		if (fresh[i] && c->records.data[i].unwinding_size)
			(*list)[(*count)++] = unwinding_of(c, &c->records.data[i]);
	if (*count)
		qsort(*list, *count, sizeof(**list), compare_unwinding);
	return 0;
}

/* ---- from records to entries ----------------------------------------------------------------- */

static int compare_records(const void *a, const void *b)
{
	const struct dump_record *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static int compare_lines(const void *a, const void *b)
{
	const struct dump_line *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* A record's code is there at its time. */
static int add_range(struct jit_code *c, uint64_t time, uint64_t start, uint64_t end, uint32_t name)
{
	const struct code_range range = {start, end};
	uint64_t moment = time ? time - 1 : 0;

	return jit_timeline__add(c->timeline, &range, moment, moment, name);
}

/* `load` is the record that told of the code. */
static int add_code(struct jit_code *c, const struct dump_record *r, uint32_t load)
{
	uint32_t entry = jit_timeline__count(c->timeline);
	int err = add_range(c, r->time, r->address, r->address + r->size, load);

	if (err)
		return err;
	hashmap__remove(&c->by_start, hash_u64(r->address), &r->address);
	return hashmap__add(&c->by_start, hash_u64(r->address), entry);
}

static int move_code(struct jit_code *c, const struct dump_record *r)
{
	uint32_t entry = hashmap__remove(&c->by_start, hash_u64(r->from), &r->from);
	struct code_range range;
	uint32_t load;
	int err;

	if (entry == HASHMAP_NONE)
		return 0;
	range = jit_timeline__range(c->timeline, entry);
	load = jit_timeline__name(c->timeline, entry);
	/* an empty range has an address all the same */
	err = add_range(c, r->time, range.start,
			range.end > range.start ? range.end : range.start + 1, JIT_NOTHING);
	return err ? err : add_code(c, r, load);
}

static int apply_record(struct jit_code *c, uint32_t number)
{
	const struct dump_record *r = &c->records.data[number];

	switch (r->action) {
	case DUMP_LOAD:
		return add_code(c, r, number);
	case DUMP_MOVE:
		return move_code(c, r);
	case DUMP_CLOSE:
		break;
	}
	return add_range(c, r->time, 0, UINT64_MAX, JIT_NOTHING);
}

/* Records may have come out of order, so the timeline is made anew. */
static int clear_timeline(struct jit_code *c)
{
	struct jit_timeline *timeline = jit_timeline__new();

	if (!timeline)
		return -ENOMEM;
	jit_timeline__free(c->timeline);
	c->timeline = timeline;
	hashmap__fini(&c->by_start);
	hashmap__init(&c->by_start, starts_at, c);
	return 0;
}

static void log_settled(const struct jit_code *c)
{
	struct jit_code_counts counts = jit_code__counts(c);

	log_debug(LOG_JIT, "%s: %llu entries, %llu bad lines, %llu bytes cut off",
		  is_dump(c) ? "jitdump" : "perf map", (unsigned long long)counts.entries,
		  (unsigned long long)counts.bad_lines, (unsigned long long)counts.torn);
}

int jit_code__settle(struct jit_code *c, jit_clock_fn clock, void *context)
{
	int err;

	if (!is_dump(c) || c->settled == c->records.count)
		return 0;
	err = clear_timeline(c);
	if (err)
		return err;
	for (size_t i = 0; i < c->records.count && clock; i++) {
		struct dump_record *r = &c->records.data[i];

		if (r->tsc)
			r->time = clock(context, r->time);
		r->tsc = false;
	}
	qsort(c->records.data, c->records.count, sizeof(*c->records.data), compare_records);
	for (size_t i = 0; i < c->records.count; i++) {
		const struct dump_record *r = &c->records.data[i];

		if (r->line_count)
			qsort(c->lines.data + r->first_line, r->line_count, sizeof(*c->lines.data),
			      compare_lines);
	}
	for (uint32_t i = 0; i < c->records.count && !err; i++)
		err = apply_record(c, i);
	c->settled = err ? 0 : c->records.count;
	log_settled(c);
	return err;
}

/* ---- answers --------------------------------------------------------------------------------- */

struct jit_code_counts jit_code__counts(const struct jit_code *c)
{
	if (is_dump(c))
		return (struct jit_code_counts){c->before.entries + c->dump.counts.loads +
							c->dump.counts.moves,
						c->before.bad_lines + c->dump.counts.bad_records,
						jitdump_reader__torn(&c->dump)};
	return (struct jit_code_counts){c->map.entries, c->map.bad_lines, c->map.rest.count};
}

struct jit_timeline *jit_code__timeline(struct jit_code *c)
{
	return c->timeline;
}

static uint32_t name_of(const struct jit_code *c, uint32_t entry)
{
	uint32_t name = jit_timeline__name(c->timeline, entry);

	return is_dump(c) ? c->records.data[name].name : name;
}

const char *jit_code__name(const struct jit_code *c, uint32_t entry)
{
	return strtab__get(c->names, name_of(c, entry));
}

static bool same_text(struct jit_text a, struct jit_text b)
{
	return a.size == b.size && (!a.size || !memcmp(a.text, b.text, a.size));
}

bool jit_code__same_function(void *code, uint32_t entry, uint32_t other)
{
	const struct jit_code *c = code;
	const char *name = jit_code__name(c, entry), *other_name = jit_code__name(c, other);
	struct jit_name x, y;

	if (name_of(c, entry) == name_of(c, other))
		return true;
	x = jit_name_parse(name, strlen(name));
	y = jit_name_parse(other_name, strlen(other_name));
	return same_text(x.function, y.function) && same_text(x.file, y.file) && x.line == y.line &&
	       x.column == y.column;
}

bool jit_code__has_lines(const struct jit_code *c)
{
	return c->lines.count > 0;
}

bool jit_code__line(const struct jit_code *c, uint32_t entry, uint64_t address,
		    struct jit_line *line)
{
	const struct dump_record *r;
	const struct dump_line *lines;
	uint64_t offset = address - jit_timeline__range(c->timeline, entry).start;
	size_t count;

	if (!is_dump(c))
		return false;
	r = &c->records.data[jit_timeline__name(c->timeline, entry)];
	lines = c->lines.data + r->first_line;
	count = partition_point(lines, r->line_count, l, l->offset <= offset);
	if (!count)
		return false;
	lines += count - 1;
	*line = (struct jit_line){strtab__get(c->names, lines->file), lines->line, lines->column};
	return line->line > 0;
}
