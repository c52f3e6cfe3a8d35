/* SPDX-License-Identifier: BSD-2-Clause */
#include "stream/perf/perf_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/minmax.h"
#include "base/order.h"
#include "stream/perf/perf_unpack.h"

MAP_FUNCTIONS_BY(perf_ids, struct perf_id, uint64_t, id);
MAP_FUNCTIONS_BY_STRING(perf_build_ids, struct perf_build_id, path);

#define MAGIC	     "PERFILE2"
#define MAGIC_OTHER  "2ELIFREP" /* as a machine of the other byte order writes it */
#define ATTR_OLDEST  64u	/* PERF_ATTR_SIZE_VER0 */
#define BUFFER_SIZE  (4u << 20)
#define STRINGS_MAX  4096u
#define UPDATE_NAME  2u /* PERF_EVENT_UPDATE: the name follows */
#define HAS_ID_SIZE  (1u << 15)
#define FEATURE_BITS 256u

enum perf_feature {
	FEATURE_BUILD_ID = 2,
	FEATURE_HOSTNAME = 3,
	FEATURE_RELEASE = 4,
	FEATURE_VERSION = 5,
	FEATURE_ARCHITECTURE = 6,
	FEATURE_CPU_COUNT = 7,
	FEATURE_CPU = 8,
	FEATURE_COMMAND = 11,
	FEATURE_EVENTS = 12,
	FEATURE_DIRECTORY = 24,
	FEATURE_CLOCK = 29,
};

struct section {
	uint64_t offset, size;
};

struct file_header {
	char magic[8];
	uint64_t size; /* of this header; of a pipe's, which ends here: 16 */
	uint64_t attr_size;
	struct section attrs, data, event_types;
	uint64_t features[FEATURE_BITS / 64];
};

_Static_assert(sizeof(struct file_header) == 104, "as perf writes it");

/* ---- texts ----------------------------------------------------------------------------------- */

/* Bytes up to a NUL; what does not fit is cut. */
static void take_text(char *to, size_t room, const void *from, size_t size)
{
	size_t length = strnlen(from, size);

	length = length < room ? length : room - 1;
	memcpy(to, from, length);
	to[length] = '\0';
}

/* A size, and so many bytes with NULs behind the text. */
static void take_string(struct cursor *c, char *to, size_t room)
{
	uint32_t size = cursor__u32(c);
	struct cursor text = cursor__take(c, size);

	take_text(to, room, text.at, (size_t)(text.end - text.at));
}

/* Letters of several options, up to one with a value, which is the rest: "-ga", "-gF99". */
static bool letters_name_other_target(const char *letters)
{
	size_t length = strcspn(letters, "apCtueFcomrkjGDSMIz");

	return letters[length] && strchr("apCtu", letters[length]);
}

/* Does it say that perf sampled something else than the program that it ran? */
static bool names_other_target(const char *argument)
{
	static const char *const options[] = {"--all-cpus", "--pid", "--tid", "--cpu", "--uid"};

	if (argument[0] == '-' && argument[1] != '-')
		return letters_name_other_target(argument + 1);
	return any_of(options, sizeof(options) / sizeof(*options), option,
		      !strncmp(argument, *option, strlen(*option)));
}

static void take_command(struct cursor *c, struct perf_facts *facts)
{
	uint32_t count = cursor__u32(c);
	size_t used = 0, room = sizeof(facts->command);
	bool has_other = false;

	for (uint32_t i = 0; i < count && !c->bad && used + 2 < room; i++) {
		char *argument = facts->command + used + (used > 0);

		if (used)
			facts->command[used++] = ' ';
		take_string(c, argument, room - used);
		used += strlen(argument);
		has_other |= !facts->ran_alone && names_other_target(argument);
		facts->ran_alone |= !has_other && !strcmp(argument, "--");
	}
}

/* ---- events ---------------------------------------------------------------------------------- */

struct perf_kind *perf_file__kind(const struct perf_file *file, uint64_t id)
{
	const struct perf_id *known = perf_ids__find(&file->ids, id);

