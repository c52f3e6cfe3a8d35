/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of sealed_protocol.h: a header with size and type, and what the type says. */
#include "symbolize/sealed_protocol.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clocks.h"
#include "base/io.h"
#include "base/minmax.h"
#include "base/strtab.h"

enum record_type { RECORD_STRING = 1, RECORD_RESULT, RECORD_REPORT };

struct record {
	uint32_t size; /* with this header */
	uint32_t type;
};

struct result_record {
	struct record header;
	uint64_t index;
	uint64_t elf_address;
	uint64_t same_until;
	uint64_t frame_count;
};

/* Strings by number, 0: none. */
struct result_frame {
	uint64_t function_address, function_size;
	uint32_t function, file, definition_file;
	uint32_t line, column;
	uint32_t definition_line, definition_column;
	uint32_t reserved;
};

struct report_record {
	struct record header;
	int64_t error;
	struct module_report report;
};

#define RECORD_MAX                                                                                 \
	(sizeof(struct result_record) + SEALED_CHAIN_MAX * sizeof(struct result_frame) +           \
	 SEALED_STRING_MAX)
#define BUFFER_SIZE (64u << 10)
#define PATIENCE    50000000ull /* ns after which an answer is not kept back */

/* What all answers together may take: names of templates can be long, but not all of them are. */
#define ANSWERS_BASE	    (64ull << 20)
#define ANSWERS_PER_ADDRESS (16ull << 10)
#define ANSWERS_MAX	    (2ull << 30)

_Static_assert(RECORD_MAX < BUFFER_SIZE, "every record fits into the buffer");

/* ---- the child's side ------------------------------------------------------------------------ */

struct sealed_writer {
	int fd;
	struct strtab *strings;
	uint64_t flushed; /* when */
	size_t used;
	char buffer[BUFFER_SIZE];
};

struct sealed_writer *sealed_writer__new(int fd)
{
	struct sealed_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->fd = fd;
	w->strings = strtab__new();
	if (!w->strings)
		goto err_out;
	return w;

err_out:
	sealed_writer__free(w);
	return NULL;
}

void sealed_writer__free(struct sealed_writer *w)
{
	if (!w)
		return;
	strtab__free(w->strings);
	free(w);
}

static int flush_buffer(struct sealed_writer *w)
{
	int err = write_full(w->fd, w->buffer, w->used);

	w->used = 0;
	w->flushed = monotonic_ns();
	return err;
}

static void put_bytes(struct sealed_writer *w, const void *data, size_t size)
{
	memcpy(w->buffer + w->used, data, size);
	w->used += size;
}

static int make_room(struct sealed_writer *w, size_t size)
{
	return sizeof(w->buffer) - w->used < size ? flush_buffer(w) : 0;
}

/* Number of the string; what is told for the first time goes out before it is used. */
static int tell_string(struct sealed_writer *w, const char *s, uint32_t *number)
{
	struct record record = {.type = RECORD_STRING};
	char cut[SEALED_STRING_MAX];
	size_t length, known = strtab__count(w->strings);
	int64_t id;
	int err;

	*number = 0;
	if (!s || !*s)
		return 0;
	length = strnlen(s, SEALED_STRING_MAX - 1);
	memcpy(cut, s, length);
	cut[length] = '\0';
	id = strtab__intern(w->strings, cut);
	if (id < 0)
		return id;
	*number = id;
	if ((size_t)id < known)
		return 0;
	record.size = sizeof(record) + length + 1;
	err = make_room(w, record.size);
	if (err)
		return err;
	put_bytes(w, &record, sizeof(record));
	put_bytes(w, cut, length + 1);
	return 0;
}

static int tell_frame_strings(struct sealed_writer *w, const struct symbol_frame *frame,
			      struct result_frame *out)
{
	int err = tell_string(w, frame->function, &out->function);

