/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbolize/sealed_protocol.h"

#include <errno.h>
#include <string.h>

#include "base/clocks.h"
#include "base/minmax.h"
#include "stream/event_decode.h"
#include "symbolize/module_code.h"
#include "symbolize/sealed.h"
#include "symbolize/symbol_index.h"
#include "tenants/child.h"

struct sealed_report {
	int64_t error;
	struct module_report report;
};

#define BUFFER_SIZE MESSAGE_SIZE_MAX
#define PATIENCE    50000000ull /* ns after which an answer is not kept back */

/* Limits for all answers together: names of templates can be long, but not all of them are. */
#define ANSWERS_BASE	    (64ull << 20)
#define ANSWERS_PER_ADDRESS (16ull << 10)
#define ANSWERS_MAX	    (2ull << 30)

/* Code, and its lines in addition. */
#define CODE_MAX (8ull * MODULE_CODE_MAX)

/* ---- the child's side ------------------------------------------------------------------------ */

static int send_bytes(struct sealed_writer *w, uint32_t flags, const void *bytes, size_t size)
{
	w->message.frame = (struct message_frame){.flags = flags, .size = size};
	if (size)
		memcpy(w->message.bytes, bytes, size);
	return message__write(CHILD_SOCKET, &w->message);
}

static int flush_answers(struct sealed_writer *w)
{
	size_t size = w->blob.bytes.count, part;
	int err = 0;

	for (size_t at = 0; at < size && !err; at += part) {
		part = min_u64(size - at, MESSAGE_SIZE_MAX);
		err = send_bytes(w, 0, w->blob.bytes.data + at, part);
	}
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

int sealed_writer__end(struct sealed_writer *w, int error, const struct module_report *report)
{
	struct sealed_report last;
	int err = flush_answers(w);

	/* padding too: nothing of our memory goes out by accident */
	memset(&last, 0, sizeof(last));
	last.error = error;
	last.report = *report;
	symbol_blob__fini(&w->blob);
	return err ? err : send_bytes(w, MESSAGE_DONE, &last, sizeof(last));
}

int sealed_writer__bytes(struct sealed_writer *w, const void *data, size_t size)
{
	size_t part;
	int err;

	do {
		part = min_u64(size, MESSAGE_SIZE_MAX);
		err = send_bytes(w, part == size ? MESSAGE_DONE : 0, data, part);
		data = (const char *)data + part;
		size -= part;
	} while (size && !err);
	return err;
}

/* ---- the parent's side ----------------------------------------------------------------------- */

void sealed_answers__init(struct sealed_answers *a, size_t expected)
{
	*a = (struct sealed_answers){.expected = expected};
}

void sealed_answers__fini(struct sealed_answers *a)
{
	vec_free(&a->bytes);
	vec_free(&a->index);
	vec_free(&a->code);
}

static uint64_t size_limit(const struct sealed_answers *a)
{
	uint64_t limit = ANSWERS_MAX;

	if (a->expected < ANSWERS_MAX / ANSWERS_PER_ADDRESS)
		limit = ANSWERS_BASE + a->expected * ANSWERS_PER_ADDRESS;
	return min_u64(limit, ANSWERS_MAX);
}

static int take_report(struct sealed_answers *a, const struct message_buffer *message)
{
	struct sealed_report last;

	if (message->frame.size != sizeof(last) || a->checked != a->bytes.count)
		return -EBADMSG;
	memcpy(&last, message->bytes, sizeof(last));
	if ((unsigned int)last.report.state >= SYMBOL_STATE_COUNT ||
	    (unsigned int)last.report.dwarf >= DWARF_STATE_COUNT || last.error > 0 ||
	    last.error < -4095 || (last.report.left & ~MODULE_LEAVES) ||
	    (!last.error && a->results != a->expected))
		return -EBADMSG;
	a->error = (int)last.error;
	a->report = last.report;
	a->finished = true;
	return 0;
}

/* Checks the complete answers. */
static int check_answers(struct sealed_answers *a)
{
	struct symbol_answer answer;
	int more;

	while ((more = symbol_blob__next(a->bytes.data, a->bytes.count, &a->checked, &answer)) > 0)
		if (answer.address != a->results || a->results++ >= a->expected)
			return -EBADMSG;
	return more;
}

/* Code, then the index. */
static int take_more(struct sealed_answers *a, const struct message_buffer *message)
{
	bool last = message->frame.flags == MESSAGE_DONE;
	bool is_code = a->takes_code && !a->code_finished;
	size_t size = message->frame.size;

	if ((!is_code && (!a->takes_index || a->index_finished)) ||
	    (message->frame.flags && !last) || (!size && !last))
		return -EBADMSG;
	if (is_code) {
		if (a->code.count + size > CODE_MAX)
			return -EFBIG;
		a->code_finished = last;
		return vec_append(&a->code, message->bytes, size);
	}
	if (a->index.count + size > SYMBOL_INDEX_MAX)
		return -EFBIG;
	a->index_finished = last;
	return vec_append(&a->index, message->bytes, size);
}

bool sealed_answers__has_code(const struct sealed_answers *a)
{
	const char *bytes = a->code.data;
	size_t at = 0;

	if (!a->code_finished || !a->code.count)
		return false;
	while (at < a->code.count) {
		const struct event_header *event = (const void *)(bytes + at);

		if (event_check(event, a->code.count - at) ||
		    (event->type != EVENT_CODE_TEXT && event->type != EVENT_CODE_LINES &&
		     event->type != EVENT_SOURCE))
			return false;
		at += event->size;
	}
	return true;
}

int sealed_answers__take(struct sealed_answers *a, const struct message_buffer *message)
{
	size_t size = message->frame.size;

	if (a->finished)
		return take_more(a, message);
	if (message->frame.flags == MESSAGE_DONE)
		return take_report(a, message);
	if (message->frame.flags || !size)
		return -EBADMSG;
	if (a->bytes.count + size > size_limit(a))
		return -EFBIG;
	return vec_append(&a->bytes, message->bytes, size) ?: check_answers(a);
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