	return known ? &file->kinds.data[known->kind] : NULL;
}

static int add_id(struct perf_file *f, uint64_t id, uint32_t kind)
{
	if (f->ids.count >= PERF_IDS_MAX) {
		f->left_ids++;
		return 0;
	}
	return perf_ids__need(&f->ids, &(struct perf_id){id, kind}, NULL) ? 0 : -ENOMEM;
}

/* What newer kernels have behind is not needed; what older ones lack is 0. */
static void take_attr(struct cursor *c, uint64_t size, struct perf_event_attr *attr)
{
	struct cursor bytes = cursor__take(c, size);

	*attr = (struct perf_event_attr){};
	if (!bytes.bad)
		memcpy(attr, bytes.at, min_u64(size, sizeof(*attr)));
}

/* Its ids are the rest of `ids`. */
static int add_kind(struct perf_file *f, const struct perf_event_attr *attr, struct cursor ids)
{
	struct perf_kind kind = {.attr = *attr};
	uint32_t number = (uint32_t)f->kinds.count;
	int err;

	if (number >= PERF_EVENTS_MAX)
		return 0;
	if (number && (f->kinds.data[0].attr.sample_type != attr->sample_type ||
		       f->kinds.data[0].attr.sample_id_all != attr->sample_id_all))
		f->sizes_differ = true;
	f->records_build_ids |= attr->build_id;
	f->has_times |= !!(attr->sample_type & PERF_SAMPLE_TIME);
	err = vec_push(&f->kinds, kind);
	while (!err && ids.end - ids.at >= 8)
		err = add_id(f, cursor__u64(&ids), number);
	return err;
}

/* Names by the first id; of events without ids by their number. */
static void take_names(struct perf_file *f, struct cursor *c)
{
	uint32_t count = cursor__u32(c), size = cursor__u32(c);

	for (uint32_t i = 0; i < count && !c->bad; i++) {
		char name[PERF_NAME_SIZE] = "";
		struct perf_kind *kind;
		uint64_t id;
		uint32_t ids;

		cursor__skip(c, size);
		ids = cursor__u32(c);
		take_string(c, name, sizeof(name));
		id = ids ? cursor__u64(c) : 0;
		cursor__skip(c, ids ? 8 * ((uint64_t)ids - 1) : 0);
		kind = ids ? perf_file__kind(f, id) : NULL;
		if (!kind && i < f->kinds.count)
			kind = &f->kinds.data[i];
		if (kind && !c->bad)
			memcpy(kind->name, name, sizeof(name));
	}
}

/* ---- build ids ------------------------------------------------------------------------------- */

const struct perf_build_id *perf_file__build_id(const struct perf_file *file, const char *path)
{
	const struct perf_build_id *id = perf_build_ids__find(&file->build_ids, path);

	return id && id->size && !id->is_doubtful ? id : NULL;
}

/* Older files do not say how long it is: zeros at the end are none of it. */
static uint8_t size_of_id(const uint8_t *bytes, bool has_size)
{
	uint8_t size = BUILD_ID_SIZE;

	if (has_size)
		return bytes[BUILD_ID_SIZE] <= BUILD_ID_SIZE ? bytes[BUILD_ID_SIZE] : 0;
	while (size >= 4 &&
	       !(bytes[size - 1] | bytes[size - 2] | bytes[size - 3] | bytes[size - 4]))
		size -= 4;
	return size;
}

/* *entry: of the path; NULL: it is longer than those of mappings, or over a limit. 0 or -ENOMEM. */
static int need_path(struct perf_file *f, const char *path, struct perf_build_id **entry)
{
	size_t size = strlen(path) + 1;
	struct perf_build_id fresh = {};

	*entry = perf_build_ids__find(&f->build_ids, path);
	if (*entry || size > EVENT_PATH_MAX || f->build_ids.count >= PERF_BUILD_IDS_MAX ||
	    size > PERF_PATHS_MAX - f->path_bytes)
		return 0;
	fresh.path = strdup(path);
	*entry = fresh.path ? perf_build_ids__need(&f->build_ids, &fresh, NULL) : NULL;
	if (!*entry)
		free(fresh.path);
	f->path_bytes += size;
	return *entry ? 0 : -ENOMEM;
}

