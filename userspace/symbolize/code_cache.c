/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions at the sampled addresses follow from the names, which the symbol cache has: that of
 * the outermost frame. Their events are copied with the samples of this recording as their time. A
 * source of lines is one event of the file, however many functions name it.
 */
#include "symbolize/code_cache.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/disk_cache.h"
#include "base/hashmap.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/parse.h"
#include "base/strtab.h"
#include "stream/event_decode.h"

#define DIRECTORY  "code"
#define SUFFIX	   ".code"
#define NAME_SIZE  (2 * SYMBOL_BUILD_ID_MAX + 1 + 16 + sizeof(SUFFIX))
#define MAKER	   "1 " SYSPROF_VERSION /* the version of the format, and the program's */
#define FILE_LIMIT (UINT64_C(8) << 20)

_Static_assert(NAME_SIZE <= DISK_CACHE_NAME_SIZE, "names that the limit sees");

struct code_cache {
	struct disk_cache *files;
};

struct code_cache *code_cache__open(const char *path, uint64_t limit)
{
	const struct disk_cache_kind kind = {
		.directory = DIRECTORY,
		.suffix = SUFFIX,
		.limit = limit,
		.file_limit = FILE_LIMIT,
		.maker = hash_stable(MAKER, sizeof(MAKER)),
	};
	struct code_cache *c = calloc(1, sizeof(*c));

	if (c)
		c->files = path ? disk_cache__open_at(&kind, path) : disk_cache__open(&kind);
	if (c && c->files)
		return c;
	free(c);
	return NULL;
}

void code_cache__free(struct code_cache *c)
{
	if (!c)
		return;
	disk_cache__free(c->files);
	free(c);
}

/* ---- functions of events --------------------------------------------------------------------- */

struct known_function {
	uint64_t address; /* file offset */
	uint32_t size;
	bool has_lines;
	size_t start, end; /* of its events; there are sources among them */
};

/* Events of a module, and where things are in them. */
struct known_code {
	VEC(char) bytes;
	VEC(struct known_function) functions;
	struct strtab *paths; /* of the sources … */
	VEC(size_t) sources;  /* … whose events are here, by number, from 1 on */
};

static void known_code__fini(struct known_code *k)
{
	vec_free(&k->bytes);
	vec_free(&k->functions);
	vec_free(&k->sources);
	strtab__free(k->paths);
}

#define _cleanup_code_ _cleanup_(known_code__fini)

static const struct event_header *event_at(const struct known_code *k, size_t at)
{
	return (const void *)(k->bytes.data + at);
}

static int note_source(struct known_code *k, size_t at)
{
	const struct source_event *source = (const void *)event_at(k, at);
	int64_t number = strtab__intern(k->paths, source->data);

	if (number < 0)
		return -ENOMEM;
	return (size_t)number == k->sources.count + 1 ? vec_push(&k->sources, at) : 0;
}

static int note_text(struct known_code *k, size_t at)
{
	const struct code_text_event *text = (const void *)event_at(k, at);

	if (text->offset)
		return k->functions.count ? 0 : -EBADMSG;
	return vec_push(
		&k->functions,
		(struct known_function){.address = text->address, .size = text->size, .start = at});
}

static int note_event(struct known_code *k, size_t at)
{
	const struct event_header *event = event_at(k, at);
	struct known_function *last;
	int err = event_check(event, k->bytes.count - at);

	if (err || event->type == EVENT_SOURCE)
		return err ?: note_source(k, at);
	if (event->type != EVENT_CODE_TEXT && event->type != EVENT_CODE_LINES)
		return -EBADMSG;
	if (event->type == EVENT_CODE_TEXT)
		err = note_text(k, at);
	else
		err = k->functions.count ? 0 : -EBADMSG;
	if (err)
		return err;
	last = &k->functions.data[k->functions.count - 1];
	last->has_lines |= event->type == EVENT_CODE_LINES;
	last->end = at + event->size;
	return 0;
}

