/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A record is handled once it is complete. Lines and CFI of a load are records of their own right
 * before it. Sizes inside a record are checked against its end.
 */
#include "jit/jitdump.h"

#include <errno.h>
#include <string.h>

#include "base/minmax.h"
#include "jit/jit_name.h"
#include "jit/perf_map.h"

#define MAGIC	      0x4a695444u
#define MAGIC_SWAPPED 0x4454694au
#define VERSION	      1
#define FLAG_TSC      1u
#define NAME_MAX_SIZE 4096u /* of a file; of code it is PERF_MAP_LINE_MAX */
#define V8_SHIFT      0x40  /* V8 counts from an ELF header that it does not write */

enum record_id {
	RECORD_LOAD,
	RECORD_MOVE,
	RECORD_DEBUG_INFO,
	RECORD_CLOSE,
	RECORD_UNWINDING_INFO,
};

struct file_header {
	uint32_t magic, version, total_size, machine, pad, pid;
	uint64_t time, flags;
};

struct record {
	uint32_t id, total_size;
	uint64_t time;
};

struct load {
	uint32_t pid, tid;
	uint64_t vma, address, size, index;
};

struct move {
	uint32_t pid, tid;
	uint64_t vma, from, to, size, index;
};

struct debug_info {
	uint64_t address, count;
};

struct debug_entry {
	uint64_t address;
	uint32_t line, discriminator;
};

struct unwinding_info {
	uint64_t size, eh_frame_header_size, mapped_size;
};

/* The bytes of a record after its prefix. */
struct body {
	const char *at;
	size_t left;
};

static bool take_bytes(struct body *body, void *to, size_t size)
{
	if (size > body->left)
		return false;
	memcpy(to, body->at, size);
	body->at += size;
	body->left -= size;
	return true;
}

/* A text with its NUL. NULL: it does not end within the record. */
static const char *take_text(struct body *body)
{
	const char *text = body->at;
	const char *end = body->left ? memchr(text, 0, body->left) : NULL;

	if (!end)
		return NULL;
	body->left -= end + 1 - text;
	body->at = end + 1;
	return text;
}

/* ---- data of the next load ------------------------------------------------------------------- */

static void forget_pending(struct jitdump_reader *r)
{
	r->lines.count = r->files.count = r->unwinding.count = 0;
	r->lines_of = 0;
}

static int keep_file(struct jitdump_reader *r, const char *file, size_t *offset)
{
	size_t size = strlen(file) + 1;

	*offset = r->files.count;
	return vec_append(&r->files, file, size);
}

#define CODE_SIZE_MAX	(1u << 30) /* of one function, to recognize its lines */
#define BEFORE_CODE_MAX 4096u	   /* see move_into_code() */

static int keep_line(struct jitdump_reader *r, const struct debug_entry *entry, size_t file)
{
	return vec_push(&r->lines, ((struct jitdump_line){
					   .address = entry->address,
					   .line = entry->line,
					   .column = entry->discriminator,
					   .file = (const char *)(uintptr_t)(file + 1),
				   }));
}

static bool belongs_to(const struct debug_entry *entry, uint64_t code)
{
	return entry->address >= code && entry->address - code < CODE_SIZE_MAX;
}

/* The BEAM's first line may begin some bytes before the code; the first instructions are of it. */
static void move_into_code(struct debug_entry *entry, uint64_t code)
{
	if (entry->address < code && code - entry->address <= BEFORE_CODE_MAX)
		entry->address = code;
}

/* 1: the record is not in this form. */
static int read_lines(struct jitdump_reader *r, struct body body, const struct debug_info *info)
{
	static const char SAME_AS_BEFORE[] = "\xff";
	size_t file = 0;
	int err = 0;

	for (uint64_t i = 0; i < info->count && !err; i++) {
		struct debug_entry entry;
		const char *text;

		if (!take_bytes(&body, &entry, sizeof(entry)) || !(text = take_text(&body)))
			return 1;
		move_into_code(&entry, info->address);
		if (!belongs_to(&entry, info->address))
			return 1;
		if (strcmp(text, SAME_AS_BEFORE) || !r->files.count)
			err = keep_file(r, strnlen(text, NAME_MAX_SIZE) < NAME_MAX_SIZE ? text : "",
					&file);
		if (!err)
			err = keep_line(r, &entry, file);
	}
	return err;
}

/*
 * V8 frees a file's name before it writes it (perf-jit.cc: GetScriptName), so its first bytes may
 * be anything, also NUL. Its length is right, and most functions have one name in all entries, so
 * the length follows from the record's size. The name itself is in the function's name, too.
 */