static void set_build_id(struct perf_build_id *entry, const uint8_t *bytes, uint8_t size,
			 bool is_kernel)
{
	entry->is_doubtful |= entry->size &&
			      (entry->size != size || memcmp(entry->bytes, bytes, size));
	entry->is_kernel |= is_kernel;
	entry->size = size;
	memcpy(entry->bytes, bytes, size);
}

/* A record's worth: pid, 24 bytes, a path, which may fill its room. */
static int add_build_id(struct perf_file *f, const struct perf_event_header *header,
			struct cursor body)
{
	char path[EVENT_PATH_MAX + 1] = "";
	struct perf_build_id *entry;
	struct cursor bytes;
	uint8_t size;
	int err;

	cursor__skip(&body, 4);
	bytes = cursor__take(&body, 24);
	size = body.bad ? 0 : size_of_id(bytes.at, header->misc & HAS_ID_SIZE);
	if (!size)
		return 0;
	take_text(path, sizeof(path), body.at, (size_t)(body.end - body.at));
	err = need_path(f, path, &entry);
	if (entry)
		set_build_id(entry, bytes.at, size,
			     (header->misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
				     PERF_RECORD_MISC_KERNEL);
	else
		f->left_build_ids++;
	return err;
}

static int take_build_ids(struct perf_file *f, struct cursor *c)
{
	int err = 0;

	while (!err && !c->bad && (size_t)(c->end - c->at) >= sizeof(struct perf_event_header)) {
		struct perf_event_header header;
		struct cursor body;

		memcpy(&header, c->at, sizeof(header));
		if (header.size < sizeof(header))
			break;
		body = cursor__take(c, header.size);
		cursor__skip(&body, sizeof(header));
		if (!body.bad)
			err = add_build_id(f, &header, body);
	}
	return err;
}

/* ---- mappings -------------------------------------------------------------------------------- */

#define MMAP_HEAD      32u /* pid, tid, start, length, page offset */
#define BUILD_ID_LEAST 16u /* bytes of what linkers write */

bool perf_file__has_build_id(const struct perf_file *file, const struct perf_event_header *record,
			     struct cursor body)
{
	uint8_t size;

	if (record->type != PERF_RECORD_MMAP2 || !(record->misc & PERF_RECORD_MISC_MMAP_BUILD_ID))
		return false;
	if (file->records_build_ids)
		return true;
	cursor__skip(&body, MMAP_HEAD);
	size = cursor__u8(&body);
	return size >= BUILD_ID_LEAST && size <= BUILD_ID_SIZE; /* perf inject puts it in */
}

/* In /proc no file has a generation, and on overlayfs another device: then the inode decides alone. */
static bool are_of_two_files(const struct perf_numbers *a, const struct perf_numbers *b)
{
	bool same_device = a->major == b->major && a->minor == b->minor;

	if (!a->generation != !b->generation)
		return same_device && a->inode != b->inode;
	return !same_device || a->inode != b->inode || a->generation != b->generation;
}

static void compare_numbers(struct perf_build_id *entry, const struct perf_numbers *numbers)
{
	entry->is_doubtful |= entry->numbers.inode && are_of_two_files(&entry->numbers, numbers);
	if (!entry->numbers.generation)
		entry->numbers = *numbers;
}

/* A stream has its list behind the mappings. */
int perf_file__note_mapping(struct perf_file *f, const struct perf_event_header *record,
			    struct cursor c)
{
	struct perf_numbers numbers;
	struct perf_build_id *entry;
	const char *path;
	int err = 0;

