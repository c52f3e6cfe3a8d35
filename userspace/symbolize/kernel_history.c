/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel reports BPF programs, trampolines and pages of kprobes when they come and when they
 * go, with their place and length. Each is a span: a range of addresses for a time. An address is
 * used again soon, because programs are packed.
 *
 * Code that overlaps a span is proof that the span's code is gone, also if its removal was not
 * reported (records can be lost; older recordings have no removals).
 *
 * Of code that was there before the recording, a removal has the first report. Its span begins
 * with time. Such spans, and functions that only readings of kallsyms had, can overlap others: a
 * reported beginning counts more, and of two others with different names neither is taken.
 */
#include "symbolize/kernel_history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "base/order.h"
#include "symbolize/kallsyms.h"

#define SPANS_MAX (128u << 10)
#define STEPS_MAX (16u << 20) /* under a second */
#define BUILTIN	  "[__builtin__"

void kernel_history__fini(struct kernel_history *h)
{
	vec_free_with(&h->spans, span, free(span->name));
}

/* ---- ranges ---------------------------------------------------------------------------------- */

/* Number of spans that begin before `address`. */
static size_t count_before(const struct kernel_history *h, uint64_t address)
{
	return partition_point(h->spans.data, h->spans.count, s, s->start < address);
}

/* The next one before `span` that overlaps what begins at `start`; NULL: none, or too many steps. */
static struct kernel_span *overlapping(struct kernel_history *h, struct kernel_span *span,
				       uint64_t start)
{
	while (span > h->spans.data && h->look_steps < STEPS_MAX) {
		span--;
		h->look_steps++;
		if (span->start < start && start - span->start >= h->longest)
			return NULL;
		if (span->end > start)
			return span;
	}
	return NULL;
}

#define each_overlapping(h, span, start, end)                                                      \
	for (struct kernel_span *span =                                                            \
		     overlapping(h, (h)->spans.data + count_before(h, end), start);                \
	     span; span = overlapping(h, span, start))

/* ---- what is reported ------------------------------------------------------------------------ */

/* "NAME\0[MODULE]" */
static int set_name(struct kernel_span *span, const char *name, size_t name_size,
		    const char *module, size_t module_size)
{
	const size_t builtin = strlen(BUILTIN);
	char *at;

	span->name = calloc(1, name_size + module_size + 2);
	if (!span->name)
		return -ENOMEM;
	memcpy(span->name, name, name_size);
	if (!module_size)
		return 0;
	at = span->name + name_size + 1;
	span->module = at;
	if (module_size > builtin && !memcmp(module, BUILTIN, builtin)) {
		*at++ = '[';
		module += builtin;
		module_size -= builtin;
	}
	memcpy(at, module, module_size);
	return 0;
}

/* Takes the span's name. Of spans with the same start the newest is the last. */
static int insert(struct kernel_history *h, const struct kernel_span *span)
{
	size_t at = count_before(h, span->start + 1);

	if (h->spans.count >= SPANS_MAX || vec_push(&h->spans, *span)) {
		bool full = h->spans.count >= SPANS_MAX;

		free(span->name);
		h->left |= full;
		return full ? 0 : -ENOMEM;
	}
	memmove(&h->spans.data[at + 1], &h->spans.data[at],
		(h->spans.count - 1 - at) * sizeof(*span));
	h->spans.data[at] = *span;
	h->longest = max_u64(h->longest, span->end - span->start);
	return 0;
}

static int insert_code(struct kernel_history *h, const struct kernel_code *code,
		       struct kernel_span span)
{
	span.start = code->start;
	span.end = code->end;
	return set_name(&span, code->name, code->name_size, code->tag, code->tag_size)
		       ?: insert(h, &span);
}

/*
 * Ends what is in the range. Was code among it that begins there? Of spans with the same start only
 * the newest can have no end. The others are skipped: a place is used often.
 */
