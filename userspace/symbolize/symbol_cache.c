/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A module has up to two sets of answers: its file and what was added since. Its indexes, each in a
 * file with the number of its place, are searched first. A file of answers is written as a whole: a
 * few cost as much as all, so a cache that keeps answers writes when there are many.
 *
 * If two processes write a file, one of the two stays, whole: only the other's answers are missing.
 */
#include "symbolize/symbol_cache.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/disk_cache.h"
#include "base/log.h"
#include "base/map.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/parse.h"
#include "symbolize/symbol_index.h"
#include "tenants/quota.h"

#define SUFFIX		  ".symbols"
#define INDEX_SUFFIX	  ".index"
#define NAME_SIZE	  (2 * SYMBOL_BUILD_ID_MAX + 1 + 16 + 2 + sizeof(SUFFIX))
#define MAKER		  "9 " SYSPROF_VERSION /* the version of the format, and the program's */
#define PENDING_SHARE	  4
#define INDEXES_MAX	  8			/* of a module */
#define INDEX_CACHE_LIMIT (UINT64_C(256) << 20) /* bytes of all their files */
#define REFUSED_MAX	  1024 /* modules of which it stays noted that they get none */
#define ROOT		  0

_Static_assert(NAME_SIZE <= DISK_CACHE_NAME_SIZE, "names that the limit sees");
_Static_assert(sizeof(struct symbol_key) == 16 + SYMBOL_BUILD_ID_MAX, "no padding");

struct kept_index {
	struct symbol_index *index; /* NULL: the place is vacant */
	uint64_t used;		    /* the cache's count of uses then */
};

struct module_answers {
	struct symbol_key key;
	struct symbol_answers *file;  /* as it was read; NULL: not in memory, or there is none */
	struct symbol_answers *added; /* since; NULL: nothing */
	enum symbol_state state;
	struct kept_index indexes[INDEXES_MAX];
	unsigned int index_count;
	uint64_t reading_cost; /* ns, since the last index */
	uint64_t index_cost;   /* ns; 0: not known, or it cannot have one */
	unsigned int readings; /* since the last index */
	size_t put_off;	       /* addresses, since it was read */
	bool no_index;	       /* it gets none, or no other … */
	bool never;	       /* … and none could be made */
	bool on_disk;	       /* its indexes are */
	uint32_t user;	       /* whose indexes they are */
	uint64_t used;	       /* the cache's count of uses then */
};

MAP_TYPE(module_map, struct module_answers);

/* Behind the answers in their file: these of its module_answers, and the bytes of its indexes. */
struct answers_trailer {
	uint64_t reading_cost, index_cost, index_bytes, never;
};

/* Behind an index in its file. */
struct index_trailer {
	uint64_t user; /* whose file the module is */
};

struct symbol_cache {
	struct disk_cache *files, *index_files; /* NULL: there is no directory */
	struct module_map modules;
	size_t kept_bytes; /* 0: nothing is kept */
	struct quota index_bytes;
	struct meter index_writes;
	struct symbol_answer found;
	uint64_t uses;
};

MAP_FUNCTIONS_BY_BYTES(module_map, struct module_answers, struct symbol_key, key);

struct symbol_cache *symbol_cache__new(void)
{
	struct symbol_cache *c = calloc(1, sizeof(*c));

	if (c)
		quota__init(&c->index_bytes, QUOTA_SYMBOL_INDEXES);
	return c;
}

static struct disk_cache *open_store(bool indexes, const char *path, uint64_t limit)
{
	const struct disk_cache_kind kind = {
		.directory = indexes ? "symbol-indexes" : "symbols",
		.suffix = indexes ? INDEX_SUFFIX : SUFFIX,
		.limit = limit,
		.file_limit = indexes ? SYMBOL_INDEX_MAX + sizeof(struct index_trailer)
				      : SYMBOL_FILE_LIMIT + sizeof(struct answers_trailer),
		.maker = hash_stable(MAKER, sizeof(MAKER)),
	};

	return path ? disk_cache__open_at(&kind, path) : disk_cache__open(&kind);
}

static void open_stores(struct symbol_cache *c, const char *path, uint64_t limit)
{
	c->files = open_store(false, path, limit);
	c->index_files = open_store(true, path, INDEX_CACHE_LIMIT);
}

