/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entries of a perf map go into the timeline as they come. Records of a jitdump have exact times
 * but may be a little out of order, because several threads write them; they are sorted when
 * settled.
 *
 * The process writes these times by a clock of its choice. A record without a time, or with one
 * after it was read, shows that the clock is another one. Then all records have the two moments of
 * their piece, as those of a perf map, so what was in doubt is ambiguous.
 */
#include "jit/jit_code.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hashmap.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/order.h"
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

/* A load, or an event of loaded code. */
struct dump_record {
	enum dump_action action;
	bool tsc; /* `time` is of the TSC */
	uint64_t time;
	uint64_t after, before; /* written in (after, before] */
	uint64_t from;		/* of a move */
	uint64_t address, size;
	uint32_t name;
	uint32_t first_line, line_count;
	uint32_t unwinding, unwinding_size; /* in `unwinding`; 0 bytes: there is none */
	uint32_t text, text_size;	    /* in `texts`; the same */
	bool text_left;			    /* its bytes had no room */
	uint32_t order;			    /* in the file */
	bool used;			    /* by a query since the last shrinking */
};

struct jit_code {
	enum jit_code_use use;
	bool gave_up;
	uint64_t gave_up_at;
	uint64_t read_at;   /* all that was written before was fed */
	bool clock_unknown; /* times of records are not used */
	bool clock_unreadable;
	int64_t ahead;	/* of CLOCK_MONOTONIC: times that are not the TSC's */
	size_t settled; /* records in the timeline */
	size_t kept;	/* entries or records left after the last forgetting */
	struct strtab *names;
	size_t text; /* bytes in names, approximately */
	struct jit_timeline *timeline;
	struct perf_map_reader map;
	struct jitdump_reader dump;
	struct jit_code_counts before; /* of dumps replaced by this one */
	const struct jit_piece *piece; /* being read */
	VEC(char) name;		       /* with its NUL */
	VEC(struct dump_record) records;
	VEC(struct dump_line) lines;
	VEC(unsigned char) unwinding;
	VEC(uint8_t) texts; /* machine code */
	bool keeps_texts, texts_full;
	size_t unwinding_reported; /* its size at the last report */
	bool unwinding_full;	   /* records were dropped since */
	uint64_t unwinding_left;   /* records were dropped */
	struct strtab *functions;  /* what names are without their tiers */
	VEC(uint32_t) function_of; /* by name: number in `functions` + 1; 0: not looked up yet */
	struct hashmap by_start;   /* the last timeline entry of each address */
};

static bool is_dump(const struct jit_code *c)
{
	return c->use != JIT_CODE_MAP;
}

/* The last entry of code that begins there, or HASHMAP_NONE. */
static uint32_t entry_at(const struct jit_code *c, uint64_t address)
{
	uint32_t entry;

	hashmap_each (&c->by_start, hash_u64(address), entry)
		if (jit_timeline__range(c->timeline, entry).start == address)
			break;
	return entry;
}

struct jit_code *jit_code__new(enum jit_code_use use)
{
	struct jit_code *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->use = use;
	c->names = strtab__new();
	c->timeline = jit_timeline__new();
	c->functions = strtab__new();
	if (c->names && c->timeline && c->functions)
		return c;
	jit_code__free(c);
	return NULL;
}

void jit_code__free(struct jit_code *c)
{
	if (!c)
		return;
	strtab__free(c->names);
	strtab__free(c->functions);
	vec_free(&c->function_of);
	jit_timeline__free(c->timeline);
	perf_map_reader__fini(&c->map);
	jitdump_reader__fini(&c->dump);
	vec_free(&c->name);
	vec_free(&c->records);
	vec_free(&c->lines);
	vec_free(&c->unwinding);
	vec_free(&c->texts);
	hashmap__fini(&c->by_start);
	free(c);
}

#define STRING_COST 32 /* bytes in tables, of a string */