static bool end_all(struct kernel_history *h, const struct kernel_code *code, uint64_t time)
{
	size_t at = count_before(h, code->end);
	bool same = false;

	while (at) {
		const uint64_t start = h->spans.data[at - 1].start;
		struct kernel_span *newest;

		if (start < code->start && code->start - start >= h->longest)
			break;
		h->steps++;
		newest = &h->spans.data[at - 1];
		at = count_before(h, start);
		if (newest->until != KERNEL_STAYS || newest->end <= code->start)
			continue;
		newest->until = time;
		same |= start == code->start;
	}
	return same;
}

/* Each report may overlap all spans before it: there is a limit on the searches. */
static bool is_blind(struct kernel_history *h, uint64_t time)
{
	if (h->steps < STEPS_MAX)
		return false;
	h->left = true;
	if (!h->blind_from)
		h->blind_from = max_u64(time, 1);
	return true;
}

int kernel_history__add(struct kernel_history *h, const struct kernel_code *code, uint64_t time)
{
	if (is_blind(h, time))
		return 0;
	end_all(h, code, time);
	return insert_code(
		h, code,
		(struct kernel_span){.from = time, .until = KERNEL_STAYS, .is_sure = true});
}

int kernel_history__remove(struct kernel_history *h, const struct kernel_code *code, uint64_t time)
{
	if (is_blind(h, time) || end_all(h, code, time))
		return 0;
	return insert_code(h, code, (struct kernel_span){.until = time});
}

int kernel_history__keep(struct kernel_history *h, const struct kernel_function *f, uint64_t from,
			 uint64_t until)
{
	struct kernel_span span = {
		.start = f->address,
		.end = f->address + (f->size ?: KERNEL_EXTENT_UNKNOWN),
		.from = from,
		.until = until,
	};

	return set_name(&span, f->name, strlen(f->name), f->module, strlen(f->module))
		       ?: insert(h, &span);
}

static int drop_function(void *context, const struct kernel_function *function)
{
	(void)context;
	(void)function;
	return 0;
}

static bool has_function(struct kallsyms *reading, uint64_t address)
{
	struct kernel_function function;

	return !kallsyms__find(reading, address, &function) && function.address == address;
}

int kernel_history__meet(struct kernel_history *h, struct kallsyms *reading, uint64_t time)
{
	int err = 0;

	for (size_t i = 0; i < h->spans.count && !err; i++) {
		struct kernel_span *span = &h->spans.data[i];

		if (span->until == KERNEL_STAYS && span->from < time && *span->name &&
		    !has_function(reading, span->start))
			span->until = time;
		else if (span->until > time)
			err = kallsyms__void(reading, span->start, span->end, drop_function, NULL);
	}
	return err;
}

/* ---- look-ups -------------------------------------------------------------------------------- */

/* Each look-up may walk all spans: then there are no more of them. */
static bool is_exhausted(struct kernel_history *h)
{
	h->left |= h->look_steps >= STEPS_MAX;
	return h->look_steps >= STEPS_MAX;
}

const struct kernel_span *kernel_history__at(struct kernel_history *h, uint64_t address,
					     uint64_t time)
{
	const struct kernel_span *found = NULL;

	if (h->blind_from && time >= h->blind_from)
		return NULL;
	each_overlapping (h, span, address, address + 1) {
		if (time < span->from || time >= span->until)
			continue;
		if (span->is_sure)
			return span;
		if (found && strcmp(found->name, span->name) != 0)
			return NULL;
		found = span;
	}
	return is_exhausted(h) ? NULL : found;
}

bool kernel_history__changed(struct kernel_history *h, uint64_t address, uint64_t from,
			     uint64_t until)
{
	each_overlapping (h, span, address, address + 1) {
		if ((span->from > from && span->from <= until) ||
		    (span->until > from && span->until <= until))
			return true;
	}
	return is_exhausted(h);
}

void kernel_history__forget(struct kernel_history *h, uint64_t time)
{
	const bool blind = h->blind_from;
	size_t kept = 0;

	for (size_t i = 0; i < h->spans.count; i++) {
		const uint64_t until = h->spans.data[i].until;

		if (until <= time || (blind && until == KERNEL_STAYS))
			free(h->spans.data[i].name);
		else
			h->spans.data[kept++] = h->spans.data[i];
	}
	h->spans.count = kept;
	h->steps = h->look_steps = h->blind_from = 0;
	h->left = false;
}
