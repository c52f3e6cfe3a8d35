/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers of stream/symbol_blob.h, whose addresses are indices, and then a report with a header as theirs. */
#include "symbolize/sealed_protocol.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clocks.h"
#include "base/io.h"
#include "base/minmax.h"

#define SEALED_REPORT 0xffffu /* in the place of an event's type */

struct report_record {
	struct event_header header;
	int64_t error;
	struct module_report report;
};

#define BUFFER_SIZE (64u << 10)
#define PATIENCE    50000000ull /* ns after which an answer is not kept back */

/* What all answers together may take: names of templates can be long, but not all of them are. */
#define ANSWERS_BASE	    (64ull << 20)
#define ANSWERS_PER_ADDRESS (16ull << 10)
#define ANSWERS_MAX	    (2ull << 30)

/* ---- the child's side ------------------------------------------------------------------------ */

struct sealed_writer {
	int fd;
	uint64_t flushed; /* when */
	struct symbol_blob blob;
};

struct sealed_writer *sealed_writer__new(int fd)
{
	struct sealed_writer *w = calloc(1, sizeof(*w));

	if (w)
		w->fd = fd;
	return w;
}

void sealed_writer__free(struct sealed_writer *w)
{
	if (!w)
		return;
	symbol_blob__fini(&w->blob);
	free(w);
}

static int flush_answers(struct sealed_writer *w)
{
	int err = write_full(w->fd, w->blob.bytes.data, w->blob.bytes.count);

	symbol_blob__take(&w->blob);
	w->flushed = monotonic_ns();
	return err;
}

int sealed_writer__result(void *writer, size_t index, const struct symbol_result *result)
{
	struct sealed_writer *w = writer;
	int err = symbol_blob__add(&w->blob, index, result);

	if (err)
		return err;
	return w->blob.bytes.count >= BUFFER_SIZE || monotonic_ns() - w->flushed > PATIENCE
		       ? flush_answers(w)
		       : 0;
}

int sealed_writer__report(struct sealed_writer *w, int error, const struct module_report *report)
{
	struct report_record record;
	int err = w->blob.bytes.count ? flush_answers(w) : 0;

	/* padding too: nothing of our memory goes out by accident */
	memset(&record, 0, sizeof(record));
	record.header = (struct event_header){.size = sizeof(record), .type = SEALED_REPORT};
	record.error = error;
	record.report = *report;
	return err ? err : write_full(w->fd, &record, sizeof(record));
}

/* ---- the parent's side ----------------------------------------------------------------------- */

void sealed_answers__init(struct sealed_answers *a, size_t expected)
{
	*a = (struct sealed_answers){.expected = expected};
}

void sealed_answers__fini(struct sealed_answers *a)
{
	vec_free(&a->bytes);
}

static uint64_t size_limit(const struct sealed_answers *a)
{
	uint64_t limit = ANSWERS_MAX;

	if (a->expected < ANSWERS_MAX / ANSWERS_PER_ADDRESS)
		limit = ANSWERS_BASE + a->expected * ANSWERS_PER_ADDRESS;
	return min_u64(limit, ANSWERS_MAX);
}

/* 1: the report; 0: not all of it yet. */
static int check_report(struct sealed_answers *a, const char *at, size_t left)
{
	struct report_record record;

	if (left < sizeof(record))
		return 0;
	memcpy(&record, at, sizeof(record));
	if (left != sizeof(record) || record.header.size != sizeof(record) ||
	    (unsigned int)record.report.state >= SYMBOL_STATE_COUNT ||
	    (unsigned int)record.report.dwarf >= DWARF_STATE_COUNT || record.error > 0 ||
	    record.error < -4095 || (!record.error && a->results != a->expected))
		return -EBADMSG;
	a->error = (int)record.error;
	a->report = record.report;
	a->finished = true;
	return 1;
}

/* 1: the next answer, or the report; 0: not all of it yet. */
static int check_next(struct sealed_answers *a)
{
	const char *at = a->bytes.data + a->checked;
	size_t left = a->bytes.count - a->checked;
	struct symbol_answer answer;
	struct event_header header;
	int more;

	if (left < sizeof(header))
		return 0;
	memcpy(&header, at, sizeof(header));
	if (header.type == SEALED_REPORT)
		return check_report(a, at, left);
	more = symbol_blob__next(a->bytes.data, a->bytes.count, &a->checked, &answer);
	if (more > 0 && (answer.address != a->results || a->results++ >= a->expected))
		return -EBADMSG;
	return more;
}

int sealed_answers__feed(struct sealed_answers *a, const void *data, size_t size)
{
	int more;

	if (!size)
		return 0;
	if (a->finished)
		return -EBADMSG;
	if (a->bytes.count + size > size_limit(a))
		return -EFBIG;
	if (vec_reserve(&a->bytes, a->bytes.count + size))
		return -ENOMEM;
	memcpy(a->bytes.data + a->bytes.count, data, size);
	a->bytes.count += size;
	do
		more = check_next(a);
	while (more > 0 && !a->finished);
	return more < 0 ? more : 0;
}

int sealed_answers__deliver(const struct sealed_answers *a, symbol_sink_fn sink, void *context)
{
	const struct symbol_result nothing = {.elf_address = PROFILE_UNKNOWN_ADDRESS};
	struct symbol_answer answer;
	size_t offset = 0;
	int err = 0;

	while (!err && symbol_blob__next(a->bytes.data, a->checked, &offset, &answer) > 0)
		err = sink(context, answer.address, &answer.result);
	for (size_t i = a->results; i < a->expected && !err; i++)
		err = sink(context, i, &nothing);
	return err;
}