/* The text's number, or negative errno. */
static int64_t intern(struct jit_code *c, const char *text)
{
	size_t before = strtab__count(c->names);
	int64_t number = strtab__intern(c->names, text);

	if (strtab__count(c->names) > before)
		c->text += strlen(text) + STRING_COST;
	return number;
}

size_t jit_code__memory(const struct jit_code *c)
{
	return c->text + jit_timeline__memory(c->timeline) +
	       c->records.capacity * sizeof(*c->records.data) +
	       c->lines.capacity * sizeof(*c->lines.data) + c->unwinding.capacity +
	       c->texts.capacity;
}

/* ---- perf maps ------------------------------------------------------------------------------- */

/* The name's number, or negative errno. NULs are replaced: they would end it for all readers. */
static int64_t keep_name(struct jit_code *c, const char *name, size_t size)
{
	if (vec_reserve(&c->name, size + 1))
		return -ENOMEM;
	if (size)
		memcpy(c->name.data, name, size);
	c->name.data[size] = 0;
	for (char *nul = c->name.data; (nul = memchr(nul, 0, c->name.data + size - nul));)
		*nul = '?';
	return intern(c, c->name.data);
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

	/* lines outside of the code are dropped */
	return line->address < load->address || kept.offset >= load->size
		       ? 0
		       : vec_push(&c->lines, kept);
}