	if (!err)
		err = tell_string(w, frame->file, &out->file);
	if (!err)
		err = tell_string(w, frame->definition_file, &out->definition_file);
	return err;
}

int sealed_writer__result(void *writer, size_t index, const struct symbol_result *result)
{
	struct sealed_writer *w = writer;
	struct result_frame frames[SEALED_CHAIN_MAX];
	struct result_record record = {
		.header = {.size = sizeof(record), .type = RECORD_RESULT},
		.index = index,
		.elf_address = result->elf_address,
		.same_until = result->same_until,
	};
	size_t count = result->frame_count < SEALED_CHAIN_MAX ? result->frame_count
							      : SEALED_CHAIN_MAX;
	int err;

	for (size_t i = 0; i < count; i++) {
		const struct symbol_frame *frame = &result->frames[i];

		frames[i] = (struct result_frame){
			.function_address = frame->function_address,
			.function_size = frame->function_size,
			.line = frame->line,
			.column = frame->column,
			.definition_line = frame->definition_line,
			.definition_column = frame->definition_column,
		};
		err = tell_frame_strings(w, frame, &frames[i]);
		if (err)
			return err;
	}
	record.frame_count = count;
	record.header.size += count * sizeof(frames[0]);
	err = make_room(w, record.header.size);
	if (err)
		return err;
	put_bytes(w, &record, sizeof(record));
	put_bytes(w, frames, count * sizeof(frames[0]));
	return monotonic_ns() - w->flushed > PATIENCE ? flush_buffer(w) : 0;
}

int sealed_writer__report(struct sealed_writer *w, int error, const struct module_report *report)
{
	struct report_record record;
	int err = make_room(w, sizeof(record));

	if (err)
		return err;
	/* padding too: nothing of our memory goes out by accident */
	memset(&record, 0, sizeof(record));
	record.header = (struct record){.size = sizeof(record), .type = RECORD_REPORT};
	record.error = error;
	record.report = *report;
	put_bytes(w, &record, sizeof(record));
	return flush_buffer(w);
}

/* ---- the parent's side ----------------------------------------------------------------------- */

void sealed_answers__init(struct sealed_answers *a, size_t expected)
{
	*a = (struct sealed_answers){.expected = expected};
}

void sealed_answers__fini(struct sealed_answers *a)
{
	vec_free(&a->bytes);
	vec_free(&a->strings);
}

static uint64_t size_limit(const struct sealed_answers *a)
{
	uint64_t limit = ANSWERS_MAX;

	if (a->expected < ANSWERS_MAX / ANSWERS_PER_ADDRESS)
		limit = ANSWERS_BASE + a->expected * ANSWERS_PER_ADDRESS;
	return min_u64(limit, ANSWERS_MAX);
}

static int check_string(struct sealed_answers *a, const char *at, size_t size)
{
	size_t length = size - sizeof(struct record);

	if (size <= sizeof(struct record) || length > SEALED_STRING_MAX ||
	    strnlen(at + sizeof(struct record), length) != length - 1)
		return -EBADMSG;
	return vec_push(&a->strings, a->checked + sizeof(struct record));
}

static int check_result(struct sealed_answers *a, const char *at, size_t size)
{
	struct result_record record;
	struct result_frame frame;

	if (size < sizeof(record))
		return -EBADMSG;
	memcpy(&record, at, sizeof(record));
	if (record.index != a->results || a->results >= a->expected ||
	    record.frame_count > SEALED_CHAIN_MAX ||
	    size != sizeof(record) + record.frame_count * sizeof(frame))
		return -EBADMSG;
	for (size_t i = 0; i < record.frame_count; i++) {
		memcpy(&frame, at + sizeof(record) + i * sizeof(frame), sizeof(frame));
		if (frame.function > a->strings.count || frame.file > a->strings.count ||
		    frame.definition_file > a->strings.count)
			return -EBADMSG;
	}
	a->results++;
	return 0;
}