static int read_lines_without_names(struct jitdump_reader *r, struct body body,
				    const struct debug_info *info, size_t name_size)
{
	size_t file;
	int err = keep_file(r, "", &file);

	for (uint64_t i = 0; i < info->count && !err; i++) {
		struct debug_entry entry;

		if (!take_bytes(&body, &entry, sizeof(entry)) || body.left < name_size ||
		    body.at[name_size - 1] || !belongs_to(&entry, info->address))
			return 1;
		body.at += name_size;
		body.left -= name_size;
		err = keep_line(r, &entry, file);
	}
	return err;
}

static void forget_lines(struct jitdump_reader *r)
{
	r->lines.count = r->files.count = 0;
}

/* 1: the record is invalid. */
static int on_debug_info(struct jitdump_reader *r, struct body body)
{
	struct debug_info info;
	uint64_t each;
	int err;

	forget_lines(r);
	if (!take_bytes(&body, &info, sizeof(info)))
		return 1;
	r->lines_of = info.address;
	err = read_lines(r, body, &info);
	if (err != 1 || !info.count || info.count > body.left)
		return err;
	/* the record is padded to eight bytes */
	for (each = body.left / info.count;
	     each > sizeof(struct debug_entry) && body.left - each * info.count < 8 && err == 1;
	     each--) {
		forget_lines(r);
		err = read_lines_without_names(r, body, &info, each - sizeof(struct debug_entry));
	}
	return err;
}

static int on_unwinding_info(struct jitdump_reader *r, struct body body)
{
	struct unwinding_info info;

	r->unwinding.count = 0;
	if (!take_bytes(&body, &info, sizeof(info)) || info.size > body.left ||
	    info.eh_frame_header_size > info.size)
		return 1;
	if (vec_reserve(&r->unwinding, info.size))
		return -ENOMEM;
	if (info.size)
		memcpy(r->unwinding.data, body.at, info.size);
	r->unwinding.count = info.size;
	r->eh_frame_header_size = info.eh_frame_header_size;
	return 0;
}

/* Sets the names of files, and moves V8's addresses to those of the code. */
static void finish_lines(struct jitdump_reader *r, const struct jitdump_load *load)
{
	bool shifted = r->lines.count && r->lines.data[0].address >= load->address + V8_SHIFT &&
		       jit_name_is_js(load->name, strlen(load->name));

	for (size_t i = 0; i < r->lines.count; i++) {
		struct jitdump_line *line = &r->lines.data[i];

		line->file = r->files.data + ((uintptr_t)line->file - 1);
		if (shifted)
			line->address -= V8_SHIFT;
	}
}

/* Without --code the recorder replaces code by zeros. */
static bool is_blank(const char *bytes, uint64_t size)
{
	return !size || (!bytes[0] && !memcmp(bytes, bytes + 1, size - 1));
}

/* ---- records --------------------------------------------------------------------------------- */

static int on_load(struct jitdump_reader *r, const struct record *record, struct body body,
		   const struct jitdump_handler *handler)
{
	struct jitdump_load reported = {.time = record->time};
	struct load load;
	int result;

	if (!take_bytes(&body, &load, sizeof(load)) || !(reported.name = take_text(&body)) ||
	    strnlen(reported.name, PERF_MAP_LINE_MAX) == PERF_MAP_LINE_MAX ||
	    load.size > body.left || load.address + load.size < load.address)
		return 1;
	reported.address = load.address;
	reported.size = load.size;
	if (!is_blank(body.at, load.size))
		reported.code = (const uint8_t *)body.at;
	if (r->lines.count && r->lines_of == load.address) {
		finish_lines(r, &reported);
		reported.lines = r->lines.data;
		reported.line_count = r->lines.count;
	}
	if (r->unwinding.count) {
		reported.unwinding = r->unwinding.data;
		reported.unwinding_size = r->unwinding.count;
		reported.eh_frame_header_size = r->eh_frame_header_size;
	}
	r->counts.loads++;
	result = handler->load ? handler->load(handler->context, &reported) : 0;
	forget_pending(r);
	return result;
}

static int on_move(struct jitdump_reader *r, const struct record *record, struct body body,
		   const struct jitdump_handler *handler)
{
	struct jitdump_move reported = {.time = record->time};
	struct move move;

	if (!take_bytes(&body, &move, sizeof(move)) || move.to + move.size < move.to ||
	    move.from + move.size < move.from)
		return 1;
	reported.from = move.from;
	reported.to = move.to;
	reported.size = move.size;
	r->counts.moves++;
	return handler->move ? handler->move(handler->context, &reported) : 0;
}