/* Most lines have the same pointer to their file as the line before. */
static int add_dump_lines(struct jit_code *c, const struct jitdump_load *load)
{
	int64_t file = 0;
	int err = 0;

	for (size_t i = 0; i < load->line_count && !err; i++) {
		if (!i || load->lines[i].file != load->lines[i - 1].file)
			file = intern(c, load->lines[i].file);
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

	if (!load->unwinding || !size)
		return 0;
	if (c->unwinding.count + size > UNWINDING_MAX) {
		c->unwinding_full = true;
		c->unwinding_left++;
		return 0;
	}
	record->unwinding = c->unwinding.count;
	record->unwinding_size = size;
	return vec_append(&c->unwinding, load->unwinding, size);
}

#define TEXTS_MAX (64u << 20) /* bytes of code of one dump */
#define TEXT_MAX  (1u << 20)  /* of one function; the rest is left out */

/* Bytes that have no room are marked in the record: names are more important. */
static int keep_text(struct jit_code *c, const struct jitdump_load *load,
		     struct dump_record *record)
{
	size_t size = min_u64(load->size, TEXT_MAX);

	if (!load->code || !c->keeps_texts)
		return 0;
	record->text_left = c->texts_full || c->texts.count + size > TEXTS_MAX;
	if (record->text_left)
		return 0;
	record->text = c->texts.count;
	record->text_size = size;
	return vec_append(&c->texts, load->code, size);
}

void jit_code__keep_text(struct jit_code *c)
{
	c->keeps_texts = c->use == JIT_CODE_DUMP;
}

bool jit_code__drop_text(struct jit_code *c)
{
	bool had = c->texts.capacity;

	for (size_t i = 0; i < c->records.count; i++) {
		struct dump_record *r = &c->records.data[i];

		r->text_left |= r->text_size > 0;
		r->text_size = 0;
	}
	vec_free(&c->texts);
	c->texts_full = true;
	return had;
}

void jit_code__set_clock(struct jit_code *c, int64_t ahead, bool known)
{
	c->ahead = ahead;
	c->clock_unreadable = !known;
}

/*
 * In CLOCK_MONOTONIC; UINT64_MAX: it has no time. A process that was restored from a checkpoint has
 * records from before this machine's boot: these are the oldest, in the order of the file.
 */
static uint64_t to_monotonic(const struct jit_code *c, uint64_t time)
{
	if (c->dump.tsc)
		return time;
	if (!time || c->clock_unreadable)
		return UINT64_MAX;
	if (c->ahead > 0)
		return time > (uint64_t)c->ahead ? time - (uint64_t)c->ahead : 1;
	return saturating_add_u64(time, -(uint64_t)c->ahead);
}

static struct dump_record new_record(const struct jit_code *c, enum dump_action action,
				     uint64_t time)
{
	return (struct dump_record){
		.action = action,
		.tsc = c->dump.tsc,
		.time = to_monotonic(c, time),
		.after = c->piece->after,
		.before = c->piece->before,
		.order = c->records.count,
	};
}

/* Keeps what the use needs: CFI, or names and lines. */
static int keep_load(void *context, const struct jitdump_load *load)
{
	struct jit_code *c = context;
	bool frames = c->use == JIT_CODE_FRAMES;
	int64_t name = frames ? 0 : intern(c, load->name);
	struct dump_record record = new_record(c, DUMP_LOAD, load->time);
	int err;

	record.address = load->address;
	record.size = load->size;
	record.name = (uint32_t)name;
	record.first_line = c->lines.count;
	err = (name < 0 ? (int)name : 0)
		      ?: (frames ? keep_unwinding(c, load, &record)
				 : add_dump_lines(c, load) ?: keep_text(c, load, &record));
	record.line_count = c->lines.count - record.first_line;
	return err ? err : vec_push(&c->records, record);
}

/* A record without CFI ends older code. */
static int end_frames(struct jit_code *c, uint64_t address, uint64_t size)
{
	return vec_push(&c->records, ((struct dump_record){.address = address, .size = size}));
}

static int keep_move(void *context, const struct jitdump_move *move)
{
	struct jit_code *c = context;
	struct dump_record record = new_record(c, DUMP_MOVE, move->time);

	/* no known engine moves code that has CFI: the old code ends, the new one has none */
	if (c->use == JIT_CODE_FRAMES)
		return end_frames(c, move->from, move->size) ?: end_frames(c, move->to, move->size);
	record.from = move->from;
	record.address = move->to;
	record.size = move->size;
	return vec_push(&c->records, record);
}

static int keep_close(void *context, uint64_t time)
{
	struct jit_code *c = context;

	return vec_push(&c->records, new_record(c, DUMP_CLOSE, time));
}

static int feed_dump(struct jit_code *c, const struct jit_piece *piece)
{
	const struct jitdump_handler handler = {
		.context = c, .load = keep_load, .move = keep_move, .close = keep_close};

	c->piece = piece;
	/* rewritten by the same process: a new dump; its times order it after the old one */
	if (piece->begins_snapshot) {
		c->before.entries += c->dump.counts.loads + c->dump.counts.moves;
		c->before.bad_lines += c->dump.counts.bad_records;
		c->before.left += c->dump.counts.left;
		jitdump_reader__fini(&c->dump);
	}
	return jitdump_reader__feed(&c->dump, piece->bytes, piece->size, &handler);
}

/* Ignores the rest of the file: from then on all code is in doubt; see settle() for a jitdump's. */
static int give_up(struct jit_code *c, uint64_t time)
{
	int err = 0;

	c->gave_up = true;
	c->gave_up_at = time;
	if (is_dump(c)) {
		c->settled = SIZE_MAX;
		return 0;
	}
	err = jit_timeline__begin_snapshot(c->timeline, time, UINT64_MAX);
	jit_timeline__end_snapshot(c->timeline);
	return err;
}

int jit_code__lose(struct jit_code *c, uint64_t after, uint64_t before)
{
	int err;

	if (is_dump(c))
		return c->gave_up ? 0 : give_up(c, after);
	c->map.rest.count = 0;
	c->map.skipping = true;
	err = jit_timeline__begin_snapshot(c->timeline, after, before);
	jit_timeline__end_snapshot(c->timeline);
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
	if (!err) {
		c->read_at = piece->before;
		return 0;
	}
	return give_up(c, piece->after) ? -ENOMEM : err;
}

/* ---- records that are kept ------------------------------------------------------------------- */

#define WORTH_FORGETTING 1024u /* entries more than twice the number kept last time */

/* Forgetting costs time for every entry. At twice the number, the cost per new entry is small. */
static bool is_worth_it(const struct jit_code *c, size_t entries)
{
	return entries > 2 * c->kept + WORTH_FORGETTING;
}

/* Replaces the records by the kept ones; if `err` is set, drops the kept ones and returns it. */
static int take_kept(struct jit_code *c, struct jit_code *kept, int err)
{
	struct jit_code *dropped = err ? kept : c;

	vec_free(&dropped->records);
	vec_free(&dropped->lines);
	vec_free(&dropped->unwinding);
	vec_free(&dropped->texts);
	if (err)
		return err;
	c->records = kept->records;
	c->lines = kept->lines;
	c->unwinding = kept->unwinding;
	c->texts = kept->texts;
	return 0;
}

/* ---- frames ---------------------------------------------------------------------------------- */

DEFINE_ORDER(compare_unwinding, struct jit_unwinding, ASCENDING(address));

/* References in the CFI are as if it lay after the code, at the next multiple of eight. */
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

static int find_fresh_records(const struct jit_code *c, bool *fresh)
{
	size_t records = c->records.count;
	_cleanup_free_ struct code_range *ranges = calloc(records + 1, sizeof(*ranges));

	if (!ranges)
		return -ENOMEM;
	for (size_t i = 0; i < records; i++)
		ranges[i] =
			(struct code_range){c->records.data[i].address,
					    c->records.data[i].address + c->records.data[i].size};
	return find_fresh(ranges, records, fresh);
}

/* Drops overwritten code, and code without CFI, which has already ended older code. */
static int drop_overwritten(struct jit_code *c, bool *fresh)
{
	struct jit_code kept = {};

	for (size_t i = 0; i < c->records.count; i++) {
		struct dump_record r = c->records.data[i];

		if (!fresh[i] || !r.unwinding_size)
			continue;
		if (vec_reserve(&kept.unwinding, kept.unwinding.count + r.unwinding_size))
			return take_kept(c, &kept, -ENOMEM);
		memcpy(kept.unwinding.data + kept.unwinding.count, c->unwinding.data + r.unwinding,
		       r.unwinding_size);
		r.unwinding = kept.unwinding.count;
		kept.unwinding.count += r.unwinding_size;
		if (vec_push(&kept.records, r))
			return take_kept(c, &kept, -ENOMEM);
		fresh[kept.records.count - 1] = true;
	}
	c->kept = kept.records.count;
	c->unwinding_full = false;
	return take_kept(c, &kept, 0);
}

bool jit_code__has_new_unwinding(const struct jit_code *c)
{
	return c->unwinding.count > c->unwinding_reported + c->unwinding_reported / 16 ||
	       (c->unwinding_full && is_worth_it(c, c->records.count));
}

uint64_t jit_code__take_left_unwinding(struct jit_code *c)
{
	uint64_t left = c->unwinding_left;

	c->unwinding_left = 0;
	return left;
}

int jit_code__unwinding(struct jit_code *c, struct jit_unwinding **list, size_t *count)
{
	_cleanup_free_ bool *fresh = calloc(c->records.count + 1, sizeof(*fresh));
	int err = fresh ? find_fresh_records(c, fresh) : -ENOMEM;

	if (!err && is_worth_it(c, c->records.count))
		err = drop_overwritten(c, fresh);
	if (err)
		return err;
	c->unwinding_reported = c->unwinding.count;
	*list = calloc(c->records.count + 1, sizeof(**list));
	*count = 0;
	if (!*list)
		return -ENOMEM;
	for (size_t i = 0; i < c->records.count; i++)
		if (fresh[i] && c->records.data[i].unwinding_size)
			(*list)[(*count)++] = unwinding_of(c, &c->records.data[i]);
	if (*count)
		qsort(*list, *count, sizeof(**list), compare_unwinding);
	return 0;
}

/* ---- from records to entries ----------------------------------------------------------------- */

DEFINE_ORDER(compare_records, struct dump_record, ASCENDING(time) ?: ASCENDING(order));

DEFINE_ORDER(compare_lines, struct dump_line, ASCENDING(offset));

/* Adds a range that begins with the record. */
static int add_range(struct jit_code *c, const struct dump_record *r, uint64_t start, uint64_t end,
		     uint32_t name)
{
	const struct code_range range = {start, end};
	uint64_t moment = r->time ? r->time - 1 : 0;

	if (c->clock_unknown)
		return jit_timeline__add(c->timeline, &range, r->after, r->before, name);
	return jit_timeline__add(c->timeline, &range, moment, moment, name);
}

/* `load`: the record that announced the code. */
static int add_code(struct jit_code *c, const struct dump_record *r, uint32_t load)
{
	uint32_t entry = jit_timeline__count(c->timeline), before = entry_at(c, r->address);
	int err = add_range(c, r, r->address, r->address + r->size, load);

	if (err)
		return err;
	if (before != HASHMAP_NONE)
		hashmap__erase(&c->by_start, hash_u64(r->address), before);
	return hashmap__add(&c->by_start, hash_u64(r->address), entry);
}

static int move_code(struct jit_code *c, const struct dump_record *r)
{
	uint32_t entry = entry_at(c, r->from);
	struct code_range range;
	uint32_t load;

	if (entry == HASHMAP_NONE)
		return 0;
	hashmap__erase(&c->by_start, hash_u64(r->from), entry);
	range = jit_timeline__range(c->timeline, entry);
	load = jit_timeline__name(c->timeline, entry);
	/* an empty range still has an address */
	return add_range(c, r, range.start, range.end > range.start ? range.end : range.start + 1,
			 JIT_NOTHING)
		       ?: add_code(c, r, load);
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
	return add_range(c, r, 0, UINT64_MAX, JIT_NOTHING);
}

/* Rebuilds the timeline from nothing, because records may have come out of order. */
static int clear_timeline(struct jit_code *c)
{
	struct jit_timeline *timeline = jit_timeline__new();

	if (!timeline)
		return -ENOMEM;
	jit_timeline__free(c->timeline);
	c->timeline = timeline;
	hashmap__fini(&c->by_start);
	return 0;
}

static void log_settled(const struct jit_code *c)
{
	struct jit_code_counts counts = jit_code__counts(c);

	log_debug(LOG_JIT, "%s%s: %llu entries, %llu bad lines, %llu bytes cut off",
		  is_dump(c) ? "jitdump" : "perf map",
		  c->clock_unknown ? " with times of an unknown clock" : "",
		  (unsigned long long)counts.entries, (unsigned long long)counts.bad_lines,
		  (unsigned long long)counts.torn);
}

#define CLOCK_ERROR 10000000ull /* ns, of times converted from the TSC */

static bool is_after_reading(const struct dump_record *r)
{
	return r->time > r->before && r->time - r->before > CLOCK_ERROR;
}

/* Records are ordered by when they were read. */
static void drop_times(struct jit_code *c)
{
	for (size_t i = 0; i < c->records.count; i++) {
		c->records.data[i].time = c->records.data[i].before;
		c->records.data[i].tsc = false;
	}
}

static void settle_times(struct jit_code *c, jit_clock_fn clock, void *context)
{
	for (size_t i = 0; i < c->records.count; i++) {
		struct dump_record *r = &c->records.data[i];

		if (r->tsc && clock) {
			r->time = clock(context, r->time);
			r->tsc = false;
		}
		c->clock_unknown |= !r->tsc && is_after_reading(r);
	}
	if (c->clock_unknown)
		drop_times(c);
}

/* What replaced the code is not known since the last record. Records are sorted. */
static int doubt_all(struct jit_code *c)
{
	uint64_t last = c->records.count ? c->records.data[c->records.count - 1].time : 0;
	int err = jit_timeline__begin_snapshot(
		c->timeline, max_u64(max_u64(c->gave_up_at, c->read_at), last), UINT64_MAX);

	jit_timeline__end_snapshot(c->timeline);
	return err;
}

int jit_code__settle(struct jit_code *c, jit_clock_fn clock, void *context)
{
	int err;

	if (!is_dump(c) || c->settled == c->records.count)
		return 0;
	err = clear_timeline(c);
	if (err)
		return err;
	settle_times(c, clock, context);
	if (c->records.count)
		qsort(c->records.data, c->records.count, sizeof(*c->records.data), compare_records);
	for (size_t i = 0; i < c->records.count; i++) {
		const struct dump_record *r = &c->records.data[i];

		if (r->line_count)
			qsort(c->lines.data + r->first_line, r->line_count, sizeof(*c->lines.data),
			      compare_lines);
	}
	for (uint32_t i = 0; i < c->records.count && !err; i++)
		err = apply_record(c, i);
	if (c->gave_up && !err)
		err = doubt_all(c);
	c->settled = err ? 0 : c->records.count;
	log_settled(c);
	return err;
}

/* ---- forgetting ------------------------------------------------------------------------------ */

/* Names still in use; they are renumbered. */
struct moved_names {
	struct jit_code *code;
	struct strtab *names;
	uint32_t *numbers; /* by old number: new one + 1; 0: not moved yet */
	int err;
};

/* A jit_rename_fn. */
static uint32_t move_name(void *context, uint32_t name)
{
	struct moved_names *m = context;
	const char *text = strtab__get(m->code->names, name);
	int64_t number;

	if (name == JIT_NOTHING || m->numbers[name])
		return name == JIT_NOTHING ? name : m->numbers[name] - 1;
	number = strtab__intern(m->names, text);
	if (number < 0) {
		m->err = (int)number;
		return name;
	}
	m->code->text += strlen(text) + STRING_COST;
	m->numbers[name] = (uint32_t)number + 1;
	return (uint32_t)number;
}

static void move_names_of_dump(struct jit_code *c, struct moved_names *m)
{
	for (size_t i = 0; i < c->records.count; i++)
		if (c->records.data[i].action == DUMP_LOAD)
			c->records.data[i].name = move_name(m, c->records.data[i].name);
	for (size_t i = 0; i < c->lines.count; i++)
		c->lines.data[i].file = move_name(m, c->lines.data[i].file);
}

/* Drops unused names. On -ENOMEM the caller has to drop all code, because names may be mixed up. */
static int forget_names(struct jit_code *c)
{
	struct moved_names m = {.code = c, .names = strtab__new()};
	struct strtab *functions = strtab__new();

	m.numbers = calloc(strtab__count(c->names), sizeof(*m.numbers));
	if (!m.names || !m.numbers || !functions) {
		strtab__free(m.names);
		strtab__free(functions);
		free(m.numbers);
		return -ENOMEM;
	}
	c->text = 0;
	if (is_dump(c))
		move_names_of_dump(c, &m);
	else
		jit_timeline__rename(c->timeline, move_name, &m);
	free(m.numbers);
	strtab__free(c->names);
	c->names = m.names;
	strtab__free(c->functions);
	c->functions = functions;
	vec_free(&c->function_of);
	return m.err;
}

/* Appends a record's lines to the kept ones. */
static int keep_lines(const struct jit_code *c, struct dump_record *r, struct jit_code *kept)
{
	uint32_t first = kept->lines.count;

	if (vec_reserve(&kept->lines, kept->lines.count + r->line_count))
		return -ENOMEM;
	for (uint32_t i = 0; i < r->line_count; i++)
		kept->lines.data[kept->lines.count++] = c->lines.data[r->first_line + i];
	r->first_line = first;
	return 0;
}

static int keep_record_text(const struct jit_code *c, struct dump_record *r, struct jit_code *kept)
{
	uint32_t first = kept->texts.count;
	int err = r->text_size ? vec_append(&kept->texts, c->texts.data + r->text, r->text_size)
			       : 0;

	r->text = first;
	return err;
}

static int keep_record(const struct jit_code *c, struct dump_record r, struct jit_code *kept)
{
	int err = keep_lines(c, &r, kept) ?: keep_record_text(c, &r, kept);

	r.order = kept->records.count;
	return err ? err : vec_push(&kept->records, r);
}

/* The code of an entry, as if loaded at its present address. */
static struct dump_record load_of_entry(const struct jit_code *c, uint32_t entry)
{
	struct code_range range = jit_timeline__range(c->timeline, entry);
	struct dump_record r = c->records.data[jit_timeline__name(c->timeline, entry)];

	if (r.address != range.start)
		r.text_size = 0; /* moving it may have changed it */
	r.address = range.start;
	r.size = range.end - range.start;
	r.after = jit_timeline__after(c->timeline, entry);
	r.time = c->clock_unknown ? r.before : r.after + 1;
	return r;
}

/* Replaces the first `old` records by the code that they left in the timeline. */
static int replace_records(struct jit_code *c, size_t old)
{
	struct jit_code kept = {};
	int err = 0;

	for (uint32_t i = 0; i < jit_timeline__count(c->timeline) && !err; i++)
		err = keep_record(c, load_of_entry(c, i), &kept);
	for (size_t i = old; i < c->records.count && !err; i++)
		err = keep_record(c, c->records.data[i], &kept);
	return take_kept(c, &kept, err);
}

/* Makes a timeline of the first records only. */
static int make_timeline(struct jit_code *c, size_t records)
{
	int err = clear_timeline(c);

	c->settled = SIZE_MAX; /* not settled, whatever comes */
	for (uint32_t i = 0; i < records && !err; i++)
		err = apply_record(c, i);
	return err ? err : jit_timeline__forget(c->timeline, UINT64_MAX);
}

/* Needs settled, sorted times. Living code keeps its load record, because it may still be moved. */
static int forget_records(struct jit_code *c, uint64_t horizon)
{
	size_t old = partition_point(c->records.data, c->records.count, r, r->time < horizon);
	int err = make_timeline(c, old) ?: replace_records(c, old);
	return err ? err : clear_timeline(c);
}

static size_t count_all(const struct jit_code *c)
{
	return is_dump(c) ? c->records.count : jit_timeline__count(c->timeline);
}

static int forget_before(struct jit_code *c, uint64_t horizon)
{
	int err = (is_dump(c) ? forget_records(c, horizon)
			      : jit_timeline__forget(c->timeline, horizon))
			  ?: forget_names(c);
	c->kept = count_all(c);
	return err;
}

int jit_code__forget(struct jit_code *c, uint64_t horizon)
{
	return is_worth_it(c, count_all(c)) ? forget_before(c, horizon) : 0;
}

/* Drops unused records first, oldest first. Marks are of the time since the last shrinking. */
static int shed_records(struct jit_code *c, size_t part)
{
	struct jit_code kept = {};
	size_t unwanted = (c->records.count + part - 1) / part, unused = 0;
	int err = 0;

	for (size_t i = 0; i < c->records.count; i++)
		unused += !c->records.data[i].used;
	for (size_t i = 0; i < c->records.count && !err; i++) {
		bool drop = unwanted && (!c->records.data[i].used || !unused);

		unused -= !c->records.data[i].used;
		unwanted -= drop;
		if (!drop)
			err = keep_record(c, c->records.data[i], &kept);
	}
	return take_kept(c, &kept, err);
}

#define SHED_PART 4 /* 1 of so many records is dropped each time */

int jit_code__shrink(struct jit_code *c, size_t memory, uint64_t *shed)
{
	int err = forget_before(c, UINT64_MAX);
	size_t count = count_all(c), before = count;

	while (!err && jit_code__memory(c) > memory && count) {
		err = (is_dump(c) ? shed_records(c, SHED_PART)
				  : jit_timeline__shed(c->timeline, SHED_PART))
			      ?: forget_names(c);
		if (count_all(c) == count)
			break;
		count = count_all(c);
	}
	for (size_t i = 0; i < c->records.count; i++)
		c->records.data[i].used = false;
	c->kept = count;
	*shed = before - count;
	return err;
}

void jit_code__use(struct jit_code *c, uint32_t entry)
{
	if (is_dump(c))
		c->records.data[jit_timeline__name(c->timeline, entry)].used = true;
	else
		jit_timeline__use(c->timeline, entry);
}

/* ---- answers --------------------------------------------------------------------------------- */

struct jit_code_counts jit_code__counts(const struct jit_code *c)
{
	if (is_dump(c))
		return (struct jit_code_counts){
			c->before.entries + c->dump.counts.loads + c->dump.counts.moves,
			c->before.bad_lines + c->dump.counts.bad_records,
			jitdump_reader__torn(&c->dump), c->before.left + c->dump.counts.left};
	return (struct jit_code_counts){c->map.entries, c->map.bad_lines, c->map.rest.count, 0};
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

uint32_t jit_code__name_number(const struct jit_code *c, uint32_t entry)
{
	return name_of(c, entry);
}

/* The part that names of one function share, as one text. Its number, or negative errno. */
static int64_t make_function(struct jit_code *c, uint32_t name)
{
	const char *text = strtab__get(c->names, name);
	const struct jit_name parsed = jit_name_parse(text, strlen(text));
	_cleanup_free_ char *joined = NULL;

	if (asprintf(&joined, "%.*s\1%.*s\1%" PRIu32 ":%" PRIu32, (int)parsed.function.size,
		     parsed.function.text, (int)parsed.file.size,
		     parsed.file.size ? parsed.file.text : "", parsed.line, parsed.column) < 0) {
		joined = NULL;
		return -ENOMEM;
	}
	return strtab__intern(c->functions, joined);
}

/* Cached, because names are long and compared often. 0: no memory. */
static uint32_t function_of(struct jit_code *c, uint32_t name)
{
	uint32_t *function = vec_at(&c->function_of, name);
	int64_t number;

	if (!function)
		return 0;
	if (!*function) {
		number = make_function(c, name);
		*function = number < 0 ? 0 : (uint32_t)number + 1;
	}
	return *function;
}

bool jit_code__same_function(void *code, uint32_t entry, uint32_t other)
{
	struct jit_code *c = code;
	uint32_t name = name_of(c, entry), other_name = name_of(c, other), function;

	if (name == other_name)
		return true;
	function = function_of(c, name);
	return function && function == function_of(c, other_name);
}

/* The load of an entry of a jitdump. */
static const struct dump_record *record_of(const struct jit_code *c, uint32_t entry)
{
	return &c->records.data[jit_timeline__name(c->timeline, entry)];
}

enum jit_text_state jit_code__bytes(const struct jit_code *c, uint32_t entry,
				    struct jit_bytes *text)
{
	const struct dump_record *r;

	if (!is_dump(c))
		return JIT_TEXT_NONE;
	r = record_of(c, entry);
	if (r->text_left)
		return JIT_TEXT_LEFT;
	if (!r->text_size || jit_timeline__range(c->timeline, entry).start != r->address)
		return JIT_TEXT_NONE;
	*text = (struct jit_bytes){r->address, c->texts.data + r->text, r->text_size,
				   c->dump.machine};
	return JIT_TEXT_KEPT;
}

bool jit_code__has_lines(const struct jit_code *c)
{
	return c->lines.count > 0;
}

static struct jit_line line_of(const struct jit_code *c, const struct dump_line *line)
{
	return (struct jit_line){strtab__get(c->names, line->file), line->file, line->line,
				 line->column};
}

size_t jit_code__line_count(const struct jit_code *c, uint32_t entry)
{
	return is_dump(c) ? record_of(c, entry)->line_count : 0;
}

struct jit_line jit_code__line_at(const struct jit_code *c, uint32_t entry, size_t index,
				  uint32_t *offset)
{
	const struct dump_line *line = &c->lines.data[record_of(c, entry)->first_line + index];

	*offset = min_u64(line->offset, UINT32_MAX);
	return line_of(c, line);
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
	r = record_of(c, entry);
	if (!r->line_count)
		return false;
	lines = c->lines.data + r->first_line;
	count = partition_point(lines, r->line_count, l, l->offset <= offset);
	if (!count)
		return false;
	*line = line_of(c, &lines[count - 1]);
	return line->line > 0;
}