struct symbol_cache *symbol_cache__open(const char *path, uint64_t limit)
{
	struct symbol_cache *c = symbol_cache__new();

	if (!c)
		return NULL;
	open_stores(c, path, limit);
	if (c->files)
		return c;
	symbol_cache__free(c);
	return NULL;
}

void symbol_cache__keep(struct symbol_cache *c, size_t bytes)
{
	c->kept_bytes = bytes;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Without a suffix. Where that goes. */
static char *put_key(const struct symbol_key *key, char name[NAME_SIZE])
{
	char *at = put_hex_bytes(name, key->build_id, key->build_id_size);

	return at +
	       snprintf(at, name + NAME_SIZE - at, "-%016llx", (unsigned long long)key->identity);
}

static void file_name(const struct symbol_key *key, char name[NAME_SIZE])
{
	char *at = put_key(key, name);

	snprintf(at, name + NAME_SIZE - at, SUFFIX);
}

static void index_name(const struct symbol_key *key, unsigned int number, char name[NAME_SIZE])
{
	char *at = put_key(key, name);

	snprintf(at, name + NAME_SIZE - at, "-%u" INDEX_SUFFIX, number);
}

/* Can there be files for it? */
static bool has_name(const struct symbol_key *key)
{
	return key->build_id_size && !key->symbols_only;
}

/* Without its trailer. 0, or negative errno. */
static int read_file(struct disk_cache *files, const char *name, void *trailer, size_t trailer_size,
		     void **data, size_t *size)
{
	int err = disk_cache__read(files, name, data, size);

	if (err)
		return err;
	if (*size < trailer_size) {
		free(*data);
		return -EBADMSG;
	}
	*size -= trailer_size;
	memcpy(trailer, (const char *)*data + *size, trailer_size);
	return 0;
}

/* The same. */
static int write_file(struct disk_cache *files, const char *name, const void *trailer,
		      size_t trailer_size, const void *data, size_t size)
{
	_cleanup_free_ char *bytes = malloc(size + trailer_size);
	int err;

	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, data, size);
	memcpy(bytes + size, trailer, trailer_size);
	err = disk_cache__write(files, name, bytes, size + trailer_size);
	log_debug(LOG_SYMBOLS, "cache: %s %s, %zu bytes", name, err < 0 ? "not written" : "written",
		  size);
	return err;
}

static void delete_file(struct disk_cache *files, const char *name)
{
	log_debug(LOG_SYMBOLS, "cache: %s deleted: damaged, or of another version", name);
	disk_cache__delete(files, name);
}

/* NULL: there is none, or it has been deleted. */
static struct symbol_answers *load_file(struct symbol_cache *c, const struct symbol_key *key,
					struct answers_trailer *trailer)
{
	struct symbol_answers *answers = NULL;
	char name[NAME_SIZE];
	void *data = NULL;
	size_t size;
	int err;

	if (!c->files || !has_name(key))
		return NULL;
	file_name(key, name);
	err = read_file(c->files, name, trailer, sizeof(*trailer), &data, &size)
		      ?: symbol_answers__open(data, size, &answers);
	if (err == -EBADMSG)
		delete_file(c->files, name);
	return answers;
}

static size_t index_bytes(const struct module_answers *m)
{
	size_t sum = 0;

	for (unsigned int i = 0; i < INDEXES_MAX; i++)
		sum += m->indexes[i].index ? symbol_index__size(m->indexes[i].index) : 0;
	return sum;
}

/* The file's answers are older than this process. Only costs since the last index count. */
static void take_trailer(struct module_answers *m, const struct answers_trailer *trailer)
{
	if (trailer->index_bytes == index_bytes(m)) {
		m->reading_cost = trailer->reading_cost;
		m->index_cost = trailer->index_cost;
	}
	m->no_index = m->never = trailer->never;
}

/* Are its answers to be written? */
static bool goes_to_file(const struct symbol_cache *c, const struct module_answers *m)
{
	return c->files && has_name(&m->key) && m->state == SYMBOL_STATE_RESOLVED;
}