	if (record->type != PERF_RECORD_MMAP2 || perf_file__has_build_id(f, record, c))
		return 0;
	cursor__skip(&c, MMAP_HEAD);
	numbers.major = cursor__u32(&c);
	numbers.minor = cursor__u32(&c);
	numbers.inode = cursor__u64(&c);
	numbers.generation = cursor__u64(&c);
	cursor__skip(&c, 8); /* protection, flags */
	path = cursor__string(&c);
	if (!path || !numbers.inode)
		return 0;
	entry = perf_build_ids__find(&f->build_ids, path);
	if (!entry && f->is_pipe)
		err = need_path(f, path, &entry);
	if (entry)
		compare_numbers(entry, &numbers);
	return err;
}

/* ---- features -------------------------------------------------------------------------------- */

static void take_clock(struct perf_facts *facts, struct cursor *c)
{
	cursor__skip(c, 8); /* version, number of the clock */
	facts->wall_clock = cursor__u64(c);
	facts->sample_clock = cursor__u64(c);
	if (c->bad)
		facts->wall_clock = facts->sample_clock = 0;
}

static int take_feature(struct perf_file *f, uint64_t feature, struct cursor c)
{
	struct perf_facts *facts = &f->facts;

	switch (feature) {
	case FEATURE_BUILD_ID:
		return take_build_ids(f, &c);
	case FEATURE_HOSTNAME:
		take_string(&c, facts->hostname, sizeof(facts->hostname));
		break;
	case FEATURE_RELEASE:
		take_string(&c, facts->release, sizeof(facts->release));
		break;
	case FEATURE_VERSION:
		take_string(&c, facts->version, sizeof(facts->version));
		break;
	case FEATURE_ARCHITECTURE:
		take_string(&c, facts->architecture, sizeof(facts->architecture));
		break;
	case FEATURE_CPU_COUNT:
		cursor__skip(&c, 4); /* those that could be online */
		facts->cpus = cursor__u32(&c);
		break;
	case FEATURE_CPU:
		take_string(&c, facts->cpu, sizeof(facts->cpu));
		break;
	case FEATURE_COMMAND:
		facts->ran_alone = false;
		take_command(&c, facts);
		break;
	case FEATURE_EVENTS:
		take_names(f, &c);
		break;
	case FEATURE_CLOCK:
		take_clock(facts, &c);
		break;
	}
	return 0;
}

/* Of a feature that lies behind the data. Damaged ones are left out: they are facts alone. */
static int read_feature(struct perf_file *f, unsigned int feature, const struct section *at)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	ssize_t got;

	if (!at->size || at->size > PERF_FEATURE_MAX || at->offset > f->size ||
	    at->size > f->size - at->offset)
		return 0;
	bytes = malloc(at->size);
	if (!bytes)
		return -ENOMEM;
	got = pread_full(f->fd, bytes, at->size, at->offset);
	if (got < 0)
		return (int)got;
	return take_feature(f, feature, (struct cursor){.at = bytes, .end = bytes + got});
}

static int read_features(struct perf_file *f, const struct file_header *header)
{
	struct section sections[FEATURE_BITS];
	unsigned int count = 0, next = 0;
	ssize_t got;
	int err = 0;

	for (unsigned int i = 0; i < FEATURE_BITS / 64; i++)
		count += (unsigned int)__builtin_popcountll(header->features[i]);
	got = pread_full(f->fd, sections, count * sizeof(*sections), f->data_end);
	if (got < 0)
		return (int)got;
	count = (unsigned int)((size_t)got / sizeof(*sections));
	for (unsigned int bit = 0; bit < FEATURE_BITS && next < count && !err; bit++)
		if (header->features[bit / 64] >> bit % 64 & 1)
			err = read_feature(f, bit, &sections[next++]);
	return err;
}

/* ---- a file ---------------------------------------------------------------------------------- */