DEFINE_ORDER(compare_known, struct known_function, ASCENDING(address) ?: ASCENDING(size));

/* Takes the bytes over: `k` is to be freed also after an error. 0, -EBADMSG, -ENOMEM. */
static int known_code__init(struct known_code *k, char *bytes, size_t size)
{
	int err;

	*k = (struct known_code){.paths = strtab__new()};
	k->bytes.data = bytes;
	k->bytes.count = k->bytes.capacity = size;
	err = k->paths ? 0 : -ENOMEM;
	for (size_t at = 0; at < size && !err; at += event_at(k, at)->size)
		err = note_event(k, at);
	vec_sort(&k->functions, compare_known);
	return err;
}

/* NULL: it is not there. */
static const struct known_function *find_known(const struct known_code *k, uint64_t address,
					       uint32_t size)
{
	size_t i = partition_point(k->functions.data, k->functions.count, f,
				   f->address < address ||
					   (f->address == address && f->size < size));
	const struct known_function *found = i < k->functions.count ? &k->functions.data[i] : NULL;

	return found && found->address == address && found->size == size ? found : NULL;
}

static void file_name(const struct symbol_key *key, char name[NAME_SIZE])
{
	char *at = put_hex_bytes(name, key->build_id, key->build_id_size);

	snprintf(at, name + NAME_SIZE - at, "-%016llx" SUFFIX, (unsigned long long)key->identity);
}

/* Can there be a file for it? */
static bool has_name(const struct symbol_key *key)
{
	return key->build_id_size && !key->symbols_only;
}