/* Writes the added answers as the file of the module, or drops them. */
static void write_module(struct symbol_cache *c, struct module_answers *m)
{
	const struct answers_trailer trailer = {m->reading_cost, m->index_cost, index_bytes(m),
						m->never};
	struct answers_trailer before;
	const void *data;
	char name[NAME_SIZE];
	size_t size;
	int err = 0;

	symbol_answers__free(m->file); /* another process may have written a newer one */
	m->file = load_file(c, &m->key, &before);
	if (m->file)
		err = symbol_answers__merge(m->added, m->file);
	if (!err) {
		symbol_answers__bytes(m->added, &data, &size);
		file_name(&m->key, name);
		err = write_file(c->files, name, &trailer, sizeof(trailer), data, size);
	}
	symbol_answers__free(err < 0 ? m->added : m->file);
	if (err >= 0)
		m->file = m->added;
	m->added = NULL;
}

/* ---- indexes on disk ------------------------------------------------------------------------- */

/* 0, or negative errno. */
static int read_index(struct symbol_cache *c, const struct symbol_key *key, unsigned int number,
		      uint32_t *user, struct symbol_index **index)
{
	struct index_trailer trailer;
	char name[NAME_SIZE];
	void *data;
	size_t size;
	int err;

	index_name(key, number, name);
	err = read_file(c->index_files, name, &trailer, sizeof(trailer), &data, &size);
	if (!err) {
		*user = (uint32_t)trailer.user;
		err = symbol_index__open(data, size, index);
	}
	if (err == -EBADMSG)
		delete_file(c->index_files, name);
	return err;
}

/* One module keeps at most such a part of the memory: an index, and a little. */
static size_t module_limit(const struct symbol_cache *c)
{
	return c->kept_bytes / 16 * 7;
}

static bool may_hold(const struct symbol_cache *c, uint32_t user, size_t bytes)
{
	return user == ROOT ||
	       quota__refusal(&c->index_bytes, user, bytes, 0) == OUTSIDE_REASON_COUNT;
}

/* In the first place that is vacant; its number. */
static unsigned int hold_index(struct symbol_cache *c, struct module_answers *m, uint32_t user,
			       struct symbol_index *index)
{
	unsigned int number = 0;

	while (m->indexes[number].index)
		number++;
	if (user != ROOT)
		quota__take(&c->index_bytes, user, symbol_index__size(index), 0);
	m->user = user;
	m->indexes[number] = (struct kept_index){index, ++c->uses};
	m->index_count++;
	m->state = symbol_index__state(index);
	return number;
}

/* Its file stays until another index gets the place. */
static void drop_index(struct symbol_cache *c, struct module_answers *m, unsigned int number)
{
	struct kept_index *kept = &m->indexes[number];

	if (!kept->index)
		return;
	if (m->user != ROOT)
		quota__give(&c->index_bytes, m->user, symbol_index__size(kept->index));
	symbol_index__free(kept->index);
	kept->index = NULL;
	m->index_count--;
}

static void drop_oldest_index(struct symbol_cache *c, struct module_answers *m)
{
	unsigned int oldest = INDEXES_MAX;

	for (unsigned int i = 0; i < INDEXES_MAX; i++)
		if (m->indexes[i].index &&
		    (oldest == INDEXES_MAX || m->indexes[i].used < m->indexes[oldest].used))
			oldest = i;
	if (oldest < INDEXES_MAX)
		drop_index(c, m, oldest);
}

static void load_indexes(struct symbol_cache *c, struct module_answers *m)
{
	struct symbol_index *index;
	uint32_t user;

	m->on_disk = c->index_files && has_name(&m->key);
	while (m->on_disk && m->index_count < INDEXES_MAX &&
	       !read_index(c, &m->key, m->index_count, &user, &index)) {
		size_t bytes = symbol_index__size(index);

		if (!may_hold(c, user, bytes) ||
		    (c->kept_bytes && index_bytes(m) + bytes > module_limit(c))) {
			symbol_index__free(index);
			return;
		}
		hold_index(c, m, user, index);
	}
}