static int check_report(struct sealed_answers *a, const char *at, size_t size)
{
	struct report_record record;

	if (size != sizeof(record))
		return -EBADMSG;
	memcpy(&record, at, sizeof(record));
	if ((unsigned int)record.report.state >= SYMBOL_STATE_COUNT ||
	    (unsigned int)record.report.dwarf >= DWARF_STATE_COUNT || record.error > 0 ||
	    record.error < -4095 || (!record.error && a->results != a->expected))
		return -EBADMSG;
	a->error = record.error;
	a->report = record.report;
	a->finished = true;
	return 0;
}

static int check_record(struct sealed_answers *a, const char *at, const struct record *record)
{
	switch (record->type) {
	case RECORD_STRING:
		return check_string(a, at, record->size);
	case RECORD_RESULT:
		return check_result(a, at, record->size);
	case RECORD_REPORT:
		return check_report(a, at, record->size);
	}
	return -EBADMSG;
}

int sealed_answers__feed(struct sealed_answers *a, const void *data, size_t size)
{
	struct record record;
	int err;

	if (!size)
		return 0;
	if (a->finished)
		return -EBADMSG;
	if (a->bytes.count + size > size_limit(a))
		return -EFBIG;
	err = vec_reserve(&a->bytes, a->bytes.count + size);
	if (err)
		return err;
	memcpy(a->bytes.data + a->bytes.count, data, size);
	a->bytes.count += size;
	while (a->bytes.count - a->checked >= sizeof(record)) {
		const char *at = a->bytes.data + a->checked;

		memcpy(&record, at, sizeof(record));
		if (a->finished || record.size < sizeof(record) || record.size > RECORD_MAX)
			return -EBADMSG;
		if (record.size > a->bytes.count - a->checked)
			break;
		err = check_record(a, at, &record);
		if (err)
			return err;
		a->checked += record.size;
	}
	return a->finished && a->checked != a->bytes.count ? -EBADMSG : 0;
}

static const char *string_of(const struct sealed_answers *a, uint32_t number)
{
	return number ? a->bytes.data + a->strings.data[number - 1] : NULL;
}

static int deliver_result(const struct sealed_answers *a, const char *at, symbol_sink_fn sink,
			  void *context)
{
	struct symbol_frame frames[SEALED_CHAIN_MAX];
	struct symbol_result result = {.frames = frames};
	struct result_record record;
	struct result_frame from;

	memcpy(&record, at, sizeof(record));
	result.elf_address = record.elf_address;
	result.same_until = record.same_until;
	result.frame_count = record.frame_count;
	for (size_t i = 0; i < record.frame_count; i++) {
		const char *name;

		memcpy(&from, at + sizeof(record) + i * sizeof(from), sizeof(from));
		name = string_of(a, from.function);
		frames[i] = (struct symbol_frame){
			.function = name ? name : "",
			.function_address = from.function_address,
			.function_size = from.function_size,
			.file = string_of(a, from.file),
			.line = from.line,
			.column = from.column,
			.definition_file = string_of(a, from.definition_file),
			.definition_line = from.definition_line,
			.definition_column = from.definition_column,
		};
	}
	return sink(context, record.index, &result);
}

int sealed_answers__deliver(const struct sealed_answers *a, symbol_sink_fn sink, void *context)
{
	const struct symbol_result nothing = {.elf_address = PROFILE_UNKNOWN_ADDRESS};
	struct record record;
	int err;

	for (size_t offset = 0; offset < a->checked; offset += record.size) {
		const char *at = a->bytes.data + offset;

		memcpy(&record, at, sizeof(record));
		err = record.type == RECORD_RESULT ? deliver_result(a, at, sink, context) : 0;
		if (err)
			return err;
	}
	for (size_t i = a->results; i < a->expected; i++) {
		err = sink(context, i, &nothing);
		if (err)
			return err;
	}
	return 0;
}