/* 0, -ENOENT, -ENOMEM. */
static int load(struct code_cache *c, const struct symbol_key *key, struct known_code *k)
{
	char name[NAME_SIZE];
	void *data = NULL;
	size_t size = 0;
	int err;

	*k = (struct known_code){};
	if (!has_name(key))
		return -ENOENT;
	file_name(key, name);
	err = disk_cache__read(c->files, name, &data, &size);
	err = err ?: known_code__init(k, data, size);
	if (err == -EBADMSG)
		disk_cache__delete(c->files, name);
	return !err || err == -ENOMEM ? err : -ENOENT;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* A function with samples. */
struct wanted_function {
	uint64_t address; /* file offset */
	uint32_t size;
	uint64_t self, samples;
};

struct reading {
	const struct code_question *question;
	struct known_code known;
	VEC(struct wanted_function) wanted;
	VEC(char) events;
	struct strtab *paths; /* that are in there */
};

/* -ENOENT: its name does not say where it begins and ends. */
static int want_function(struct reading *r, const struct symbol_result *result,
			 const struct code_address *at)
{
	const struct symbol_frame *outer;
	uint64_t distance;

	outer = result->frame_count ? &result->frames[result->frame_count - 1] : NULL;
	if (!outer || !outer->function_size)
		return 0;
	distance = result->elf_address - outer->function_address;
	if (distance >= outer->function_size || distance > at->offset)
		return -ENOENT;
	return vec_push(&r->wanted, (struct wanted_function){
					    .address = at->offset - distance,
					    .size = min_u64(outer->function_size, CODE_TEXT_MAX),
					    .self = at->self,
					    .samples = at->samples,
				    });
}

DEFINE_ORDER(compare_places, struct wanted_function, ASCENDING(address) ?: ASCENDING(size));
/* That of module__code(). */
DEFINE_ORDER(compare_heat, struct wanted_function, DESCENDING(self) ?: DESCENDING(samples) ?: ASCENDING(address));

/* One for each function, the hottest first. */
static void add_up(struct reading *r)
{
	size_t kept = 0;

	vec_sort(&r->wanted, compare_places);
	for (size_t i = 0; i < r->wanted.count; i++) {
		const struct wanted_function f = r->wanted.data[i];
		struct wanted_function *last = kept ? &r->wanted.data[kept - 1] : NULL;

		if (last && last->address == f.address && last->size == f.size) {
			last->self += f.self;
			last->samples += f.samples;
		} else {
			r->wanted.data[kept++] = f;
		}
	}
	r->wanted.count = kept;
	vec_sort(&r->wanted, compare_heat);
}

static int find_wanted(struct reading *r)
{
	const struct code_question *q = r->question;
	_cleanup_free_ struct symbol_answer *answer = malloc(sizeof(*answer));
	size_t next = 0, answers = 0;
	int err = answer ? 0 : -ENOMEM;

	while (!err &&
	       symbol_blob__next(q->names->bytes.data, q->names->bytes.count, &next, answer) > 0) {
		answers++;
		err = answer->address < q->count
			      ? want_function(r, &answer->result, &q->addresses[answer->address])
			      : -ENOENT;
	}
	if (!err && answers < q->count)
		err = -ENOENT;
	add_up(r);
	return err;
}

static int copy_event(struct reading *r, size_t at, uint64_t time)
{
	const struct event_header *event = event_at(&r->known, at);
	size_t before = r->events.count;
	int err = vec_append(&r->events, (const char *)event, event->size);
	struct code_lines_event *copy = (void *)(r->events.data + before);
	struct symbol_event *places;

	if (err)
		return err;
	copy->header.time = time;
	if (copy->header.type != EVENT_CODE_LINES)
		return 0;
	places = (void *)&copy->rows[copy->count];
	places->header.time = time;
	return 0;
}

/* The source of a frame, once. */
static int copy_source(struct reading *r, const char *path, uint64_t time)
{
	size_t before = strtab__count(r->paths);
	const size_t *source;
	int64_t number;

	if (!path || strtab__intern(r->paths, path) < 0)
		return path ? -ENOMEM : 0;
	if (strtab__count(r->paths) == before)
		return 0;
	number = strtab__intern(r->known.paths, path);
	if (number < 0)
		return -ENOMEM;
	if (!number || (size_t)number > r->known.sources.count)
		return 0;
	source = &r->known.sources.data[number - 1];
	return copy_event(r, *source, time);
}

static int copy_sources(struct reading *r, const struct code_lines_event *lines, uint64_t time)
{
	_cleanup_free_ struct symbol_answer *places = malloc(sizeof(*places));
	int err = places ? symbol_event__decode((const void *)&lines->rows[lines->count], places)
			 : -ENOMEM;

	for (size_t i = 0; !err && i < places->result.frame_count; i++)
		err = copy_source(r, places->result.frames[i].file, time);
	return err;
}

static int copy_function(struct reading *r, const struct wanted_function *f)
{
	const struct known_function *known = find_known(&r->known, f->address, f->size);
	uint64_t time = min_u64(f->self, UINT32_MAX) << 32 | min_u64(f->samples, UINT32_MAX);
	int err = known ? 0 : -ENOENT;
	size_t size;

	for (size_t at = known ? known->start : 0; !err && at < known->end; at += size) {
		const struct event_header *event = event_at(&r->known, at);

		size = event->size;
		if (event->type == EVENT_SOURCE)
			continue;
		if (event->type == EVENT_CODE_LINES)
			err = copy_sources(r, (const void *)event, time);
		err = err ?: copy_event(r, at, time);
	}
	return err;
}

static int copy_wanted(struct reading *r)
{
	uint64_t bytes = 0;
	int err = 0;

	for (size_t i = 0; i < r->wanted.count && !err && bytes < MODULE_CODE_MAX; i++) {
		if (r->wanted.data[i].samples < r->question->least)
			continue;
		bytes += r->wanted.data[i].size;
		err = copy_function(r, &r->wanted.data[i]);
	}
	return err;
}

int code_cache__read(struct code_cache *c, const struct code_question *question, char **events,
		     size_t *size)
{
	struct reading r = {.question = question, .paths = strtab__new()};
	int err = r.paths ? find_wanted(&r) : -ENOMEM;

	err = err ?: load(c, question->key, &r.known) ?: copy_wanted(&r);
	if (!err) {
		*events = r.events.data;
		*size = r.events.count;
		r.events.data = NULL;
	}
	known_code__fini(&r.known);
	vec_free(&r.wanted);
	vec_free(&r.events);
	strtab__free(r.paths);
	return err == -EBADMSG ? -ENOENT : err;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Of any of these names. */
static bool have_lines(const struct symbol_blob *names)
{
	_cleanup_free_ struct symbol_answer *answer = malloc(sizeof(*answer));
	size_t next = 0;

	while (answer &&
	       symbol_blob__next(names->bytes.data, names->bytes.count, &next, answer) > 0)
		for (size_t i = 0; i < answer->result.frame_count; i++)
			if (answer->result.frames[i].line)
				return true;
	return !answer;
}

/* Its events without the sources among them. */
static int append_function(struct known_code *to, const struct known_code *from,
			   const struct known_function *f)
{
	size_t size;
	int err = 0;

	for (size_t at = f->start; at < f->end && !err; at += size) {
		size = event_at(from, at)->size;
		if (event_at(from, at)->type != EVENT_SOURCE)
			err = vec_append(&to->bytes, from->bytes.data + at, size);
	}
	return err;
}

static int append_sources(struct known_code *to, const struct known_code *from)
{
	int err = 0;

	for (size_t i = 0; i < from->sources.count && !err; i++) {
		const struct event_header *event = event_at(from, from->sources.data[i]);
		size_t before = strtab__count(to->paths);

		if (strtab__intern(to->paths, strtab__get(from->paths, (uint32_t)i + 1)) < 0)
			err = -ENOMEM;
		else if (strtab__count(to->paths) > before)
			err = vec_append(&to->bytes, (const char *)event, event->size);
	}
	return err;
}

/* Adds what `to` does not have. Its index stays that of before. */
static int append_new(struct known_code *to, const struct known_code *from, bool lines_needed)
{
	int err = 0;

	for (size_t i = 0; i < from->functions.count && !err; i++) {
		const struct known_function *f = &from->functions.data[i];

		if ((f->has_lines || !lines_needed) && !find_known(to, f->address, f->size))
			err = append_function(to, from, f);
	}
	return err ?: append_sources(to, from);
}

static int write_code(struct code_cache *c, const struct symbol_key *key,
		      const struct known_code *k)
{
	char name[NAME_SIZE];
	int err;

	file_name(key, name);
	err = disk_cache__write(c->files, name, k->bytes.data, k->bytes.count);
	log_debug(LOG_SYMBOLS, "cache: %s %s, %zu bytes", name, err < 0 ? "not written" : "written",
		  k->bytes.count);
	return err;
}

/* Without those of before. */
static int start_again(struct known_code *k)
{
	known_code__fini(k);
	return known_code__init(k, NULL, 0);
}

int code_cache__add(struct code_cache *c, const struct symbol_key *key,
		    const struct symbol_blob *names, const void *events, size_t size)
{
	bool lines_needed = names && have_lines(names);
	_cleanup_code_ struct known_code known = {}, added = {};
	char *copy = has_name(key) && size ? malloc(size) : NULL;
	size_t before;
	int err;

	if (!copy)
		return has_name(key) && size ? -ENOMEM : 0;
	memcpy(copy, events, size);
	err = known_code__init(&added, copy, size);
	if (!err && load(c, key, &known))
		err = start_again(&known);
	before = known.bytes.count;
	err = err ?: append_new(&known, &added, lines_needed);
	if (!err && before && known.bytes.count > FILE_LIMIT)
		err = start_again(&known) ?: append_new(&known, &added, lines_needed);
	if (err || known.bytes.count == before)
		return err;
	return known.bytes.count > FILE_LIMIT ? -EFBIG : write_code(c, key, &known);
}