static void write_index(struct symbol_cache *c, struct module_answers *m, unsigned int number)
{
	const struct index_trailer trailer = {.user = m->user};
	char name[NAME_SIZE];
	const void *data;
	size_t size;

	symbol_index__bytes(m->indexes[number].index, &data, &size);
	m->on_disk = c->index_files && has_name(&m->key) && m->state == SYMBOL_STATE_RESOLVED &&
		     meter__spend(&c->index_writes, &quota_row(QUOTA_TABLE_CACHE)->all, size,
				  monotonic_ns());
	if (!m->on_disk)
		return;
	index_name(&m->key, number, name);
	m->on_disk = write_file(c->index_files, name, &trailer, sizeof(trailer), data, size) >= 0;
}

static bool has_all(const struct module_answers *m)
{
	return any_of(m->indexes, INDEXES_MAX, kept,
		      kept->index && symbol_index__is_whole(kept->index));
}

/* ---- limits ---------------------------------------------------------------------------------- */

static size_t size_of(const struct symbol_answers *answers)
{
	return answers ? symbol_answers__size(answers) : 0;
}

static size_t pending_bytes(const struct symbol_cache *c, const struct module_answers *m)
{
	return goes_to_file(c, m) ? size_of(m->added) : 0;
}

/* The bytes of a module that can be evicted. */
static size_t kept_bytes(const struct symbol_cache *c, const struct module_answers *m)
{
	return sizeof(*m) + size_of(m->file) + size_of(m->added) - pending_bytes(c, m) +
	       index_bytes(m);
}

size_t symbol_cache__bytes(const struct symbol_cache *c)
{
	size_t sum = 0;

	for (size_t i = 0; i < c->modules.count; i++)
		sum += kept_bytes(c, &c->modules.data[i]);
	return sum;
}

static void write_most(struct symbol_cache *c, size_t limit)
{
	for (;;) {
		struct module_answers *largest = NULL;
		size_t sum = 0, most = 0;

		for (size_t i = 0; i < c->modules.count; i++) {
			size_t bytes = pending_bytes(c, &c->modules.data[i]);

			sum += bytes;
			if (bytes <= most)
				continue;
			most = bytes;
			largest = &c->modules.data[i];
		}
		if (sum <= limit)
			return;
		write_module(c, largest);
	}
}

static void drop(struct symbol_answers **answers)
{
	symbol_answers__free(*answers);
	*answers = NULL;
}

static void forget_indexes(struct symbol_cache *c, struct module_answers *m)
{
	for (unsigned int i = 0; i < INDEXES_MAX; i++)
		drop_index(c, m, i);
}

/* Without answers: that it gets no index. */
static bool stays(const struct symbol_cache *c, const struct module_answers *m)
{
	return m->no_index && c->modules.count <= REFUSED_MAX;
}

/* Answers to be written stay. An index that had no room once would be made again and again. */
static void evict(struct symbol_cache *c, struct module_answers *m)
{
	m->no_index |= m->index_count && !m->on_disk;
	forget_indexes(c, m);
	drop(&m->file);
	if (pending_bytes(c, m))
		return;
	drop(&m->added);
	if (!stays(c, m))
		module_map__remove(&c->modules, m);
}

static struct module_answers *oldest_module(const struct symbol_cache *c)
{
	struct module_answers *oldest = NULL;

	for (size_t i = 0; i < c->modules.count; i++) {
		struct module_answers *m = &c->modules.data[i];

		if ((kept_bytes(c, m) > sizeof(*m) || !(pending_bytes(c, m) || stays(c, m))) &&
		    (!oldest || m->used < oldest->used))
			oldest = m;
	}
	return oldest;
}