/* Events can name the same place as that of their ids: the limit is on the bytes of all. */
static int read_ids(struct perf_file *f, const struct perf_event_attr *attr,
		    const struct section *at)
{
	uint64_t there = at->offset < f->size ? min_u64(at->size, f->size - at->offset) : 0;
	uint64_t size = min_u64(there, 8ull * PERF_IDS_MAX - f->id_bytes);
	_cleanup_free_ uint8_t *bytes = malloc(size + 1);
	ssize_t got;

	if (!bytes)
		return -ENOMEM;
	got = pread_full(f->fd, bytes, size, at->offset);
	if (got < 0)
		return (int)got;
	f->id_bytes += (uint64_t)got;
	f->left_ids += (there - size) / 8;
	return add_kind(f, attr, (struct cursor){.at = bytes, .end = bytes + got});
}

/* Each is a struct perf_event_attr, and where its ids are. */
static int read_attrs(struct perf_file *f, const struct file_header *header,
		      struct failure *failure)
{
	uint64_t each = header->attr_size;
	uint64_t count = each ? min_u64(header->attrs.size / each, PERF_EVENTS_MAX) : 0;
	uint8_t bytes[512];
	int err = 0;

	if (each < ATTR_OLDEST + sizeof(struct section) || each > sizeof(bytes))
		return fail(failure, -EBADMSG, "its events have %llu bytes each",
			    (unsigned long long)each);
	for (uint64_t i = 0; i < count && !err; i++) {
		struct cursor c = {.at = bytes, .end = bytes + each};
		struct perf_event_attr attr;
		struct section ids;

		err = pread_exactly(f->fd, bytes, each, header->attrs.offset + i * each);
		if (err)
			return fail(failure, err == -EBADMSG ? -EBADMSG : err,
				    "its events cannot be read: %s", strerror(-err));
		take_attr(&c, each - sizeof(ids), &attr);
		ids.offset = cursor__u64(&c);
		ids.size = cursor__u64(&c);
		err = read_ids(f, &attr, &ids);
	}
	return err ? fail(failure, err, "its events cannot be read: %s", strerror(-err)) : 0;
}

static int read_index(struct perf_file *f, struct failure *failure)
{
	struct file_header header;
	int err = pread_exactly(f->fd, &header, sizeof(header), 0);

	if (err)
		return fail(failure, err, "it ends within its header");
	f->data_start = header.data.offset;
	if (f->data_start < sizeof(header) || f->data_start > f->size)
		return fail(failure, -EBADMSG, "its data do not lie in the file");
	/* perf writes the size at the end: a recording that was killed has 0 */
	f->data_end = header.data.size && header.data.size <= f->size - f->data_start
			      ? f->data_start + header.data.size
			      : f->size;
	err = read_attrs(f, &header, failure);
	if (err)
		return err;
	if (!f->kinds.count)
		return fail(failure, -ENODATA, "it has no events");
	if (!header.data.size)
		return 0;
	if (header.features[FEATURE_DIRECTORY / 64] >> FEATURE_DIRECTORY % 64 & 1)
		return fail(failure, -ENOTSUP,
			    "samples of `perf record --threads` are in files beside it, which "
			    "are not read; `perf script -i DIRECTORY | sysprof report -` reads "
			    "their text");
	err = read_features(f, &header);
	return err ? fail(failure, err, "its facts cannot be read: %s", strerror(-err)) : 0;
}