static int on_record(struct jitdump_reader *r, const struct record *record, struct body body,
		     const struct jitdump_handler *handler)
{
	int result = 0;

	switch (record->id) {
	case RECORD_LOAD:
		result = on_load(r, record, body, handler);
		break;
	case RECORD_MOVE:
		result = on_move(r, record, body, handler);
		break;
	case RECORD_DEBUG_INFO:
		result = on_debug_info(r, body);
		break;
	case RECORD_CLOSE:
		result = handler->close ? handler->close(handler->context, record->time) : 0;
		break;
	case RECORD_UNWINDING_INFO:
		result = on_unwinding_info(r, body);
		break;
	default: /* unknown kind */
		break;
	}
	if (result != 1)
		return result;
	forget_pending(r);
	r->counts.bad_records++;
	return 0;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* The bytes of the header; 0: it is incomplete; or negative errno. */
static ssize_t take_header(struct jitdump_reader *r, const char *bytes, size_t size)
{
	struct file_header header;

	if (size < sizeof(header))
		return 0;
	memcpy(&header, bytes, sizeof(header));
	if (header.magic == MAGIC_SWAPPED)
		return -ENOTSUP;
	if (header.magic != MAGIC || header.total_size < sizeof(header))
		return -EBADMSG;
	if (header.version != VERSION)
		return -ENOTSUP;
	r->has_header = true;
	r->tsc = header.flags & FLAG_TSC;
	r->machine = header.machine;
	r->skip = header.total_size - sizeof(header);
	return sizeof(header);
}

/* The same for a record. */
static ssize_t take_record(struct jitdump_reader *r, const char *bytes, size_t size,
			   const struct jitdump_handler *handler)
{
	struct record record;
	int err;

	if (size < sizeof(record))
		return 0;
	memcpy(&record, bytes, sizeof(record));
	if (record.total_size < sizeof(record))
		return -EBADMSG;
	if (record.total_size > JITDUMP_RECORD_MAX) {
		r->counts.left++;
		forget_pending(r);
		r->skip = record.total_size;
		return 0;
	}
	if (size < record.total_size)
		return 0;
	err = on_record(r, &record,
			(struct body){bytes + sizeof(record), record.total_size - sizeof(record)},
			handler);
	return err ? err : (ssize_t)record.total_size;
}

/* Parses complete records from the start of the bytes; returns their size. */
static ssize_t take_all(struct jitdump_reader *r, const char *bytes, size_t size,
			const struct jitdump_handler *handler)
{
	size_t done = 0;

	for (;;) {
		uint64_t skipped = min_u64(r->skip, size - done);
		ssize_t taken;

		r->skip -= skipped;
		done += skipped;
		if (r->skip)
			return done;
		taken = r->has_header ? take_record(r, bytes + done, size - done, handler)
				      : take_header(r, bytes + done, size - done);
		if (taken < 0)
			return taken;
		if (!taken && !r->skip)
			return done;
		done += taken;
	}
}

int jitdump_reader__feed(struct jitdump_reader *r, const void *bytes, size_t size,
			 const struct jitdump_handler *handler)
{
	ssize_t done;

	if (!r->rest.count) {
		done = take_all(r, bytes, size, handler);
	} else {
		if (vec_append(&r->rest, bytes, size))
			return -ENOMEM;
		done = take_all(r, r->rest.data, r->rest.count, handler);
	}
	if (done < 0)
		return done;
	if (r->rest.count && !done) /* a long record may come in many pieces */
		return 0;
	if (r->rest.count) {
		r->rest.count -= done;
		memmove(r->rest.data, r->rest.data + done, r->rest.count);
		return 0;
	}
	if ((size_t)done == size)
		return 0;
	if (vec_reserve(&r->rest, size - done))
		return -ENOMEM;
	memcpy(r->rest.data, (const char *)bytes + done, size - done);
	r->rest.count = size - done;
	return 0;
}

size_t jitdump_reader__torn(const struct jitdump_reader *r)
{
	return r->rest.count;
}

void jitdump_reader__fini(struct jitdump_reader *r)
{
	vec_free(&r->rest);
	vec_free(&r->lines);
	vec_free(&r->files);
	vec_free(&r->unwinding);
	*r = (struct jitdump_reader){};
}