static void keep_limits(struct symbol_cache *c)
{
	struct module_answers *oldest;

	for (size_t i = c->modules.count; i-- > 0;) {
		struct module_answers *m = &c->modules.data[i];

		if (m->index_count && kept_bytes(c, m) > module_limit(c))
			drop(&m->file);
		while (m->index_count > 1 && kept_bytes(c, m) > module_limit(c))
			drop_oldest_index(c, m);
		if (kept_bytes(c, m) > module_limit(c))
			evict(c, m);
	}
	while (symbol_cache__bytes(c) > c->kept_bytes && (oldest = oldest_module(c)))
		evict(c, oldest);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* NULL: nothing is known of it. */
static struct module_answers *open_module(struct symbol_cache *c, const struct symbol_key *key)
{
	struct module_answers new = {.key = *key, .state = SYMBOL_STATE_RESOLVED};
	struct module_answers *m = module_map__find(&c->modules, key);
	struct answers_trailer trailer;

	if (!m)
		load_indexes(c, &new);
	if (m ? !m->file && !has_all(m) : !has_all(&new))
		new.file = load_file(c, key, &trailer);
	if (!m && new.file)
		take_trailer(&new, &trailer);
	if (!m && (new.file || new.index_count))
		m = module_map__need(&c->modules, &new, NULL);
	if (!m) {
		forget_indexes(c, &new);
		drop(&new.file);
		return NULL;
	}
	if (new.file)
		m->file = new.file;
	m->used = ++c->uses;
	return m;
}

/* NULL: nothing of it is in memory. */
static struct module_answers *use_module(struct symbol_cache *c, const struct symbol_key *key)
{
	struct module_answers *m = module_map__find(&c->modules, key);

	if (m)
		m->used = ++c->uses;
	return m;
}

/* NULL: none of them covers it. */
static const struct symbol_result *find_in_indexes(struct symbol_cache *c, struct module_answers *m,
						   uint64_t address)
{
	for (unsigned int i = m && m->index_count ? INDEXES_MAX : 0; i-- > 0;) {
		struct kept_index *kept = &m->indexes[i];

		if (!kept->index || !symbol_index__find(kept->index, address, &c->found))
			continue;
		kept->used = m->used;
		return &c->found.result;
	}
	return NULL;
}

static const struct symbol_result *find_answer(struct symbol_cache *c, struct module_answers *m,
					       uint64_t address)
{
	const struct symbol_result *result = find_in_indexes(c, m, address);

	if (!result && m && m->added)
		result = symbol_answers__find(m->added, address);
	return result || !m || !m->file ? result : symbol_answers__find(m->file, address);
}

int symbol_cache__read(struct symbol_cache *c, const struct symbol_key *key,
		       const uint64_t *addresses, size_t count, unsigned char *known,
		       symbol_sink_fn sink, void *context, enum symbol_state *state,
		       bool *without_lines)
{
	struct symbol_key whole = *key;
	struct module_answers *m = open_module(c, key), *with_lines = NULL;
	int err = 0;

	whole.symbols_only = 0;
	memset(known, 0, count);
	*without_lines = false;
	if (key->symbols_only)
		with_lines = m ? use_module(c, &whole) : open_module(c, &whole);
	m = m ?: with_lines;
	if (!m)
		return 0;
	*state = m->state;
	for (size_t i = 0; i < count && !err; i++) {
		const struct symbol_result *result = find_answer(c, with_lines, addresses[i]);

		if (!result && m != with_lines) {
			result = find_answer(c, m, addresses[i]);
			*without_lines |= result && key->symbols_only;
		}
		known[i] = result != NULL;
		if (result)
			err = sink(context, i, result);
	}
	keep_limits(c);
	return err;
}

int symbol_cache__add(struct symbol_cache *c, const struct symbol_key *key, uint64_t address,
		      const struct symbol_result *result, enum symbol_state state)
{
	struct module_answers new = {.key = *key, .state = state};
	struct module_answers *m = module_map__find(&c->modules, key);
	int err;

	if (!m && !c->kept_bytes && !goes_to_file(c, &new))
		return 0;
	if (!m)
		m = module_map__need(&c->modules, &new, NULL);
	if (m && !m->added)
		m->added = symbol_answers__new();
	if (!m || !m->added)
		return -ENOMEM;
	m->state = state;
	m->used = ++c->uses;
	err = symbol_answers__add(m->added, address, result);
	return err == -EFBIG ? 0 : err; /* the cache is full, the answer is right all the same */
}

void symbol_cache__note_reading(struct symbol_cache *c, const struct symbol_key *key, uint64_t cost,
				uint64_t index_cost)
{
	struct module_answers *m = module_map__find(&c->modules, key);

	if (!m)
		return;
	m->reading_cost += cost;
	m->index_cost = index_cost;
	m->readings++;
	m->put_off = 0;
}

bool symbol_cache__has_read(const struct symbol_cache *c, const struct symbol_key *key)
{
	for (int symbols_only = 0; symbols_only < 2; symbols_only++) {
		struct symbol_key either = *key;
		const struct module_answers *m;

		either.symbols_only = symbols_only;
		m = module_map__find(&c->modules, &either);
		if (m && (m->file || m->added || m->index_count || m->reading_cost))
			return true;
	}
	return false;
}

size_t symbol_cache__put_off(struct symbol_cache *c, const struct symbol_key *key, size_t count)
{
	const struct module_answers new = {.key = *key, .state = SYMBOL_STATE_RESOLVED};
	struct module_answers *m = module_map__need(&c->modules, &new, NULL);

	if (!m)
		return count;
	m->used = ++c->uses;
	return m->put_off += count;
}

bool symbol_cache__wants_index(const struct symbol_cache *c, const struct symbol_key *key)
{
	const struct module_answers *m = module_map__find(&c->modules, key);

	if (!c->kept_bytes || !m || m->no_index || !m->index_cost)
		return false;
	return m->reading_cost >= m->index_cost / max_u64(m->readings, 1);
}

/* The index has all that single answers had. */
static void drop_answers(struct symbol_cache *c, struct module_answers *m)
{
	char name[NAME_SIZE];

	drop(&m->added);
	file_name(&m->key, name);
	if (m->on_disk && c->files && has_name(&m->key))
		disk_cache__delete(c->files, name);
}

static bool has_place(const struct symbol_cache *c, const struct module_answers *m, uint32_t user,
		      size_t bytes)
{
	return m->index_count < INDEXES_MAX && index_bytes(m) + bytes <= module_limit(c) &&
	       may_hold(c, user, bytes);
}

/* Drops indexes, least recently used first. A key's files have one owner, who may change. */
static bool make_place(struct symbol_cache *c, struct module_answers *m, uint32_t user,
		       size_t bytes)
{
	size_t held = index_bytes(m);

	if ((m->index_count && m->user != user) ||
	    (bytes > held && !may_hold(c, user, bytes - held)))
		return false;
	while (m->index_count && !has_place(c, m, user, bytes))
		drop_oldest_index(c, m);
	return has_place(c, m, user, bytes);
}

static bool has_any(struct symbol_cache *c, const struct symbol_index *index,
		    const uint64_t *addresses, size_t count)
{
	return any_of(addresses, count, address, symbol_index__find(index, *address, &c->found));
}

void symbol_cache__add_index(struct symbol_cache *c, const struct symbol_key *key, uint32_t user,
			     struct symbol_index *index, const uint64_t *addresses, size_t count)
{
	struct module_answers *m = module_map__find(&c->modules, key);
	size_t bytes = index ? symbol_index__size(index) : 0;

	if (m)
		m->reading_cost = m->readings = 0;
	if (m && index && has_any(c, index, addresses, count)) {
		if (bytes <= module_limit(c) && make_place(c, m, user, bytes)) {
			write_index(c, m, hold_index(c, m, user, index));
			drop(&m->file);
			if (has_all(m))
				drop_answers(c, m);
			return;
		}
		m->no_index = true;
	}
	if (m && (!index || bytes > module_limit(c)))
		m->no_index = m->never = true;
	symbol_index__free(index);
}

void symbol_cache__commit(struct symbol_cache *c)
{
	write_most(c, c->kept_bytes / PENDING_SHARE);
	keep_limits(c);
}

/* ---- life ------------------------------------------------------------------------------------ */

void symbol_cache__reopen(struct symbol_cache *c)
{
	write_most(c, 0);
	disk_cache__free(c->files);
	disk_cache__free(c->index_files);
	open_stores(c, NULL, SYMBOL_CACHE_LIMIT);
}

void symbol_cache__free(struct symbol_cache *c)
{
	if (!c)
		return;
	write_most(c, 0);
	for (size_t i = 0; i < c->modules.count; i++) {
		forget_indexes(c, &c->modules.data[i]);
		symbol_answers__free(c->modules.data[i].file);
		symbol_answers__free(c->modules.data[i].added);
	}
	module_map__fini(&c->modules);
	disk_cache__free(c->files);
	disk_cache__free(c->index_files);
	free(c);
}