bool perf_file__probe(int fd)
{
	char magic[8];

	return pread_full(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	       (!memcmp(magic, MAGIC, sizeof(magic)) || !memcmp(magic, MAGIC_OTHER, sizeof(magic)));
}

int perf_file__open(int fd, struct perf_file *file, struct failure *failure)
{
	struct {
		char magic[8];
		uint64_t size;
	} begin;
	off_t size = lseek(fd, 0, SEEK_END); /* file systems of one user refuse fstat() of others */
	int err;

	*file = (struct perf_file){.fd = fd};
	if (size < 0)
		return fail(failure, -errno, "%s", strerror(errno));
	file->size = (uint64_t)size;
	err = pread_exactly(fd, &begin, sizeof(begin), 0);
	if (err)
		return fail(failure, err, "it ends within its header");
	if (!memcmp(begin.magic, MAGIC_OTHER, sizeof(begin.magic)))
		return fail(failure, -ENOTSUP,
			    "it is a perf.data file of a machine with the other byte order");
	if (begin.size >= sizeof(struct file_header))
		return read_index(file, failure);
	if (begin.size != sizeof(begin))
		return fail(failure, -EBADMSG, "its header has %llu bytes",
			    (unsigned long long)begin.size);
	file->is_pipe = true;
	file->data_start = sizeof(begin);
	file->data_end = file->size;
	return 0;
}

void perf_file__fini(struct perf_file *file)
{
	for (size_t i = 0; i < file->build_ids.count; i++)
		free(file->build_ids.data[i].path);
	perf_build_ids__fini(&file->build_ids);
	perf_ids__fini(&file->ids);
	vec_free(&file->kinds);
}

/* ---- records about the file ------------------------------------------------------------------ */

static int take_pipe_attr(struct perf_file *f, struct cursor c)
{
	struct cursor sizes = c;
	struct perf_event_attr attr;
	uint32_t size;

	cursor__skip(&sizes, 4); /* type */
	size = cursor__u32(&sizes);
	take_attr(&c, size, &attr);
	if (c.bad || size < ATTR_OLDEST)
		return 0;
	return add_kind(f, &attr, c);
}

static void take_update(struct perf_file *f, struct cursor c)
{
	uint64_t what = cursor__u64(&c), id = cursor__u64(&c);
	struct perf_kind *kind = perf_file__kind(f, id);

	if (what == UPDATE_NAME && kind && !c.bad && !*kind->name)
		take_text(kind->name, sizeof(kind->name), c.at, (size_t)(c.end - c.at));
}

static int take_about_file(struct perf_file *f, const struct perf_event_header *record,
			   struct cursor c)
{
	uint64_t feature;

	switch (record->type) {
	case PERF_HEADER_ATTR:
		return f->is_pipe ? take_pipe_attr(f, c) : 0;
	case PERF_HEADER_BUILD_ID:
		return add_build_id(f, record, c);
	case PERF_EVENT_UPDATE:
		take_update(f, c);
		return 0;
	case PERF_HEADER_FEATURE:
		feature = cursor__u64(&c);
		return c.bad ? 0 : take_feature(f, feature, c);
	default:
		return 0;
	}
}

/* ---- records --------------------------------------------------------------------------------- */

/* Bytes behind a record that are no records. */
static uint64_t bytes_behind(const struct perf_event_header *record, struct cursor body)
{
	if (record->type == PERF_HEADER_TRACING_DATA)
		return ((uint64_t)cursor__u32(&body) + 7) & ~7ull;
	return record->type == PERF_AUXTRACE ? cursor__u64(&body) : 0;
}

/* One reading of a file. */
struct pass {
	struct perf_file *file;
	perf_take_fn take;
	void *context;
	struct perf_reading *reading;
	struct perf_unpacker *unpacker; /* NULL: no compressed record yet */
	VEC(uint8_t) unpacked;		/* what is not taken yet: part of a record */
	uint64_t unpacked_total;
};

static int take_record(struct pass *p, const struct perf_event_header *record, struct cursor body)
{
	p->reading->records++;
	return (p->file->is_known ? 0 : take_about_file(p->file, record, body))
		       ?: p->take(p->context, record, body);
}

static int take_packed(struct pass *p, const struct perf_event_header *record, struct cursor body);

/* Whole records of the buffer. *used: their bytes, and those behind them that are to be skipped. */
static int take_records(struct pass *p, const uint8_t *buffer, size_t size, bool is_unpacked,
			uint64_t *used)
{
	struct perf_event_header record;
	uint64_t at = 0;
	int err = 0;

	while (!err && at <= size && size - at >= sizeof(record)) {
		struct cursor body;

		memcpy(&record, buffer + at, sizeof(record));
		p->reading->is_damaged = record.size < sizeof(record);
		if (p->reading->is_damaged || record.size > size - at)
			break;
		body = (struct cursor){.at = buffer + at + sizeof(record),
				       .end = buffer + at + record.size};
		at += record.size + min_u64(bytes_behind(&record, body), p->file->size);
		err = is_unpacked || (record.type != PERF_COMPRESSED &&
				      record.type != PERF_COMPRESSED2)
			      ? take_record(p, &record, body)
			      : take_packed(p, &record, body);
	}
	*used = at;
	return err;
}

/* ---- compressed records ---------------------------------------------------------------------- */

#define UNPACK_STEP (256u << 10)

/* Of the stream that all compressed records are, up to a limit for hostile files. */
static int unpack_step(struct pass *p, struct cursor *in, size_t *got)
{
	uint64_t limit = p->file->size * PERF_UNPACK_RATIO + PERF_UNPACK_FREE, used;
	int err = vec_reserve(&p->unpacked, p->unpacked.count + UNPACK_STEP);

	if (err)
		return err;
	err = perf_unpacker__step(p->unpacker, in, p->unpacked.data + p->unpacked.count,
				  UNPACK_STEP, got);
	if (err)
		return err;
	p->unpacked.count += *got;
	p->unpacked_total += *got;
	if (p->unpacked_total > limit)
		return -EBADMSG;
	err = take_records(p, p->unpacked.data, p->unpacked.count, true, &used);
	if (!err && (used > p->unpacked.count || p->reading->is_damaged))
		return -EBADMSG;
	vec_drop(&p->unpacked, err ? 0 : used);
	return err;
}

static int unpack_record(struct pass *p, struct cursor in)
{
	size_t got;
	int err;

	do
		err = unpack_step(p, &in, &got);
	while (!err && (got == UNPACK_STEP || (got && in.at < in.end)));
	return err ?: in.at < in.end ? -EBADMSG : 0;
}

/* What comes behind damage in the stream cannot be read. */
static int take_packed(struct pass *p, const struct perf_event_header *record, struct cursor body)
{
	struct perf_reading *reading = p->reading;
	int err = 0;

	if (record->type == PERF_COMPRESSED2) /* its size, without what fills it up */
		body = cursor__take(&body, cursor__u64(&body));
	if (!reading->compressed && !p->unpacker)
		err = perf_unpacker__new(&p->unpacker);
	if (err == -ENOPKG)
		reading->lacks_library = true;
	if (!err && !reading->compressed && !body.bad)
		err = unpack_record(p, body);
	reading->compressed += err == -ENOPKG || err == -EBADMSG || reading->compressed || body.bad;
	reading->is_damaged = false;
	return err == -ENOPKG || err == -EBADMSG ? 0 : err;
}

/* ---- one reading ----------------------------------------------------------------------------- */

static int read_pass(struct pass *p)
{
	struct perf_file *file = p->file;
	size_t room = min_u64(BUFFER_SIZE, file->data_end - file->data_start) + 1;
	_cleanup_free_ uint8_t *buffer = malloc(room);
	uint64_t at = file->data_start, used = 1;
	int err = buffer ? 0 : -ENOMEM;

	while (!err && at < file->data_end && used && !p->reading->is_damaged) {
		ssize_t got = pread_full(file->fd, buffer, min_u64(room, file->data_end - at), at);

		if (got <= 0)
			return (int)got;
		err = take_records(p, buffer, (size_t)got, false, &used);
		at += used;
	}
	if (!err && at < file->data_end)
		p->reading->left = file->data_end - at;
	return err;
}

int perf_file__each(struct perf_file *file, perf_take_fn take, void *context,
		    struct perf_reading *reading)
{
	struct pass p = {.file = file, .take = take, .context = context, .reading = reading};
	int err;

	*reading = (struct perf_reading){};
	err = read_pass(&p);
	file->is_known |= !err;
	perf_unpacker__free(p.unpacker);
	vec_free(&p.unpacked);
	return err;
}
